// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina-allreduce --steps: pushes updates of known contents, adds up what it reads to a
 * model, and compares that with what all have pushed.
 *
 * The first elements of each segment count: how often each worker has pushed, and whether it has
 * pushed all it wanted to.  They are in every segment because the parameter server takes an update
 * segment by segment: a worker that reads in between gets only some of its segments.  A worker that
 * has pushed all goes on with updates of zeros until its model has those of all others in all
 * segments, so that all models are the same at the end.
 *
 * What a policy drops (coded, late=drop) is pushed again with the next update, so every push
 * is in all models exactly once under every policy.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "allreduce.h"

#define WORKERS 64
#define COUNTS	(2 * WORKERS)	/* elements of a segment: pushes of each worker, and who is at the end */

struct steps {
	struct run *r;
	uint32_t *model;
	uint32_t *sent;		/* the present push, residual and all */
	uint32_t *owed;		/* was dropped: to be pushed again */
	uint64_t n;
	uint32_t pushes, steps, staleness, window_min, window_max, broken;
	uint64_t wait_us, time_us, updates, wrong, dropped;
};

static uint32_t content(const struct run *r, unsigned int worker, uint32_t push, uint64_t i)
{
	uint64_t z = i * 0x9e3779b97f4a7c15ull + ((uint64_t)r->a->seed << 32 | push) * 0xbf58476d1ce4e5b9ull + worker;

	z = (z ^ (z >> 31)) * 0x94d049bb133111ebull;
	return z >> 40;
}

static int fill(struct steps *s, bool pushes, bool last)
{
	struct run *r = s->r;
	unsigned int me = r->info.worker;
	int ret;

	memset(r->buf, 0, 4 * s->n);
	for (uint64_t g = 0; g < s->n; g += r->info.payload) {
		r->buf[g + me] = pushes;
		r->buf[g + WORKERS + me] = last;
	}
	for (uint64_t i = 0; pushes && i < s->n; i++)
		if (i % r->info.payload >= COUNTS)
			r->buf[i] = content(r, me, s->pushes, i);
	ret = saina_residual(r->s, 0, s->n, SAINA_INT32, s->sent);
	for (uint64_t i = 0; i < s->n; i++) {
		r->buf[i] += s->owed[i];
		s->sent[i] += r->buf[i];
		s->owed[i] = 0;
	}
	return ret;
}

/*
 * Notes what round @round has dropped of this worker's push, which is pushed again.  Without rounds
 * (ssp, asp, grouped) nothing is dropped.
 */
static void look_for_dropped(struct steps *s, uint32_t round)
{
	struct saina_segment g = { .size = sizeof(g) };
	struct run *r = s->r;

	for (uint64_t i = 0; i < s->n; i += r->info.payload) {
		uint64_t n = s->n - i < r->info.payload ? s->n - i : r->info.payload;

		if (saina_segment(r->s, i / r->info.payload, &g) || g.round != round ||
		    !(g.flags & SAINA_SEGMENT_DROP_LATE) || g.mask >> r->info.worker & 1)
			continue;
		memcpy(s->owed + i, s->sent + i, 4 * n);
		s->dropped++;
	}
}

static int step(struct steps *s, bool pushes, bool last)
{
	struct saina_step d = { .size = sizeof(d) };
	struct run *r = s->r;
	int ret;

	ret = fill(s, pushes, last);
	if (!ret)
		ret = saina_push(r->s, r->buf, s->n, SAINA_INT32);
	if (!ret)
		ret = stop_read(r->s, &d, r->a->stop_ms);
	if (ret) {
		fprintf(stderr, "saina-allreduce: step %u: %s\n", s->steps, run_sentence(r, ret));
		return ret;
	}
	for (uint64_t i = 0; i < s->n; i++)
		s->model[i] += r->buf[i];
	look_for_dropped(s, d.step);
	s->pushes += pushes;
	s->steps++;
	s->wait_us += d.wait_us;
	s->updates += d.updates_max;
	if (d.staleness > s->staleness)
		s->staleness = d.staleness;
	if (d.window < s->window_min)
		s->window_min = d.window;
	if (d.window > s->window_max)
		s->window_max = d.window;
	s->broken += d.staleness > d.window;
	if (r->log) {
		fprintf(r->log, "{\"step\": %u, \"low\": %u, \"window\": %" PRId64 ", \"staleness\": %u, \"version\": %" PRIu64 ", \"updates_min\": %" PRIu64 ", \"updates_max\": %" PRIu64 ", \"wait_us\": %" PRIu64 "}\n",
			d.step, d.low, d.window == UINT32_MAX ? -1 : (int64_t)d.window, d.staleness,
			d.version_max, d.updates_min, d.updates_max, d.wait_us);
		fflush(r->log);
	}
	return 0;
}

static uint64_t active_workers(struct run *r)
{
	saina_info(r->s, &r->info);
	return r->info.active;
}

/*
 * Does the model have, in each segment, the last push of all workers that were active before it was
 * read (@active) or are now?  A worker that left earlier had pushed all by then.
 */
static bool is_whole(struct steps *s, uint64_t active)
{
	struct run *r = s->r;

	active |= active_workers(r);
	for (uint64_t g = 0; g < s->n; g += r->info.payload)
		for (unsigned int w = 0; w < (unsigned int)r->info.workers; w++)
			if (active >> w & 1 && !s->model[g + WORKERS + w])
				return false;
	return true;
}

/* Counts the elements of the model that are not the sum of the pushes that its segment counts. */
static void compare(struct steps *s)
{
	for (uint64_t i = 0; i < s->n; i++) {
		const uint32_t *pushes = s->model + i - i % s->r->info.payload;
		uint32_t sum = 0;

		if (i % s->r->info.payload < COUNTS)
			continue;
		for (unsigned int w = 0; w < (unsigned int)s->r->info.workers; w++)
			for (uint32_t c = 0; c < pushes[w]; c++)
				sum += content(s->r, w, c, i);
		s->wrong += sum != s->model[i];
	}
}

static void summary(struct steps *s, int status)
{
	struct saina_stats t = { .size = sizeof(t) };
	struct run *r = s->r;

	saina_get_stats(r->s, &t);
	printf("{\"job\": %d, \"worker\": %d, \"pushes\": %u, \"steps\": %u, \"staleness_max\": %u, \"window_min\": %" PRId64 ", \"window_max\": %" PRId64 ", \"beyond_window\": %u, \"updates\": %" PRIu64 ", \"wait_us\": %" PRIu64 ", \"time_us\": %" PRIu64 ", \"think_us\": %" PRIu64 ", \"sent\": %" PRIu64 ", \"resent\": %" PRIu64 ", \"pulled\": %" PRIu64 ", \"bad_messages\": %" PRIu64 ", \"rejoins\": %" PRIu64 ", \"wrong\": %" PRIu64 ", \"dropped\": %" PRIu64 ", \"crc\": \"%08lx\", \"status\": %d}\n",
	       r->info.job, r->info.worker, s->pushes, s->steps, s->staleness,
	       s->window_min == UINT32_MAX ? -1 : (int64_t)s->window_min,
	       s->window_max == UINT32_MAX ? -1 : (int64_t)s->window_max, s->broken, s->updates,
	       s->wait_us, s->time_us, r->thinking_us, t.sent, t.resent, t.pulled, t.bad_messages, t.rejoins, s->wrong, s->dropped,
	       crc32(0, (const void *)s->model, 4 * s->n), status);
	fflush(stdout);
}

int steps_run(struct run *r)
{
	struct steps s = { .r = r, .n = r->n, .window_min = UINT32_MAX };
	uint64_t begin, active;
	bool last;
	int ret = 0, status;

	if (r->info.type != SAINA_INT32 || r->info.payload <= COUNTS || (r->n - 1) % r->info.payload < COUNTS) {
		fprintf(stderr, "saina-allreduce: --steps needs a job of int32 with more than %d elements in each segment, also in the last one (the job has segments of %d)\n",
			COUNTS, r->info.payload);
		return EXIT_USAGE;
	}
	s.model = calloc(3 * s.n, 4);
	if (!s.model) {
		fprintf(stderr, "saina-allreduce: out of memory\n");
		return EXIT_FAILED;
	}
	s.sent = s.model + s.n;
	s.owed = s.sent + s.n;
	begin = monotonic_us();
	do {
		run_think(r);
		last = stop_asked() || s.pushes + 1 == r->a->rounds;
		active = active_workers(r);
		ret = step(&s, true, last);
	} while (!ret && !last);
	s.time_us = monotonic_us() - begin;
	while (!ret && !is_whole(&s, active)) {
		run_pause(1000);
		active = active_workers(r);
		ret = step(&s, false, false);
	}
	if (!ret && r->a->verify)
		compare(&s);
	if (s.wrong)
		fprintf(stderr, "saina-allreduce: %" PRIu64 " elements of the model are not the sum of all pushes\n", s.wrong);
	status = s.wrong ? EXIT_WRONG : ret == -ESTALE ? EXIT_STALE : ret ? EXIT_FAILED : 0;
	summary(&s, status);
	free(s.model);
	return status;
}
