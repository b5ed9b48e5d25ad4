/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* How many messages may be in flight, and how long to wait for an answer. */
#ifndef SAINA_WINDOW_H
#define SAINA_WINDOW_H

#include <stdbool.h>
#include <stdint.h>
#include "rto.h"

/**
 * struct saina_window - all times in nanoseconds
 * @size: messages that may be in flight; @max: bound of it, @before: to go back to
 * @fixed: the caller's
 * @slow_start: one more with each result
 * @crowded: the last epoch's queue was too long
 * @probing: small for a moment, to measure @base
 * @grow: results since it grew; @epoch_left: results until the epoch's end
 * @lowest, @quick: shortest time of this epoch, of the last
 * @base, @based: time without a queue of ours; as of when
 * @t0: when the round's first result came
 * @shortest, @longest, @sampled: times since the last sample; when that was
 * @narrowed: when a socket's queue overflowed last
 * @lost, @got: results lost of results lately
 * @rto_min, @rto_max: bounds of the time-out, relays and queues apart
 */
struct saina_window {
	struct saina_rto rto;
	uint32_t size, max, before;
	bool	 fixed, slow_start, crowded, probing;
	uint32_t grow, epoch_left;
	uint64_t lowest, quick, base, based;
	uint64_t t0;
	uint64_t shortest, longest, sampled;
	uint64_t narrowed;
	uint32_t lost, got;
	uint64_t rto_min, rto_max;
};

/* @wanted, @rto_min (ns): the caller's, or 0 */
void saina_window_init(struct saina_window *w, uint32_t pool, uint32_t wanted, uint64_t rto_min);
/* Results of this worker come by way of the agent, or not any more. */
void saina_window_relayed(struct saina_window *w, bool relayed);
bool saina_window_lossy(const struct saina_window *w);
/* A result is here; @lost: by the answer to a retransmission only. */
void saina_window_count(struct saina_window *w, bool lost);
void saina_window_answer(struct saina_window *w, uint64_t first, unsigned int tries,
			 uint32_t inflight, uint64_t now);
void saina_window_overflow(struct saina_window *w, uint64_t now);

#endif /* SAINA_WINDOW_H */
