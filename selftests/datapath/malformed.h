/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames that no correct worker sends. */
#ifndef SAINA_MALFORMED_H
#define SAINA_MALFORMED_H

#include "sim.h"

struct malformed {
	uint8_t frame[FRAME_MAX];
	unsigned int len;
	unsigned int size;	/* its gso_size, at the tc hook */
	unsigned int ifindex;
	char what[96];		/* description, for failures */
};

/* Foreign traffic: must pass unchanged. */
void malformed_foreign(struct sim *w, struct malformed *s);
/* Traffic that looks like ours: malformed, forged, replayed, out of window, of no job ... */
void malformed_hostile(struct sim *w, struct malformed *s);

#endif /* SAINA_MALFORMED_H */
