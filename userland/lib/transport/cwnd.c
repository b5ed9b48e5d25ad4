// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * How many batches may be in flight.
 *
 * The window depends on the echo of ASKs.  An ASK waits in the same queues as the batches before it
 * and is answered at once, so no straggler delays it: its time beyond the shortest echo of the last
 * seconds is queueing, for a link or a processor.  Loss does not change the window, because it is
 * random here and repaired in any case.
 */
#include "wire/job.h"
#include "cwnd.h"

#define CWND_START 2
#define GROW_NS	   (3 * MSEC)	 /* up to this queueing the window may grow */
#define SHRINK_NS  (6 * MSEC)	 /* beyond this queueing it shrinks */
#define PERIOD_NS  (4000 * MSEC) /* the shortest echo is that of the last one to two periods */
#define ASK_MIN_NS (1 * MSEC)

void saina_cwnd_init(struct saina_cwnd *w, uint32_t max, uint32_t fixed, uint64_t ask_min)
{
	memset(w, 0, sizeof(*w));
	w->max = max;
	w->fixed = fixed;
	w->size = fixed ? fixed : max < CWND_START ? max : CWND_START;
	w->shortest[0] = w->shortest[1] = NEVER;
	w->ask_min = ask_min ? ask_min : ASK_MIN_NS;
}

void saina_cwnd_sample(struct saina_cwnd *w, uint64_t ns, uint64_t now)
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

static uint64_t min_echo(const struct saina_cwnd *w)
{
	return w->shortest[0] < w->shortest[1] ? w->shortest[0] : w->shortest[1];
}

static void shrink(struct saina_cwnd *w, uint64_t now)
{
	if (!w->fixed && w->size > 1)
		w->size /= 2;
	w->changed = now;
}

/* Changes the window once a round trip: an ASK sent before a change does not show its effect. */
void saina_cwnd_echo(struct saina_cwnd *w, uint64_t sent, uint64_t now)
{
	uint64_t queue;

	saina_cwnd_sample(w, now - sent, now);
	if (sent < w->changed)
		return;
	queue = now - sent - min_echo(w);
	if (queue > SHRINK_NS) {
		shrink(w, now);
	} else if (queue <= GROW_NS && w->limited && !w->fixed && w->size < w->max) {
		w->size++;
		w->changed = now;
	}
	w->limited = false;
}

void saina_cwnd_overflow(struct saina_cwnd *w, uint64_t now)
{
	if (!w->changed || now >= w->changed + w->srtt)
		shrink(w, now);
}

uint64_t saina_cwnd_rto(const struct saina_cwnd *w)
{
	return 2 * w->srtt > w->ask_min ? 2 * w->srtt : w->ask_min;
}
