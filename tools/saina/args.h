/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command line after the options: words, and "key value" pairs described by a table. An error
 * message names the wrong word and what is allowed.
 */
#ifndef SAINA_ARGS_H
#define SAINA_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXIT_USAGE 2

/* The remaining words, and the command that they belong to ("job add"). */
struct args {
	int argc;
	char **argv;
	const char *cmd;
};

const char *args_peek(const struct args *a);	/* next word or NULL */
const char *args_next(struct args *a);

/* Prints "saina: CMD: ...", returns EXIT_USAGE. */
int args_error(const struct args *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Refuses an option behind the object, and says where it belongs; 0: @word is not an option. */
int args_not_option(const struct args *a, const char *word);
/* Refuses words that are left over; 0: there are none. */
int args_done(struct args *a);
bool args_matches(const char *word, const char *full);	/* @word is @full or an abbreviation of it */

/**
 * args_table() - find the entry that @word names or abbreviates
 * @names: array of @n structures of @stride bytes that begin with the name
 *
 * Returns the index of the first match, as ip(8) does, or -1.
 */
int args_table(const char *word, const void *names, size_t n, size_t stride);

enum key_kind {
	KEY_NUMBER,	/* without a sign, of the width of its member, min..max */
	KEY_S32,	/* a number from min to max, with a sign if it is negative */
	KEY_STRING,	/* min..max bytes */
	KEY_WORD,	/* one of words[], as its index + min */
	KEY_BYTES,	/* u64 with K, M, G, T: powers of 1024 */
	KEY_COUNT,	/* u64 with k, M, G, T: powers of 1000 */
	KEY_FILE,	/* as KEY_STRING: the first line of the named file */
	KEY_SHARE,	/* u32: probability times 2^32, written 0.2 or 20% */
	KEY_MS,		/* u32 microseconds, written in milliseconds */
	KEY_FLAG,	/* a key without a value; stores max */
	KEY_POLICY,	/* struct saina_policy_attrs, written as text */
	KEY_ENDPOINT,	/* address and port of struct saina_uplink_attrs */
	KEY_WEIGHTS,	/* u16s, with commas between them */
};

struct key {
	const char	*name;
	uint8_t		kind;
	uint8_t		attr;	/* the bit of *has to set */
	uint16_t	offset, size;
	int64_t		min;
	uint64_t	max;
	const char *const *words;	/* KEY_WORD, NULL terminated */
	bool		required;
	const char	*zero;		/* numbers: the word for 0 */
};

#define KEY(str, f) offsetof(struct str, f), sizeof(((struct str *)0)->f)

/* Stores what @word says as @k's value in @obj, and adds the key's bit to @has; 0 or EXIT_USAGE. */
int args_value(const struct args *a, const struct key *k, const char *word, void *obj, uint64_t *has);

/**
 * args_keys() - parse the remaining "key value" pairs
 * @obj: structure that the keys' offsets refer to; the values are stored there
 * @has: mask, to which the bits of the given attributes are added
 *
 * Keys may be abbreviated as long as they are unique. Returns 0 or EXIT_USAGE.
 * args_set_keys: the same for a command that changes something: at least one key must be given.
 */
int args_keys(struct args *a, const struct key *keys, size_t n, void *obj, uint64_t *has);
int args_set_keys(struct args *a, const struct key *keys, size_t n, void *obj, uint64_t *has);

/* Parses a number in @min..@max, decimal or 0x; false if @word is not one. */
bool args_number(const char *word, uint64_t min, uint64_t max, uint64_t *value);

#endif /* SAINA_ARGS_H */
