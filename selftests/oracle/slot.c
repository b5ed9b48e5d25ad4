// SPDX-License-Identifier: GPL-2.0-or-later
/* Sections 3, 4, 8 and 12 of Documentation/datapath.rst: GRAD, completion, PULL, results of a parent. */
#include <string.h>
#include "internal.h"

static struct oracle_slot *hot_slot(const struct oracle_msg *m)
{
	return &m->j->hot[m->segment % m->j->conf.pool];
}

static struct oracle_slot *ring_entry(const struct oracle_msg *m)
{
	const struct saina_job_conf *c = &m->j->conf;

	return &m->j->ring[(size_t)m->segment * c->ring + m->round % c->ring];
}

static bool is_of(const struct oracle_slot *s, unsigned int state, uint32_t round, uint32_t segment)
{
	return s->meta.state == state && s->meta.round == round && s->meta.segment == segment;
}

/* The slot that gathers gradients for the message's round and segment. */
static struct oracle_slot *find_open(const struct oracle_msg *m)
{
	struct oracle_slot *h = hot_slot(m);

	return is_of(h, SAINA_SLOT_OPEN, m->round, m->segment) ? h : NULL;
}

/* Section 12: the slot whose sum of the message's round and segment is at the parent. */
static struct oracle_slot *find_away(const struct oracle_msg *m)
{
	struct oracle_slot *h = hot_slot(m);

	return is_of(h, SAINA_SLOT_AWAY, m->round, m->segment) ? h : NULL;
}

/* The result of the message's round and segment. */
static struct oracle_slot *find_result(const struct oracle_msg *m)
{
	struct oracle_slot *e = ring_entry(m);

	return is_of(e, SAINA_SLOT_DONE, m->round, m->segment) ? e : NULL;
}

/* Is the part that worker @w computes in the sum, by whomever? */
static bool part_is_in(const struct oracle_job *j, const struct oracle_slot *h, unsigned int w)
{
	for (unsigned int i = 0; i < h->in->n; i++)
		if (j->round.parts && h->in->w[i] % j->round.parts == w % j->round.parts)
			return true;
	return false;
}

/* The workers that the slot may wait for: those its round began with, and still alive. */
static struct oracle_workers awaited(const struct oracle_job *j)
{
	struct oracle_workers l = {};

	for (unsigned int i = 0; i < j->round.members.n; i++)
		if (oracle_is_alive(j, j->round.members.w[i]))
			l.w[l.n++] = j->round.members.w[i];
	return l;
}

/* Section 4, of an OPEN slot, hence one of the newest round. */
static bool is_complete(const struct oracle_msg *m, const struct oracle_slot *h)
{
	const struct oracle_round *r = &m->j->round;
	struct oracle_workers live = awaited(m->j);
	unsigned int missing = 0;

	if (r->timeout_ns && m->o->now - h->meta.opened_at >= r->timeout_ns && h->in->n >= r->policy.k_min)
		return true;
	for (unsigned int i = 0; i < live.n; i++)
		missing += r->parts ? !part_is_in(m->j, h, live.w[i]) : !oracle_is_one_of(h->in, live.w[i]);
	if (r->parts || r->k >= live.n)
		return !missing;
	return live.n - missing >= r->k;
}

static uint32_t quiet_nan(uint32_t f)
{
	return f | 0x00400000;
}

static bool is_nan(uint32_t f)
{
	return (f & 0x7fffffff) > 0x7f800000;
}

/* Section 9: IEEE 754, round to nearest even; if both are NaN, the result is that of the sum. */
static uint32_t float_add(uint32_t sum, uint32_t v)
{
	float a, b;

	if (is_nan(sum))
		return quiet_nan(sum);
	if (is_nan(v))
		return quiet_nan(v);
	memcpy(&a, &sum, 4);
	memcpy(&b, &v, 4);
	a += b;
	memcpy(&sum, &a, 4);
	return is_nan(sum) ? 0xffc00000 : sum;	/* infinities of both signs */
}

/* Rounds to nearest even; a NaN stays one. */
static uint16_t to_bfloat16(uint32_t f)
{
	uint32_t rest = f & 0xffff, half = f >> 16;

	if (is_nan(f))
		return half | 0x40;
	return half + (rest > 0x8000 || (rest == 0x8000 && half & 1));
}

/* x / 2^n, rounded towards minus infinity. */
static int64_t floor_div(int64_t x, unsigned int n)
{
	int64_t unit = 1ll << n;

	return x >= 0 ? x / unit : -((unit - 1 - x) / unit);
}

int32_t oracle_shift(int32_t x, unsigned int d)
{
	uint32_t halves;

	if (!d)
		return x;
	if (d > 31)
		d = 31;
	halves = floor_div(x, d - 1) + 1;	/* wraps */
	return floor_div((int32_t)halves, 1);
}

/* Section 3.3: both numbers of a word, each rounded to nearest, halves up. */
static uint32_t shift_pair(uint32_t word, unsigned int d)
{
	int64_t half, first, second;

	if (!d)
		return word;
	if (d > 15)
		d = 15;
	half = 1ll << (d - 1);
	first = floor_div(oracle_first(word) + half, d);
	second = floor_div(oracle_second(word) + half, d);
	return (uint32_t)(second * 65536 + first);
}

/* A sum or an element at a scale that is 2^@d times as coarse. */
static uint32_t rescale(const struct saina_job_conf *c, uint32_t v, unsigned int d)
{
	return c->elem == SAINA_ELEM_INT16 ? shift_pair(v, d) : (uint32_t)oracle_shift(v, d);
}

/* Element @i of the gradient in @m, as it is summed. */
static uint32_t element(const struct oracle_msg *m, unsigned int i)
{
	uint32_t v = 0;
	uint16_t half;

	if (m->j->conf.elem == SAINA_ELEM_BFLOAT16) {
		memcpy(&half, m->payload + 2 * i, 2);
		return (uint32_t)half << 16;
	}
	memcpy(&v, m->payload + 4 * i, 4);
	return v;
}

/* Converts sums to the elements of a result. */
static void to_wire(const struct saina_job_conf *c, int32_t *sum)
{
	uint16_t *half = (uint16_t *)sum;

	for (uint32_t i = 0; c->elem == SAINA_ELEM_BFLOAT16 && i < c->payload; i++) {
		uint16_t v = to_bfloat16(sum[i]);

		memcpy(&half[i], &v, 2);
	}
}

/* What every answer from the slot says: too few are in; a late gradient is of no use. */
static unsigned int flags_of(const struct oracle_job *j, const struct oracle_slot *h)
{
	const struct saina_policy *p = &j->round.policy;
	bool dropped = p->late == SAINA_LATE_DROP || p->mode == SAINA_POLICY_CODED;

	return (h->in->n < j->round.k ? SAINA_F_DEGRADED : 0) | (dropped ? SAINA_F_DROP_LATE : 0);
}

/* DONE; @flags: what the parent's result says besides. */
static void slot_finish(struct oracle_msg *m, struct oracle_slot *h, unsigned int flags)
{
	struct oracle_job *j = m->j;
	struct oracle_slot *e = ring_entry(m);

	h->meta.flags = flags_of(j, h) | flags;
	h->meta.state = SAINA_SLOT_DONE;
	if (h->meta.exponent == SAINA_EXPONENT_NAN)
		memset(h->sum, 0, 4 * j->conf.payload);
	if (h->meta.flags & SAINA_F_TYPES)
		memcpy(h->sum, &h->integers, sizeof(h->integers));
	to_wire(&j->conf, h->sum);
	e->meta = h->meta;
	e->weight = h->weight;
	*e->in = *h->in;
	memcpy(e->sum, h->sum, 4 * j->conf.payload);

	j->rt.open_slots--;
	j->rt.segs_done++;
	oracle_sfcd_segment(m->o, j, h);
	oracle_count(m, SAINA_C_COMPLETED);
	if (h->meta.flags & SAINA_F_DEGRADED) {
		oracle_count(m, SAINA_C_DEGRADED);
		oracle_happens(j, SAINA_EV_DEGRADED);
		oracle_event(m->o, j, SAINA_EV_DEGRADED, 0xff, m->round, m->segment, h->in->n);
	}
	if (h->meta.flags & SAINA_F_TYPES)
		oracle_event(m->o, j, SAINA_EV_TYPES, 0xff, m->round, h->integers, h->meta.seen);
	if (j->rt.segs_done == j->conf.segments)
		oracle_event(m->o, j, SAINA_EV_ROUND, 0xff, m->round, j->rt.flips, j->rt.observed);
	oracle_answer_all(m, h);
}

/* The slot is complete: it is the result, or it waits for the parent's. */
static void slot_complete(struct oracle_msg *m, struct oracle_slot *h)
{
	bool types = h->spoiled_below || (h->integers && h->integers != h->meta.seen);

	if (!m->j->conf.uplink)
		return slot_finish(m, h, types ? SAINA_F_TYPES : 0);
	h->meta.flags = types ? SAINA_F_TYPES : 0;
	h->meta.state = SAINA_SLOT_AWAY;
	oracle_note_away(m);
	m->out->verdict = ORACLE_DROP;
}

/* Puts the sender on the slot's list; finishes the slot if that is now complete. */
static void count_gradient(struct oracle_msg *m, struct oracle_slot *h, int counter)
{
	if (m->hdr->exponent == SAINA_EXPONENT_INT)
		h->integers |= 1ull << m->w;
	h->spoiled_below |= m->hdr->flags & SAINA_F_TYPES;
	h->in->w[h->in->n++] = m->w;
	h->meta.count = h->in->n;
	h->meta.seen = oracle_mask(h->in);
	h->weight += m->hdr->slot_round;
	m->j->last[m->segment][m->w] = m->round + 1;
	oracle_count(m, counter);
	if (!m->segment) {
		oracle_note_arrival(m);
		oracle_reached(m->j, m->w, m->round);
	}
	if (is_complete(m, h))
		slot_complete(m, h);
	else
		m->out->verdict = ORACLE_DROP;
}

/* Section 3.1, the first gradient of a slot; a NaN leaves the sums as they are. */
static void store_sums(struct oracle_msg *m, struct oracle_slot *h)
{
	h->meta.exponent = m->hdr->exponent;
	h->scale_of = m->w;
	if (h->meta.exponent == SAINA_EXPONENT_NAN) {
		/* of a parent's result it is counted there */
		if (!oracle_is_uplink(m->j, m->w))
			oracle_count(m, SAINA_C_NONFINITE);
		return;
	}
	for (uint32_t i = 0; i < m->j->conf.payload; i++)
		h->sum[i] = element(m, i);
}

/* Section 3.1, two scales: whose fault is it that small values are rounded away? */
static void note_scale(struct oracle_msg *m, struct oracle_slot *h)
{
	int have = h->meta.exponent, e = m->hdr->exponent;

	if (e < have) {
		h->meta.exponent = e;
		h->scale_of = m->w;
	}
	if ((e < have ? have - e : e - have) < SAINA_COARSE_BITS || e == SAINA_EXPONENT_MAX || have == SAINA_EXPONENT_MAX ||
	    h->scale_of < 0)
		return;
	m->j->wcount[h->scale_of].c[SAINA_C_COARSENED]++;
	h->scale_of = -1;
}

/* Section 3.1, later gradients. */
static void add_sums(struct oracle_msg *m, struct oracle_slot *h)
{
	int have = h->meta.exponent, e = m->hdr->exponent;

	if (e == SAINA_EXPONENT_NAN)
		oracle_count(m, SAINA_C_NONFINITE);
	if (e == SAINA_EXPONENT_NAN || have == SAINA_EXPONENT_NAN ||
	    (e == SAINA_EXPONENT_INT) != (have == SAINA_EXPONENT_INT)) {
		h->meta.exponent = SAINA_EXPONENT_NAN;
		return;
	}
	note_scale(m, h);
	for (uint32_t i = 0; i < m->j->conf.payload; i++) {
		uint32_t v = element(m, i), old = h->sum[i];

		if (m->j->conf.elem == SAINA_ELEM_FLOAT32 || m->j->conf.elem == SAINA_ELEM_BFLOAT16)
			h->sum[i] = float_add(old, v);
		else if (e < have)
			h->sum[i] = rescale(&m->j->conf, old, have - e) + v;
		else
			h->sum[i] = old + rescale(&m->j->conf, v, e - have);
	}
}

/* Section 12: those in the slot are not in the parent's sum: it never took them. */
static void forget_contributors(struct oracle_msg *m, struct oracle_slot *h)
{
	for (unsigned int i = 0; i < h->in->n; i++)
		m->j->last[m->segment][h->in->w[i]] = 0;
	h->in->n = 0;
	h->meta.count = 0;
	h->meta.seen = 0;
}

/* Section 12: the uplink worker brings the parent's result. */
static void take_result(struct oracle_msg *m, struct oracle_slot *h)
{
	unsigned int flags = SAINA_F_DEGRADED | SAINA_F_DROP_LATE;

	if (m->hdr->exponent == SAINA_EXPONENT_NAN)
		flags |= SAINA_F_TYPES;
	if (m->hdr->flags & SAINA_F_LATE || h->meta.state != SAINA_SLOT_AWAY)
		forget_contributors(m, h);
	h->integers &= h->meta.seen;
	store_sums(m, h);
	h->weight = m->hdr->slot_round;
	slot_finish(m, h, m->hdr->flags & flags);
}

static void slot_open(struct oracle_msg *m)
{
	struct oracle_slot *h = hot_slot(m);
	struct oracle_job *j = m->j;
	const struct oracle_round *r = &j->round;

	h->meta = (struct saina_slot_meta){
		.round = m->round, .segment = m->segment, .state = SAINA_SLOT_OPEN,
		.k = r->k, .k_min = r->policy.k_min, .parts = r->parts, .policy = r->policy.seq,
		.members = oracle_mask(&r->members), .opened_at = m->o->now,
		.deadline = r->timeout_ns ? m->o->now + r->timeout_ns : 0,
	};
	h->in->n = 0;
	h->weight = 0;
	h->integers = 0;
	h->spoiled_below = false;
	j->rt.open_slots++;
	if (oracle_is_uplink(j, m->w))
		return take_result(m, h);
	store_sums(m, h);
	count_gradient(m, h, SAINA_C_STORED);
}

/* Answers a gradient whose result exists. */
static void answer_with_result(struct oracle_msg *m, const struct oracle_slot *e)
{
	bool counted = oracle_is_one_of(e->in, m->w);

	oracle_count(m, counted ? SAINA_C_RESENT : SAINA_C_LATE);
	if (!counted && !m->segment) {
		oracle_note_arrival(m);
		oracle_reached(m->j, m->w, m->round);
	}
	oracle_answer_one(m, e, counted ? SAINA_F_RESEND : SAINA_F_LATE);
}

/* A gradient for an OPEN slot. */
static void join(struct oracle_msg *m, struct oracle_slot *h)
{
	bool duplicate = oracle_is_one_of(h->in, m->w);

	if (!duplicate && !part_is_in(m->j, h, m->w)) {
		add_sums(m, h);
		count_gradient(m, h, SAINA_C_ADDED);
	} else if (is_complete(m, h)) {
		slot_complete(m, h);
	} else {
		oracle_drop(m, duplicate ? SAINA_C_DUPLICATE : SAINA_C_SPARE);
	}
}

/* Are the results of the round gone, or were there never any?  Of the two newest there are some. */
static bool is_stale(const struct oracle_msg *m)
{
	const struct saina_job_rt *rt = &m->j->rt;
	uint32_t oldest = rt->next_round ? rt->next_round - 1 : 0;

	/* the newest may be of a time before rounds began: it did not open */
	if (oldest < rt->base)
		oldest = rt->base;
	return m->round < oldest && m->round < rt->next_round;
}

/* Is the slot in use for a sum that has no result yet? */
static bool is_in_use(const struct oracle_slot *h)
{
	return h->meta.state == SAINA_SLOT_OPEN || h->meta.state == SAINA_SLOT_AWAY;
}

/* Is any slot of the job in use? */
static bool is_busy(const struct oracle_job *j)
{
	for (uint32_t i = 0; i < j->conf.pool; i++)
		if (is_in_use(&j->hot[i]))
			return true;
	return false;
}

/* Each slot serves its segments in order: is it this one's turn? */
static bool is_its_turn(const struct oracle_msg *m)
{
	const struct oracle_slot *h = hot_slot(m);

	if (is_in_use(h))
		return false;
	return m->segment < m->j->conf.pool ||
	       is_of(h, SAINA_SLOT_DONE, m->round, m->segment - m->j->conf.pool);
}

/* Section 3, 7: the next round begins with this gradient, unless something prevents that. */
static bool begin_round(struct oracle_msg *m)
{
	struct oracle_workers behind;

	oracle_note_events(m->j);
	if (oracle_has_steps(oracle_target_policy(m->j)) && !oracle_is_fence(m->j, m->round)) {
		oracle_ps_begin(m->o, m->j);
		oracle_answer_mode(m, m->j->rt.base);
		return false;
	}
	behind = oracle_too_far_behind(m->j);
	if (behind.n) {
		m->j->rt.behind = oracle_mask(&behind);
		oracle_drop(m, SAINA_C_LEAD);
		return false;
	}
	oracle_round_open(m->o, m->j);
	return true;
}

void oracle_grad(struct oracle_msg *m)
{
	struct oracle_slot *h = find_open(m), *away = find_away(m), *e = find_result(m);
	const struct saina_job_rt *rt = &m->j->rt;
	bool next = m->round == rt->next_round;

	if (oracle_is_uplink(m->j, m->w) && (h || away))
		return take_result(m, h ? h : away);
	if (away)
		return oracle_drop(m, oracle_is_one_of(away->in, m->w) ? SAINA_C_DUPLICATE : SAINA_C_AWAY);
	if (h)
		return join(m, h);
	if (e)
		return answer_with_result(m, e);
	if (m->round > rt->next_round || m->round > SAINA_ROUND_MAX)
		return oracle_drop(m, SAINA_C_FUTURE);
	if (is_stale(m))
		return oracle_answer_stale(m);
	if (next) {
		oracle_note_starts(m->j, m->w);
		if (is_busy(m->j))
			return oracle_drop(m, SAINA_C_ROUND_BUSY);
	}
	if (!is_its_turn(m))
		return oracle_drop(m, SAINA_C_SLOT_BUSY);
	if (!next || begin_round(m))
		slot_open(m);
}

/* Section 8: the state of SAINA_ASK_SEGMENTS segments of a round, as the sender may know it. */
void oracle_ask(struct oracle_msg *m)
{
	struct oracle_msg one = *m;
	struct saina_ask state = {};
	bool away = false;

	memcpy(&state.time, m->payload, sizeof(state.time));
	for (unsigned int i = 0; i < SAINA_ASK_SEGMENTS && m->segment + i < m->j->conf.segments; i++) {
		const struct oracle_slot *h;

		one.segment = m->segment + i;
		h = find_open(&one);
		away |= find_away(&one) != NULL;
		if (m->j->last[one.segment][m->w] == m->round + 1 || (h && part_is_in(m->j, h, m->w)))
			state.counted |= 1ull << i;
		if (find_result(&one))
			state.done |= 1ull << i;
		else if (h && is_complete(m, h))
			state.due |= 1ull << i;
	}
	if (m->round <= m->j->rt.next_round)
		oracle_reached(m->j, m->w, m->round);
	if (!state.done && is_stale(m))
		return oracle_answer_stale(m);
	oracle_answer_ask(m, &state, away);
}

void oracle_pull(struct oracle_msg *m)
{
	struct oracle_slot *h = find_open(m), *e = find_result(m);

	if (h && is_complete(m, h)) {
		slot_complete(m, h);
	} else if (e && !h) {
		oracle_count(m, SAINA_C_PULLED);
		oracle_answer_one(m, e, SAINA_F_PULLED |
				  (oracle_is_one_of(e->in, m->w) ? SAINA_F_RESEND : SAINA_F_LATE));
	} else if (!h && is_stale(m)) {
		oracle_answer_stale(m);
	} else {
		oracle_drop(m, SAINA_C_PULL_EARLY);
	}
}
