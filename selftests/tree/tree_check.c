// SPDX-License-Identifier: GPL-2.0-or-later
/* What holds in a simulated tree, whatever happens: T1 to T11 of datapath.rst 12.1. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/frame.h"
#include "tree.h"

void tree_break(struct tree *t, unsigned int number, const char *fmt, ...)
{
	va_list ap;

	if (t->broken)
		return;
	t->broken = number;
	va_start(ap, fmt);
	vsnprintf(t->error, sizeof(t->error), fmt, ap);
	va_end(ap);
}

bool tree_is_in(const struct tree_tags *in, uint16_t tag)
{
	for (unsigned int i = 0; i < in->n; i++)
		if (in->tag[i] == tag)
			return true;
	return false;
}

static uint64_t hash_of(const struct tree *t, uint16_t tag, uint32_t round, uint32_t segment)
{
	return rng_mix(t->seed ^ rng_mix((uint64_t)tag << 40 ^ (uint64_t)round << 8 ^ segment));
}

/* With equal exponents sums are exact and may wrap; with several they must not. */
int32_t tree_value(const struct tree *t, uint16_t tag, uint32_t round, uint32_t segment, unsigned int i)
{
	int32_t v = rng_mix(hash_of(t, tag, round, segment) + i);

	return t->mixed ? v >> 10 : v;
}

int tree_exponent(const struct tree *t, uint16_t tag, uint32_t round, uint32_t segment)
{
	uint64_t h = hash_of(t, tag, round, segment) >> 20;

	if (t->nans && h % 200 == 0)
		return SAINA_EXPONENT_NAN;
	return t->mixed ? (int)(h / 200 % 6) : 5;
}

/* T4: is the sum that of the gradients in it? */
static void check_sum(struct tree *t, uint32_t round, uint32_t segment, const struct tree_truth *r)
{
	int coarsest = SAINA_EXPONENT_MAX;

	for (unsigned int n = 0; n < r->in.n; n++) {
		int e = tree_exponent(t, r->in.tag[n], round, segment);

		coarsest = e < coarsest ? e : coarsest;
	}
	if (r->exponent != coarsest)
		return tree_break(t, 4, "round %u segment %u: exponent %d, not %d", round, segment, r->exponent, coarsest);
	for (unsigned int i = 0; i < TREE_ELEMS; i++) {
		double sum = 0;
		uint32_t exact = 0;

		for (unsigned int n = 0; n < r->in.n; n++) {
			int32_t v = tree_value(t, r->in.tag[n], round, segment, i);

			exact += v;
			sum += ldexp(v, coarsest - tree_exponent(t, r->in.tag[n], round, segment));
		}
		if (coarsest == SAINA_EXPONENT_NAN)
			exact = sum = 0;
		if (t->mixed && coarsest != SAINA_EXPONENT_NAN ? fabs(r->sum[i] - sum) > r->in.n + 1 : r->sum[i] != (int32_t)exact)
			return tree_break(t, 4, "round %u segment %u: element %u of %u gradients is %d, not %d or %.1f",
					  round, segment, i, r->in.n, r->sum[i], (int32_t)exact, sum);
	}
}

/* The members of a place by whom the gradients of workers came. */
static uint64_t members_of(const struct tree *t, unsigned int place, const struct tree_tags *in)
{
	uint64_t members = 0;

	for (unsigned int n = 0; n < in->n; n++) {
		const struct tree_worker *w = &t->worker[in->tag[n] >> 8];
		unsigned int number = w->number;

		for (unsigned int at = w->place; at > place; at = tree_up(t, at))
			number = t->place[at].node;
		members |= 1ull << number;
	}
	return members;
}

/* The root has made a result. */
static void check_root(struct tree *t, const struct saina_hdr *h, const int32_t *sum)
{
	struct tree_truth *r = &t->truth[h->round][h->segment];
	const struct tree_tags *in = &t->place[0].in[h->segment % t->place[0].conf.pool];

	if (r->there)
		return tree_break(t, 6, "round %u segment %u: the root makes a second result", h->round, h->segment);
	r->there = true;
	r->in = *in;
	r->exponent = h->exponent;
	memcpy(r->sum, sum, sizeof(r->sum));
	t->results++;
	t->nan_results += h->exponent == SAINA_EXPONENT_NAN;
	for (unsigned int n = 0; n < in->n; n++)
		for (unsigned int k = 0; k < n; k++)
			if (in->tag[n] == in->tag[k])
				return tree_break(t, 2, "round %u segment %u: worker %u is twice in the sum", h->round, h->segment,
						  in->tag[n] >> 8);
	if (h->contributors + h->slot_round != in->n || h->mask != members_of(t, 0, in) ||
	    h->contributors != __builtin_popcountll(h->mask))
		return tree_break(t, 4, "round %u segment %u: %u contributors and %u more, of %u workers", h->round, h->segment,
				  h->contributors, h->slot_round, in->n);
	check_sum(t, h->round, h->segment, r);
}

/* A place has the parent's result. */
static void check_place(struct tree *t, unsigned int place, unsigned int worker, const struct saina_hdr *h,
			const int32_t *sum)
{
	const struct tree_truth *r = &t->truth[h->round][h->segment];
	const struct tree_tags *in = &t->place[place].in[h->segment % t->place[place].conf.pool];
	unsigned int counted = 0;

	if (worker != t->place[place].uplink)
		return tree_break(t, 8, "round %u segment %u: worker %u of place %u makes the result", h->round, h->segment,
				  worker, place);
	if (!r->there || r->exponent != h->exponent || memcmp(sum, r->sum, sizeof(r->sum)))
		return tree_break(t, 6, "round %u segment %u: place %u has another result than the root", h->round, h->segment, place);
	if (h->contributors + h->slot_round != r->in.n)
		return tree_break(t, 6, "round %u segment %u: place %u says %u + %u workers, not %u", h->round, h->segment, place,
				  h->contributors, h->slot_round, r->in.n);
	t->late += !h->mask;
	t->inner_late += !h->mask && t->place[place].inner;
	/* the list is of the present sum, if there is a contributor */
	for (unsigned int n = 0; h->mask && n < in->n; n++)
		counted += tree_is_in(&r->in, in->tag[n]);
	if (counted != (h->mask ? in->n : 0) || (h->mask && h->mask != members_of(t, place, in)) ||
	    h->contributors != __builtin_popcountll(h->mask))
		return tree_break(t, 3, "round %u segment %u: place %u counts %u, of which the root has %u", h->round, h->segment,
				  place, in->n, counted);
	if (!h->mask && tree_slot(t, place, h->segment)->meta.round == h->round && in->n)
		t->forgotten++;
}

/*
 * T7: a round opens when the one before is over here, and nothing of it is missing that the root has.
 * (Where all members are new, nobody needs the round before.)
 */
static void check_opening(struct tree *t, unsigned int place, uint32_t opened)
{
	const struct oracle_job *j = &t->o.job[place];

	for (uint32_t i = 0; i < j->conf.pool; i++) {
		const struct saina_slot_meta *m = &j->hot[i].meta;

		if ((m->state == SAINA_SLOT_OPEN || m->state == SAINA_SLOT_AWAY) && m->round != opened)
			return tree_break(t, 7, "place %u opens round %u, but a slot of round %u is in use", place, opened,
					  m->round);
	}
	for (uint32_t s = 0; place && opened > j->rt.base && tree_is_behind(t, place, opened) && s < t->segments; s++)
		if (t->truth[opened - 1][s].there && !tree_has(t, place, opened - 1, s))
			return tree_break(t, 7, "place %u opens round %u, but has no result of segment %u before, which the root has", place,
					  opened, s);
}

void tree_check_packet(struct tree *t, unsigned int place, unsigned int worker, uint32_t next_before)
{
	struct saina_hdr h;
	int32_t sum[TREE_ELEMS];

	if (tree_rt(t, place)->next_round != next_before)
		check_opening(t, place, next_before);
	if (t->out.answer != SAINA_MSG_RESULT || !t->out.multicast)
		return;
	memcpy(&h, t->out.frame + FRAME_HDR, sizeof(h));
	memcpy(sum, t->out.frame + FRAME_PAYLOAD, sizeof(sum));
	if (h.round >= TREE_ROUNDS)
		return tree_break(t, 10, "a run of %u rounds", h.round);
	if (place)
		check_place(t, place, worker, &h, sum);
	else
		check_root(t, &h, sum);
}

void tree_settle(struct tree *t, const struct tree_worker *w, uint32_t round, uint32_t segment, bool counted,
		 const char *by)
{
	const struct tree_truth *r = &t->truth[round][segment];
	uint16_t tag = w->id << 8 | w->life;

	if (r->there) {
		if (counted != tree_is_in(&r->in, tag))
			tree_break(t, 3, "worker %u, life %u, round %u segment %u: %s says %scounted, but it is %sin the sum", w->id, w->life,
				   round, segment, by, counted ? "" : "not ", counted ? "not " : "");
		return;
	}
	if (t->tolds == t->tolds_room) {
		t->tolds_room = t->tolds_room ? 2 * t->tolds_room : 64;
		t->told = realloc(t->told, t->tolds_room * sizeof(*t->told));
		if (!t->told)
			abort();
	}
	t->told[t->tolds++] = (struct tree_told){ round, segment, tag, counted };
}

/* T5: with bsp and equal exponents a tree is one switch: runs the gradients of a result through one. */
static void check_flat(struct tree *t, uint32_t round, uint32_t segment)
{
	const struct tree_truth *r = &t->truth[round][segment];
	struct saina_job_conf c = t->place[0].conf;
	static uint32_t generation = 1u << 30;
	int32_t sum[TREE_ELEMS];

	if (!r->there || t->mixed || r->in.n > SAINA_WORKERS_MAX)
		return;
	c.generation = ++generation;
	c.job = 255;
	c.active = r->in.n == 64 ? ~0ull : (1ull << r->in.n) - 1;
	c.policy.mode = SAINA_POLICY_BSP;
	c.policy.timeout_us = 0;
	for (unsigned int w = 0; w < r->in.n; w++)
		c.worker[w] = (struct saina_binding){
			.session = 1, .ifindex = 1, .ip = w + 1, .udp_port = 9, .flags = SAINA_BIND_BOUND,
		};
	oracle_job_publish(&t->o, &c, round);
	for (unsigned int w = 0; w < r->in.n; w++) {
		struct saina_hdr h = {
			.version = SAINA_PROTO_VERSION, .type = SAINA_MSG_GRAD, .elem = SAINA_ELEM_INT32, .job = 255, .session = 1,
			.round = round, .segment = segment, .count = TREE_ELEMS, .worker = w,
			.exponent = tree_exponent(t, r->in.tag[w], round, segment),
		};
		uint8_t frame[FRAME_MAX];

		for (unsigned int i = 0; i < TREE_ELEMS; i++)
			sum[i] = tree_value(t, r->in.tag[w], round, segment, i);
		/* its slot is another one's turn, if there are fewer than segments */
		h.segment = 0;
		oracle_packet(&t->o, frame, frame_make(frame, &t->o.global, &c.worker[w], &h, sum, sizeof(sum)), 1, &t->out);
	}
	oracle_events_clear(&t->o);
	memcpy(sum, t->out.frame + FRAME_PAYLOAD, sizeof(sum));
	t->flat++;
	if (t->out.answer != SAINA_MSG_RESULT || memcmp(sum, r->sum, sizeof(sum)) ||
	    ((struct saina_hdr *)(t->out.frame + FRAME_HDR))->exponent != r->exponent)
		tree_break(t, 5, "round %u segment %u: one switch has another sum of the same %u gradients", round, segment, r->in.n);
}

void tree_check_end(struct tree *t)
{
	for (unsigned int i = 0; i < t->tolds && !t->broken; i++) {
		const struct tree_told *l = &t->told[i];
		const struct tree_truth *r = &t->truth[l->round][l->segment];

		if (l->counted != (r->there && tree_is_in(&r->in, l->tag)))
			tree_break(t, 5, "worker %u, life %u, round %u segment %u: was told %scounted, but it is %sin the sum", l->tag >> 8,
				   l->tag & 0xff, l->round, l->segment, l->counted ? "" : "not ", l->counted ? "not " : "");
	}
	for (uint32_t r = 0; r < TREE_ROUNDS && !t->broken; r += 3)
		check_flat(t, r, r % t->segments);
}
