// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina monitor arrivals - prints, at the end of each round, how late the gradients were that came
 * since the previous line. It dumps the job's workers after each ROUND event, so the data path has
 * no extra work.
 *
 * Work is bounded: all ROUND events that are pending after a dump become one sample, of the newest
 * round, which says how many rounds were skipped.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor_print.h"
#include "signals.h"
#include "tool.h"

#define EVENTS_MAX 4096 /* events read before a sample; a dump queues at most as many */

/*
 * @heard: there was a ROUND event, so @next is valid
 * @due: @event is newer than the last sample
 * @next: the round after the last sample, or the first known one
 * @skipped: rounds without a sample since the last printed line
 * @n, @us: per worker, number of arrivals and sum of their lateness at the last sample
 */
struct job_arrivals {
	bool heard, due;
	__u32 next;
	__u64 skipped;
	struct saina_event_attrs event;
	__u64 n[SAINA_WORKERS_MAX], us[SAINA_WORKERS_MAX];
};

/* @which: the job to monitor; without a name or number: all */
struct arrivals_monitor {
	struct saina_ctl *ctl;
	struct saina_worker_attrs which;
	struct job_arrivals job[SAINA_JOBS_MAX];
	size_t n_workers;
	struct saina_worker_attrs worker[SAINA_WORKERS_MAX];
};

static bool is_wanted(const struct arrivals_monitor *m, const struct saina_event_attrs *ev)
{
	if (SAINA_HAS(&m->which, SAINA_A_WORKER_JOB_ID))
		return ev->job_id == m->which.job_id;
	if (SAINA_HAS(&m->which, SAINA_A_WORKER_JOB_NAME))
		return !strcmp(ev->job_name, m->which.job_name);
	return true;
}

static int on_event(const struct nlmsghdr *nlh, void *arg)
{
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(nlh);
	struct saina_event_attrs ev;
	struct arrivals_monitor *m = arg;
	struct job_arrivals *job;

	if (g->cmd != SAINA_CMD_EVENT)
		return 0;
	if (saina_ctl_decode(nlh, &saina_event_class, &ev)) {
		fprintf(stderr, "saina: monitor: a malformed notification was skipped\n");
		return 0;
	}
	if (!SAINA_HAS(&ev, SAINA_A_EVENT_JOB_ID) || ev.job_id >= SAINA_JOBS_MAX)
		return 0;
	job = &m->job[ev.job_id];
	/* deleted: the next job of that number begins at 0 */
	if (ev.type == SAINA_EV_JOB_STATE && !ev.b)
		memset(job, 0, sizeof(*job));
	if (ev.type != SAINA_EV_ROUND || !is_wanted(m, &ev))
		return 0;
	if (!job->heard || ev.round < job->next)
		job->next = ev.round;
	job->heard = true;
	job->event = ev;
	job->due = true;
	return 0;
}

static void print_line(const struct job_arrivals *job, const struct saina_worker_attrs *w, __u64 n, __u64 us)
{
	const struct saina_event_attrs *ev = &job->event;

	out_open(NULL);
	monitor_time_print(ev->time);
	out_str("event", "%s", "arrivals");
	out_str("job", ev->job_name[0] ? " job %s" : NULL, ev->job_name);
	out_uint("job_id", ev->job_name[0] ? NULL : " job %" PRIu64, ev->job_id);
	out_uint("worker", " worker %" PRIu64, w->id);
	out_uint("round", " round %" PRIu64, ev->round);
	out_float("last_ms", " last %.3f ms late", (double)w->arrival_last_us / 1000);
	out_uint("arrived", " arrived %" PRIu64, n);
	out_float("mean_ms", " mean %.3f ms", (double)us / n / 1000);
	out_uint("skipped", " skipped %" PRIu64 "\n", job->skipped);
	out_close();
}

/* Stores the counters of @w; with @print, prints their change. Returns whether it printed. */
static bool update_worker(struct job_arrivals *job, const struct saina_worker_attrs *w, bool print)
{
	__u64 n = w->arrivals, us = w->arrival_us, old_n, old_us;
	bool anew;

	if (w->id >= SAINA_WORKERS_MAX || !SAINA_HAS(w, SAINA_A_WORKER_ARRIVALS))
		return false;
	old_n = job->n[w->id];
	old_us = job->us[w->id];
	job->n[w->id] = n;
	job->us[w->id] = us;
	/* the job was restarted and counts from 0 */
	anew = n < old_n || us < old_us;
	if (anew)
		old_n = old_us = 0;
	if (n == old_n || !print)
		return false;
	print_line(job, w, n - old_n, us - old_us);
	return true;
}

static void collect_worker(void *arg, const void *obj)
{
	struct arrivals_monitor *m = arg;

	if (m->n_workers < ARRAY_SIZE(m->worker))
		memcpy(&m->worker[m->n_workers++], obj, sizeof(m->worker[0]));
}

static void sample_job(struct arrivals_monitor *m, __u16 id)
{
	struct saina_worker_attrs of = { .job_id = id };
	struct job_arrivals *job = &m->job[id];
	bool printed = false;

	job->due = false;
	m->n_workers = 0;
	SAINA_SET(&of, SAINA_A_WORKER_JOB_ID);
	/*
	 * The job is gone or changed during the dump: the next event triggers another one. A closed
	 * connection is reported by read_events().
	 */
	if (rpc_call_quiet(m->ctl, SAINA_CMD_WORKER_GET, true, &saina_worker_class, &of, &saina_worker_class,
			   collect_worker, m))
		return;
	job->skipped += job->event.round - job->next;
	job->next = job->event.round + 1;
	for (size_t i = 0; i < m->n_workers; i++)
		if (m->worker[i].job_id == id)
			printed |= update_worker(job, &m->worker[i], true);
	if (printed)
		job->skipped = 0;
}

/* Waits for events and reads those that are pending; 0, or the error that ended the connection. */
static int read_events(struct arrivals_monitor *m)
{
	int ret;

	for (int i = 0; i < EVENTS_MAX && !stop_requested(); i++) {
		/* the wait is finite, because a signal may come just before it */
		ret = saina_ctl_next(m->ctl, i ? 0 : 500, on_event, m);
		if (ret == -ETIMEDOUT || ret == -EINTR)
			return 0;
		if (ret)
			fprintf(stderr, "saina: %s\n", saina_ctl_error(m->ctl));
		if (ret && ret != -ENOBUFS)
			return ret;
	}
	return 0;
}

/* Stores the counters at the start: earlier arrivals are not printed. */
static int read_baseline(struct arrivals_monitor *m)
{
	const struct saina_worker_attrs *w;
	struct rpc_list list;
	int ret;

	if (saina_ctl_subscribe(m->ctl, SAINA_GROUPS_EVENTS)) {
		fprintf(stderr, "saina: %s\n", saina_ctl_error(m->ctl));
		return EXIT_FAILURE;
	}
	ret = rpc_list(m->ctl, SAINA_CMD_WORKER_GET, true, m->which.has ? &saina_worker_class : NULL, &m->which,
		       &saina_worker_class, &list);
	w = list.v;
	for (size_t i = 0; !ret && i < list.n; i++)
		if (w[i].job_id < SAINA_JOBS_MAX)
			update_worker(&m->job[w[i].job_id], &w[i], false);
	rpc_list_free(&list);
	return ret;
}

static int run_monitor(const struct tool *t, struct arrivals_monitor *m)
{
	int ret;

	/* arrivals are in the maps of the data path, which only the agent reads */
	m->ctl = connect_agent(t);
	if (!m->ctl)
		return EXIT_FAILURE;
	stop_on_signals(false);
	ret = read_baseline(m);
	if (ret)
		goto out;
	out_stream(t->mode);
	fprintf(stderr, "saina: monitoring (Ctrl-C ends it)\n");
	while (!ret && !stop_requested() && !ferror(stdout)) {
		ret = read_events(m);
		for (unsigned int id = 0; !ret && id < SAINA_JOBS_MAX; id++)
			if (m->job[id].due)
				sample_job(m, id);
	}
	ret = out_end() || !stop_requested() ? EXIT_FAILURE : 0;
out:
	saina_ctl_close(m->ctl);
	return ret;
}

int monitor_arrivals(const struct tool *t, struct args *a)
{
	struct arrivals_monitor *m = calloc(1, sizeof(*m));
	int ret = 0;

	if (!m) {
		fprintf(stderr, "saina: out of memory\n");
		return EXIT_FAILURE;
	}
	if (args_peek(a))
		ret = parse_job(a, args_next(a), &m->which.has, SAINA_A_WORKER_JOB_ID,
				SAINA_A_WORKER_JOB_NAME, &m->which.job_id, m->which.job_name);
	ret = ret ?: args_done(a);
	ret = ret ?: run_monitor(t, m);
	free(m);
	return ret;
}
