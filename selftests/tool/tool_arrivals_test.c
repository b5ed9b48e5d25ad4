// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina monitor arrivals, against a mock that sends ROUND events and growing arrival counters. It
 * sends events before the end of a dump, so that all of them are pending when the dump is done.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <jansson.h>

#include "linux/saina.h"
#include "saina/bpf.h"
#include "lib/tap.h"
#include "tool/mock_agent.h"

/* A part of the reply to dump number @dump: counters of a worker, or an event. */
struct reply_step {
	int dump, job, worker;	/* worker -1: an event; -2: the answer is a refusal */
	unsigned int n, us, last_us;	/* of an event: type, round, b */
};

#define ROUND(dump, job, round)	{ dump, job, -1, SAINA_EV_ROUND, round, 0 }
#define END			{ -1, 0, 0, 0, 0, 0 }

static struct mock_agent mock;
static char text[1 << 14], json[1 << 14], err[1 << 12];
static int dumps;

static const char *job_name(int job)
{
	return job == 17 ? "digits" : "other";
}

static void send_worker(int fd, const struct nlmsghdr *req, const struct reply_step *s)
{
	char buf[512] __attribute__((aligned(8)));
	struct nlmsghdr *nlh = mock_msg(buf, req, SAINA_CMD_WORKER_GET);

	mnl_attr_put_u16(nlh, SAINA_A_WORKER_JOB_ID, s->job);
	mnl_attr_put_strz(nlh, SAINA_A_WORKER_JOB_NAME, job_name(s->job));
	mnl_attr_put_u8(nlh, SAINA_A_WORKER_ID, s->worker);
	if (s->n) {
		mnl_attr_put_u64(nlh, SAINA_A_WORKER_ARRIVALS, s->n);
		mnl_attr_put_u64(nlh, SAINA_A_WORKER_ARRIVAL_US, s->us);
		mnl_attr_put_u64(nlh, SAINA_A_WORKER_ARRIVAL_LAST_US, s->last_us);
	}
	mock_send(fd, nlh);
}

static void send_event(int fd, const struct reply_step *s)
{
	char buf[512] __attribute__((aligned(8)));
	struct nlmsghdr *nlh = mock_msg(buf, NULL, SAINA_CMD_EVENT);

	mnl_attr_put_u32(nlh, SAINA_A_EVENT_TYPE, s->n);
	mnl_attr_put_u64(nlh, SAINA_A_EVENT_TIME, 3600000000000ull + s->us);
	mnl_attr_put_u16(nlh, SAINA_A_EVENT_JOB_ID, s->job);
	mnl_attr_put_strz(nlh, SAINA_A_EVENT_JOB_NAME, job_name(s->job));
	mnl_attr_put_u32(nlh, SAINA_A_EVENT_ROUND, s->us);
	mnl_attr_put_u64(nlh, SAINA_A_EVENT_A, 0);
	mnl_attr_put_u64(nlh, SAINA_A_EVENT_B, s->last_us);
	mock_send(fd, nlh);
}

static void answer(int fd, const struct nlmsghdr *req, void *arg)
{
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(req);
	bool refused = false;
	const struct reply_step *s;

	if (g->cmd == SAINA_CMD_WORKER_GET) {
		for (s = arg; s->dump >= 0; s++) {
			if (s->dump != dumps)
				continue;
			refused |= s->worker == -2;
			if (s->worker >= 0)
				send_worker(fd, req, s);
			else if (s->worker == -1)
				send_event(fd, s);
		}
		dumps++;
	}
	if (refused)
		mock_refuse(fd, req, ENOENT, "there is no job digits", 0, 0, 0);
	else
		mock_ack(fd, req, NULL);
}

/* Removes the first word of each line, the time of day. */
static void strip_times(char *at)
{
	char *to = at;

	while (*at) {
		at += strcspn(at, " \n");
		at += *at == ' ';
		while (*at && *at != '\n')
			*to++ = *at++;
		if (*at)
			*to++ = *at++;
	}
	*to = 0;
}

static int count_lines(const char *s)
{
	int n = 0;

	for (; *s; s++)
		n += *s == '\n';
	return n;
}

static void check_output(const char *what, const char *line, const struct reply_step *says, const char *want,
			 const char *asked)
{
	int rc;

	dumps = 0;
	mock_reset(&mock, answer, (void *)says);
	rc = mock_monitor(&mock, line, count_lines(want), SIGINT, text, sizeof(text));
	strip_times(text);
	if (!tap_ok(!rc && !strcmp(text, want), "monitor arrivals: %s", what))
		printf("# exit %d, said:\n%s# wanted:\n%s", rc, text, want);
	if (asked && !tap_ok(!strcmp(mock.requests, asked), "monitor arrivals: %s: asks only after a round has ended", what))
		tap_note("asked %s", mock.requests);
}

static const struct reply_step two_rounds[] = {
	{ 0, 17, 4, 40, 5000, 100 }, { 0, 17, 7, 41, 600, 90 }, ROUND(0, 17, 10),
	{ 1, 17, 4, 41, 105123, 100123 }, { 1, 17, 7, 41, 600, 90 }, ROUND(1, 17, 11),
	{ 2, 17, 4, 41, 105123, 100123 }, { 2, 17, 7, 42, 602, 2 }, END
};
static const char two_rounds_text[] =
	"arrivals job digits worker 4 round 10 last 100.123 ms late arrived 1 mean 100.123 ms skipped 0\n"
	"arrivals job digits worker 7 round 11 last 0.002 ms late arrived 1 mean 0.002 ms skipped 0\n";

static void as_json(void)
{
	json_t *j, *want;
	char *second;
	int rc;

	dumps = 0;
	mock_reset(&mock, answer, (void *)two_rounds);
	rc = mock_monitor(&mock, "-j monitor arrivals digits", 2, SIGTERM, json, sizeof(json));
	tap_ok(!rc, "monitor arrivals -j: ends with status 0 on SIGTERM (status %d)", rc);
	second = strchr(json, '\n');
	tap_ok(second && count_lines(json) == 2, "monitor arrivals -j: each worker that was heard of is one line");
	if (second)
		*second = 0;
	j = json_loads(json, 0, NULL);
	want = json_pack("{ss ss si si si sf si sf si}", "event", "arrivals", "job", "digits", "job_id", 17,
			 "worker", 4, "round", 10, "last_ms", 100.123, "arrived", 1, "mean_ms", 100.123,
			 "skipped", 0);
	tap_ok(json_is_string(json_object_get(j, "time")), "monitor arrivals -j: a line has the time of the round");
	tap_ok(json_integer_value(json_object_get(j, "monotonic_ns")) == 3600000000010,
	       "monitor arrivals -j: the time is the event's");
	json_object_del(j, "time");
	json_object_del(j, "monotonic_ns");
	if (!tap_ok(json_equal(j, want), "monitor arrivals -j: a line has the members of the text"))
		tap_note("%s", json);
	json_decref(j);
	json_decref(want);
}

static void lines(void)
{
	static const struct reply_step waiting[] = {
		{ 0, 17, 4, 40, 5000, 100 }, ROUND(0, 17, 10), ROUND(0, 17, 11), ROUND(0, 17, 12),
		{ 1, 17, 4, 43, 11000, 3500 }, ROUND(1, 17, 15), { 1, 17, -1, SAINA_EV_K, 16, 0 },
		{ 2, 17, 4, 43, 11000, 3500 }, ROUND(2, 17, 16),
		{ 3, 17, 4, 44, 11500, 500 }, END
	};
	static const struct reply_step jobs[] = {
		{ 0, 17, 4, 40, 5000, 100 }, { 0, 201, 0, 9, 90, 10 }, ROUND(0, 201, 5), ROUND(0, 17, 10),
		{ 1, 17, 4, 41, 5200, 200 }, { 2, 201, 0, 10, 120, 30 }, END
	};
	static const struct reply_step new[] = {
		{ 0, 17, 4, 0, 0, 0 }, ROUND(0, 17, 0), { 1, 17, 4, 1, 300, 300 }, { 1, 17, 5, 1, 0, 0 }, END
	};
	static const struct reply_step anew[] = {
		{ 0, 17, 4, 40, 5000, 100 }, ROUND(0, 17, 90), { 1, 17, 4, 41, 5100, 100 }, ROUND(1, 17, 1),
		{ 2, 17, 4, 2, 700, 300 }, END
	};
	static const struct reply_step deleted[] = {
		{ 0, 17, 4, 40, 5000, 100 }, { 0, 17, -1, SAINA_EV_JOB_STATE, 0, 0 },
		ROUND(0, 17, 60), { 1, 17, 4, 60, 60000, 1000 }, END
	};
	static const struct reply_step refused[] = {
		{ 0, 17, 4, 40, 5000, 100 }, ROUND(0, 17, 10), ROUND(1, 17, 11), { 1, 17, -2, 0, 0, 0 },
		{ 2, 17, 4, 42, 5400, 300 }, END
	};

	check_output("each worker whose gradients have come since is a line", "monitor arrivals", two_rounds,
		     two_rounds_text, "SUBSCRIBE GROUPS=2; WORKER_GET dump; WORKER_GET dump JOB_ID=17; WORKER_GET dump JOB_ID=17");
	check_output("a job that is named is asked about alone", "monitor arrivals digits", jobs,
		     "arrivals job digits worker 4 round 10 last 0.200 ms late arrived 1 mean 0.200 ms skipped 0\n",
		     "SUBSCRIBE GROUPS=2; WORKER_GET dump JOB_NAME=digits; WORKER_GET dump JOB_ID=17");
	check_output("a job that is numbered is asked about alone", "monitor arrivals 17", jobs,
		     "arrivals job digits worker 4 round 10 last 0.200 ms late arrived 1 mean 0.200 ms skipped 0\n",
		     "SUBSCRIBE GROUPS=2; WORKER_GET dump JOB_ID=17; WORKER_GET dump JOB_ID=17");
	check_output("without a job all jobs are asked about", "monitor arrivals", jobs,
		     "arrivals job digits worker 4 round 10 last 0.200 ms late arrived 1 mean 0.200 ms skipped 0\n"
		     "arrivals job other worker 0 round 5 last 0.030 ms late arrived 1 mean 0.030 ms skipped 0\n", NULL);
	check_output("rounds that ended during a look are one look at the newest, and counted, also over a look that finds nothing",
		     "monitor arrivals digits", waiting,
		     "arrivals job digits worker 4 round 12 last 3.500 ms late arrived 3 mean 2.000 ms skipped 2\n"
		     "arrivals job digits worker 4 round 16 last 0.500 ms late arrived 1 mean 0.500 ms skipped 2\n",
		     "SUBSCRIBE GROUPS=2; WORKER_GET dump JOB_NAME=digits; WORKER_GET dump JOB_ID=17; WORKER_GET dump JOB_ID=17; WORKER_GET dump JOB_ID=17");
	check_output("workers of whom nothing had come before are counted from 0", "monitor arrivals digits", new,
		     "arrivals job digits worker 4 round 0 last 0.300 ms late arrived 1 mean 0.300 ms skipped 0\n"
		     "arrivals job digits worker 5 round 0 last 0.000 ms late arrived 1 mean 0.000 ms skipped 0\n", NULL);
	check_output("a job that begins anew is counted from 0", "monitor arrivals digits", anew,
		     "arrivals job digits worker 4 round 90 last 0.100 ms late arrived 1 mean 0.100 ms skipped 0\n"
		     "arrivals job digits worker 4 round 1 last 0.300 ms late arrived 2 mean 0.350 ms skipped 0\n", NULL);
	check_output("of a job that was deleted nothing is left for the next of its number", "monitor arrivals digits", deleted,
		     "arrivals job digits worker 4 round 60 last 1.000 ms late arrived 60 mean 1.000 ms skipped 0\n", NULL);
	check_output("a look that is refused is made up for at the next round", "monitor arrivals digits", refused,
		     "arrivals job digits worker 4 round 11 last 0.300 ms late arrived 2 mean 0.200 ms skipped 1\n", NULL);
}

static void unknown(int fd, const struct nlmsghdr *req, void *arg)
{
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(req);

	if (g->cmd == SAINA_CMD_WORKER_GET)
		mock_refuse(fd, req, ENOENT, "there is no job nosuch", 0, 0, 0);
	else
		mock_ack(fd, req, NULL);
}

int main(int argc, char **argv)
{
	int rc;

	mock_start(&mock, "saina", argc > 1 ? argv[1] : NULL);
	lines();
	as_json();
	mock_reset(&mock, unknown, NULL);
	rc = mock_run(&mock, "monitor arrivals nosuch", text, sizeof(text), err, sizeof(err));
	tap_ok(rc == 1 && !text[0] && !strcmp(err, "saina: there is no job nosuch\n"),
	       "monitor arrivals: a job that does not exist is refused");
	mock_stop(&mock);
	return tap_done();
}
