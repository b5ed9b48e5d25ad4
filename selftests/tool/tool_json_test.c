// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Output of the show commands and of monitor: text, -j and -p of the same objects must agree with
 * each other and with what was sent.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>

#include "lib/tap.h"
#include "saina/counters.h"
#include "tool/mock_replies.h"
#include "tool/mock_agent.h"

static char text[1 << 16], compact[1 << 16], pretty[1 << 16], err[1 << 16];
static struct mock_agent mock;

/* Members that only JSON has, or that text shows in another form. */
static bool is_json_only(const char *key)
{
	static const char *const keys[] = { "job_id", "ifindex", "memory", "memory_used",
					    "memory_job", "age_us",
					    "flip_share", "loss_in", "loss_out", "policy_seq",
					    "policy_active_seq", "relayed", "k",
					    "flips", "observed", "monotonic_ns", "bytes_up", "bytes_down", "time", "generation",
#define NAME(id, name, text) name,
					    SAINA_JOB_COUNTER_LIST(NAME)
					    "type", "seed" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (!strcmp(keys[i], key))
			return true;
	}
	return false;
}

/* Checks that every string and number of the JSON is in the text. Returns their number, or -1. */
static int check_text_has(const char *key, json_t *j)
{
	char want[64];
	json_t *v;
	const char *k;
	size_t i;
	int n = 0, m;

	switch (json_typeof(j)) {
	case JSON_OBJECT:
		json_object_foreach(j, k, v) {
			m = check_text_has(k, v);
			if (m < 0)
				return -1;
			n += m;
		}
		return n;
	case JSON_ARRAY:
		/* sets of workers are ranges in text; the expected words below have them */
		json_array_foreach(j, i, v) {
			m = json_is_object(v) ? check_text_has(key, v) : 0;
			if (m < 0)
				return -1;
			n += m;
		}
		return n;
	case JSON_STRING:
		if (is_json_only(key) || strstr(text, json_string_value(j)))
			return 1;
		tap_note("\"%s\": \"%s\" is not in the text", key, json_string_value(j));
		return -1;
	case JSON_INTEGER:
		snprintf(want, sizeof(want), "%" JSON_INTEGER_FORMAT, json_integer_value(j));
		if (is_json_only(key) || strstr(text, want))
			return 1;
		tap_note("\"%s\": %s is not in the text", key, want);
		return -1;
	default:
		return 0;
	}
}

static json_t *run_json(const char *what, char *buf, size_t size)
{
	char line[128];
	int rc;

	snprintf(line, sizeof(line), "%s", what);
	rc = mock_run(&mock, line, buf, size, err, sizeof(err));
	if (rc || err[0]) {
		tap_note("saina %s: exit %d, said %s", what, rc, err);
		return NULL;
	}
	return json_loads(buf, 0, NULL);
}

static void check_formats(const char *what, const char *const *pieces)
{
	char line[128];
	json_t *j, *p;
	int rc, n;

	mock_reset(&mock, mock_reply_all, NULL);
	rc = mock_run(&mock, what, text, sizeof(text), err, sizeof(err));
	tap_ok(!rc && !err[0], "%s: prints text, without an error", what);
	snprintf(line, sizeof(line), "-j %s", what);
	j = run_json(line, compact, sizeof(compact));
	tap_ok(json_is_array(j) && json_array_size(j), "%s: -j prints an array that is not empty", what);
	tap_ok(strchr(compact, '\n') == compact + strlen(compact) - 1, "%s: -j prints one line", what);
	snprintf(line, sizeof(line), "-p %s", what);
	p = run_json(line, pretty, sizeof(pretty));
	tap_ok(j && p && json_equal(j, p) && strstr(pretty, "\n  "), "%s: -p prints what -j prints, indented", what);
	n = j ? check_text_has("", j) : -1;
	tap_ok(n > 0, "%s: all %d values of the JSON are in the text", what, n);
	for (int i = 0; pieces && pieces[i]; i++) {
		bool json = strchr("[\"", pieces[i][0]);

		if (!tap_ok(strstr(json ? compact : text, pieces[i]), "%s: the expected words %d are printed", what, i))
			printf("# wanted: %s\n# in: %s\n", pieces[i], json ? compact : text);
	}
	json_decref(j);
	json_decref(p);
}

/* Exact output, so that every change of it is noticed. */
static const char *const job_pieces[] = {
	"17: digits: running round 1234 k 3 workers 8 active 0-3,5-6 open-slots 29\n",
	"    policy sfcd:k0=1,kmin=1,sth=0.5,cth=5,stride=32 seq 9, asked for; in force sfcd:k0=2,kmin=1,sth=0.25,cth=k,stride=32 seq 6\n",
	"    elements 301066 type int32 payload 352 segments 856 pool 512 ring 16 exponent -21 memory 12.3 MiB\n",
	"    heartbeat 210 ms dead 2100 ms generation 77\n",
	"    sfcd converged 4 flips 0.4593 (4321 of 9408 signs)\n",
	"    6 of 8 workers take part, not 4,7 (saina worker show says since when)\n",
	"    weights 5,1,1,1,1,1,1,31: a tree of 42 workers\n",
	"201: waiting: forming",
	"    uplink 10.0.0.11:4711 parent-job root parent-worker 7 parent-token-file /etc/saina/token\n"
	"        admitted\n"
	"        tree of 42 workers, ranks from 11, depth 1\n"
	"        away: round 1230 for 77 ms\n"
	"        sent 5.0 MiB received 6.0 MiB\n",
	"\"uplink\":{\"address\":\"10.0.0.11:4711\",\"job\":\"root\",\"worker\":7,",
	"\"tree_workers\":42,\"rank\":11,\"depth\":1,\"away_round\":1230,\"away_ms\":77,\"bytes_up\":5242880,\"bytes_down\":6291456}",
	"    policy bsp seq 9, asked for; none in force yet\n",
#define COUNTED(id, name, text) " " name " 4",
	SAINA_JOB_COUNTER_LIST(COUNTED)
	"\"active\":[0,1,2,3,5,6]",
	"\"policy\":\"sfcd:k0=1,kmin=1,sth=0.5,cth=5,stride=32\",\"policy_seq\":9,\"policy_pending\":true,\"policy_active\":\"sfcd:k0=2,kmin=1,sth=0.25,cth=k,stride=32\",\"policy_active_seq\":6",
	"\"policy_active\":null",
	"\"sfcd\":null",
	"\"exponent\":-21,\"memory\":12897484",
	"\"policy_mix\":0",
	"\"sfcd\":{\"converged\":4,\"flip_share\":0.459",
	NULL,
};
static const char *const worker_pieces[] = {
	"digits worker 4 node4:4242: alive round 1233 seen 93 ms ago results fast\n",
	"    port veth4sw mac 02:11:ab:cd:ef:f0 ip 10.190.0.14 udp-port 40123 session 000000000000cafe\n",
	"digits worker 7 node7:4711: dead round 1111 seen 2345 ms ago results relayed (slow)\n",
	"    port gone ifindex 88 mac",
	"\"port\":null,\"ifindex\":88",
	NULL,
};
static const char *const port_pieces[] = {
	"86: veth4sw: mode native driver veth mtu 1501 workers 62\n",
	"    INJECTED loss-in 0.25 loss-out 0.125 seed 987654321\n",
	"88: veth7sw: mode none driver tun mtu 9001 workers 65 relayed 13\n    driver tun has no native XDP\n",
	"\"injected\":{\"loss_in\":0.25,\"loss_out\":0.125,\"seed\":987654321}",
	NULL,
};
static const char *const slot_pieces[] = {
	"digits slot 300: round 1233 segment 812 has 5 of k 6 age 123.5 ms seen 0-3,5\n    missing 4 (node4:4242) 6 7 (node7:4711)\n",
	"digits slot 301: round 1233 segment 813 has 2 of k 6 age 950 us seen 0-1\n    missing none: the slot completes with the next packet\n",
	"\"missing\":[{\"worker\":4,\"name\":\"node4:4242\"},{\"worker\":6,\"name\":null},{\"worker\":7,\"name\":\"node7:4711\"}]",
	"\"missing\":[]",
	NULL,
};
static const char *const stats_pieces[] = {
	"of no job:\n         stored              101000  gradients that opened a slot\n",
	"job digits worker 4:\n",
	"    drop duplicate",
	"\"job\":null,\"worker\":null,\"counters\":{\"stored\":101000,",
	"\"job_id\":17,\"job\":\"digits\",\"worker\":4,\"counters\":{",
	NULL,
};
static const char *const limits_pieces[] = {
	"jobs 2 of 64\nmemory 24.6 MiB of 3.0 GiB\nmemory-job 1.0 GiB at most\napplied by the kernel\n",
	"[{\"jobs_used\":2,\"jobs\":64,\"memory_used\":25794968,\"memory\":3221225472,\"memory_job\":1073741824,\"backend\":\"kernel\"}]",
	NULL,
};

static void test_filters(void)
{
	mock_reset(&mock, mock_reply_all, NULL);
	mock_run(&mock, "slot show digits older-than 100", text, sizeof(text), err, sizeof(err));
	tap_ok(strstr(text, "slot 300") && !strstr(text, "slot 301"), "slot show older-than: lists only slots that are older");
	mock_run(&mock, "slot show digits older-than 1000", text, sizeof(text), err, sizeof(err));
	tap_ok(!strcmp(text, "no open slot is that old\n"), "slot show older-than: says so if no slot is that old");
	mock_run(&mock, "stats drops", text, sizeof(text), err, sizeof(err));
	tap_ok(strstr(text, "duplicate") && !strstr(text, "stored"), "stats drops: lists only drops");
	mock_run(&mock, "stats show global", text, sizeof(text), err, sizeof(err));
	tap_ok(strstr(text, "of no job") && !strstr(text, "digits"), "stats show global: lists only counters of no job");
	mock_run(&mock, "stats show digits 7 all", text, sizeof(text), err, sizeof(err));
	tap_ok(strstr(text, "worker 7") && !strstr(text, "worker 4") &&
		       strstr(text, "internal                 0"),
	       "stats show, one worker, all: lists zeros");
	mock_run(&mock, "stats show digits 7", text, sizeof(text), err, sizeof(err));
	tap_ok(!strcmp(text, "nothing was counted\n"), "stats show, one worker: leaves out zeros");
	mock_run(&mock, "port show nosuch", text, sizeof(text), err, sizeof(err));
	tap_ok(!strcmp(err, "saina: \"nosuch\" is not a port of the bridge; `saina port show' lists the ports\n"), "port show: an unknown port is refused");
	mock_reset(&mock, mock_ack, NULL);
	mock_run(&mock, "-j job show", text, sizeof(text), err, sizeof(err));
	tap_ok(!strcmp(text, "[]\n"), "job show -j: without jobs an empty array is printed");
}

static void test_monitor(void)
{
	static const char *const pieces[] = {
		" round job digits flips 4321 of 9408 signs round 1240 k 3\n",
		" k job digits 2 -> 3 round 1241 k 3\n",
		" policy job digits 6 -> 9 round 1242",
		" degraded job digits segment 812 contributors 5 round 1243",
		" job-state job digits forming -> running round 1245",
		" worker-dead job digits worker 4 round 1248 k 3 (silent for 2100 ms)\n",
		" worker-late job digits worker 4 gradients 57",
		" port job digits ifindex 86 attached",
		" worker-nonfinite job digits worker 4 gradients 12",
		" worker-coarsened job digits worker 4 slots 95 of 100",
		" worker-behind job digits worker 4 rounds 7 lead 6",
		" types job digits int32 of workers 0-1 float32 of workers 2-3 round",
		" unknown 999 job digits",
		" job-changed 17: digits running policy sfcd:k0=1,kmin=1,sth=0.5,cth=5,stride=32 seq 9 workers 8 active 0-3,5-6\n",
		" job-deleted 17: digits",
		" worker-changed digits worker 4 node4:4242 alive port veth4sw\n",
		" worker-deleted digits worker 4",
		" port-changed 86: veth4sw: mode native",
		" limits-changed jobs 2 of 64 memory 24.6 MiB of 3.0 GiB memory-job 1.0 GiB at most, applied by the kernel\n",
		NULL,
	};
	/* 16 events, 2 + 1 jobs, 2 + 1 workers, 2 ports, limits; in text ports take two lines */
	const int objects = 16 + 3 + 3 + 2 + 1;
	int rc, parsed = 0;
	char *line, *save;

	mock_reset(&mock, mock_reply_all, NULL);
	rc = mock_monitor(&mock, "monitor", objects + 2, SIGINT, text, sizeof(text));
	tap_ok(rc == 0, "monitor: ends with status 0 on SIGINT (status %d)", rc);
	for (int i = 0; pieces[i]; i++) {
		if (!tap_ok(strstr(text, pieces[i]), "monitor: prints%.*s",
			    (int)strcspn(pieces[i], "\n"), pieces[i]))
			printf("# %s\n", text);
	}
	rc = mock_monitor(&mock, "-j monitor", objects, SIGTERM, compact, sizeof(compact));
	tap_ok(rc == 0, "monitor -j: ends with status 0 on SIGTERM (status %d)", rc);
	for (line = strtok_r(compact, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		json_t *j = json_loads(line, 0, NULL);

		parsed += json_is_object(j) && json_object_get(j, "event") &&
			  json_object_get(j, "time") && check_text_has("", j) >= 0;
		json_decref(j);
	}
	tap_ok(parsed == objects, "monitor -j: %d of %d lines are objects whose values are in the text", parsed,
	       objects);
}

int main(int argc, char **argv)
{
	mock_start(&mock, "saina", argc > 1 ? argv[1] : NULL);
	check_formats("job show", job_pieces);
	check_formats("job show digits", NULL);
	check_formats("job add digits elements 5 workers 1", NULL);
	check_formats("worker show", worker_pieces);
	check_formats("port show", port_pieces);
	check_formats("port show veth7sw", NULL);
	check_formats("slot show", slot_pieces);
	check_formats("stats show", stats_pieces);
	check_formats("stats drops all", NULL);
	check_formats("limits show", limits_pieces);
	test_filters();
	test_monitor();
	mock_stop(&mock);
	return tap_done();
}
