// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Results that came before this worker wants them: of rounds it has not come
 * to yet (it is a straggler) or of buckets not started yet.  As many rounds as the
 * job's ring has; memory is taken when the first such result of a round comes
 * and used again for later rounds.
 */
#include <stdlib.h>
#include <string.h>
#include "private.h"

static void kept_free(struct saina_kept *k)
{
	if (!k)
		return;
	free(k->present);
	free(k->hdr);
	free(k->sums);
	free(k);
}

static struct saina_kept *kept_new(struct saina *s)
{
	struct saina_kept *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->present = calloc(s->segments, 1);
	k->hdr = calloc(s->segments, sizeof(*k->hdr));
	/* Large: pages are real only once written. */
	k->sums = malloc((size_t)s->segments * s->wire);
	if (!k->present || !k->hdr || !k->sums) {
		kept_free(k);
		return NULL;
	}
	return k;
}

/* NULL if nothing of @round has been kept. */
struct saina_kept *saina_kept_get(struct saina *s, uint32_t round)
{
	struct saina_kept *k = s->kept[round & (s->ring - 1)];

	return k && k->used && k->round == round ? k : NULL;
}

/* The caller has checked that the round is within the next ring rounds. */
void saina_kept_put(struct saina *s, const struct saina_hdr *h, const void *sums)
{
	uint32_t round = le32toh(h->round), segment = le32toh(h->segment);
	struct saina_kept **kp = &s->kept[round & (s->ring - 1)], *k;

	/* Out of memory is like loss: the result can be pulled again. */
	if (!*kp && !(*kp = kept_new(s)))
		return;
	k = *kp;
	if (!k->used || k->round != round) {
		memset(k->present, 0, s->segments);
		k->have = 0;
		k->round = round;
		k->used = true;
	}
	if (k->present[segment]) {
		s->stats.duplicate_results++;
		return;
	}
	k->present[segment] = 1;
	k->have++;
	k->hdr[segment] = *h;
	memcpy(k->sums + segment * s->wire, sums, s->wire);
	s->stats.results++;
	s->stats.results_bytes += s->msglen;
}

const void *saina_kept_sums(const struct saina *s, const struct saina_kept *k, uint32_t segment)
{
	return k->sums + segment * s->wire;
}

/* Are all segments of a round there, going by the size of the last one (or, in
 * a worker's first round, of this one)?
 */
bool saina_kept_complete(struct saina *s, uint32_t round)
{
	struct saina_kept *k = saina_kept_get(s, round);
	uint32_t size = s->last_assigned ? s->last_assigned : s->assigned;

	return k && size && k->have >= size;
}

void saina_kept_drop(struct saina *s, uint32_t below)
{
	for (uint32_t i = 0; i < s->ring; i++)
		if (s->kept[i] && s->kept[i]->round < below)
			s->kept[i]->used = false;
}

/* Results of another life of the job. */
void saina_kept_forget(struct saina *s, uint32_t from)
{
	for (uint32_t i = 0; i < s->ring; i++)
		if (s->kept[i] && s->kept[i]->round >= from)
			s->kept[i]->used = false;
}

void saina_kept_free(struct saina *s)
{
	for (uint32_t i = 0; s->kept && i < s->ring; i++)
		kept_free(s->kept[i]);
	free(s->kept);
	s->kept = NULL;
}
