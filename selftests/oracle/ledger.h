/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ledger: conservation, checked from outside.  It knows what workers said
 * and sees the answers, nothing else: neither slots nor policies.  Of each
 * (round, segment) there may be one result; it must be the sum of what exactly
 * the workers in its mask said, at the coarsest of their exponents: exact if
 * they agree on one, else within half a unit for each of them; NaN if one said
 * NaN; every later answer must repeat it; and what an answer tells a worker
 * about itself must be so.
 */
#ifndef SAINA_LEDGER_H
#define SAINA_LEDGER_H

#include <stdbool.h>
#include <stdint.h>
#include "saina/bpf.h"

/**
 * struct ledger_said - a gradient
 * @v: payload elements, not looked at if @exponent is NAN
 */
struct ledger_said {
	const int32_t *v;
	int exponent;
};

/**
 * typedef ledger_value - what worker @w said in (@round, @segment)
 * @variant: 0; 1: the other thing a liar may have said, @v NULL if it is none
 */
typedef struct ledger_said (*ledger_value)(void *arg, unsigned int w, uint32_t round,
					   uint32_t segment, int variant);

struct ledger_entry {
	uint64_t mask;		/* 0: no result yet */
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
	uint64_t results;			/* results made */
	uint64_t contributions;			/* gradients in them */
	uint64_t mixed, nans;			/* results of different exponents, with a NaN */
	char error[256];			/* of the first violation */
};

void ledger_init(struct ledger *l, uint32_t payload, uint32_t segments,
		 uint32_t first_round, ledger_value value, void *arg);
void ledger_exit(struct ledger *l);

/*
 * An answer, as it stands on the wire behind the UDP header.  False if it
 * breaks a rule: l->error says which.
 */
bool ledger_answer(struct ledger *l, const struct saina_hdr *hdr, const uint8_t *payload);

/* Can a result of @exponent with that @payload be the sum of these @n gradients? */
bool ledger_is_sum(const struct ledger_said *said, unsigned int n, uint32_t elements,
		   int exponent, const uint8_t *payload);

/* Has there been a result of that? */
bool ledger_has(struct ledger *l, uint32_t round, uint32_t segment);

#endif /* SAINA_LEDGER_H */
