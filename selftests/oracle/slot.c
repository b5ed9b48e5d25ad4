// SPDX-License-Identifier: GPL-2.0-or-later
/* Sections 3, 4 and 8 of Documentation/datapath.rst: GRAD, completion, PULL. */
#include <string.h>
#include "internal.h"

static struct oracle_slot *hot_slot(const struct oracle_msg *m)
{
	return &m->j->hot[m->segment & (m->j->conf.pool - 1)];
}

static struct oracle_slot *ring_entry(const struct oracle_msg *m)
{
	const struct saina_job_conf *c = &m->j->conf;

	return &m->j->ring[(size_t)m->segment * c->ring + (m->round & (c->ring - 1))];
}

static bool is_about(const struct oracle_slot *s, const struct oracle_msg *m)
{
	return (s->meta.state == SAINA_SLOT_OPEN || s->meta.state == SAINA_SLOT_DONE) &&
	       s->meta.round == m->round && s->meta.segment == m->segment;
}

/* The workers that compute part @part. */
static uint64_t workers_of(const struct oracle_slot *h, unsigned int part)
{
	uint64_t mask = 0;

	for (unsigned int w = part; w < SAINA_WORKERS_MAX; w += h->meta.parts)
		mask |= 1ull << w;
	return mask;
}

/* Has another worker contributed the part that this one computes? */
static bool part_is_in(const struct oracle_msg *m, const struct oracle_slot *h)
{
	return h->meta.parts && h->meta.seen & workers_of(h, m->w % h->meta.parts);
}

static bool is_complete(const struct oracle_msg *m, const struct oracle_slot *h)
{
	uint64_t live = h->meta.members & m->j->conf.active;
	unsigned int need = h->meta.k;

	if (h->meta.deadline && m->o->now >= h->meta.deadline && h->meta.count >= h->meta.k_min)
		return true;
	if (h->meta.parts) {
		for (unsigned int p = 0; p < h->meta.parts; p++)
			if (live & workers_of(h, p) && !(h->meta.seen & workers_of(h, p)))
				return false;
		return true;
	}
	if (need > oracle_popcount(live))
		need = oracle_popcount(live);
	return oracle_popcount(h->meta.seen & live) >= need;
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

static void slot_finish(struct oracle_msg *m, struct oracle_slot *h)
{
	struct oracle_job *j = m->j;
	struct oracle_slot *e = ring_entry(m);

	h->meta.flags = 0;
	if (h->meta.count < h->meta.k)
		h->meta.flags |= SAINA_F_DEGRADED;
	if (j->rt.policy.late == SAINA_LATE_DROP || j->rt.policy.mode == SAINA_POLICY_CODED)
		h->meta.flags |= SAINA_F_DROP_LATE;
	h->meta.state = SAINA_SLOT_DONE;
	e->meta = h->meta;
	if (h->meta.exponent == SAINA_EXPONENT_NAN)
		memset(h->sum, 0, 4 * j->conf.payload);
	to_wire(&j->conf, h->sum);
	memcpy(e->sum, h->sum, 4 * j->conf.payload);

	j->rt.open_slots--;
	j->rt.segs_done++;
	oracle_sfcd_segment(m->o, j, h);
	oracle_count(m, SAINA_C_COMPLETED);
	if (h->meta.flags & SAINA_F_DEGRADED) {
		oracle_count(m, SAINA_C_DEGRADED);
		j->rt.happened |= 1u << SAINA_EV_DEGRADED;
		oracle_event(m->o, j, SAINA_EV_DEGRADED, 0xff, m->round, m->segment,
			     h->meta.count);
	}
	if (j->rt.segs_done == j->conf.segments)
		oracle_event(m->o, j, SAINA_EV_ROUND, 0xff, m->round, j->rt.flips,
			     j->rt.observed);
	oracle_answer_all(m, h);
}

/* Counts the gradient of the message; finishes the slot if that is now complete. */
static void count_gradient(struct oracle_msg *m, struct oracle_slot *h, int counter)
{
	m->j->last[m->segment][m->w] = m->round + 1;
	oracle_count(m, counter);
	if (!m->segment) {
		oracle_note_arrival(m);
		oracle_reached(m->j, m->w, m->round);
	}
	if (is_complete(m, h))
		slot_finish(m, h);
	else
		m->out->verdict = ORACLE_DROP;
}

/* Section 3.1, the first gradient of a slot; a NaN leaves the sums as they are. */
static void store_sums(struct oracle_msg *m, struct oracle_slot *h)
{
	h->meta.exponent = m->hdr->exponent;
	if (h->meta.exponent == SAINA_EXPONENT_NAN) {
		oracle_count(m, SAINA_C_NONFINITE);
		return;
	}
	for (uint32_t i = 0; i < m->j->conf.payload; i++)
		h->sum[i] = element(m, i);
}

/* Section 3.1, later gradients. */
static void add_sums(struct oracle_msg *m, struct oracle_slot *h)
{
	int have = h->meta.exponent, e = m->hdr->exponent;

	if (e == SAINA_EXPONENT_NAN)
		oracle_count(m, SAINA_C_NONFINITE);
	if (e == SAINA_EXPONENT_NAN || have == SAINA_EXPONENT_NAN) {
		h->meta.exponent = SAINA_EXPONENT_NAN;
		return;
	}
	if (e < have) {
		h->meta.exponent = e;
		if (have != SAINA_EXPONENT_MAX)
			oracle_count(m, SAINA_C_COARSENED);
	}
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

static void slot_add(struct oracle_msg *m, struct oracle_slot *h)
{
	add_sums(m, h);
	h->meta.seen |= 1ull << m->w;
	h->meta.count++;
	count_gradient(m, h, SAINA_C_ADDED);
}

static void slot_open(struct oracle_msg *m, struct oracle_slot *h)
{
	struct oracle_job *j = m->j;

	memset(&h->meta, 0, sizeof(h->meta));
	h->meta.round = m->round;
	h->meta.segment = m->segment;
	h->meta.state = SAINA_SLOT_OPEN;
	h->meta.k = j->rt.k;
	h->meta.k_min = j->rt.policy.k_min;
	if (j->rt.policy.mode == SAINA_POLICY_CODED && !oracle_is_fence(j, m->round))
		h->meta.parts = j->conf.workers / (j->rt.policy.spread + 1);
	h->meta.opened_at = m->o->now;
	if (j->rt.policy.timeout_us && !oracle_is_fence(j, m->round))
		h->meta.deadline = m->o->now + 1000ull * j->rt.policy.timeout_us;
	h->meta.policy = j->rt.policy.seq;
	h->meta.members = j->rt.members;
	store_sums(m, h);
	h->meta.seen = 1ull << m->w;
	h->meta.count = 1;
	j->rt.open_slots++;
	count_gradient(m, h, SAINA_C_STORED);
}

/* Answers a gradient whose result exists. */
static void answer_with_result(struct oracle_msg *m, const struct oracle_slot *s)
{
	if (s->meta.seen >> m->w & 1) {
		oracle_count(m, SAINA_C_RESENT);
		oracle_answer_one(m, s, SAINA_F_RESEND);
	} else {
		oracle_count(m, SAINA_C_LATE);
		if (!m->segment) {
			oracle_note_arrival(m);
			oracle_reached(m->j, m->w, m->round);
		}
		oracle_answer_one(m, s, SAINA_F_LATE);
	}
}

/* The result of the round is gone, or never was. */
static bool is_stale(const struct oracle_msg *m)
{
	uint64_t next = m->j->rt.next_round;

	if ((uint64_t)m->round + 1 < next)
		return true;
	/* the round before the first one never opened, or was a step */
	return m->round < next && m->round < m->j->rt.base;
}

/* A slot serves its segments in order: is the previous one done in this round? */
static bool is_next_segment(const struct oracle_slot *h, const struct oracle_msg *m)
{
	uint32_t pool = m->j->conf.pool;

	return m->segment < pool ||
	       (h->meta.state == SAINA_SLOT_DONE && h->meta.round == m->round &&
		h->meta.segment == m->segment - pool);
}

void oracle_grad(struct oracle_msg *m)
{
	struct oracle_slot *h = hot_slot(m), *e = ring_entry(m);
	struct saina_job_rt *rt = &m->j->rt;
	uint64_t old_members = rt->members, behind;

	if (is_about(h, m) && h->meta.state == SAINA_SLOT_OPEN) {
		if (h->meta.seen >> m->w & 1) {
			if (is_complete(m, h))
				slot_finish(m, h);
			else
				oracle_drop(m, SAINA_C_DUPLICATE);
		} else if (part_is_in(m, h)) {
			if (is_complete(m, h))
				slot_finish(m, h);
			else
				oracle_drop(m, SAINA_C_SPARE);
		} else {
			slot_add(m, h);
		}
		return;
	}
	if (is_about(e, m))
		return answer_with_result(m, e);

	if (m->round > rt->next_round || m->round > SAINA_ROUND_MAX)
		return oracle_drop(m, SAINA_C_FUTURE);
	if (is_stale(m))
		return oracle_answer_stale(m);
	if (m->round == rt->next_round)
		oracle_note_starts(m->j, m->w);
	if (m->round == rt->next_round && rt->open_slots)
		return oracle_drop(m, SAINA_C_ROUND_BUSY);
	if (h->meta.state == SAINA_SLOT_OPEN || !is_next_segment(h, m))
		return oracle_drop(m, SAINA_C_SLOT_BUSY);
	if (m->round == rt->next_round) {
		oracle_note_events(m->j);
		if (oracle_has_steps(oracle_target_policy(m->j)) && !oracle_is_fence(m->j, m->round)) {
			oracle_ps_begin(m->o, m->j);
			return oracle_answer_mode(m, rt->base);
		}
		behind = oracle_too_far_behind(m->j);
		if (behind) {
			rt->members = old_members;
			rt->behind = behind;
			return oracle_drop(m, SAINA_C_LEAD);
		}
		oracle_round_open(m->o, m->j, old_members);
	}
	slot_open(m, h);
}

/* Section 8: the state of SAINA_ASK_SEGMENTS segments of a round, as the sender may know it. */
void oracle_ask(struct oracle_msg *m)
{
	uint32_t first = m->segment;
	struct saina_ask state = {};

	memcpy(&state.time, m->payload, sizeof(state.time));
	for (unsigned int i = 0; i < SAINA_ASK_SEGMENTS; i++) {
		const struct oracle_slot *h, *e;

		m->segment = first + i;
		if (m->segment >= m->j->conf.segments)
			break;
		h = hot_slot(m);
		e = ring_entry(m);
		if (m->j->last[m->segment][m->w] == m->round + 1 ||
		    (is_about(h, m) && h->meta.state == SAINA_SLOT_OPEN && part_is_in(m, h)))
			state.counted |= 1ull << i;
		if (is_about(e, m))
			state.done |= 1ull << i;
		else if (is_about(h, m) && is_complete(m, h))
			state.due |= 1ull << i;
	}
	m->segment = first;
	if (m->round <= m->j->rt.next_round)
		oracle_reached(m->j, m->w, m->round);
	if (!state.done && is_stale(m))
		return oracle_answer_stale(m);
	oracle_answer_ask(m, &state);
}

static void answer_pull(struct oracle_msg *m, const struct oracle_slot *s)
{
	oracle_count(m, SAINA_C_PULLED);
	oracle_answer_one(m, s, SAINA_F_PULLED |
			  (s->meta.seen >> m->w & 1 ? SAINA_F_RESEND : SAINA_F_LATE));
}

void oracle_pull(struct oracle_msg *m)
{
	struct oracle_slot *h = hot_slot(m), *e = ring_entry(m);

	if (is_about(h, m) && h->meta.state == SAINA_SLOT_OPEN) {
		if (is_complete(m, h))
			slot_finish(m, h);
		else
			oracle_drop(m, SAINA_C_PULL_EARLY);
		return;
	}
	if (is_about(e, m))
		return answer_pull(m, e);
	if (is_stale(m))
		return oracle_answer_stale(m);
	oracle_drop(m, SAINA_C_PULL_EARLY);
}
