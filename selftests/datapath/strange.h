/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames that workers who behave never send. */
#ifndef SAINA_STRANGE_H
#define SAINA_STRANGE_H

#include "world.h"

struct strange {
	uint8_t frame[FRAME_MAX];
	unsigned int len;
	unsigned int ifindex;
	char what[96];		/* for people */
};

/* Not ours: must be passed as it is. */
void strange_foreign(struct world *w, struct strange *s);
/* Ours in looks: malformed, forged, replayed, out of window, of no job ... */
void strange_hostile(struct world *w, struct strange *s);

#endif /* SAINA_STRANGE_H */
