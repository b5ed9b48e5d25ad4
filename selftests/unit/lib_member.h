/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Workers of the stand-in aggregator's job 20, for tests that step them by hand. */
#ifndef SAINA_LIB_MEMBER_H
#define SAINA_LIB_MEMBER_H

#include <stdint.h>
#include "saina.h"
#include "lib_agg.h"

#define N 1000		/* elements of the job */

/* What the workers' logs said since member_opts() was called last. */
extern char member_lines[4096];

/* Job 20: an answer when @k of @workers are in. */
struct agg_conf member_conf(unsigned int workers, unsigned int k);
struct saina_opts member_opts(struct agg *a, int worker);

/* Opens workers 0 .. @n - 1 (at most 8), which needs as many threads. */
void member_open_all(struct agg *a, struct saina **s, int n);
/* An aggregator with that job, and all workers of it open. */
struct agg *member_job(struct saina **s, int workers, unsigned int k);
/* Closes them and stops the aggregator. */
void member_close_all(struct agg *a, struct saina **s, int n);

/* A gradient of N elements that tells @worker and @round. */
void member_fill(int32_t *buf, int worker, int round);
/* Begins an all-reduce of that, in @buf; or does the whole. */
int member_start(struct saina *s, int32_t *buf, int worker, int round, struct saina_req **r);
int member_reduce(struct saina *s, int32_t *buf, int worker, int round, struct saina_call *call);

#endif /* SAINA_LIB_MEMBER_H */
