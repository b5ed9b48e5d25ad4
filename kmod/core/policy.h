/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The synchronisation policies as a table: one row for each, with its settings
 * (keys).  Checks, messages and the text that people write all follow the table.
 * When a slot is complete, the data path says: slot_complete() and round_k().
 */
#ifndef _SAINA_CORE_POLICY_H
#define _SAINA_CORE_POLICY_H

#include "core/attrs.h"
#include "core/err.h"
#include "saina/bpf.h"

/* What the value of a key is */
enum saina_key_kind {
	SAINA_KEY_NUMBER,	/* min..max */
	SAINA_KEY_WORKERS,	/* 1..workers of the job */
	SAINA_KEY_SHARE,	/* of one, in 1/1000; min..max */
	SAINA_KEY_POWER,	/* a power of two, min..max */
	SAINA_KEY_WORD,		/* min..max, written as words[value] */
	SAINA_KEY_FLAG,		/* 0 or 1: bit max of the field; written without a value */
	SAINA_KEY_TIME,		/* microseconds, min..max; written as 250us, 10ms, 2s */
	SAINA_KEY_GROUPS,	/* who is in which group; written as 0-3/4+6/5+7 */
};

/**
 * struct saina_policy_key - one setting of a policy
 * @name: as people write it
 * @zero: 0 is allowed beside min..max, and written like this ("": cannot be
 *	written, it is what is meant when the key is not given); NULL: 0 is not special
 * @allowed: what a refusal says of it; NULL: the workers of the job
 * @words: WORD: by value
 * @kind: enum saina_key_kind
 * @offset: of the field in struct saina_policy
 * @size: of the field, 1, 2 or 4 bytes; GROUPS: a byte for each worker
 * @bare: of the first key: its value alone may be written, and is, as in timeout:10ms
 * @quiet: not written while it has its preset
 * @min: least value
 * @max: largest value; FLAG: the bit
 * @none: allowed beside min..max, and written none; 0: there is no such value
 * @preset: the value if it is not given
 */
struct saina_policy_key {
	const char *name;
	const char *zero;
	const char *allowed;
	const char *const *words;
	__u8 kind;
	__u8 offset;
	__u8 size;
	__u8 quiet;
	__u8 bare;
	__u32 min;
	__u32 max;
	__u32 none;
	__u32 preset;
};

/**
 * struct saina_policy_row - a policy
 * @name: as people write it
 * @usage: the shortest whole text of it
 * @keys: its settings, in the order of the canonical text
 * @n_keys: how many
 * @mode: enum saina_policy_mode
 * @window: of struct saina_policy, where there is no key for it
 * @check: what only the whole can tell, with the job's workers; 0 or a refusal; may be NULL
 */
struct saina_policy_row {
	const char *name;
	const char *usage;
	const struct saina_policy_key *keys;
	__u8 n_keys;
	__u8 mode;
	__u32 window;
	int (*check)(const struct saina_policy *p, int workers, struct saina_core_err *err);
};

extern const struct saina_policy_row saina_policy_rows[];
extern const int saina_policy_rows_n;

/* The row of a mode, NULL if there is none. */
const struct saina_policy_row *saina_policy_row(unsigned int mode);
/* Do the workers of a job with this policy step on their own?  Else there are rounds. */
static inline int saina_policy_has_steps(const struct saina_policy *p)
{
	return p->window || p->groups;
}

/* Are the workers dealt to the same groups?  Without groups: to one. */
int saina_policy_same_groups(const struct saina_policy *a, const struct saina_policy *b);
/* Puts worker w in group w % groups, as if no list of groups was given. */
void saina_policy_deal(struct saina_policy *p);

/* A policy of this row with no setting given; seq is 0. */
void saina_policy_preset(const struct saina_policy_row *row, struct saina_policy *p);

/* The value of a setting; FLAG: 0 or 1; GROUPS: 0 if dealt as by saina_policy_deal(), else 1. */
unsigned int saina_policy_get(const struct saina_policy *p, const struct saina_policy_key *key);
/* @value must be one that saina_policy_value_check() allows. */
void saina_policy_put(struct saina_policy *p, const struct saina_policy_key *key,
		      unsigned int value);
/* Same policy, whatever their sequence numbers are? */
int saina_policy_same(const struct saina_policy *a, const struct saina_policy *b);

int saina_policy_value_check(const struct saina_policy_key *key, unsigned int value, int workers);
const char *saina_policy_allowed(const struct saina_policy_key *key, int workers, char *text,
				 unsigned long size);
int saina_policy_lead_check(const struct saina_policy *p, __u32 ring, struct saina_core_err *err);
int saina_policy_check(const struct saina_policy *p, int workers, struct saina_core_err *err);

void saina_policy_show(const struct saina_policy *p, struct saina_policy_attrs *a);
void saina_policy_read(const struct saina_policy_attrs *a, struct saina_policy *p);

#endif /* _SAINA_CORE_POLICY_H */
