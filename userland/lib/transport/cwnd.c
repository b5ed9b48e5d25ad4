// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * How many trains may be in flight.
 *
 * Only the echo of an ASK counts.  It stands in the same queues as the trains before it and is
 * answered at once, so no straggler is in it: what it takes longer than the shortest of
 * the last seconds is a queue, before a link or before a processor.  Loss says
 * nothing: what is lost here is lost by chance, and repaired all the same.
 */
#include "wire/job.h"
#include "cwnd.h"

#define WINDOW_START 2
#define GROW_NS	     (3 * MSEC)	   /* of queue: up to here it may grow */
#define SHRINK_NS    (6 * MSEC)	   /* ... from here on it shrinks */
#define PERIOD_NS    (4000 * MSEC) /* the shortest echo is of one to two of these */
#define ASK_MIN_NS   (1 * MSEC)

void saina_window_init(struct saina_window *w, uint32_t max, uint32_t fixed, uint64_t ask_min)
{
	memset(w, 0, sizeof(*w));
	w->max = max;
	w->fixed = fixed;
	w->size = fixed ? fixed : max < WINDOW_START ? max : WINDOW_START;
	w->shortest[0] = w->shortest[1] = NEVER;
	w->ask_min = ask_min ? ask_min : ASK_MIN_NS;
}

void saina_window_sample(struct saina_window *w, uint64_t ns, uint64_t now)
{
	uint64_t dev;

	if (!ns)
		ns = 1;
	if (!w->srtt) {
		w->srtt = ns;
		w->rttvar = ns / 2;
	} else {
		dev = w->srtt > ns ? w->srtt - ns : ns - w->srtt;
		w->rttvar = w->rttvar - w->rttvar / 4 + dev / 4;
		w->srtt = w->srtt - w->srtt / 8 + ns / 8;
	}
	if (now >= w->period + PERIOD_NS) {
		w->shortest[1] = w->shortest[0];
		w->shortest[0] = NEVER;
		w->period = now;
	}
	if (ns < w->shortest[0])
		w->shortest[0] = ns;
}

static uint64_t base(const struct saina_window *w)
{
	return w->shortest[0] < w->shortest[1] ? w->shortest[0] : w->shortest[1];
}

static void shrink(struct saina_window *w, uint64_t now)
{
	if (!w->fixed && w->size > 1)
		w->size /= 2;
	w->changed = now;
}

/* Once a round trip: what was asked before the last change tells nothing of it. */
void saina_window_echo(struct saina_window *w, uint64_t sent, uint64_t now)
{
	uint64_t queue;

	saina_window_sample(w, now - sent, now);
	if (sent < w->changed)
		return;
	queue = now - sent - base(w);
	if (queue > SHRINK_NS) {
		shrink(w, now);
	} else if (queue <= GROW_NS && w->limited && !w->fixed && w->size < w->max) {
		w->size++;
		w->changed = now;
	}
	w->limited = false;
}

void saina_window_overflow(struct saina_window *w, uint64_t now)
{
	if (!w->changed || now >= w->changed + w->srtt)
		shrink(w, now);
}

uint64_t saina_window_patience(const struct saina_window *w)
{
	return 2 * w->srtt > w->ask_min ? 2 * w->srtt : w->ask_min;
}
