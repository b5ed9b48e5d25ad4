// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * All-reduces, round after round, in one or more buckets, and the check of their results.
 */
#include <errno.h>
#include "allreduce.h"

/* Bucket @b of the tensor: its first element and segment, and its length. */
static void bucket(const struct run *r, unsigned int b, uint64_t *first, uint64_t *n,
		   uint32_t *segment)
{
	uint64_t each = (r->n + r->a->buckets - 1) / r->a->buckets;
	uint32_t segs = (each + r->info.payload - 1) / r->info.payload;

	*first = b * each;
	*n = *first >= r->n ? 0 : r->n - *first < each ? r->n - *first : each;
	*segment = b * segs;
}

bool rounds_fit(const struct run *r)
{
	uint64_t first, n;
	uint32_t segment;

	bucket(r, r->a->buckets - 1, &first, &n, &segment);
	return r->n && r->n <= r->info.elements &&
	       segment + (n + r->info.payload - 1) / r->info.payload <= r->info.segments;
}

/* Adds the account of one bucket to that of the round. */
static void merge(struct saina_call *to, const struct saina_call *c, bool first)
{
	if (first) {
		*to = *c;
		return;
	}
	if (c->count_min < to->count_min)
		to->count_min = c->count_min;
	if (c->count_max > to->count_max)
		to->count_max = c->count_max;
	to->mask_any |= c->mask_any;
	to->mask_all &= c->mask_all;
	to->late_segments += c->late_segments;
	to->degraded_segments += c->degraded_segments;
	to->skipped_segments += c->skipped_segments;
	to->rounds_behind = c->rounds_behind;
	if (c->k > to->k)
		to->k = c->k;
	to->next_k = c->next_k;
	to->saturated += c->saturated;
	to->resent += c->resent;
	if (c->time_us > to->time_us)
		to->time_us = c->time_us;
}

static int reduce(struct run *r, uint32_t round, struct saina_call *call)
{
	struct saina_req *req[1000] = { 0 };
	enum saina_result_op op = r->a->type == SAINA_INT32 ? SAINA_SUM : SAINA_MEAN;
	struct saina_call c = { .size = sizeof(c) };
	uint64_t first, n;
	uint32_t segment;
	int ret = 0, err;

	for (unsigned int b = 0; b < r->a->buckets && !ret; b++) {
		bucket(r, b, &first, &n, &segment);
		if (!n)
			break;
		verify_fill(&r->v, round, (uint64_t)segment * r->info.payload, r->buf + first, n);
		ret = saina_allreduce_start(r->s, r->buf + first, n, r->a->type, op, &req[b]);
	}
	for (unsigned int b = 0; b < r->a->buckets; b++) {
		if (!req[b])
			continue;
		c.size = sizeof(c);
		err = run_wait(r, req[b], round, &c);
		if (err == -EINTR)
			return err;
		if (err && !ret)
			ret = err;
		merge(call, &c, !b);
	}
	return ret ? ret : saina_round_done(r->s);
}

static int check(struct run *r, uint32_t round, uint32_t *policy)
{
	uint64_t all = r->info.workers == 64 ? ~0ull : (1ull << r->info.workers) - 1;
	uint64_t first, n;
	uint32_t segment;

	for (unsigned int b = 0; b < r->a->buckets; b++) {
		bucket(r, b, &first, &n, &segment);
		for (uint64_t i = 0; i < n; i += r->info.payload, segment++) {
			struct saina_segment g = { .size = sizeof(g) };
			uint32_t m = n - i < r->info.payload ? n - i : r->info.payload;

			if (saina_segment(r->s, segment, &g) || g.round != round) {
				if (!r->a->verify)
					continue;
				fprintf(stderr, "saina-allreduce: round %u: the job's policy has steps, whose sums can be checked only with --steps: give --steps or --no-verify\n",
					round);
				return -EOPNOTSUPP;
			}
			*policy = g.policy;
			if (g.mask != all)
				r->short_mask = true;
			if (r->a->verify)
				verify_segment(&r->v, segment, &g, r->buf + first + i, m);
		}
	}
	return 0;
}

static void check_residual(struct run *r, uint32_t last)
{
	uint32_t res[2048], segment;
	uint64_t first, n;

	r->residual_checked = true;
	for (unsigned int b = 0; b < r->a->buckets; b++) {
		bucket(r, b, &first, &n, &segment);
		for (uint64_t i = 0; i < n; i += r->info.payload, segment++) {
			uint32_t m = n - i < r->info.payload ? n - i : r->info.payload;

			if (saina_residual(r->s, (uint64_t)segment * r->info.payload, m,
					   r->a->type, res) ||
			    !verify_residual(&r->v, last, segment, res, m)) {
				if (!r->residual_wrong)
					fprintf(stderr, "saina-allreduce: the residual of segment %u does not match the contributions that were not counted\n",
						segment);
				r->residual_wrong = true;
			}
		}
	}
}

int rounds_run(struct run *r)
{
	uint32_t round = r->info.round, policy = 0;
	struct saina_call call = { 0 };
	uint64_t wrong;
	int ret;

	for (; !stop_asked() && (!r->a->rounds || round < r->a->rounds); round++) {
		if (r->a->sweep.end)
			sweep_round(r, round);
		run_think(r);
		if (stop_asked())
			break;
		table_progress(r, round);
		ret = reduce(r, round, &call);
		if (ret == -ESTALE && r->a->skip) {
			r->stale++;
			saina_info(r->s, &r->info);
			round = r->info.next_round;
			ret = saina_set_round(r->s, round);
			verify_missed(&r->v);
			round--;	/* the loop adds it */
			if (!ret)
				continue;
		}
		if (ret) {
			fprintf(stderr, "saina-allreduce: round %u: %s\n", round,
				run_sentence(r, ret));
			return ret;
		}
		round = call.round;	/* earlier, if others waited in the skipped one */
		wrong = r->v.wrong;
		ret = check(r, round, &policy);
		if (ret)
			return ret;
		table_add(r, &call, r->v.wrong - wrong);
		report_round(r, &call, policy);
		if (r->v.wrong) {
			fprintf(stderr, "saina-allreduce: wrong sum: %s\n", r->v.what);
			return 0;
		}
	}
	if (r->a->verify && round && !r->stale)
		check_residual(r, round - 1);
	return 0;
}
