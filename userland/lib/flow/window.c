// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * How many messages may be in flight.
 *
 * Loss says nothing of the window: what is lost here is lost by chance, by others
 * too, and repaired all the same.  What says something is delay.  Messages that stand
 * in a queue before a slow link come back later the more of them there are, so
 * the window is held where the queue costs QUEUE_NS.
 *
 * The shortest time of an epoch is looked at, not the mean: the longer ones waited
 * for somebody else, or for a processor.  What was sent before the first result of
 * its round does not count at all, for it waited for the slowest worker.  A message
 * sent more than once counts from the first time: an upper bound, and better than
 * nothing when everything is sent twice.
 *
 * Others' links may be longer than ours, and then their distance looks like a
 * queue of ours.  To tell, the window is made very small for a moment: what
 * remains of the delay is no queue of ours (base_ns).
 */
#include "job.h"
#include "window.h"

#define WINDOW_START 16
#define WINDOW_MIN   16
#define WINDOW_PROBE 4 /* while the base is measured */
#define WINDOW_GROW  8 /* results it takes to widen the window by one */
#define QUEUE_NS     (3 * MSEC)
#define BASE_NS	     (1000 * MSEC) /* a base is believed that long */
#define LOSSY	     100	   /* one lost result in so many is what we call lossy */
#define SAMPLE_NS    (20 * MSEC)
#define RTO_MIN_NS   (4 * MSEC)
#define RTO_MAX_NS   (60 * MSEC)
#define RTO_RELAY_NS (20 * MSEC) /* by the agent it takes longer, and it is the agent who suffers */

/* Are results being lost on the way to us? */
bool saina_window_lossy(const struct saina_window *w)
{
	return w->lost * LOSSY > w->got;
}

void saina_window_count(struct saina_window *w, bool lost)
{
	w->lost += lost;
	if (++w->got > 1024) {
		w->got /= 2;
		w->lost /= 2;
	}
}

static void resize(struct saina_window *w, uint32_t size)
{
	if (size < WINDOW_MIN)
		size = WINDOW_MIN;
	w->size = size < w->max ? size : w->max;
}

static void epoch_begin(struct saina_window *w, uint32_t results)
{
	w->epoch_left = results;
	w->lowest = NEVER;
}

/* While it widens quickly it has to be looked at quickly; later an epoch outlasts
 * what was in flight when somebody hesitated.
 */
static uint32_t epoch_length(const struct saina_window *w)
{
	return w->slow_start ? w->size / 2 : 2 * w->size;
}

/* The job is known: begin small, widen until there is a queue. */
void saina_window_init(struct saina_window *w, uint32_t pool, uint32_t wanted, uint64_t rto_min)
{
	memset(w, 0, sizeof(*w));
	saina_rto_init(&w->rto, rto_min ? rto_min : RTO_MIN_NS, RTO_MAX_NS);
	w->rto_min = rto_min;
	w->rto_max = w->rto.max;
	w->max = wanted && wanted < pool ? wanted : pool;
	w->fixed = wanted;
	resize(w, w->fixed ? w->max : WINDOW_START);
	w->slow_start = true;
	w->base = NEVER;
	w->shortest = NEVER;
	epoch_begin(w, epoch_length(w));
}

void saina_window_relayed(struct saina_window *w, bool relayed)
{
	w->rto.min = w->rto_min ? w->rto_min : relayed ? RTO_RELAY_NS : RTO_MIN_NS;
}

static void epoch_end(struct saina_window *w, uint32_t inflight, uint64_t now)
{
	uint64_t lowest = w->lowest, target;

	if (lowest == NEVER) {
		epoch_begin(w, epoch_length(w)); /* a short round: no news */
		return;
	}
	w->quick = lowest;
	/* Queues may be longer than the usual bound of the time-out. */
	w->rto.max = 4 * lowest > w->rto_max ? 4 * lowest : w->rto_max;
	if (w->probing) {
		w->probing = false;
		w->base = lowest;
		w->based = now;
		resize(w, w->before);
	} else if (lowest < w->base) {
		w->base = lowest;
		w->based = now;
	}
	target = w->base + QUEUE_NS;
	w->crowded = lowest > target && !w->fixed;
	if (w->crowded && now >= w->based + BASE_NS) {
		w->probing = true;
		w->before = w->size;
		w->size = w->max < WINDOW_PROBE ? w->max : WINDOW_PROBE;
		epoch_begin(w, inflight + 2 * WINDOW_PROBE);
		return;
	}
	if (w->crowded) {
		w->slow_start = false;
		resize(w, lowest > 2 * target ? w->size / 2 : w->size * target / lowest);
	}
	epoch_begin(w, epoch_length(w));
}

static void widen(struct saina_window *w, uint32_t inflight)
{
	/* A window that is not used up need not be wider. */
	if (w->crowded || w->probing || w->size >= w->max || inflight + 1 < w->size)
		return;
	if (w->slow_start || ++w->grow >= WINDOW_GROW) {
		w->grow = 0;
		w->size++;
	}
}

/*
 * The time-out.  Karn: only what was sent once, as long as there is such.  What was
 * sent before the round's first result came may have waited for a straggler; of
 * that only the time since then counts, on top of the present estimate.
 *
 * One sample per smoothed time, the longest of it: results come in bursts, and the
 * deviation within a burst, which is next to nothing, would drown that between
 * bursts.  But where results are being lost, the shortest of SAMPLE_NS: the others may
 * have waited for somebody else's lost gradient, and that must not slow down our own
 * repairs.
 */
static void measure(struct saina_window *w, uint64_t first, unsigned int tries, uint64_t now)
{
	bool lossy = saina_window_lossy(w);
	uint64_t from = first, took;

	if (lossy && tries != 1)
		return;
	if (w->t0 > from)
		from = w->t0 - w->rto.srtt > from ? w->t0 - w->rto.srtt : from;
	took = now - from;
	if (took < w->shortest)
		w->shortest = took;
	if (tries == 1 && took > w->longest)
		w->longest = took;
	if (now < w->sampled + (lossy ? SAMPLE_NS : w->rto.srtt))
		return;
	saina_rto_sample(&w->rto, lossy || !w->longest ? w->shortest : w->longest);
	w->shortest = NEVER;
	w->longest = 0;
	w->sampled = now;
}

/**
 * saina_window_answer() - a result is the answer to a message in flight
 * @first: when that was sent first, @tries: how often
 * @inflight: messages in flight, this one included
 */
void saina_window_answer(struct saina_window *w, uint64_t first, unsigned int tries,
			 uint32_t inflight, uint64_t now)
{
	if (first >= w->t0 && now - first < w->lowest)
		w->lowest = now - first;
	measure(w, first, tries, now);
	widen(w, inflight);
	if (!w->epoch_left || !--w->epoch_left)
		epoch_end(w, inflight, now);
}

/* Packets did not fit a socket's queue: too much in flight, whatever the delay. */
void saina_window_overflow(struct saina_window *w, uint64_t now)
{
	if (now < w->narrowed + w->rto.rto)
		return;
	w->narrowed = now;
	w->slow_start = false;
	if (w->probing)
		w->before /= 2;
	else
		resize(w, w->size / 2);
}
