// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina-allreduce: the smallest worker, and the test of all others.
 *
 * Joins a job, reduces a tensor of known contents round after round, and checks every
 * element of every result against the mask of contributors that came with it (see
 * verify.h), at the end also what is left in the residual.
 *
 * Exit status: 0 all exact; 1 a wrong sum or residual; 2 usage; 3 could not join;
 * 4 an all-reduce failed; 5 results gone (-ESTALE); 6 more unverifiable segments
 * than allowed.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>
#include "saina.h"
#include "verify.h"

enum {
	EXIT_WRONG = 1, EXIT_USAGE, EXIT_JOIN, EXIT_FAILED, EXIT_STALE, EXIT_UNVERIFIED,
};

enum {
	OPT_DELAY = 256, OPT_STRAGGLE, OPT_CANCEL, OPT_BUCKETS, OPT_CONTENTS, OPT_BSP, OPT_RESTARTS,
	OPT_UNVERIFIED, OPT_SKIP, OPT_JOIN_TIMEOUT, OPT_START_TIMEOUT, OPT_TIMEOUT, OPT_RTO_MIN,
	OPT_WINDOW, OPT_NAME, OPT_NO_VERIFY,
};

struct args {
	struct saina_opts o;
	uint64_t elements;
	uint32_t rounds;
	enum saina_type type;
	enum contents contents;
	uint32_t seed;
	unsigned int delay_us;
	double straggle;
	bool cancel, bsp, restarts, skip, json, verify;
	unsigned int buckets;
	uint64_t unverified;
	const char *log;
};

static const struct argp_option options[] = {
	{ "aggregator", 'a', "ADDR[:PORT]", 0, "the aggregator", 0 },
	{ "job", 'j', "N", 0, "job, 0..255 (0)", 0 },
	{ "worker", 'w', "N", 0, "worker, 0..63 (any)", 0 },
	{ "token", 't', "TOKEN", 0, "of the job", 0 },
	{ "name", OPT_NAME, "TEXT", 0, "shown to people", 0 },
	{ "interface", 'i', "IF", 0, "to use (the route's)", 0 },
	{ "elements", 'n', "N", 0, "of the tensor (as the job has)", 0 },
	{ "type", 'T', "int32|float32", 0, "of the tensor (float32 in jobs of floats, else int32)", 0 },
	{ "rounds", 'r', "N", 0, "go on until round N-1 of the job is done; 0: until SIGTERM (10)", 0 },
	{ "buckets", OPT_BUCKETS, "N", 0, "all-reduces a round is split into (1)", 0 },
	{ "seed", 's', "N", 0, "of the contents, same for all workers (1)", 0 },
	{ "signs", OPT_CONTENTS, "random|steady|flip|wild", 0, "signs at random, the same in each round, or turned in each; wild: floats of all magnitudes, for jobs of floats (random)", 0 },
	{ "think-us", OPT_DELAY, "N", 0, "time to think before each round (0)", 0 },
	{ "delay-us", OPT_DELAY, "N", OPTION_ALIAS, 0, 0 },
	{ "straggle", OPT_STRAGGLE, "P", 0, "with this probability add U(0.5, 2) times that (0)", 0 },
	{ "cancel", OPT_CANCEL, 0, 0, "stop thinking when the round is decided", 0 },
	{ "bsp-check", OPT_BSP, 0, 0, "every segment must have all of the job's workers", 0 },
	{ "restarts", OPT_RESTARTS, 0, 0, "other workers may have been restarted: also accept sums that a fresh start of one explains", 0 },
	{ "no-verify", OPT_NO_VERIFY, 0, 0, "do not check sums (for timing)", 0 },
	{ "unverified", OPT_UNVERIFIED, "N", 0, "segments that may be unverifiable (0)", 0 },
	{ "skip-stale", OPT_SKIP, 0, 0, "when results are gone, go on at the present round", 0 },
	{ "log", 'l', "FILE", 0, "a line of JSON per round", 0 },
	{ "json", 'J', 0, 0, "summary as JSON", 0 },
	{ "window", OPT_WINDOW, "N", 0, "packets in flight (adaptive)", 0 },
	{ "rto-min-us", OPT_RTO_MIN, "N", 0, "smallest retransmission time-out", 0 },
	{ "join-timeout-ms", OPT_JOIN_TIMEOUT, "N", 0, "(5000, -1 for ever)", 0 },
	{ "start-timeout-ms", OPT_START_TIMEOUT, "N", 0, "for the other workers (for ever)", 0 },
	{ "timeout-ms", OPT_TIMEOUT, "N", 0, "silence of the aggregator (60000, -1 for ever)", 0 },
	{ 0 }
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	stop = 1;
}

static double number(struct argp_state *st, const char *name, const char *arg, double lo,
		     double hi, bool whole)
{
	char *end;
	double x = strtod(arg, &end);

	if (end == arg || *end || !(x >= lo && x <= hi) || (whole && x != (double)(int64_t)x))
		argp_error(st, "--%s %s: allowed is a%s number from %g to %g", name, arg,
			   whole ? " whole" : "", lo, hi);
	return x;
}

static int word(struct argp_state *st, const char *name, const char *arg, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (!strcmp(arg, words[i]))
			return i;
	argp_error(st, "--%s %s: not known, see --help", name, arg);
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *st)
{
	static const char *const types[] = { "int32", "float32", NULL };
	static const char *const contents[] = { "random", "steady", "flip", "wild", NULL };
	struct args *a = st->input;

	switch (key) {
	case 'a': a->o.aggregator = arg; break;
	case 'j': a->o.job = number(st, "job", arg, 0, 255, true); break;
	case 'w': a->o.worker = number(st, "worker", arg, -1, 63, true); break;
	case 't': a->o.token = arg; break;
	case OPT_NAME: a->o.name = arg; break;
	case 'i': a->o.interface = arg; break;
	case 'n': a->elements = number(st, "elements", arg, 1, 1e10, true); break;
	case 'T': a->type = word(st, "type", arg, types) ? SAINA_FLOAT32 : SAINA_INT32; break;
	case 'r': a->rounds = number(st, "rounds", arg, 0, 4e9, true); break;
	case OPT_BUCKETS: a->buckets = number(st, "buckets", arg, 1, 1000, true); break;
	case 's': a->seed = number(st, "seed", arg, 0, 4294967295.0, true); break;
	case OPT_CONTENTS: a->contents = word(st, "signs", arg, contents); break;
	case OPT_DELAY: a->delay_us = number(st, "think-us", arg, 0, 1e9, true); break;
	case OPT_STRAGGLE: a->straggle = number(st, "straggle", arg, 0, 1, false); break;
	case OPT_CANCEL: a->cancel = true; break;
	case OPT_BSP: a->bsp = true; break;
	case OPT_RESTARTS: a->restarts = true; break;
	case OPT_NO_VERIFY: a->verify = false; break;
	case OPT_UNVERIFIED: a->unverified = number(st, "unverified", arg, 0, 1e15, true); break;
	case OPT_SKIP: a->skip = true; break;
	case 'l': a->log = arg; break;
	case 'J': a->json = true; break;
	case OPT_WINDOW: a->o.window = number(st, "window", arg, 0, 65536, true); break;
	case OPT_RTO_MIN: a->o.rto_min_us = number(st, "rto-min-us", arg, 0, 1e9, true); break;
	case OPT_JOIN_TIMEOUT:
		a->o.join_timeout_ms = number(st, "join-timeout-ms", arg, -1, 1e9, true);
		break;
	case OPT_START_TIMEOUT:
		a->o.start_timeout_ms = number(st, "start-timeout-ms", arg, 0, 1e9, true);
		break;
	case OPT_TIMEOUT: a->o.timeout_ms = number(st, "timeout-ms", arg, -1, 1e9, true); break;
	case ARGP_KEY_ARG:
		argp_error(st, "%s: not an option", arg);
		break;
	case ARGP_KEY_END:
		if (!a->o.aggregator)
			argp_error(st, "--aggregator is needed");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "Reduce a tensor of known contents, round after round, and check every sum.",
};

struct run {
	struct args *a;
	struct saina *s;
	struct saina_job_info info;
	struct verify v;
	uint32_t *buf;
	uint64_t n;		/* elements, without the gaps between buckets */
	FILE *log;
	uint64_t rng;
	/* sums over the run */
	uint32_t first, rounds;
	uint64_t late, skipped, degraded, resent, saturated, behind, time_us, stale;
	uint32_t crc;
	bool short_mask;	/* a segment without all workers */
	bool residual_wrong;
};

static double uniform(struct run *r)
{
	uint64_t z = (r->rng += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return ((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000ull + t.tv_nsec / 1000;
}

/* The "computation" of a round. */
static void think(struct run *r)
{
	uint64_t us = r->a->delay_us, end, left;
	struct timespec t;

	if (r->a->straggle > 0 && uniform(r) < r->a->straggle)
		us += r->a->delay_us * (0.5 + 1.5 * uniform(r));
	end = now_us() + us;
	while (!stop && (left = end - now_us()) <= us && left) {
		if (r->a->cancel && saina_decided(r->s) == 1)
			return;
		if (r->a->cancel && left > 1000)
			left = 1000;
		t.tv_sec = left / 1000000;
		t.tv_nsec = left % 1000000 * 1000;
		nanosleep(&t, NULL);
	}
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

static void note(struct run *r, const struct saina_call *c, uint32_t policy)
{
	uint32_t crc = crc32(0, (const void *)r->buf, 4 * r->n);

	r->crc = crc32(r->crc, (const void *)&crc, sizeof(crc));
	r->rounds++;
	r->late += c->late_segments;
	r->skipped += c->skipped_segments;
	r->degraded += c->degraded_segments;
	r->resent += c->resent;
	r->saturated += c->saturated;
	r->time_us += c->time_us;
	if (c->rounds_behind > r->behind)
		r->behind = c->rounds_behind;
	if (!r->log)
		return;
	fprintf(r->log, "{\"round\": %u, \"k\": %u, \"next_k\": %u, \"policy\": %u, \"count_min\": %u, \"count_max\": %u, \"mask_any\": \"%#" PRIx64 "\", \"mask_all\": \"%#" PRIx64 "\", \"crc\": \"%08x\", \"late_segments\": %u, \"skipped_segments\": %u, \"degraded_segments\": %u, \"rounds_behind\": %u, \"resent\": %" PRIu64 ", \"saturated\": %" PRIu64 ", \"time_us\": %" PRIu64 "}\n",
		c->round, c->k, c->next_k, policy, c->count_min, c->count_max, c->mask_any, c->mask_all,
		crc, c->late_segments, c->skipped_segments, c->degraded_segments, c->rounds_behind,
		c->resent, c->saturated, c->time_us);
	fflush(r->log);
}

static int rounds(struct run *r)
{
	uint32_t round = r->info.round, policy = 0;
	struct saina_call call = { 0 };
	int ret;

	for (; !stop && (!r->a->rounds || round < r->a->rounds); round++) {
		think(r);
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
		ret = check(r, &policy);
		if (ret)
			return ret;
		note(r, &call, policy);
		if (r->v.wrong) {
			fprintf(stderr, "saina-allreduce: wrong sum: %s\n", r->v.what);
			return 0;
		}
	}
	if (round && !r->stale)
		check_residual(r, round - 1);
	return 0;
}

static void summary(struct run *r, int status)
{
	struct saina_stats t = { .size = sizeof(t) };

	saina_get_stats(r->s, &t);
	printf(r->a->json ?
	       "{\"job\": %d, \"worker\": %d, \"first_round\": %u, \"rounds\": %u, \"exact\": %" PRIu64 ", \"bounded\": %" PRIu64 ", \"unverified\": %" PRIu64 ", \"wrong\": %" PRIu64 ", \"late_segments\": %" PRIu64 ", \"skipped_segments\": %" PRIu64 ", \"degraded_segments\": %" PRIu64 ", \"stale_rounds\": %" PRIu64 ", \"rounds_behind_max\": %" PRIu64 ", \"saturated\": %" PRIu64 ", \"sent\": %" PRIu64 ", \"resent\": %" PRIu64 ", \"pulled\": %" PRIu64 ", \"results\": %" PRIu64 ", \"duplicate_results\": %" PRIu64 ", \"late_answers\": %" PRIu64 ", \"bad_messages\": %" PRIu64 ", \"rejoins\": %" PRIu64 ", \"rtt_us\": %u, \"rto_us\": %u, \"window\": %u, \"relayed\": %d, \"time_us\": %" PRIu64 ", \"crc\": \"%08x\", \"residual\": \"%s\", \"status\": %d}\n" :
	       "job %d worker %d: from round %u, %u rounds; segments: %" PRIu64 " exact (%" PRIu64 " but for the order of addition), %" PRIu64 " unverified, %" PRIu64 " wrong, %" PRIu64 " late, %" PRIu64 " skipped, %" PRIu64 " degraded; %" PRIu64 " stale rounds, at most %" PRIu64 " behind, %" PRIu64 " saturated; sent %" PRIu64 ", resent %" PRIu64 ", pulled %" PRIu64 ", results %" PRIu64 ", duplicates %" PRIu64 ", late answers %" PRIu64 ", bad %" PRIu64 ", rejoins %" PRIu64 "; rtt %u us, rto %u us, window %u, relayed %d, in all-reduce %" PRIu64 " us, crc %08x, residual %s, status %d\n",
	       r->info.job, r->info.worker, r->first, r->rounds, r->v.right, r->v.bounded, r->v.unknown,
	       r->v.wrong, r->late, r->skipped, r->degraded, r->stale, r->behind, r->saturated,
	       t.sent, t.resent, t.pulled, t.results, t.duplicate_results, t.late_answers,
	       t.bad_messages, t.rejoins, t.rtt_us, t.rto_us, t.window, r->info.relayed,
	       r->time_us, r->crc, r->residual_wrong ? "wrong" : "exact", status);
	fflush(stdout);
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
	struct args a = {
		.o = { .size = sizeof(a.o), .worker = -1 },
		.rounds = 10, .seed = 1, .buckets = 1, .verify = true,
	};
	/* Once: end with the round at hand.  Twice: end. */
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESETHAND };
	struct run r = { .a = &a };
	int ret, status;

	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	if (a.log) {
		r.log = strcmp(a.log, "-") ? fopen(a.log, "w") : stdout;
		if (!r.log) {
			fprintf(stderr, "saina-allreduce: %s: %s\n", a.log, strerror(errno));
			return EXIT_USAGE;
		}
	}
	a.o.elements = a.elements;
	ret = saina_open(&r.s, &a.o);
	if (ret) {
		fprintf(stderr, "saina-allreduce: cannot join: %s\n", saina_strerror(NULL, ret));
		return EXIT_JOIN;
	}
	status = prepare(&r);
	if (!status) {
		ret = rounds(&r);
		status = r.v.wrong || r.residual_wrong || (a.bsp && r.short_mask) ? EXIT_WRONG :
			 ret == -ESTALE ? EXIT_STALE : ret ? EXIT_FAILED :
			 r.v.unknown > a.unverified ? EXIT_UNVERIFIED : 0;
		if (a.bsp && r.short_mask)
			fprintf(stderr, "saina-allreduce: a result lacks a worker\n");
		summary(&r, status);
	}
	saina_close(r.s);
	verify_free(&r.v);
	free(r.buf);
	if (r.log && r.log != stdout)
		fclose(r.log);
	return status;
}
