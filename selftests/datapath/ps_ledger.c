// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include "ps_ledger.h"
#include "ps_rules.h"

#define VALUES	4096

static int32_t values[VALUES + SAINA_ELEMS_MAX];

void ps_ledger_init(struct ps_sim *w)
{
	struct rng r;

	if (!values[0]) {
		rng_seed(&r, 1);
		for (unsigned int i = 0; i < VALUES + SAINA_ELEMS_MAX; i++)
			values[i] = rng_u64(&r) >> rng_below(&r, 32) | 1;
	}
	w->sum = calloc(PS_SEGMENTS, sizeof(*w->sum));
	w->view = calloc(PS_SEGMENTS * SAINA_WORKERS_MAX, sizeof(*w->view));
	if (!w->sum || !w->view)
		abort();
}

void ps_ledger_exit(struct ps_sim *w)
{
	free(w->sum);
	free(w->view);
}

const int32_t *ps_value(const struct ps_sim *w, unsigned int worker, uint32_t step,
			uint32_t segment)
{
	return values + (rng_mix(w->value_seed ^ step ^ (uint64_t)worker << 32 ^
				 (uint64_t)segment << 40) & (VALUES - 1));
}

const int32_t *ps_unread_values(void)
{
	return values;
}

static void ledger_add(struct ps_sim *w, unsigned int worker, uint32_t step, uint32_t segment)
{
	const int32_t *v = ps_value(w, worker, step, segment);
	int32_t *t = w->sum[segment];

	w->worker[worker].counted[segment] = step + 1;
	w->version[segment]++;
	for (uint32_t i = 0; i < w->conf.payload; i++)
		t[i] = (uint32_t)t[i] + (uint32_t)v[i];
}

/* The answer to a READ of a worker whose group has others: all of them must get the same sums. */
static bool ledger_view(struct ps_sim *w, const struct saina_hdr *h, const uint8_t *payload)
{
	struct ps_view *v = &w->view[ps_group(w, h->worker) * PS_SEGMENTS + h->segment];
	const struct saina_clock *k = ps_clock(w);

	/* some answers of a batch are displaced, so those of a later view may not be seen here */
	if (w->harness->tc && v->known && v->base == k->base && h->mask > v->version)
		v->known = false;
	if (!v->known || v->base != k->base || v->step < h->round) {
		/* after a batch the clock may be ahead of the answer */
		if (!(h->flags & SAINA_F_FRESH) || h->round != k->done[h->worker] ||
		    h->round != ps_low(w, h->worker))
			return true;
		if (!w->harness->tc && (h->mask != w->version[h->segment] ||
					memcmp(payload, w->sum[h->segment], 4 * w->conf.payload)))
			return ps_fail(w, "segment %u: what group %u sees of step %u is not the sum",
				    h->segment, ps_group(w, h->worker), h->round);
		v->known = true;
		v->base = k->base;
		v->step = h->round;
		v->version = h->mask;
		memcpy(v->sum, payload, 4 * w->conf.payload);
		return true;
	}
	w->views++;
	if (h->mask != v->version || memcmp(payload, v->sum, 4 * w->conf.payload))
		return ps_fail(w, "segment %u: worker %u sees another sum of step %u than others of its group",
			    h->segment, h->worker, v->step);
	return true;
}

bool ps_ledger_sum(struct ps_sim *w, const struct saina_hdr *h, const uint8_t *payload)
{
	struct ps_worker *s = &w->worker[h->worker];
	int32_t *t = w->sum[h->segment];

	/* counted in rounds, or before PS mode began again: there are no sums to compare with */
	if (ps_rt(w)->mode != SAINA_RT_PS || h->policy != (ps_rt(w)->base & 0xffff))
		return true;
	if (!(h->flags & (SAINA_F_RESEND | SAINA_F_PULLED))) {
		if (s->counted[h->segment] > h->round)
			return ps_fail(w, "worker %u step %u segment %u is counted twice", h->worker,
				    h->round, h->segment);
		ledger_add(w, h->worker, h->round, h->segment);
	} else if (h->flags & SAINA_F_RESEND && s->counted[h->segment] <= h->round) {
		return ps_fail(w, "worker %u step %u segment %u is acknowledged and was never counted",
			    h->worker, h->round, h->segment);
	}
	if (h->flags & SAINA_F_PULLED && ps_rt(w)->policy.groups &&
	    ps_peers(w, h->worker) & ~(1ull << h->worker))
		return ledger_view(w, h, payload);
	if (h->aux != s->counted[h->segment] || h->mask != w->version[h->segment])
		return ps_fail(w, "segment %u: aux %u, version %llu; want %u, %llu", h->segment, h->aux,
			    (unsigned long long)h->mask, s->counted[h->segment],
			    (unsigned long long)w->version[h->segment]);
	if (memcmp(payload, t, 4 * w->conf.payload))
		return ps_fail(w, "segment %u is not the sum of what was counted", h->segment);
	return true;
}

/*
 * Copies from the oracle who was counted in rounds before @end.  After a batch in which PS mode
 * began the oracle has counted steps, too.
 */
static void ledger_rounds(struct ps_sim *w, uint32_t end)
{
	const struct oracle_job *j = &w->harness->o.job[w->conf.job];

	for (unsigned int i = 0; i < w->workers; i++) {
		for (uint32_t n = 0; n < w->conf.segments; n++) {
			uint32_t last = j->last[n][i];

			w->worker[i].counted[n] = last < end ? last : end;
		}
	}
}

/* PS mode begins: all sums are 0, and no worker is ahead. */
static bool restart_sums(struct ps_sim *w)
{
	uint32_t base = ps_rt(w)->base;

	if (w->begun && base <= w->fence)
		return ps_fail(w, "steps begin with %u, and not all workers have read the sums of those before %u", base,
			    w->fence);
	w->begun = true;
	w->base = base;
	for (unsigned int i = 0; i < w->workers; i++)
		w->worker[i].window = 0;
	memset(w->sum, 0, PS_SEGMENTS * sizeof(*w->sum));
	memset(w->version, 0, sizeof(w->version));
	ledger_rounds(w, base);
	return true;
}

/* Adds what was counted without an answer: in a batch a GO for all displaces one to an INC. */
static void ledger_unsent(struct ps_sim *w)
{
	const struct oracle_job *j = &w->harness->o.job[w->conf.job];

	for (unsigned int i = 0; i < w->workers; i++) {
		for (uint32_t n = 0; n < w->conf.segments; n++) {
			uint32_t last = j->last[n][i];

			if (last > w->worker[i].counted[n])
				ledger_add(w, i, last - 1, n);
		}
	}
}

bool ps_ledger_before(struct ps_sim *w)
{
	if (ps_rt(w)->mode == SAINA_RT_PS && (!w->begun || w->base != ps_rt(w)->base) &&
	    !restart_sums(w))
		return false;
	if (ps_rt(w)->mode == SAINA_RT_FENCE)
		w->fence = ps_rt(w)->base;
	return true;
}

void ps_ledger_after(struct ps_sim *w)
{
	if (ps_rt(w)->mode != SAINA_RT_PS)
		ledger_rounds(w, UINT32_MAX);
	else if (w->harness->tc)
		ledger_unsent(w);
}
