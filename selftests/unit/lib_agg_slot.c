// SPDX-License-Identifier: GPL-2.0-or-later
/* What the stand-in makes of gradients: Documentation/datapath.rst, in short and plain. */
#include <endian.h>
#include <string.h>
#include "lib_agg_private.h"

uint64_t agg_active(const struct agg *a)
{
	uint64_t m = 0;

	for (int i = 0; i < SAINA_WORKERS_MAX; i++)
		m |= (uint64_t)a->w[i].active << i;
	return m;
}

static bool complete(const struct agg *a, const struct slot *s)
{
	uint64_t live = s->members & agg_active(a);
	int want = __builtin_popcountll(live);

	if (s->k < want)
		want = s->k;
	return __builtin_popcountll(s->seen & live) >= want;
}

/* How: 0 = to all, else the flags of a unicast answer. */
static void answer(struct agg *a, uint32_t segment, const struct slot *s, int w, int how)
{
	struct {
		struct saina_hdr h;
		uint32_t sum[SAINA_ELEMS_MAX];
	} m;
	size_t len = sizeof(m.h) + 4 * a->c.payload;

	memset(&m.h, 0, sizeof(m.h));
	m.h.version = SAINA_PROTO_VERSION;
	m.h.type = SAINA_MSG_RESULT;
	m.h.elem = SAINA_ELEM_INT32;
	m.h.flags = how;
	if (s->count < s->k)
		m.h.flags |= SAINA_F_DEGRADED;
	if (a->c.drop_late)
		m.h.flags |= SAINA_F_DROP_LATE;
	m.h.job = htole16(a->c.job);
	m.h.round = htole32(s->round);
	m.h.segment = htole32(segment);
	m.h.count = htole16(a->c.payload);
	m.h.exponent = s->exponent;
	m.h.contributors = s->count;
	m.h.k = s->k;
	m.h.next_k = a->c.k;
	m.h.policy = htole16(1);
	m.h.mask = htole64(s->seen);
	memcpy(m.sum, s->sum, 4 * a->c.payload);
	if (how) {
		m.h.worker = w;
		m.h.session = htole16(a->w[w].session);
		m.h.aux = htole32(a->last[segment * 64 + w]);
		agg_out(a, a->data, &a->w[w].addr, &m, len);
		return;
	}
	/* Unicast to each, so that each loses on its own: the library takes that. */
	m.h.worker = SAINA_WORKER_ANY;
	if (a->c.loss == 0 && a->c.reorder == 0) {
		bool all = true;

		for (int i = 0; i < SAINA_WORKERS_MAX; i++)
			all &= !a->w[i].hold;
		if (all) {
			agg_out(a, a->data, &a->group, &m, len);
			return;
		}
	}
	for (int i = 0; i < SAINA_WORKERS_MAX; i++)
		if (a->w[i].active && !a->w[i].hold)
			agg_out(a, a->data, &a->w[i].addr, &m, len);
}

static void stale(struct agg *a, uint32_t round, uint32_t segment, int w)
{
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION, .type = SAINA_MSG_STALE, .elem = SAINA_ELEM_INT32,
		.job = htole16(a->c.job), .session = htole16(a->w[w].session),
		.round = htole32(round), .segment = htole32(segment), .worker = w,
		.aux = htole32(a->last[segment * 64 + w]), .slot_round = htole32(a->next_round),
	};

	a->n.stale++;
	agg_out(a, a->data, &a->w[w].addr, &h, sizeof(h));
}

static void done(struct agg *a, uint32_t segment, struct slot *s)
{
	s->state = 2;
	if (segment == 1 && s->round == 2)
		s->sum[7] += a->c.corrupt;
	a->open--;
	a->n.completed++;
	answer(a, segment, s, -1, 0);
}

static struct slot *hot(struct agg *a, uint32_t segment)
{
	for (uint32_t i = segment & (a->c.pool - 1); i < a->segments; i += a->c.pool) {
		struct slot *s = &a->slot[i * a->c.ring + ((a->next_round - 1) & (a->c.ring - 1))];

		if (a->next_round && s->state == 1 && s->round == a->next_round - 1)
			return s;
	}
	return NULL;
}

void agg_grad(struct agg *a, const struct saina_hdr *h, const uint32_t *v)
{
	uint32_t r = le32toh(h->round), seg = le32toh(h->segment);
	struct slot *s = &a->slot[seg * a->c.ring + (r & (a->c.ring - 1))];
	uint64_t bit = 1ull << h->worker;

	a->n.grads++;
	if (s->state && s->round == r) {
		if (s->state == 2) {
			bool in = s->seen & bit;

			in ? a->n.resent++ : a->n.late++;
			answer(a, seg, s, h->worker, in ? SAINA_F_RESEND : SAINA_F_LATE);
			return;
		}
		if (s->seen & bit) {
			a->n.duplicate++;
			if (complete(a, s))
				done(a, seg, s);
			return;
		}
		if (s->exponent != h->exponent) {
			a->n.exponent++;
			return;
		}
		for (unsigned int i = 0; i < a->c.payload; i++)
			s->sum[i] += v[i];
		goto added;
	}
	if (r > a->next_round) {
		a->n.future++;
		return;
	}
	if (r + 1 < a->next_round || (r < a->next_round && !a->members)) {
		stale(a, r, seg, h->worker);
		return;
	}
	if (r == a->next_round && a->open) {
		a->n.round_busy++;
		return;
	}
	if (r != a->next_round && hot(a, seg)) {
		a->n.slot_busy++;
		return;
	}
	if (r == a->next_round) {
		a->next_round++;
		a->members = agg_active(a);
	}
	s->round = r;
	s->state = 1;
	s->members = a->members;
	s->k = a->c.k < (unsigned int)__builtin_popcountll(a->members) ?
	       a->c.k : (unsigned int)__builtin_popcountll(a->members);
	s->exponent = h->exponent;
	s->seen = 0;
	s->count = 0;
	memcpy(s->sum, v, 4 * a->c.payload);
	a->open++;
added:
	a->n.added++;
	s->seen |= bit;
	s->count++;
	a->last[seg * 64 + h->worker] = r + 1;
	if (complete(a, s))
		done(a, seg, s);
}

void agg_pull(struct agg *a, const struct saina_hdr *h)
{
	uint32_t r = le32toh(h->round), seg = le32toh(h->segment);
	struct slot *s = &a->slot[seg * a->c.ring + (r & (a->c.ring - 1))];

	if (s->state && s->round == r) {
		if (s->state == 1 && !complete(a, s)) {
			a->n.pull_early++;
			return;
		}
		if (s->state == 1) {
			done(a, seg, s);
			return;
		}
		a->n.pulled++;
		answer(a, seg, s, h->worker, SAINA_F_PULLED |
		       (s->seen >> h->worker & 1 ? SAINA_F_RESEND : SAINA_F_LATE));
	} else if (r + 1 >= a->next_round && (r >= a->next_round || a->members)) {
		a->n.pull_early++;
	} else {
		stale(a, r, seg, h->worker);
	}
}
