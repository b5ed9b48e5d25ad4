// SPDX-License-Identifier: GPL-2.0-or-later
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ledger.h"

void ledger_init(struct ledger *l, uint32_t payload, uint32_t segments,
		 uint32_t first_round, ledger_value value, void *arg)
{
	memset(l, 0, sizeof(*l));
	l->payload = payload;
	l->segments = segments;
	l->first_round = first_round;
	l->value = value;
	l->arg = arg;
	l->uplink = -1;
	l->counted = calloc(segments, sizeof(*l->counted));
	l->claimed = calloc(segments, sizeof(*l->claimed));
	if (!l->counted || !l->claimed)
		abort();
}

void ledger_exit(struct ledger *l)
{
	free(l->entry);
	free(l->counted);
	free(l->claimed);
	memset(l, 0, sizeof(*l));
}

static bool __attribute__((format(printf, 3, 4)))
fail(struct ledger *l, const struct saina_hdr *h, const char *fmt, ...)
{
	va_list ap;
	int n;

	n = snprintf(l->error, sizeof(l->error), "round %u segment %u: ", h->round, h->segment);
	va_start(ap, fmt);
	vsnprintf(l->error + n, sizeof(l->error) - n, fmt, ap);
	va_end(ap);
	return false;
}

static struct ledger_entry *entry(struct ledger *l, uint32_t round, uint32_t segment)
{
	uint32_t i = round - l->first_round, room;

	if (round < l->first_round || segment >= l->segments)
		return NULL;
	if (i >= l->rounds) {
		if (i > l->rounds + 1000000)
			return NULL;
		room = i + 1 + l->rounds;
		l->entry = realloc(l->entry, (size_t)room * l->segments * sizeof(*l->entry));
		if (!l->entry)
			abort();
		memset(l->entry + (size_t)l->rounds * l->segments, 0,
		       (size_t)(room - l->rounds) * l->segments * sizeof(*l->entry));
		l->rounds = room;
	}
	return &l->entry[(size_t)i * l->segments + segment];
}

static uint64_t digest(const uint8_t *payload, uint32_t elements)
{
	uint64_t d = 0, v;

	for (uint32_t i = 0; i < elements / 2; i++) {
		memcpy(&v, payload + 8 * i, 8);
		d = (d ^ v) * 0x9e3779b97f4a7c15ull;
		d ^= d >> 29;
	}
	return d;
}

static int first_of(int32_t pair)
{
	return (int16_t)pair;
}

static int second_of(int32_t pair)
{
	return (int16_t)(((int64_t)pair - first_of(pair)) / 65536);
}

/* As is_near(), of @part of pairs. */
static bool part_is_near(const struct ledger_gradient *grad, const double *unit, unsigned int n,
			 uint32_t i, int32_t v, int (*part)(int32_t))
{
	double sum = 0;

	for (unsigned int c = 0; c < n; c++)
		sum += part(grad[c].v[i]) * unit[c];
	return fabs(part(v) - sum) <= n / 2.;
}

/* Likewise; a first element that has wrapped has changed the second one. */
static bool pair_is_near(const struct ledger_gradient *grad, const double *unit, unsigned int n,
			 uint32_t i, int32_t v)
{
	double first = 0, second = 0;

	for (unsigned int c = 0; c < n; c++) {
		first += abs(first_of(grad[c].v[i]));
		second += abs(second_of(grad[c].v[i]));
	}
	return first >= 0x7fff - (double)n || second >= 0x7fff - (double)n ||
	       (part_is_near(grad, unit, n, i, v, first_of) &&
		part_is_near(grad, unit, n, i, v, second_of));
}

/*
 * Is @v at most half a unit for each of the @n gradients from their sum?  @unit: of each one's
 * exponent, in units of the result.  A sum that may have wrapped before a shift is not judged.
 */
static bool is_near(const struct ledger_gradient *grad, const double *unit, unsigned int n, uint32_t i,
		    int32_t v)
{
	double sum = 0, most = 0;

	if (grad->pairs)
		return pair_is_near(grad, unit, n, i, v);
	for (unsigned int c = 0; c < n; c++) {
		sum += grad[c].v[i] * unit[c];
		most += fabs((double)grad[c].v[i]);
	}
	return most >= 0x7fffffff - (double)n || fabs(v - sum) <= n / 2.;
}

static uint32_t wrapping(const struct ledger_gradient *grad, unsigned int n, uint32_t i)
{
	uint32_t sum = 0;

	for (unsigned int c = 0; c < n; c++)
		sum += (uint32_t)grad[c].v[i];
	return sum;
}

static unsigned int count_integers(const struct ledger_gradient *grad, unsigned int n)
{
	unsigned int integers = 0;

	for (unsigned int c = 0; c < n; c++)
		integers += grad[c].exponent == SAINA_EXPONENT_INT;
	return integers;
}

/* The coarsest exponent of some gradients: NAN is below all others, and of integers and floats. */
static int coarsest_of(const struct ledger_gradient *grad, unsigned int n, bool *equal)
{
	unsigned int integers = count_integers(grad, n);
	int coarsest = grad[0].exponent;

	*equal = true;
	for (unsigned int c = 1; c < n; c++) {
		*equal &= grad[c].exponent == grad[0].exponent;
		if (grad[c].exponent < coarsest)
			coarsest = grad[c].exponent;
	}
	return integers && integers < n ? SAINA_EXPONENT_NAN : coarsest;
}

/* Does element @i of a result without a sum have the bits of the mask of integers, all others 0? */
static bool is_no_sum(uint32_t v, uint32_t i, unsigned int *integers)
{
	if (i >= 2)
		return !v;
	*integers -= __builtin_popcount(v);
	return !i || !*integers;
}

bool ledger_is_sum(const struct ledger_gradient *grad, unsigned int n, uint32_t elements,
		   int exponent, const uint8_t *payload)
{
	double unit[SAINA_WORKERS_MAX];
	unsigned int integers = count_integers(grad, n) % n;
	bool equal;
	int coarsest = coarsest_of(grad, n, &equal);

	if (exponent != coarsest)
		return false;
	for (unsigned int c = 0; c < n && coarsest != SAINA_EXPONENT_NAN; c++)
		unit[c] = ldexp(1, coarsest - grad[c].exponent);
	for (uint32_t i = 0; i < elements; i++) {
		uint32_t v;

		memcpy(&v, payload + 4 * i, 4);
		if (coarsest == SAINA_EXPONENT_NAN ? !is_no_sum(v, i, &integers) :
		    equal ? v != wrapping(grad, n, i) : !is_near(grad, unit, n, i, v))
			return false;
	}
	return true;
}

/* Workers that some gradients stand for, less the gradients. */
static uint32_t weight_of(const struct ledger_gradient *grad, unsigned int n)
{
	uint32_t weight = 0;

	for (unsigned int c = 0; c < n; c++)
		weight += grad[c].weight;
	return weight;
}

static bool is_counted_sum(struct ledger *l, const struct saina_hdr *h, const uint8_t *payload,
			   const struct ledger_gradient *grad, unsigned int n)
{
	bool equal;
	int coarsest = coarsest_of(grad, n, &equal);

	if (!ledger_is_sum(grad, n, l->payload, h->exponent, payload))
		return false;
	if (h->slot_round != weight_of(grad, n))
		return false;
	l->mixed += !equal && coarsest != SAINA_EXPONENT_NAN;
	l->nans += coarsest == SAINA_EXPONENT_NAN;
	return true;
}

/* The parent has no sum of integers and floats: are those named that sent integers here? */
static bool is_named(struct ledger *l, const struct saina_hdr *h, const uint8_t *payload)
{
	uint64_t named;

	memcpy(&named, payload, sizeof(named));
	for (uint32_t i = sizeof(named); i < 4 * l->payload; i++)
		if (payload[i])
			return false;
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++) {
		bool is = named >> w & 1, may = false;

		for (unsigned int lie = 0; h->mask >> w & 1 && lie < 2; lie++) {
			struct ledger_gradient g = l->value(l->arg, w, h->round, h->segment, lie);

			may |= g.v && is == (g.exponent == SAINA_EXPONENT_INT);
		}
		if (h->mask >> w & 1 ? !may : is)
			return false;
	}
	return true;
}

/* Is the payload the sum of the gradients in the mask?  At most one worker sent two. */
static bool is_sum(struct ledger *l, const struct saina_hdr *h, const uint8_t *payload)
{
	struct ledger_gradient grad[SAINA_WORKERS_MAX], lie = {};
	unsigned int n = 0, liar = 0;

	if (l->uplink >= 0) {
		grad[0] = l->value(l->arg, l->uplink, h->round, h->segment, 0);
		if (h->flags & SAINA_F_TYPES)
			return h->exponent == SAINA_EXPONENT_NAN && grad[0].exponent == h->exponent &&
			       h->slot_round == grad[0].weight && is_named(l, h, payload);
		return is_counted_sum(l, h, payload, grad, 1);
	}
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++) {
		if (!(h->mask >> w & 1))
			continue;
		grad[n] = l->value(l->arg, w, h->round, h->segment, 0);
		if (!lie.v) {
			lie = l->value(l->arg, w, h->round, h->segment, 1);
			liar = n;
		}
		n++;
	}
	if (is_counted_sum(l, h, payload, grad, n))
		return true;
	if (!lie.v)
		return false;
	grad[liar] = lie;
	return is_counted_sum(l, h, payload, grad, n);
}

static bool first_result(struct ledger *l, struct ledger_entry *e, const struct saina_hdr *h,
			 const uint8_t *payload)
{
	if (h->worker != 0xff || h->session)
		return fail(l, h, "a multicast that names worker %u, session %llu", h->worker,
			    (unsigned long long)h->session);
	if (e->made)
		return fail(l, h, "a second result");
	if (!h->mask && l->uplink < 0)
		return fail(l, h, "a result without contributors");
	if (!is_sum(l, h, payload))
		return fail(l, h, "not the sum of the workers in mask %llx, exponent %d, weight %u",
			    h->mask, h->exponent, h->slot_round);
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++) {
		uint32_t *counted = &l->counted[h->segment][w];
		uint32_t claimed = l->claimed[h->segment][w];

		if (!(h->mask >> w & 1))
			continue;
		if (*counted > h->round)
			return fail(l, h, "worker %u was counted in round %u before", w,
				    *counted - 1);
		if (claimed > *counted && claimed != h->round + 1 && !l->had_uplink)
			return fail(l, h, "worker %u was answered that it counts in round %u", w,
				    claimed - 1);
		*counted = h->round + 1;
	}
	e->made = true;
	e->mask = h->mask;
	e->weight = h->slot_round;
	e->digest = digest(payload, l->payload);
	e->policy = h->policy;
	e->k = h->k;
	e->exponent = h->exponent;
	l->results++;
	l->contributions += __builtin_popcountll(h->mask);
	return true;
}

/*
 * aux: 1 + the last round that the worker was counted in, by a result or an open slot.  With an uplink
 * it is 0 again after a slot that the parent did not take.
 */
static bool is_last(struct ledger *l, const struct saina_hdr *h)
{
	uint32_t *claimed = &l->claimed[h->segment][h->worker];

	if (!h->aux && l->had_uplink)
		return true;
	if (h->aux < l->counted[h->segment][h->worker] || h->aux < *claimed)
		return false;
	*claimed = h->aux;
	return true;
}

bool ledger_answer(struct ledger *l, const struct saina_hdr *h, const uint8_t *payload)
{
	struct ledger_entry *e = entry(l, h->round, h->segment);
	bool counted;

	if (h->type == SAINA_MSG_STALE) {
		if (h->worker >= SAINA_WORKERS_MAX || h->segment >= l->segments)
			return fail(l, h, "STALE to worker %u", h->worker);
		return is_last(l, h) || fail(l, h, "worker %u is answered %u as its last + 1",
					     h->worker, h->aux);
	}
	if (h->type != SAINA_MSG_RESULT)
		return true;
	if (!e)
		return fail(l, h, "there is no such round or segment");
	if (h->count != l->payload || h->contributors != __builtin_popcountll(h->mask))
		return fail(l, h, "%u elements, %u contributors in mask %llx", h->count,
			    h->contributors, h->mask);
	if (h->worker == 0xff)
		return first_result(l, e, h, payload);

	if (h->worker >= SAINA_WORKERS_MAX || !e->made)
		return fail(l, h, "a result to worker %u that was never made", h->worker);
	if (e->mask != h->mask || e->digest != digest(payload, l->payload) ||
	    e->policy != h->policy || e->k != h->k || e->exponent != h->exponent || e->weight != h->slot_round)
		return fail(l, h, "the answer to worker %u is not the result", h->worker);
	counted = e->mask >> h->worker & 1;
	if (!!(h->flags & SAINA_F_RESEND) != counted || !!(h->flags & SAINA_F_LATE) == counted)
		return fail(l, h, "flags %#x to worker %u of mask %llx", h->flags, h->worker,
			    h->mask);
	if (!counted && h->aux == h->round + 1)
		return fail(l, h, "worker %u, not in mask %llx, is answered that it counts", h->worker, h->mask);
	return is_last(l, h) || fail(l, h, "worker %u is answered %u as its last + 1", h->worker,
				     h->aux);
}

bool ledger_has(struct ledger *l, uint32_t round, uint32_t segment)
{
	const struct ledger_entry *e = entry(l, round, segment);

	return e && e->made;
}
