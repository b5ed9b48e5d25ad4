// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "rto.h"

static uint64_t clamp(uint64_t v, uint64_t lo, uint64_t hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

void saina_rto_init(struct saina_rto *r, uint64_t min, uint64_t max)
{
	r->srtt = r->rttvar = 0;
	r->min = min;
	r->max = max < min ? min : max;
	/* RFC 6298 2.1 begins high; here a probe brings a sample before the
	 * first gradient, so this is rarely used.
	 */
	r->rto = clamp(20 * 1000000ull, r->min, r->max);
}

/**
 * saina_rto_sample() - one measured time, RFC 6298 section 2
 * @ns: from transmission to answer, of something sent only once (Karn)
 *
 * The time-out is srtt + max(srtt, 4 * rttvar).  The RFC has no floor of srtt under
 * the second term; here samples are the shortest of a burst, and a burst is about as
 * long as the time to its first result.  At most half of @max, to leave the
 * backoff something to do.
 */
void saina_rto_sample(struct saina_rto *r, uint64_t ns)
{
	uint64_t dev;

	if (!ns)
		ns = 1;
	if (!r->srtt) {
		r->srtt = ns;
		r->rttvar = ns / 2;
	} else {
		dev = r->srtt > ns ? r->srtt - ns : ns - r->srtt;
		r->rttvar = r->rttvar - r->rttvar / 4 + dev / 4;
		r->srtt = r->srtt - r->srtt / 8 + ns / 8;
	}
	dev = 4 * r->rttvar;
	r->rto = clamp(r->srtt + (dev > r->srtt ? dev : r->srtt), r->min,
		       r->max / 2 > r->min ? r->max / 2 : r->min);
}

/**
 * saina_rto_backoff() - how long to wait after transmission number @tries
 * @tries: 1 for the first
 *
 * 1, 1, 2, 2, 2, 4 ... times the time-out, at most @max.  Gentler than
 * doubling each time: most silence here is not congestion but a slot that
 * still waits for others, and what ends it may be our next packet.
 */
uint64_t saina_rto_backoff(const struct saina_rto *r, unsigned int tries)
{
	unsigned int shift = tries / 3;

	if (shift > 16)
		shift = 16;
	return clamp(r->rto << shift, r->min, r->max);
}
