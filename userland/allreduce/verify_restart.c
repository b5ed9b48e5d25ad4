// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A worker that was restarted has produced something since the round of its restart only, and keeps
 * nothing of before.  If it was killed before it noticed that it was counted, it produces a round again.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "verify_restart.h"

#define ONE	64	/* rounds since the restart, if one worker was restarted */
#define TWO	8	/* .. if two were */

/* @first: what it contributes to the first element then. */
struct restart {
	struct verify_restarted as;
	double first;
};

struct judge {
	const struct verify *v;
	const struct saina_segment *g;
	const struct verify_restart *how;
	const float *out;
	uint32_t n;
	uint64_t place;
	struct restart all[64 * ONE];
	unsigned int found;
};

static double recorded(const struct judge *q, unsigned int w, uint32_t j)
{
	return q->v->sums[(size_t)w * q->v->payload + j];
}

static double sent(const struct judge *q, const struct restart *r, uint32_t j)
{
	return j ? q->how->sent(q->v, r->as.w, r->as.since, q->g->round, q->place + j) : r->first;
}

/* Is element @j right if @a, and @b unless NULL, were restarted?  @differs: 1 and 2: not as on record. */
static bool fits(const struct judge *q, const struct restart *a, const struct restart *b, uint32_t j,
		 unsigned int *differs)
{
	unsigned int n = 0;
	double c[64];

	for (unsigned int w = 0; w < q->v->workers; w++) {
		const struct restart *r = w == a->as.w ? a : b && w == b->as.w ? b : NULL;

		if (!(q->g->mask >> w & 1))
			continue;
		c[n] = r ? sent(q, r, j) : recorded(q, w, j);
		if (r && fabs(c[n] - recorded(q, w, j)) > q->how->off)
			*differs |= r == a ? 1 : 2;
		n++;
	}
	return q->how->right(q->v, c, n, q->out[j], q->how->off);
}

static bool explains(const struct judge *q, const struct restart *a, const struct restart *b)
{
	unsigned int differs = 0;

	for (uint32_t j = 0; j < q->n; j++)
		if (!fits(q, a, b, j, &differs))
			return false;
	return differs == (b ? 3 : 1);
}

static void list(struct judge *q)
{
	for (unsigned int w = 0; w < q->v->workers; w++)
		for (uint32_t i = 0; q->g->mask >> w & 1 && w != q->v->me && i < ONE && i <= q->g->round; i++) {
			uint32_t since = q->g->round - i;

			q->all[q->found++] = (struct restart){
				{ w, since }, q->how->sent(q->v, w, since, q->g->round, q->place)
			};
		}
}

static unsigned int search(struct judge *q, struct verify_restarted found[2])
{
	const struct restart *end = q->all + q->found;

	for (const struct restart *a = q->all; a < end; a++) {
		found[0] = a->as;
		if (explains(q, a, NULL))
			return 1;
		for (const struct restart *b = a + 1; a->as.since + TWO > q->g->round && b < end; b++) {
			found[1] = b->as;
			if (b->as.w != a->as.w && b->as.since + TWO > q->g->round && explains(q, a, b))
				return 2;
		}
	}
	return 0;
}

unsigned int verify_restart_judge(struct verify *v, uint32_t segment, const struct saina_segment *g,
				  const float *out, uint32_t n, const struct verify_restart *how,
				  const char *sentence, struct verify_restarted found[2])
{
	struct judge *q;
	unsigned int few = 0;

	/* one wrong sum is enough, and later ones may follow from it */
	if (v->wrong) {
		v->wrong++;
		return 0;
	}
	q = malloc(sizeof(*q));
	if (!q) {
		v->unknown++;
		return 0;
	}
	*q = (struct judge){
		.v = v, .g = g, .how = how, .out = out, .n = n, .place = (uint64_t)segment * v->payload,
	};
	list(q);
	few = search(q, found);
	free(q);
	if (few && v->restarts) {
		v->right++;
		v->bounded++;
	} else if (few) {
		if (!v->unknown++)
			snprintf(v->what, sizeof(v->what),
				 "right if workers were restarted, which --restarts accepts: %s", sentence);
	} else {
		v->wrong++;
		snprintf(v->what, sizeof(v->what), "%s", sentence);
	}
	return few;
}
