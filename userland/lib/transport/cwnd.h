/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* How many trains may be in flight, and how long an answer takes. */
#ifndef SAINA_WINDOW_H
#define SAINA_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct saina_window - all times in nanoseconds
 * @size: trains that may be in flight; @max: bound of it
 * @fixed: @size stays
 * @limited: a train has had to wait for others of ours, since the last echo
 * @srtt, @rttvar: smoothed time of an echo (RFC 6298), 0 before the first; its deviation
 * @shortest: echo of this period, of the last; @period: when this one began
 * @changed: when @size changed last
 * @ask_min: lower bound of saina_window_patience()
 */
struct saina_window {
	uint32_t size, max;
	bool	 fixed, limited;
	uint64_t srtt, rttvar;
	uint64_t shortest[2], period;
	uint64_t changed;
	uint64_t ask_min;
};

/* @max: trains; @fixed: the caller's number of them, or 0; @ask_min: or 0 */
void saina_window_init(struct saina_window *w, uint32_t max, uint32_t fixed, uint64_t ask_min);
/* A probe took @ns; an ASK of the time @sent is answered; a queue had no room. */
void saina_window_sample(struct saina_window *w, uint64_t ns, uint64_t now);
void saina_window_echo(struct saina_window *w, uint64_t sent, uint64_t now);
void saina_window_overflow(struct saina_window *w, uint64_t now);
/* How long to wait for news before asking. */
uint64_t saina_window_patience(const struct saina_window *w);

#endif /* SAINA_WINDOW_H */
