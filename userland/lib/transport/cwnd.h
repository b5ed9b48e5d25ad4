/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* The congestion window: how many batches may be in flight, and how long an answer takes. */
#ifndef SAINA_CWND_H
#define SAINA_CWND_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct saina_cwnd - all times in nanoseconds
 * @size: batches that may be in flight
 * @max: bound of @size
 * @fixed: @size never changes
 * @limited: a batch has waited for the window since the last echo
 * @srtt: smoothed time of an echo (RFC 6298), 0 before the first
 * @rttvar: mean deviation of @srtt
 * @shortest: shortest echo of this period, and of the previous one
 * @period: when this period began
 * @changed: when @size changed last
 * @ask_min: lower bound of saina_cwnd_rto()
 */
struct saina_cwnd {
	uint32_t size, max;
	bool	 fixed, limited;
	uint64_t srtt, rttvar;
	uint64_t shortest[2], period;
	uint64_t changed;
	uint64_t ask_min;
};

/* @max: batches; @fixed: batches that the user asks for, or 0; @ask_min: or 0: default */
void saina_cwnd_init(struct saina_cwnd *w, uint32_t max, uint32_t fixed, uint64_t ask_min);
/* A probe took @ns. */
void saina_cwnd_sample(struct saina_cwnd *w, uint64_t ns, uint64_t now);
/* The ASK sent at @sent was answered. */
void saina_cwnd_echo(struct saina_cwnd *w, uint64_t sent, uint64_t now);
/* A queue had no room. */
void saina_cwnd_overflow(struct saina_cwnd *w, uint64_t now);
/* How long to wait for a result before an ASK. */
uint64_t saina_cwnd_rto(const struct saina_cwnd *w);

#endif /* SAINA_CWND_H */
