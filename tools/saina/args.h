/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command line behind the options: words, and "key value" pairs described
 * by a table.  A mistake is reported with the word and what is allowed.
 */
#ifndef SAINA_ARGS_H
#define SAINA_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXIT_USAGE 2

/* What is left of the command line, and what it was said to ("job add"). */
struct args {
	int argc;
	char **argv;
	const char *cmd;
};

const char *args_peek(const struct args *a);	/* next word or NULL */
const char *args_next(struct args *a);

/* Prints "saina: CMD: ...", returns EXIT_USAGE. */
int args_error(const struct args *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* People write options last, too: say where they belong. */
int args_not_option(const struct args *a, const char *word);
/* More words than wanted? */
int args_done(struct args *a);
bool args_matches(const char *word, const char *full);	/* equal or abbreviated */

/**
 * args_table() - index of the entry @word names, by the first match as ip(8)
 * @names: array of @n structures of @stride bytes that begin with the name
 */
int args_table(const char *word, const void *names, size_t n, size_t stride);

enum key_kind {
	KEY_U8, KEY_U16, KEY_U32, KEY_U64,	/* the value's width, min..max */
	KEY_S32,
	KEY_STRING,	/* 1..max bytes; min 0 allows "" */
	KEY_WORD,	/* one of words[], as its index + min, one byte wide */
	KEY_BYTES,	/* u64 with K, M, G */
	KEY_FILE,	/* as KEY_STRING, the first line of the file that is named */
	KEY_SHARE,	/* u32: probability times 2^32, written 0.2 or 20% */
	KEY_MS,		/* u32 microseconds, written in milliseconds */
	KEY_FLAG,	/* no value; one byte, 1 */
	KEY_POLICY,	/* struct saina_policy_attrs, written as text */
};

struct key {
	const char	*name;
	uint8_t		kind;
	uint8_t		attr;	/* bit to set in *has */
	uint16_t	offset, size;
	int64_t		min;
	uint64_t	max;
	const char *const *words;	/* KEY_WORD, NULL terminated; "" entries are not allowed */
	bool		required;
	const char	*zero;		/* numbers: a word that is stored as 0 */
};

#define KEY(str, f) offsetof(struct str, f), sizeof(((struct str *)0)->f)

/**
 * args_keys() - read all "key value" pairs that are left
 * @has: mask of the attributes that were given
 *
 * Keys may be abbreviated as long as they are unique.  Returns 0 or EXIT_USAGE.
 */
int args_keys(struct args *a, const struct key *keys, size_t n, void *obj, uint64_t *has);

/* A number in @min..@max, decimal or 0x; false if it is none. */
bool args_number(const char *word, uint64_t min, uint64_t max, uint64_t *value);

#endif /* SAINA_ARGS_H */
