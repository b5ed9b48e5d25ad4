/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Retransmission time-out of one worker, after RFC 6298.  Nanoseconds. */
#ifndef SAINA_RTO_H
#define SAINA_RTO_H

#include <stdint.h>

/**
 * struct saina_rto
 * @srtt: smoothed time from a gradient to its result, 0 before a sample
 * @rttvar: its mean deviation
 * @rto: present time-out, within @min and @max
 */
struct saina_rto {
	uint64_t srtt, rttvar, rto, min, max;
};

void saina_rto_init(struct saina_rto *r, uint64_t min, uint64_t max);
void saina_rto_sample(struct saina_rto *r, uint64_t ns);
uint64_t saina_rto_backoff(const struct saina_rto *r, unsigned int tries);

#endif /* SAINA_RTO_H */
