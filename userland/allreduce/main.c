// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina-allreduce: a diagnostic worker that verifies every sum.
 *
 * Joins a job, reduces a tensor of known contents round after round, and checks every
 * element of every result against the mask of contributors that came with it (see
 * verify.h), at the end also what is left in the residual.
 *
 * Exit status: 0 all right; 1 a wrong sum or residual, or with --bsp-check a missing worker;
 * 2 usage; 3 could not join; 4 an all-reduce failed, or no memory; 5 results gone (-ESTALE);
 * 6 more unverifiable segments than allowed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "allreduce.h"

static int prepare(struct run *r)
{
	uint64_t gaps;

	r->info.size = sizeof(r->info);
	saina_info(r->s, &r->info);
	r->first = r->info.round;
	if (!r->a->type)
		r->a->type = r->info.type == SAINA_INT32 ? SAINA_INT32 : SAINA_FLOAT32;
	if (r->a->contents == CONTENTS_WILD && (r->info.type == SAINA_INT32 || r->info.type == SAINA_INT16)) {
		fprintf(stderr, "saina-allreduce: --signs wild is for jobs of float32 and bfloat16\n");
		return EXIT_USAGE;
	}
	if (contents_are_numbers(r->a->contents) && r->info.type != SAINA_INT32 && r->info.type != SAINA_INT16) {
		fprintf(stderr, "saina-allreduce: --values is for jobs of int32 and int16; for jobs of float32 and bfloat16 use --signs wild\n");
		return EXIT_USAGE;
	}
	if (r->a->verify && r->info.ranks != (unsigned int)r->info.workers) {
		fprintf(stderr, "saina-allreduce: the job is in a tree, and its results do not say which workers of other hosts are in them, so they cannot be checked: give --no-verify\n");
		return EXIT_USAGE;
	}
	r->n = r->a->elements ? r->a->elements : r->info.elements;
	if (r->a->sweep.end && !sweep_fits(r)) {
		fprintf(stderr, "saina-allreduce: a tensor of %" PRIu64 " bytes does not fit the job: the job has %" PRIu64 " elements of 4 bytes\n",
			r->a->sweep.end, r->info.elements);
		return EXIT_USAGE;
	}
	gaps = (uint64_t)r->a->buckets * r->info.payload;
	if (r->a->buckets > 1 && !r->a->elements && !r->a->sweep.end)
		r->n -= gaps < r->n ? gaps : r->n;	/* 0 does not fit */
	if (!rounds_fit(r)) {
		fprintf(stderr, "saina-allreduce: %u buckets do not fit the job of %" PRIu64 " elements, because each bucket takes whole segments of %d: lower --buckets or --elements, or add a larger job\n",
			r->a->buckets, r->info.elements, r->info.payload);
		return EXIT_USAGE;
	}
	r->buf = malloc(4 * r->n);	/* of a sweep: its largest size */
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
	struct run r = { .a = &a };
	char text[256];
	int ret, status;

	args_parse(&a, argc, argv);
	stop_catch();
	if (!think_open(&r))
		return EXIT_USAGE;
	if (a.log) {
		r.log = strcmp(a.log, "-") ? fopen(a.log, "w") : stdout;
		if (!r.log) {
			fprintf(stderr, "saina-allreduce: %s: %s\n", a.log, strerror(errno));
			return EXIT_USAGE;
		}
	}
	ret = stop_open(&r.s, &a.o, text, sizeof(text));
	if (ret) {
		fprintf(stderr, "saina-allreduce: cannot join: %s\n", text);
		return EXIT_JOIN;
	}
	status = prepare(&r);
	if (!status && a.steps) {
		status = steps_run(&r);
	} else if (!status) {
		ret = rounds_run(&r);
		status = r.v.wrong || r.residual_wrong || (a.bsp && r.short_mask) ? EXIT_WRONG :
			 ret == -ESTALE ? EXIT_STALE : ret ? EXIT_FAILED :
			 r.v.unknown > a.unverified ? EXIT_UNVERIFIED : 0;
		if (a.bsp && r.short_mask)
			fprintf(stderr, "saina-allreduce: a result does not contain all workers (--bsp-check)\n");
		if (status == EXIT_UNVERIFIED && r.v.what[0])
			fprintf(stderr, "saina-allreduce: not verified: %s\n", r.v.what);
		report_summary(&r, status);
	}
	saina_close(r.s);
	verify_free(&r.v);
	free(r.buf);
	free(r.think_us);
	if (r.log && r.log != stdout)
		fclose(r.log);
	return status;
}
