// SPDX-License-Identifier: GPL-2.0-or-later
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
wrong(struct ledger *l, const struct saina_hdr *h, const char *fmt, ...)
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

/* Is the payload the sum of what the workers of the mask said? */
static bool is_sum(struct ledger *l, const struct saina_hdr *h, const uint8_t *payload)
{
	uint32_t rest[SAINA_ELEMS_MAX];
	const int32_t *liar[2] = { NULL, NULL };

	memcpy(rest, payload, 4 * l->payload);
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++) {
		const int32_t *v;

		if (!(h->mask >> w & 1))
			continue;
		v = l->value(l->arg, w, h->round, h->segment, 0);
		if (!liar[1]) {
			liar[1] = l->value(l->arg, w, h->round, h->segment, 1);
			if (liar[1]) {
				liar[0] = v;
				continue;
			}
		}
		for (uint32_t i = 0; i < l->payload; i++)
			rest[i] -= (uint32_t)v[i];
	}
	for (int variant = 0; variant < 2 && liar[variant]; variant++)
		if (!memcmp(rest, liar[variant], 4 * l->payload))
			return true;
	if (liar[0])
		return false;
	for (uint32_t i = 0; i < l->payload; i++)
		if (rest[i])
			return false;
	return true;
}

static bool first_result(struct ledger *l, struct ledger_entry *e, const struct saina_hdr *h,
			 const uint8_t *payload)
{
	if (h->worker != 0xff || h->session)
		return wrong(l, h, "a multicast that names worker %u, session %llu", h->worker,
			     (unsigned long long)h->session);
	if (e->mask)
		return wrong(l, h, "a second result");
	if (!h->mask)
		return wrong(l, h, "a result of nobody");
	if (!is_sum(l, h, payload))
		return wrong(l, h, "not the sum of the workers in mask %llx", h->mask);
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++) {
		uint32_t *counted = &l->counted[h->segment][w];
		uint32_t claimed = l->claimed[h->segment][w];

		if (!(h->mask >> w & 1))
			continue;
		if (*counted > h->round)
			return wrong(l, h, "worker %u was counted in round %u before", w,
				     *counted - 1);
		if (claimed > *counted && claimed != h->round + 1)
			return wrong(l, h, "worker %u was told it counts in round %u", w,
				     claimed - 1);
		*counted = h->round + 1;
	}
	e->mask = h->mask;
	e->digest = digest(payload, l->payload);
	e->policy = h->policy;
	e->k = h->k;
	e->exponent = h->exponent;
	l->results++;
	l->contributions += __builtin_popcountll(h->mask);
	return true;
}

/* "You were last counted in round aux - 1": a result's, or an open slot's. */
static bool is_last(struct ledger *l, const struct saina_hdr *h)
{
	uint32_t *claimed = &l->claimed[h->segment][h->worker];

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
			return wrong(l, h, "STALE to worker %u", h->worker);
		return is_last(l, h) || wrong(l, h, "worker %u is told %u as its last + 1",
					      h->worker, h->aux);
	}
	if (h->type != SAINA_MSG_RESULT)
		return true;
	if (!e)
		return wrong(l, h, "no such round or segment");
	if (h->count != l->payload || h->contributors != __builtin_popcountll(h->mask))
		return wrong(l, h, "%u elements, %u contributors in mask %llx", h->count,
			     h->contributors, h->mask);
	if (h->worker == 0xff)
		return first_result(l, e, h, payload);

	if (h->worker >= SAINA_WORKERS_MAX || !e->mask)
		return wrong(l, h, "a result to worker %u that was never made", h->worker);
	if (e->mask != h->mask || e->digest != digest(payload, l->payload) ||
	    e->policy != h->policy || e->k != h->k || e->exponent != h->exponent)
		return wrong(l, h, "the answer to worker %u is not the result", h->worker);
	counted = e->mask >> h->worker & 1;
	if (!!(h->flags & SAINA_F_RESEND) != counted || !!(h->flags & SAINA_F_LATE) == counted)
		return wrong(l, h, "flags %#x to worker %u of mask %llx", h->flags, h->worker,
			     h->mask);
	return is_last(l, h) || wrong(l, h, "worker %u is told %u as its last + 1", h->worker,
				      h->aux);
}

bool ledger_has(struct ledger *l, uint32_t round, uint32_t segment)
{
	const struct ledger_entry *e = entry(l, round, segment);

	return e && e->mask;
}
