// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A sweep: the size of each round follows from its number, so that all workers agree.  Sizes above
 * one segment are whole segments, because the residual of a part of a segment is not known element
 * by element (verify_resize()).
 */
#include "allreduce.h"

/* Elements of a tensor of @bytes. */
static uint64_t elements(const struct run *r, uint64_t bytes)
{
	uint64_t n = bytes / 4;

	if (n >= r->info.elements)
		return r->info.elements;
	return n > r->info.payload ? n - n % r->info.payload : n;
}

/* The size with number @i; false: there are fewer. */
static bool size(const struct run *r, uint32_t i, uint64_t *n)
{
	const struct sweep *s = &r->a->sweep;
	double bytes = s->begin;

	while (i-- && bytes <= s->end)
		bytes *= s->factor;
	*n = bytes <= s->end ? elements(r, (uint64_t)bytes) : 0;
	return *n;
}

bool sweep_fits(struct run *r)
{
	struct sweep *s = &r->a->sweep;
	uint64_t n, job = 4 * r->info.elements;
	uint32_t sizes = 0;

	if (s->end == UINT64_MAX)
		s->end = job > s->begin ? job : s->begin;
	if (s->end > job)
		return false;
	while (size(r, sizes, &n)) {
		r->n = n;	/* the largest is the last */
		sizes++;
	}
	r->a->rounds = sizes * (s->warmup + s->iters);
	return true;
}

void sweep_round(struct run *r, uint32_t round)
{
	const struct sweep *s = &r->a->sweep;
	uint64_t n;

	if (!size(r, round / (s->warmup + s->iters), &n))
		return;
	if (n != r->swept) {
		table_row(r);
		if (r->swept)
			verify_resize(&r->v, r->swept, n, round);
		r->n = r->swept = n;
	}
	if (round % (s->warmup + s->iters) == s->warmup)
		r->row = (struct row){ 0 };
}
