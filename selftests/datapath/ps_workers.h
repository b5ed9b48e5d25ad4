/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The workers of the simulator of PS mode: what they send, and how they react to answers. */
#ifndef SAINA_PS_WORKERS_H
#define SAINA_PS_WORKERS_H

#include "ps_sim.h"

/* Worker @i, if it lives and does not straggle, sends the messages of its state. */
void ps_worker_send(struct ps_sim *w, unsigned int i);
/* Worker @i receives an answer, unless the channel loses it. */
void ps_worker_receive(struct ps_sim *w, unsigned int i, const struct saina_hdr *h);

#endif /* SAINA_PS_WORKERS_H */
