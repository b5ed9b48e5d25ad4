/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SFCD computed a second time, from the results on the wire alone: signs of
 * this round's results against those of the last, and the decision that follows.
 */
#ifndef SAINA_RECOMPUTE_H
#define SAINA_RECOMPUTE_H

#include <stdbool.h>
#include <stdint.h>
#include "saina/bpf.h"

#define RECOMPUTE_POLICIES	1024	/* newest ones remembered */

struct recompute {
	uint32_t payload, segments;
	struct saina_policy policy[RECOMPUTE_POLICIES];	/* by seq */
	bool pairs;			/* of int16: the second one's sign counts */
	uint8_t *negative;		/* [segment][element]: in its last result under SFCD */
	uint16_t *stride;		/* [segment]: of that result, 0: there was none */
	/* the present round */
	uint32_t round, done;
	uint64_t flips, observed;
	bool known;			/* every segment could be compared */
	/* the round decided last */
	bool decided;
	uint32_t last_round, last_seq, converged, resumed;
	uint64_t members;
	uint64_t rounds, decisions, lowered;	/* recomputed so far */
	char error[256];
};

void recompute_init(struct recompute *c, uint32_t payload, uint32_t segments);
void recompute_exit(struct recompute *c);
void recompute_policy(struct recompute *c, const struct saina_policy *p);

/*
 * Takes a multicast RESULT and the state of the job right after it.
 * False if that does not follow from the results (c->error).
 */
bool recompute_result(struct recompute *c, const struct saina_hdr *h, const uint8_t *payload,
		      const struct saina_job_rt *rt);

#endif /* SAINA_RECOMPUTE_H */
