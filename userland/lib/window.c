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
#include "private.h"

#define WINDOW_START 16
#define WINDOW_MIN   16
#define WINDOW_PROBE 4 /* while the base is measured */
#define WINDOW_GROW  8 /* results it takes to widen the window by one */
#define QUEUE_NS     (3 * MSEC)
#define BASE_NS	     (1000 * MSEC) /* a base is believed that long */
#define LOSSY	     100	   /* one lost result in so many is what we call lossy */
#define SAMPLE_NS    (20 * MSEC)

/* Are results being lost on the way to us? */
bool saina_window_lossy(const struct saina *s)
{
	return s->lost * LOSSY > s->got;
}

static void set_window(struct saina *s, uint32_t window)
{
	if (window < WINDOW_MIN)
		window = WINDOW_MIN;
	s->window = window < s->window_max ? window : s->window_max;
}

static void epoch_begin(struct saina *s, uint32_t results)
{
	s->epoch_left = results;
	s->lowest_ns = NEVER;
}

/* While it widens quickly it has to be looked at quickly; later an epoch outlasts
 * what was in flight when somebody hesitated.
 */
static uint32_t epoch_length(const struct saina *s)
{
	return s->slow_start ? s->window / 2 : 2 * s->window;
}

/* The job is known: begin small, widen until there is a queue. */
void saina_window_begin(struct saina *s)
{
	s->window_max = s->opts.window && s->opts.window < s->pool ? s->opts.window : s->pool;
	s->fixed = s->opts.window;
	set_window(s, s->fixed ? s->window_max : WINDOW_START);
	s->slow_start = true;
	s->base_ns = NEVER;
	s->shortest_ns = NEVER;
	epoch_begin(s, epoch_length(s));
}

static void epoch_end(struct saina *s, uint64_t now)
{
	uint64_t lowest = s->lowest_ns, target;

	if (lowest == NEVER) {
		epoch_begin(s, epoch_length(s)); /* a short round: no news */
		return;
	}
	s->quick_ns = lowest;
	/* Queues may be longer than the usual bound of the time-out. */
	s->rto.max = 4 * lowest > s->rto_max ? 4 * lowest : s->rto_max;
	if (s->probing) {
		s->probing = false;
		s->base_ns = lowest;
		s->based_ns = now;
		set_window(s, s->window_before);
	} else if (lowest < s->base_ns) {
		s->base_ns = lowest;
		s->based_ns = now;
	}
	target = s->base_ns + QUEUE_NS;
	s->crowded = lowest > target && !s->fixed;
	if (s->crowded && now >= s->based_ns + BASE_NS) {
		s->probing = true;
		s->window_before = s->window;
		s->window = s->window_max < WINDOW_PROBE ? s->window_max : WINDOW_PROBE;
		epoch_begin(s, s->inflight + 2 * WINDOW_PROBE);
		return;
	}
	if (s->crowded) {
		s->slow_start = false;
		set_window(s, lowest > 2 * target ? s->window / 2 : s->window * target / lowest);
	}
	epoch_begin(s, epoch_length(s));
}

static void widen(struct saina *s)
{
	/* A window that is not used up needs not be wider. */
	if (s->crowded || s->probing || s->window >= s->window_max || s->inflight + 1 < s->window)
		return;
	if (s->slow_start || ++s->grow >= WINDOW_GROW) {
		s->grow = 0;
		s->window++;
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
static void measure(struct saina *s, const struct saina_seg *g, uint64_t now)
{
	bool lossy = saina_window_lossy(s);
	uint64_t from = g->first_ns, took;

	if (lossy && g->tries != 1)
		return;
	if (s->t0_ns > from)
		from = s->t0_ns - s->rto.srtt > from ? s->t0_ns - s->rto.srtt : from;
	took = now - from;
	if (took < s->shortest_ns)
		s->shortest_ns = took;
	if (g->tries == 1 && took > s->longest_ns)
		s->longest_ns = took;
	if (now < s->sampled_ns + (lossy ? SAMPLE_NS : s->rto.srtt))
		return;
	saina_rto_sample(&s->rto, lossy || !s->longest_ns ? s->shortest_ns : s->longest_ns);
	s->shortest_ns = NEVER;
	s->longest_ns = 0;
	s->sampled_ns = now;
}

/**
 * saina_window_result() - what was in flight was answered
 *
 * To be called before it is taken off s->inflight.
 */
void saina_window_result(struct saina *s, const struct saina_seg *g, uint64_t now)
{
	if (g->first_ns >= s->t0_ns && now - g->first_ns < s->lowest_ns)
		s->lowest_ns = now - g->first_ns;
	measure(s, g, now);
	widen(s);
	if (!s->epoch_left || !--s->epoch_left)
		epoch_end(s, now);
}

/*
 * The kernel's count of packets that did not fit a socket's queue has moved: too
 * much in flight, whatever the delay.
 */
void saina_window_overflow(struct saina *s, int socket, uint32_t drops)
{
	uint64_t now;

	if (drops == s->overflow[socket])
		return;
	s->overflow[socket] = drops;
	now = saina_now();
	if (now < s->narrowed_ns + s->rto.rto)
		return;
	s->narrowed_ns = now;
	s->slow_start = false;
	if (s->probing)
		s->window_before /= 2;
	else
		set_window(s, s->window / 2);
}
