// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Workers whose numbers spoil the results of all: NaN and infinity make a result NaN, a block
 * scale coarser than those of all others rounds their small values away, and of int32 and
 * float32 there is no sum.  Nothing is refused, because results do not show whose fault it is.
 * The worker is named by an event, by a line in the log and, for SHOW_NS, in job show and worker
 * show.
 */
#include <errno.h>
#include <stdio.h>

#include "agent/members/internal.h"

#define SHOW_NS      (60000 * NSEC_PER_MSEC)
#define COARSE_ROUNDS 16	/* scales are judged by the slots of so many rounds */

static struct log_limit nonfinite_limit, coarse_limit, types_limit;

static bool is_shown(uint64_t at)
{
	return at && loop_now() - at < SHOW_NS;
}

static void report_nonfinite(struct agent *a, const struct saina_job *job, int w, uint64_t count)
{
	struct worker_numerics *n = &jobs_worker(a, job, w)->numerics;
	struct saina_event ev = {
		.type = SAINA_EV_WORKER_NONFINITE,
		.job = job->id,
		.worker = w,
		.a = count,
	};

	if (!is_shown(n->nonfinite_at)) {
		n->segments = 0;
		/* no warning: normal with loss scaling, which grows until it overflows */
		log_limited(&nonfinite_limit, LOG_L_INFO,
			    "job %s: worker %d (%s) sent NaN or infinity: the result of such a segment is NaN for all",
			    job->name, w, job->worker[w].name);
	}
	n->segments += count;
	n->nonfinite_at = loop_now();
	jobs_event(a, &ev, "the result of such a segment is NaN for all");
	n->round = ev.round;	/* the next one */
}

static void report_coarse(struct agent *a, const struct saina_job *job, int w, uint64_t coarse,
			  uint64_t of)
{
	struct worker_numerics *n = &jobs_worker(a, job, w)->numerics;
	struct saina_event ev = {
		.type = SAINA_EV_WORKER_COARSENED,
		.job = job->id,
		.worker = w,
		.a = coarse,
		.b = of,
	};

	if (!is_shown(n->coarse_at))
		log_limited(
			&coarse_limit, LOG_L_WARN,
			"job %s: worker %d (%s): its block scale is coarser than all others' in %llu of %llu slots: small values of others are rounded away",
			job->name, w, job->worker[w].name, (unsigned long long)coarse,
			(unsigned long long)of);
	n->percent = (unsigned int)(coarse * 100 / of);
	n->coarse_at = loop_now();
	jobs_event(a, &ev, "small values of others are rounded away");
}

/* Judges the scales of the slots that a worker was counted in since the last check. */
static void check_scales(struct agent *a, const struct saina_job *job, int w, uint64_t slots,
			 uint64_t coarse)
{
	struct worker_numerics *n = &jobs_worker(a, job, w)->numerics;
	struct saina_job_rt rt = { 0 };

	/* reading the round costs a system call */
	if (n->known && slots - n->slots < COARSE_ROUNDS)
		return;
	if (!jobs_rt(a, job, &rt))
		rt.next_round = n->first_round;
	/* a new generation may begin at an earlier round */
	if (n->known && rt.next_round >= n->first_round) {
		if (rt.next_round - n->first_round < COARSE_ROUNDS)
			return;
		if ((coarse - n->coarse) * 10 > (slots - n->slots) * 9)
			report_coarse(a, job, w, coarse - n->coarse, slots - n->slots);
	}
	n->first_round = rt.next_round;
	n->slots = slots;
	n->coarse = coarse;
}

void numerics_tick(struct agent *a, const struct saina_job *job, int w,
		   const struct saina_counters *c)
{
	struct worker_numerics *n = &jobs_worker(a, job, w)->numerics;
	uint64_t nonfinite = c->c[SAINA_C_NONFINITE], coarse = c->c[SAINA_C_COARSENED];
	uint64_t slots = c->c[SAINA_C_STORED] + c->c[SAINA_C_ADDED];

	/* the job has new counters, which start at 0 */
	if (n->known && (nonfinite < n->nonfinite || slots < n->slots || coarse < n->coarse))
		n->nonfinite = n->slots = n->coarse = 0;
	/* what an earlier agent has counted is not reported again */
	if (n->known && nonfinite > n->nonfinite)
		report_nonfinite(a, job, w, nonfinite - n->nonfinite);
	n->nonfinite = nonfinite;
	check_scales(a, job, w, slots, coarse);
	n->known = true;
}

static void report_types(struct agent *a, const struct saina_job *job, int w, uint32_t round,
			 bool is_int)
{
	struct worker_numerics *n = &jobs_worker(a, job, w)->numerics;

	if (!is_shown(n->types_at))
		log_limited(&types_limit, LOG_L_WARN,
			    "job %s: round %u has no sum: worker %d (%s) started %s, and others %s",
			    job->name, round, w, job->worker[w].name, is_int ? "int32" : "float32",
			    is_int ? "float32" : "int32");
	n->types_at = loop_now();
	n->types_round = round;
	n->is_int = is_int;
}

/*
 * Names those who are fewer, or all: of two workers nobody knows which one is wrong.  In a tree all
 * workers of this host may have started the same.
 */
void numerics_types(struct agent *a, const struct saina_event *ev)
{
	const struct saina_job *job = saina_core_job_find(a->jobs->core, 1, ev->job, NULL, NULL);
	uint64_t integers = ev->a, floats = ev->b & ~ev->a;
	int more = __builtin_popcountll(integers) - __builtin_popcountll(floats);

	if (job && ev->b && (!integers || !floats))
		log_limited(&types_limit, LOG_L_WARN,
			    "job %s: round %u has no sum: all workers of this host started %s, and some of another host %s",
			    job->name, ev->round, integers ? "int32" : "float32",
			    integers ? "float32" : "int32");
	for (int w = 0; job && w < job->workers; w++) {
		if (more <= 0 && integers >> w & 1)
			report_types(a, job, w, ev->round, true);
		if (more >= 0 && floats >> w & 1)
			report_types(a, job, w, ev->round, false);
	}
}

void numerics_read(struct agent *a, const struct saina_job *job, int w)
{
	struct saina_counters c = { 0 };
	int ret = saina_dp_counters(a->dp, job->id, w, &c);

	/* -ENOENT: the job's first worker makes the maps; before, all counters are 0 */
	if (!ret || ret == -ENOENT)
		numerics_tick(a, job, w, &c);
}

bool numerics_text(struct agent *a, const struct saina_job *job, int w, char *text, size_t size)
{
	const struct worker_numerics *n = &jobs_worker(a, job, w)->numerics;

	if (is_shown(n->types_at))
		snprintf(text, size, "started %s where others started %s, the last time in round %u",
			 n->is_int ? "int32" : "float32", n->is_int ? "float32" : "int32",
			 n->types_round);
	else if (is_shown(n->nonfinite_at))
		snprintf(text, size, "sent NaN or infinity in %llu segments, the last before round %u",
			 (unsigned long long)n->segments, n->round);
	else if (is_shown(n->coarse_at))
		snprintf(text, size,
			 "made the scale of %u %% of its slots coarser: small values of others are rounded away",
			 n->percent);
	else
		return false;
	return true;
}
