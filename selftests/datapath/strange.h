/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames that no correct worker sends. */
#ifndef SAINA_STRANGE_H
#define SAINA_STRANGE_H

#include "world.h"

struct strange {
	uint8_t frame[FRAME_MAX];
	unsigned int len;
	unsigned int size;	/* its gso_size, at the tc hook */
	unsigned int ifindex;
	char what[96];		/* description, for failures */
};

/* Traffic of others: must be passed unchanged. */
void strange_foreign(struct world *w, struct strange *s);
/* Looks like a message to us: malformed, forged, replayed, out of window, of no job ... */
void strange_hostile(struct world *w, struct strange *s);

#endif /* SAINA_STRANGE_H */
