/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ledger of steps: conservation, checked from outside.  It knows the workers' updates and sees
 * the answers; a SUM must be the sum of exactly the updates counted, none of them twice.
 */
#ifndef SAINA_PS_LEDGER_H
#define SAINA_PS_LEDGER_H

#include "ps_sim.h"

void ps_ledger_init(struct ps_sim *w);
void ps_ledger_exit(struct ps_sim *w);

/* The update of a worker in a step (or its gradient in a round): payload elements. */
const int32_t *ps_value(const struct ps_sim *w, unsigned int worker, uint32_t step,
			   uint32_t segment);
/* Elements for messages whose elements are ignored. */
const int32_t *ps_unread_values(void);

/* After a packet, before its answers: has PS mode begun or ended?  False: w->error */
bool ps_ledger_before(struct ps_sim *w);
/* Checks a SUM; if it acknowledges an INC that is counted now, adds it.  False: w->error */
bool ps_ledger_sum(struct ps_sim *w, const struct saina_hdr *h, const uint8_t *payload);
/* After the answers to a packet: adds updates that were counted and have no answer. */
void ps_ledger_after(struct ps_sim *w);

#endif /* SAINA_PS_LEDGER_H */
