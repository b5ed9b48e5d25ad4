/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ledger: conservation, checked from outside.  It knows the gradients of
 * the workers and sees the answers, nothing else: neither slots nor policies.
 * Each (round, segment) may have one result; it must be the sum of the
 * gradients of exactly the workers in its mask, at the coarsest of their
 * exponents: exact if these are equal, else within half a unit for each of
 * them; NaN if one is NaN.  Every later answer must repeat it, and the fields
 * of an answer about its receiver must be true.
 */
#ifndef SAINA_LEDGER_H
#define SAINA_LEDGER_H

#include <stdbool.h>
#include <stdint.h>
#include "saina/bpf.h"

/**
 * struct ledger_gradient - a gradient
 * @v: payload elements, ignored if @exponent is NAN
 * @pairs: each is two elements of int16
 * @weight: workers that it stands for, less 1
 */
struct ledger_gradient {
	const int32_t *v;
	int exponent;
	bool pairs;
	uint32_t weight;
};

/**
 * typedef ledger_value - the gradient of worker @w in (@round, @segment)
 * @variant: 0; 1: the second one of a worker that sends two, @v NULL if it does not
 */
typedef struct ledger_gradient (*ledger_value)(void *arg, unsigned int w, uint32_t round,
					       uint32_t segment, int variant);

struct ledger_entry {
	bool made;		/* there was a result */
	uint64_t mask;
	uint32_t weight;
	uint64_t digest;
	uint16_t policy;
	uint8_t k;
	int8_t exponent;
};

struct ledger {
	uint32_t payload, segments, first_round;
	uint32_t rounds;			/* of entry[] */
	struct ledger_entry *entry;		/* [round - first_round][segment] */
	uint32_t (*counted)[SAINA_WORKERS_MAX];	/* [segment]: 1 + last round in a result */
	uint32_t (*claimed)[SAINA_WORKERS_MAX];	/* [segment]: largest aux seen */
	ledger_value value;
	void *arg;
	int uplink;				/* a result is the gradient of this worker; -1: a sum */
	bool had_uplink;			/* it was so before, or is: counted gradients may be lost */
	uint64_t results;
	uint64_t contributions;			/* gradients in them */
	uint64_t mixed, nans;			/* results of different exponents, with a NaN */
	char error[256];			/* of the first violation */
};

void ledger_init(struct ledger *l, uint32_t payload, uint32_t segments,
		 uint32_t first_round, ledger_value value, void *arg);
void ledger_exit(struct ledger *l);

/*
 * Checks an answer, as it is on the wire behind the UDP header.  False if it
 * breaks a rule: l->error says which.
 */
bool ledger_answer(struct ledger *l, const struct saina_hdr *hdr, const uint8_t *payload);

/* Can a result with @exponent and @payload be the sum of these @n gradients? */
bool ledger_is_sum(const struct ledger_gradient *grad, unsigned int n, uint32_t elements,
		   int exponent, const uint8_t *payload);

/* Has the segment of that round had a result? */
bool ledger_has(struct ledger *l, uint32_t round, uint32_t segment);

#endif /* SAINA_LEDGER_H */
