// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include <errno.h>
#include <stdlib.h>
#include "steps.h"

#define SILENCE_MIN (1 * MSEC)
#define SILENCE_MAX (20 * MSEC)

int saina_steps_init(struct saina_steps *t, uint32_t segments, uint32_t room)
{
	memset(t, 0, sizeof(*t));
	t->segments = segments;
	t->room = room;
	t->seg = calloc(segments, sizeof(*t->seg));
	return t->seg ? 0 : -ENOMEM;
}

void saina_steps_exit(struct saina_steps *t)
{
	free(t->seg);
	t->seg = NULL;
}

static void phase(struct saina_steps *t, enum saina_steps_phase phase)
{
	t->phase = phase;
	t->asked_ns = 0;
	t->tries = 0;
	t->waits = false;
}

/* All segments are to be sent (again), but those that are done. */
static void rewind_segments(struct saina_steps *t)
{
	t->flying = 0;
	for (uint32_t i = 0; i < t->segments; i++) {
		t->seg[i].sent_ns = 0;
		t->seg[i].tries = 0;
	}
}

void saina_steps_begin(struct saina_steps *t)
{
	for (uint32_t i = 0; i < t->segments; i++)
		t->seg[i].done = t->seg[i].fresh = false;
	t->left = t->segments;
	t->low = UINT32_MAX;
	rewind_segments(t);
	phase(t, SAINA_STEPS_PUSHES);
}

/* GO for the step after: what is not fresh is read, then the trainer has it all. */
static void next_step(struct saina_steps *t)
{
	t->step++;
	t->left = 0;
	for (uint32_t i = 0; i < t->segments; i++) {
		t->seg[i].done = t->seg[i].fresh;
		t->left += !t->seg[i].done;
	}
	rewind_segments(t);
	phase(t, t->left ? SAINA_STEPS_READS : SAINA_STEPS_IDLE);
}

static void settle(struct saina_steps *t, struct saina_steps_segment *g, uint64_t now)
{
	if (g->sent_ns) {
		t->flying--;
		/* of what was sent once, it is known what was answered */
		if (g->tries == 1)
			t->rtt_ns = t->rtt_ns ? t->rtt_ns - t->rtt_ns / 8 + (now - g->sent_ns) / 8 :
						now - g->sent_ns;
	}
	g->sent_ns = 0;
	g->done = true;
	t->left--;
}

enum saina_steps_take saina_steps_sum(struct saina_steps *t, const struct saina_hdr *h, uint64_t now)
{
	struct saina_steps_segment *g = &t->seg[le32toh(h->segment)];
	bool read = h->flags & SAINA_F_PULLED;
	uint64_t version = le64toh(h->mask);

	if (le32toh(h->round) != t->step || g->done ||
	    t->phase != (read ? SAINA_STEPS_READS : SAINA_STEPS_PUSHES))
		return SAINA_STEPS_IGNORE;
	settle(t, g, now);
	g->fresh = read || h->flags & SAINA_F_FRESH;
	if (g->fresh && le32toh(h->slot_round) < t->low)
		t->low = le32toh(h->slot_round);
	if (!t->left)
		phase(t, read ? SAINA_STEPS_IDLE : SAINA_STEPS_CLOCKS);
	if (version <= g->version)
		return SAINA_STEPS_IGNORE;
	g->version = version;
	return SAINA_STEPS_TAKE;
}

void saina_steps_nak(struct saina_steps *t, const struct saina_hdr *h)
{
	if (le32toh(h->round) != t->step || t->phase != SAINA_STEPS_PUSHES)
		return;
	/* it was told to wait by a GO that this one overtook: silence will send it again */
	if (h->k == SAINA_NAK_WAIT)
		return;
	/* another scale, or another has stepped in its name */
	t->err = h->k == SAINA_NAK_EXPONENT ? -EINVAL : -ECONNRESET;
	phase(t, SAINA_STEPS_FAILED);
}

void saina_steps_go(struct saina_steps *t, const struct saina_hdr *h, unsigned int worker)
{
	bool all = h->worker == SAINA_WORKER_ANY, go = le64toh(h->mask) >> worker & 1;
	uint32_t done = le32toh(h->aux), low = le32toh(h->slot_round);

	t->window = le32toh(h->segment);
	if (t->phase == SAINA_STEPS_ASKS && !all) {
		t->step = done;
		t->waits = !go;
		if (go)
			phase(t, SAINA_STEPS_IDLE);
	} else if (t->phase == SAINA_STEPS_CLOCKS) {
		/* to all it does not say which step is meant: that all have finished so many is
		 * true for ever
		 */
		if (all && t->waits && go && (t->step + 1 <= low || t->step + 1 - low <= t->window))
			next_step(t);
		else if (!all && done == t->step + 1 && go)
			next_step(t);
		else if (!all && done == t->step + 1)
			t->waits = true;
	}
}

void saina_steps_poke(struct saina_steps *t)
{
	t->asked_ns = 0;
	t->tries = 0;
}

static uint64_t silence(const struct saina_steps *t, unsigned int tries)
{
	uint64_t ns = 2 * t->rtt_ns;

	if (ns < SILENCE_MIN)
		ns = SILENCE_MIN;
	while (tries-- > 1 && ns < SILENCE_MAX)
		ns *= 2;
	return ns < SILENCE_MAX ? ns : SILENCE_MAX;
}

/* The CLOCK that asks, again and again. */
static size_t ask(struct saina_steps *t, uint64_t now, struct saina_steps_act *act, uint64_t *when)
{
	uint64_t due = t->asked_ns ? t->asked_ns + silence(t, t->tries) : now;

	if (due > now) {
		*when = due;
		return 0;
	}
	*act = (struct saina_steps_act){
		.type = SAINA_MSG_CLOCK,
		.again = t->tries,
		.round = t->phase == SAINA_STEPS_ASKS ? SAINA_ROUND_ASK : t->step,
	};
	t->asked_ns = now;
	t->tries += t->tries < 8;
	return 1;
}

size_t saina_steps_run(struct saina_steps *t, uint64_t now, struct saina_steps_act *act, size_t max,
		       uint64_t *when)
{
	int type = t->phase == SAINA_STEPS_PUSHES ? SAINA_MSG_INC : SAINA_MSG_READ;
	size_t n = 0;

	*when = NEVER;
	if (t->phase == SAINA_STEPS_ASKS || t->phase == SAINA_STEPS_CLOCKS)
		return max ? ask(t, now, act, when) : 0;
	if (t->phase != SAINA_STEPS_PUSHES && t->phase != SAINA_STEPS_READS)
		return 0;
	for (uint32_t i = 0; i < t->segments && n < max; i++) {
		struct saina_steps_segment *g = &t->seg[i];
		uint64_t due = g->sent_ns + silence(t, g->tries);

		if (g->done || (!g->sent_ns && t->flying >= t->room))
			continue;
		if (g->sent_ns && due > now) {
			if (due < *when)
				*when = due;
			continue;
		}
		t->flying += !g->sent_ns;
		act[n++] = (struct saina_steps_act){ .type = type, .again = g->tries,
						     .round = t->step, .segment = i };
		g->sent_ns = now;
		g->tries += g->tries < 8;
	}
	return n;
}
