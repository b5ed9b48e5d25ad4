// SPDX-License-Identifier: GPL-2.0-or-later
/* saina top - takes samples and computes rates from the previous one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monotonic.h"
#include "top_data.h"

#define DECAY 0.9 /* each new sample multiplies the weight of the older ones by this */

static void add_sample(struct history *h, double v)
{
	h->v[h->next] = v;
	h->next = (h->next + 1) % HISTORY;
	if (h->n < HISTORY)
		h->n++;
}

static void job_cb(void *arg, const void *obj)
{
	const struct saina_job_attrs *a = obj;
	struct top *top = arg;
	struct top_job *j = &top->job[a->id % SAINA_JOBS_MAX];

	if (!j->worker)
		j->worker = calloc(SAINA_WORKERS_MAX, sizeof(*j->worker));
	if (!j->worker) {
		snprintf(top->error, sizeof(top->error), "out of memory");
		return;
	}
	/* another job has this number now: discard the samples of the old one */
	if (a->generation != j->generation || strcmp(a->name, j->attrs.name)) {
		struct top_worker *w = j->worker;

		memset(w, 0, SAINA_WORKERS_MAX * sizeof(*w));
		memset(j, 0, sizeof(*j));
		j->worker = w;
		j->generation = a->generation;
	}
	j->there = true;
	j->attrs = *a;
	memset(&j->bottleneck, 0, sizeof(j->bottleneck));
}

static void worker_cb(void *arg, const void *obj)
{
	const struct saina_worker_attrs *a = obj;
	struct top *top = arg;
	struct top_job *j = &top->job[a->job_id % SAINA_JOBS_MAX];

	if (!j->there || a->id >= SAINA_WORKERS_MAX)
		return;
	j->worker[a->id].there = true;
	j->worker[a->id].attrs = *a;
	bottleneck_add_worker(&j->bottleneck, a);
}

static void stats_cb(void *arg, const void *obj)
{
	const struct saina_stats_attrs *a = obj;
	struct top *top = arg;
	struct top_job *j = &top->job[a->job_id % SAINA_JOBS_MAX];

	if (!SAINA_HAS(a, SAINA_A_STATS_WORKER) || !j->there || a->worker >= SAINA_WORKERS_MAX)
		return;
	memcpy(j->worker[a->worker].c, a->counters, sizeof(a->counters));
	bottleneck_add_stats(&j->bottleneck, a);
}

static void slot_cb(void *arg, const void *obj)
{
	bottleneck_add_slot(&((struct top_job *)arg)->bottleneck, obj);
}

static __u64 sum_drops(const __u64 *c)
{
	__u64 sum = 0;

#define ADD(id, name, drop, text) sum += drop ? c[SAINA_C_##id] : 0;
	SAINA_COUNTER_LIST(ADD)
#undef ADD
	return sum;
}

/* Counters of all workers, dead ones included: sums of the job. */
static __u64 sum_workers(const struct top_job *j, int counter)
{
	__u64 sum = 0;

	for (int w = 0; w < SAINA_WORKERS_MAX; w++)
		sum += j->worker[w].c[counter];
	return sum;
}

/*
 * Which share of the sums was made without the worker?  Its counters are compared with the sums of
 * the sample before, which were complete when they were read.
 */
static double find_missed(const struct top_job *j, struct top_worker *w)
{
	__u64 sums = j->completed[0] - j->completed[1], missed;

	if (w->session != w->attrs.session) {
		/* sums that were opened before it joined need no gradient of it */
		w->session = w->attrs.session;
		memset(&w->sums, 0, sizeof(w->sums));
	}
	if (!j->known)
		return 0;
	missed = saina_missed_add(&w->sums, j->completed[0], sum_workers(j, SAINA_C_STORED), saina_in_time(w->c));
	return !sums ? 0 : missed < sums ? (double)missed / sums : 1;
}

static void update_worker_rates(struct top_job *j, struct top_worker *w, int id, double dt, __u64 sums)
{
	__u64 in_time = w->c[SAINA_C_STORED] + w->c[SAINA_C_ADDED] - w->before[SAINA_C_STORED] -
			w->before[SAINA_C_ADDED];

	w->wait = j->bottleneck.wait_us[id] / 1e6;
	w->late_ms = saina_lateness_ms(w->attrs.arrival_us, w->attrs.arrivals, w->arrival_us, w->arrivals);
	w->arrivals = w->attrs.arrivals;
	w->arrival_us = w->attrs.arrival_us;
	w->missed = find_missed(j, w);
	if (w->known && j->known) {
		w->rate = in_time / dt;
		w->last = sums ? (double)(w->c[SAINA_C_COMPLETED] - w->before[SAINA_C_COMPLETED]) / sums : 0;
		w->resent = (w->c[SAINA_C_RESENT] - w->before[SAINA_C_RESENT]) / dt;
		w->drops = (sum_drops(w->c) - sum_drops(w->before)) / dt;
		add_sample(&w->misses, w->missed);
		w->recent = DECAY * w->recent + w->c[SAINA_C_COMPLETED] - w->before[SAINA_C_COMPLETED];
	}
	w->known = true;
	memcpy(w->before, w->c, sizeof(w->c));
}

static void update_job_rates(struct top_job *j, double dt)
{
	const struct saina_job_attrs *a = &j->attrs;
	__u64 sums = 0;
	int w;

	for (w = 0; w < SAINA_WORKERS_MAX; w++)
		if (j->worker[w].known)
			sums += j->worker[w].c[SAINA_C_COMPLETED] - j->worker[w].before[SAINA_C_COMPLETED];
	for (w = 0; w < SAINA_WORKERS_MAX; w++)
		if (j->worker[w].there)
			update_worker_rates(j, &j->worker[w], w, dt, sums);
	/* count recent sums only */
	j->bottleneck.total = 0;
	for (w = 0; w < SAINA_WORKERS_MAX; w++) {
		j->bottleneck.completed[w] = j->worker[w].recent;
		j->bottleneck.total += j->bottleneck.completed[w];
	}
	j->flips = a->sfcd_observed ? (double)a->sfcd_flips / a->sfcd_observed : 0;
	if (j->known) {
		j->rounds = (a->round - j->round_before) / dt;
		j->goodput = 8.0 * sums * a->payload * (a->elem_type == SAINA_ELEM_BFLOAT16 ? 2 : 4) / dt;
		add_sample(&j->rounds_history, j->rounds);
		add_sample(&j->k_history, a->k);
		add_sample(&j->flips_history, j->flips);
	}
	j->known = true;
	j->round_before = a->round;
	j->completed[1] = j->completed[0];
	j->completed[0] = sum_workers(j, SAINA_C_COMPLETED);
}

static void mark_absent(struct top *top)
{
	for (int i = 0; i < SAINA_JOBS_MAX; i++) {
		top->job[i].there = false;
		for (int w = 0; w < SAINA_WORKERS_MAX && top->job[i].worker; w++)
			top->job[i].worker[w].there = false;
	}
}

bool top_sample(struct top *top, struct saina_ctl *agent)
{
	double now, dt;
	int ret, i;

	mark_absent(top);
	top->error[0] = 0;
	ret = rpc_call_quiet(agent, SAINA_CMD_JOB_GET, true, NULL, NULL, &saina_job_class, job_cb, top);
	if (!ret)
		ret = rpc_call_quiet(agent, SAINA_CMD_WORKER_GET, true, NULL, NULL, &saina_worker_class,
				     worker_cb, top);
	for (i = 0; !ret && i < SAINA_JOBS_MAX; i++) {
		struct saina_stats_attrs stats = { .job_id = i };
		struct saina_slot_attrs slot = { .job_id = i };

		if (!top->job[i].there)
			continue;
		SAINA_SET(&slot, SAINA_A_SLOT_JOB_ID);
		SAINA_SET(&stats, SAINA_A_STATS_JOB_ID);
		ret = rpc_call_quiet(agent, SAINA_CMD_STATS_GET, true, &saina_stats_class, &stats,
				     &saina_stats_class, stats_cb, top);
		if (!ret && top->job[i].attrs.open_slots)
			ret = rpc_call_quiet(agent, SAINA_CMD_SLOT_GET, true, &saina_slot_class, &slot,
					     &saina_slot_class, slot_cb, &top->job[i]);
		/* the job was deleted after the dump */
		if (ret == -ENOENT) {
			top->job[i].there = false;
			ret = 0;
		}
	}
	if (ret) {
		snprintf(top->error, sizeof(top->error), "%s", saina_ctl_error(agent));
		mark_absent(top);
		return false;
	}
	now = monotonic_ns() / 1e9;
	dt = now - top->at > 0.001 ? now - top->at : 0.001;
	top->at = now;
	for (i = 0; i < SAINA_JOBS_MAX; i++)
		if (top->job[i].there)
			update_job_rates(&top->job[i], dt);
	return true;
}

void top_free(struct top *top)
{
	for (int i = 0; i < SAINA_JOBS_MAX; i++)
		free(top->job[i].worker);
}
