/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random messages to the family saina, a datagram of them at a time.  Of three
 * kinds: likely (a command as somebody might give it, mostly accepted),
 * structured (the family's attributes with any contents, in any nest) and blind
 * (noise behind a right header).
 */
#ifndef SAINA_FUZZ_MSG_H
#define SAINA_FUZZ_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../lib/rng.h"

#define FUZZ_BATCH	32	/* messages in one datagram */
#define FUZZ_JOBS	12	/* jobs that likely messages are about */

enum fuzz_kind {
	FUZZ_LIKELY,
	FUZZ_STRUCTURED,
	FUZZ_BLIND,
	FUZZ_KINDS,
};

/**
 * struct fuzz_batch - messages on their way
 * @family: of the family, in each header
 * @seq: of the first message; the others follow
 * @used: bytes of @buf
 * @what: of each message; @dump: asks for all there is; @ack: an answer is asked for
 *	even if all is well
 */
struct fuzz_batch {
	struct rng rng;
	uint16_t family;
	uint32_t seq;
	size_t used;
	struct {
		uint8_t kind;
		uint8_t cmd;
		bool dump, ack;
	} what[FUZZ_BATCH];
	unsigned char buf[FUZZ_BATCH * 2048];	/* none is longer */
};

/* Replaces the messages of @b by new ones; @seq must have been set. */
void fuzz_batch_make(struct fuzz_batch *b);

#endif /* SAINA_FUZZ_MSG_H */
