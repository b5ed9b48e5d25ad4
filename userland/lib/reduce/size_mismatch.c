// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The sentences about workers that submit different sizes (transport/size_check.h) or types. */
#include "size_mismatch.h"

static bool others_have_less(const struct saina_round *r, const struct saina_req *q,
			     uint64_t active, char *text, size_t size)
{
	const struct saina_job *job = r->job;
	uint64_t others = active & ~(1ull << job->worker);
	uint32_t n;
	char who[48];

	if (q->finished || !others)
		return false;
	n = saina_size_check_others(&r->flow, q->t.first, q->segments, q->call.mask_any, active);
	if (!n)
		return false;
	if (others & (others - 1))
		snprintf(who, sizeof(who), "another (`saina slot show %u' names it)", job->id);
	else
		snprintf(who, sizeof(who), "worker %u", __builtin_ctzll(others));
	snprintf(text, size,
		 "round %u: worker %u started %zu elements, %s at most %llu: all have begun, and "
		 "nothing of the rest has come for %llu s.  " SAINA_SAME_SIZES,
		 r->flow.round, job->worker, q->t.n, who, (unsigned long long)n * job->payload,
		 (unsigned long long)(r->sizes.wait_ns / (1000 * MSEC)));
	return true;
}

static void put_too_few(const struct saina_round *r, char *text, size_t size)
{
	snprintf(text, size,
		 "round %u cannot begin: others still wait for more than this worker's %llu "
		 "elements of round %u (or messages of %zu bytes are lost).  " SAINA_SAME_SIZES,
		 r->flow.round, (unsigned long long)r->prev_submitted, r->flow.round - 1,
		 r->job->msglen);
}

bool saina_size_mismatch(struct saina_round *r, uint64_t active, uint64_t heard, uint64_t now,
			 char *text, size_t size)
{
	enum saina_sizes sizes = saina_size_check(&r->sizes, &r->flow, heard, now);

	if (!r->reqs || sizes == SAINA_SIZES_UNKNOWN)
		return false;
	if (sizes == SAINA_SIZES_TOO_FEW) {
		put_too_few(r, text, size);
		return true;
	}
	for (const struct saina_req *q = r->reqs; q; q = q->next)
		if (others_have_less(r, q, active, text, size))
			return true;
	return false;
}

/* "worker 3", "workers 0-2,5" or, in a tree, "workers of other hosts" */
static void put_workers(uint64_t mask, char *text, size_t size)
{
	size_t len = snprintf(text, size, !mask	     ? "workers of other hosts"
					  : mask & (mask - 1) ? "workers"
							      : "worker");
	char sep = ' ';

	for (int w = 0, last; w < SAINA_WORKERS_MAX && len < size; w = last + 1) {
		last = w;
		if (!(mask >> w & 1))
			continue;
		while (last + 1 < SAINA_WORKERS_MAX && mask >> (last + 1) & 1)
			last++;
		len += snprintf(text + len, size - len, last > w ? "%c%d-%d" : "%c%d", sep, w, last);
		sep = ',';
	}
}

void saina_type_mismatch(const struct saina_round *r, const struct saina_req *q, char *text, size_t size)
{
	char integers[160], floats[160];

	put_workers(q->integers, integers, sizeof(integers));
	put_workers(q->floats, floats, sizeof(floats));
	snprintf(text, size,
		 "round %u: %s started int32, %s float32 (this is worker %u): all workers must start "
		 "the same types and sizes in the same order",
		 r->flow.round, integers, floats, r->job->worker);
}
