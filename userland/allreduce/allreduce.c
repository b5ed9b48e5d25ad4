// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina-allreduce: a diagnostic worker, and the test of all others.
 *
 * Joins a job, reduces a tensor of known contents round after round, and checks every
 * element of every result against the mask of contributors that came with it (see
 * verify.h), at the end also what is left in the residual.
 *
 * Exit status: 0 all exact; 1 a wrong sum or residual; 2 usage; 3 could not join;
 * 4 an all-reduce failed; 5 results gone (-ESTALE); 6 more unverifiable segments
 * than allowed.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "allreduce.h"

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	stop = 1;
}

static double uniform(struct run *r)
{
	uint64_t z = (r->rng += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return ((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

uint64_t run_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000ull + t.tv_nsec / 1000;
}

void run_pause(uint64_t us)
{
	struct timespec t = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };

	nanosleep(&t, NULL);
}

/* The "computation" of a round. */
void run_think(struct run *r)
{
	uint64_t us = r->a->delay_us, end, left;

	if (r->a->straggle > 0 && uniform(r) < r->a->straggle)
		us += r->a->delay_us * (0.5 + 1.5 * uniform(r));
	end = run_now_us() + us;
	while (!stop && (left = end - run_now_us()) <= us && left) {
		if (r->a->cancel && saina_decided(r->s) == 1)
			return;
		if (r->a->cancel && left > 1000)
			left = 1000;
		run_pause(left);
	}
}

bool run_stops(void)
{
	return stop;
}

/* Bucket @b of the tensor: where it begins in elements and segments. */
static void bucket(const struct run *r, unsigned int b, uint64_t *first, uint64_t *n,
		   uint32_t *segment)
{
	uint64_t each = (r->n + r->a->buckets - 1) / r->a->buckets;
	uint32_t segs = (each + r->info.payload - 1) / r->info.payload;

	*first = b * each;
	*n = *first >= r->n ? 0 : r->n - *first < each ? r->n - *first : each;
	*segment = b * segs;
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
		err = saina_wait(r->s, req[b], &c);
		if (err && !ret)
			ret = err;
		merge(call, &c, !b);
	}
	return ret ? ret : saina_round_done(r->s);
}

static int check(struct run *r, uint32_t *policy)
{
	uint64_t all = r->info.workers == 64 ? ~0ull : (1ull << r->info.workers) - 1;
	uint64_t first, n;
	uint32_t segment;

	for (unsigned int b = 0; b < r->a->buckets; b++) {
		bucket(r, b, &first, &n, &segment);
		for (uint64_t i = 0; i < n; i += r->info.payload, segment++) {
			struct saina_segment g = { .size = sizeof(g) };
			uint32_t m = n - i < r->info.payload ? n - i : r->info.payload;

			if (saina_segment(r->s, segment, &g))
				return -EIO;
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

	for (unsigned int b = 0; r->a->verify && b < r->a->buckets; b++) {
		bucket(r, b, &first, &n, &segment);
		for (uint64_t i = 0; i < n; i += r->info.payload, segment++) {
			uint32_t m = n - i < r->info.payload ? n - i : r->info.payload;

			if (saina_residual(r->s, (uint64_t)segment * r->info.payload, m,
					   r->a->type, res) ||
			    !verify_residual(&r->v, last, segment, res, m)) {
				if (!r->residual_wrong)
					fprintf(stderr, "saina-allreduce: the residual of segment %u is not what was not counted\n",
						segment);
				r->residual_wrong = true;
			}
		}
	}
}

static int rounds(struct run *r)
{
	uint32_t round = r->info.round, policy = 0;
	struct saina_call call = { 0 };
	int ret;

	for (; !stop && (!r->a->rounds || round < r->a->rounds); round++) {
		run_think(r);
		if (stop)
			break;
		ret = reduce(r, round, &call);
		if (ret == -ESTALE && r->a->skip) {
			r->stale++;
			saina_info(r->s, &r->info);
			round = r->info.next_round;
			ret = saina_set_round(r->s, round);
			verify_missed(&r->v);
			round--;	/* the loop's */
			if (!ret)
				continue;
		}
		if (ret) {
			fprintf(stderr, "saina-allreduce: round %u: %s\n", round,
				saina_strerror(r->s, ret));
			return ret;
		}
		round = call.round;	/* which others waited for, after skipping some */
		ret = check(r, &policy);
		if (ret)
			return ret;
		report_round(r, &call, policy);
		if (r->v.wrong) {
			fprintf(stderr, "saina-allreduce: wrong sum: %s\n", r->v.what);
			return 0;
		}
	}
	if (round && !r->stale)
		check_residual(r, round - 1);
	return 0;
}

static int prepare(struct run *r)
{
	uint64_t first, n;
	uint32_t segment;

	r->info.size = sizeof(r->info);
	saina_info(r->s, &r->info);
	r->first = r->info.round;
	if (!r->a->type)
		r->a->type = r->info.type == SAINA_INT32 ? SAINA_INT32 : SAINA_FLOAT32;
	if (r->a->contents == CONTENTS_WILD && r->info.type == SAINA_INT32) {
		fprintf(stderr, "saina-allreduce: --signs wild is for jobs of float32 and bfloat16\n");
		return EXIT_USAGE;
	}
	r->n = r->a->elements ? r->a->elements : r->info.elements;
	if (r->a->buckets > 1 && !r->a->elements)
		r->n -= (uint64_t)r->a->buckets * r->info.payload;	/* room for the gaps */
	bucket(r, r->a->buckets - 1, &first, &n, &segment);
	if (r->n > r->info.elements ||
	    segment + (n + r->info.payload - 1) / r->info.payload > r->info.segments) {
		fprintf(stderr, "saina-allreduce: %u buckets of %" PRIu64 " elements do not fit the job's %" PRIu64 "\n",
			r->a->buckets, r->n, r->info.elements);
		return EXIT_USAGE;
	}
	r->buf = malloc(4 * r->n);
	r->v = (struct verify){
		.type = r->a->type, .wire = r->info.type, .contents = r->a->contents, .seed = r->a->seed,
		.workers = r->info.workers, .me = r->info.worker, .segments = r->info.segments,
		.payload = r->info.payload, .restarts = r->a->restarts,
	};
	r->rng = r->a->seed * 1000003ull + r->info.worker;
	if (!r->buf || verify_init(&r->v, r->first)) {
		fprintf(stderr, "saina-allreduce: out of memory\n");
		return EXIT_FAILED;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct args a;
	/* Once: end with the round at hand.  Twice: end. */
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESETHAND };
	struct run r = { .a = &a };
	int ret, status;

	args_parse(&a, argc, argv);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	if (a.log) {
		r.log = strcmp(a.log, "-") ? fopen(a.log, "w") : stdout;
		if (!r.log) {
			fprintf(stderr, "saina-allreduce: %s: %s\n", a.log, strerror(errno));
			return EXIT_USAGE;
		}
	}
	ret = saina_open(&r.s, &a.o);
	if (ret) {
		fprintf(stderr, "saina-allreduce: cannot join: %s\n", saina_strerror(NULL, ret));
		return EXIT_JOIN;
	}
	status = prepare(&r);
	if (!status && a.steps) {
		status = steps_run(&r);
	} else if (!status) {
		ret = rounds(&r);
		status = r.v.wrong || r.residual_wrong || (a.bsp && r.short_mask) ? EXIT_WRONG :
			 ret == -ESTALE ? EXIT_STALE : ret ? EXIT_FAILED :
			 r.v.unknown > a.unverified ? EXIT_UNVERIFIED : 0;
		if (a.bsp && r.short_mask)
			fprintf(stderr, "saina-allreduce: a result lacks a worker\n");
		report_summary(&r, status);
	}
	saina_close(r.s);
	verify_free(&r.v);
	free(r.buf);
	if (r.log && r.log != stdout)
		fclose(r.log);
	return status;
}
