/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The channel from workers to the aggregator: loses, repeats, reorders, holds back for rounds. */
#ifndef SAINA_WORLD_CHANNEL_H
#define SAINA_WORLD_CHANNEL_H

#include "world.h"

/* Takes a message that arrives now.  False: this time none does. */
bool world_next(struct world *w, struct message *m);
/* Takes another one of the same worker, for the same frame. */
bool world_more(struct world *w, const struct message *like, struct message *m);
/* Writes the frame of a message; returns its length. */
unsigned int world_frame(struct world *w, const struct message *m, uint8_t *frame);

#endif /* SAINA_WORLD_CHANNEL_H */
