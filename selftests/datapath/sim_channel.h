/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The channel from workers to the aggregator: loses, repeats, reorders, delays for rounds. */
#ifndef SAINA_SIM_CHANNEL_H
#define SAINA_SIM_CHANNEL_H

#include "sim.h"

/* The next message to arrive.  False: none does this time. */
bool sim_next(struct sim *w, struct message *m);
/* Another message of the same worker, for the same frame. */
bool sim_more(struct sim *w, const struct message *like, struct message *m);
/* Writes the frame of a message; returns its length. */
unsigned int sim_frame(struct sim *w, const struct message *m, uint8_t *frame);

#endif /* SAINA_SIM_CHANNEL_H */
