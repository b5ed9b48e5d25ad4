/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the workers of a simulated job (lib_sim.h) have sent and what has come of it, and the
 * rules that both must keep.  The first rule that is broken is kept as a sentence.
 */
#ifndef SAINA_LIB_RECORD_H
#define SAINA_LIB_RECORD_H

#include "lib_sim.h"
#include "gradient/gradient.h"

/* What came of a segment of a round. */
struct lib_outcome {
	bool	 known;		/* @truth is: the sum of what was produced, in float64 */
	double	 truth[SIM_PAYLOAD], largest;
	uint64_t mask, hash;
	int32_t	 sum[SIM_PAYLOAD];
	int8_t	 exponent;
};

/**
 * struct lib_record
 * @error: the sentence, of sizeof(struct sim_result.error) bytes
 * @outcome: [rounds][segments]
 * @sent, @exponent: [rounds][segments][workers], as far as @said, the mask of who has, says so
 * @pending: [workers][segments], float32: what was produced and not counted yet; @peak: the largest
 *	magnitude that was ever in it since it was counted last
 * @astray: workers that have left out rounds, or died
 * @mixed: results of contributions with different exponents; @nan: with a NaN
 */
struct lib_record {
	const struct sim_conf *c;
	char *error;
	struct lib_outcome *outcome;
	int32_t (*sent)[SIM_PAYLOAD];
	int8_t	 *exponent;
	double	 (*pending)[SIM_PAYLOAD], *peak;
	uint64_t *said, mixed, nan, astray;
};

void record_init(struct lib_record *r, const struct sim_conf *c, char *error);
void record_exit(struct lib_record *r);
/* The switch has lost what it knew of rounds from @round on. */
void record_forget(struct lib_record *r, uint32_t round);
void record_broken(struct lib_record *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What worker @i produces in @round as element @j of its gradient. */
uint32_t record_fresh(const struct sim_conf *c, unsigned int i, uint32_t round, uint32_t j);
/* Worker @i does not produce all rounds one after the other. */
void record_astray(struct lib_record *r, unsigned int i);
/* At the end of all rounds: float32 that was not counted is in worker @i's residual. */
void record_residual(struct lib_record *r, unsigned int i, const struct saina_gradient *g);

/* Worker @i sends @h: the same as before, if it has sent that before. */
void record_grad(struct lib_record *r, unsigned int i, const struct saina_hdr *h);
/* The switch made a result: it is the sum of what was sent, within a unit of its exponent for each
 * contribution if theirs differ, and else exactly.
 */
void record_result(struct lib_record *r, const struct saina_hdr *h);
/* Worker @i has @got of all segments of @round: the sums, and what the others have. */
void record_results(struct lib_record *r, unsigned int i, uint32_t round, const uint32_t *got);
/* What worker @i has produced since round @first was counted, or is in its residual. */
void record_balance(struct lib_record *r, unsigned int i, uint32_t first,
		    const uint32_t (*produced)[SIM_PAYLOAD], const struct saina_gradient *g);

#endif /* SAINA_LIB_RECORD_H */
