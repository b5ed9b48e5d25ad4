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

static void set_phase(struct saina_steps *t, enum saina_steps_phase phase)
{
	t->phase = phase;
	t->ask_ns = 0;
	t->tries = 0;
	t->waits = false;
}

/* All segments are to be sent (again), but those that are done. */
static void rewind_segments(struct saina_steps *t)
{
	t->flying = t->first = t->end = 0;
	for (uint32_t i = 0; i < t->n; i++) {
		t->seg[i].sent_ns = 0;
		t->seg[i].tries = 0;
	}
}

/* Where its step begins, or goes on. */
static void begin_step(struct saina_steps *t)
{
	rewind_segments(t);
	set_phase(t, t->n && !t->over ? SAINA_STEPS_PUSHES : SAINA_STEPS_IDLE);
	if (t->phase == SAINA_STEPS_PUSHES && t->closed && !t->left)
		set_phase(t, SAINA_STEPS_CLOCKS);
}

void saina_steps_ask(struct saina_steps *t)
{
	rewind_segments(t);
	set_phase(t, SAINA_STEPS_ASKS);
}

void saina_steps_add(struct saina_steps *t, uint32_t n)
{
	if (!t->n)
		t->low = UINT32_MAX;
	for (uint32_t i = t->n; i < t->n + n; i++) {
		struct saina_steps_segment *g = &t->seg[i];

		g->done = g->fresh = g->counted = g->taken = false;
		g->sent_ns = g->tries = 0;
	}
	t->n += n;
	t->left += n;
	if (t->phase == SAINA_STEPS_IDLE)
		begin_step(t);
}

void saina_steps_close(struct saina_steps *t)
{
	t->closed = true;
	if (t->phase == SAINA_STEPS_PUSHES && !t->left)
		set_phase(t, SAINA_STEPS_CLOCKS);
}

void saina_steps_next(struct saina_steps *t)
{
	t->n = t->left = 0;
	t->closed = t->over = false;
}

/* All that the trainer is to have is here. */
static void finish_step(struct saina_steps *t)
{
	t->over = true;
	set_phase(t, SAINA_STEPS_IDLE);
}

/* GO for @step: what is not fresh is read, then the trainer has it all. */
static void next_step(struct saina_steps *t, uint32_t step)
{
	/* what was fresh for the step after this one need not be for a later one, and before
	 * rounds begin all is read that is there
	 */
	bool keep = step == t->step + 1 && !t->leaves;

	if (!keep)
		t->low = UINT32_MAX;
	t->pushed = t->step;
	t->step = step;
	t->begun = false;
	t->left = 0;
	for (uint32_t i = 0; i < t->n; i++) {
		t->seg[i].done = t->seg[i].fresh && keep;
		t->left += !t->seg[i].done;
	}
	rewind_segments(t);
	if (t->left)
		set_phase(t, SAINA_STEPS_READS);
	else
		finish_step(t);
}

static void settle_segment(struct saina_steps *t, struct saina_steps_segment *g, uint64_t now)
{
	if (g->sent_ns) {
		t->flying--;
		/* of what was sent once, it is known what was answered */
		if (g->tries == 1)
			t->rtt_ns = t->rtt_ns ? t->rtt_ns - t->rtt_ns / 8 + (now - g->sent_ns) / 8
					      : now - g->sent_ns;
	}
	g->sent_ns = 0;
	g->done = true;
	t->left--;
}

unsigned int saina_steps_sum(struct saina_steps *t, const struct saina_hdr *h, uint64_t now)
{
	uint32_t i = le32toh(h->segment);
	struct saina_steps_segment *g = &t->seg[i];
	bool read = h->flags & SAINA_F_PULLED;
	unsigned int take = 0;

	if (le32toh(h->round) != t->step || i >= t->n || g->done ||
	    t->phase != (read ? SAINA_STEPS_READS : SAINA_STEPS_PUSHES))
		return 0;
	settle_segment(t, g, now);
	if (!g->counted)
		take = !read || le32toh(h->aux) > t->pushed ? SAINA_STEPS_COUNTED
							    : SAINA_STEPS_LOST;
	g->counted = true;
	g->fresh = read || h->flags & SAINA_F_FRESH;
	if (g->fresh) {
		take |= g->taken ? SAINA_STEPS_TAKE | SAINA_STEPS_MORE : SAINA_STEPS_TAKE;
		g->taken = true;
		g->version = le64toh(h->mask);
		if (le32toh(h->slot_round) < t->low)
			t->low = le32toh(h->slot_round);
	}
	if (!t->left && read)
		finish_step(t);
	else if (!t->left && t->closed)
		set_phase(t, SAINA_STEPS_CLOCKS);
	return take;
}

/* There are rounds, from @since on. */
static void leave_steps(struct saina_steps *t, uint32_t since)
{
	if (since <= t->base)
		return; /* an answer from before the first step */
	switch (t->phase) {
	case SAINA_STEPS_ASKS:
	case SAINA_STEPS_PUSHES:
		t->leaves = true;
		if (t->begun) {
			next_step(t, since);
		} else {
			t->step = since;
			set_phase(t, SAINA_STEPS_LEFT);
		}
		break;
	case SAINA_STEPS_CLOCKS:
		t->leaves = true;
		next_step(t, since);
		break;
	case SAINA_STEPS_READS:
		/* what this worker has not read is gone */
		t->leaves = true;
		t->step = since;
		t->err = -ESTALE;
		set_phase(t, SAINA_STEPS_FAILED);
		break;
	default:
		break;
	}
}

void saina_steps_nak(struct saina_steps *t, const struct saina_hdr *h)
{
	uint32_t round = le32toh(h->round);

	if (h->k == SAINA_NAK_MODE) {
		if (round == (t->phase == SAINA_STEPS_ASKS ? SAINA_ROUND_ASK : t->step))
			leave_steps(t, le32toh(h->slot_round));
		return;
	}
	if (round != t->step || t->phase != SAINA_STEPS_PUSHES)
		return;
	switch (h->k) {
	case SAINA_NAK_WAIT:
		/* it was told to wait by a GO that this one overtook: silence will send it again */
		break;
	case SAINA_NAK_ORDER:
		saina_steps_ask(t);
		break;
	default: /* integers and floats meet */
		t->err = -EPROTO;
		set_phase(t, SAINA_STEPS_FAILED);
	}
}

void saina_steps_again(struct saina_steps *t, const struct saina_hdr *h)
{
	uint32_t i = le32toh(h->segment);
	struct saina_steps_segment *g = &t->seg[i];

	if (le32toh(h->round) != t->step || t->phase != SAINA_STEPS_PUSHES || i >= t->n ||
	    g->done || !g->sent_ns)
		return;
	/* in flight as before, and due */
	g->sent_ns = 1;
}

/* The answer to which step this is. */
static void clock_answered(struct saina_steps *t, uint32_t done, bool go)
{
	/* it goes on with a step that it had begun, or finds that it is over */
	if (t->begun && done != t->step) {
		t->waits = !go;
		if (go)
			next_step(t, done);
		return;
	}
	t->step = done;
	t->waits = !go;
	if (go)
		begin_step(t);
}

void saina_steps_go(struct saina_steps *t, const struct saina_hdr *h, unsigned int worker)
{
	bool all = h->worker == SAINA_WORKER_ANY, go = le64toh(h->mask) >> worker & 1;
	uint32_t done = le32toh(h->aux), low = le32toh(h->slot_round);

	t->window = le32toh(h->segment);
	if (h->k == SAINA_NAK_MODE) {
		if (t->phase == SAINA_STEPS_CLOCKS && low > t->step)
			leave_steps(t, low);
	} else if (t->phase == SAINA_STEPS_ASKS && !all) {
		clock_answered(t, done, go);
	} else if (t->phase == SAINA_STEPS_CLOCKS) {
		/* to all it does not say which step is meant: that all have finished so many is
		 * true for ever
		 */
		if (all && t->waits && go && (t->next <= low || t->next - low <= t->window)) {
			next_step(t, t->next);
		} else if (!all && done > t->step && go) {
			next_step(t, done);
		} else if (!all && done > t->step) {
			t->next = done;
			t->waits = true;
		}
	}
}

void saina_steps_poke(struct saina_steps *t)
{
	t->ask_ns = 0;
	t->tries = 0;
}

static uint64_t retry_ns(const struct saina_steps *t, unsigned int tries)
{
	uint64_t ns = 2 * t->rtt_ns;

	if (ns < SILENCE_MIN)
		ns = SILENCE_MIN;
	while (tries-- > 1 && ns < SILENCE_MAX)
		ns *= 2;
	return ns < SILENCE_MAX ? ns : SILENCE_MAX;
}

/* The CLOCK that asks, again and again. */
static size_t ask_clock(struct saina_steps *t, uint64_t now, struct saina_steps_act *act,
			uint64_t *when)
{
	uint64_t due = t->ask_ns ? t->ask_ns + retry_ns(t, t->tries) : now;

	if (due > now) {
		*when = due;
		return 0;
	}
	*act = (struct saina_steps_act){
		.type = SAINA_MSG_CLOCK,
		.again = t->tries,
		.round = t->phase == SAINA_STEPS_ASKS ? SAINA_ROUND_ASK : t->step,
	};
	t->ask_ns = now;
	t->tries += t->tries < 8;
	return 1;
}

size_t saina_steps_run(struct saina_steps *t, uint64_t now, struct saina_steps_act *act, size_t max,
		       uint64_t *when)
{
	int type = t->phase == SAINA_STEPS_PUSHES ? SAINA_MSG_INC : SAINA_MSG_READ;
	size_t n = 0;

	*when = NEVER;
	while (t->first < t->n && t->seg[t->first].done)
		t->first++;
	if (t->phase == SAINA_STEPS_ASKS || t->phase == SAINA_STEPS_CLOCKS)
		return max ? ask_clock(t, now, act, when) : 0;
	if (t->phase != SAINA_STEPS_PUSHES && t->phase != SAINA_STEPS_READS)
		return 0;
	for (uint32_t i = t->first; i < t->n && n < max; i++) {
		struct saina_steps_segment *g = &t->seg[i];
		uint64_t due = g->sent_ns > 1 ? g->sent_ns + retry_ns(t, g->tries) : g->sent_ns;

		if (i >= t->end && t->flying >= t->room)
			break;
		if (g->done)
			continue;
		if (g->sent_ns && due > now) {
			if (due < *when)
				*when = due;
			continue;
		}
		t->flying += !g->sent_ns;
		act[n++] = (struct saina_steps_act){
			.type = type, .again = g->tries, .round = t->step, .segment = i};
		g->sent_ns = now;
		g->tries += g->tries < 8;
		t->begun |= type == SAINA_MSG_INC;
		if (t->end <= i)
			t->end = i + 1;
	}
	return n;
}
