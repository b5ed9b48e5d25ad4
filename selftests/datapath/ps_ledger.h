/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ledger of steps: conservation, checked from outside.  It knows what workers said and sees
 * the answers; a SUM must be the sum of exactly what was counted, and count nothing twice.
 */
#ifndef SAINA_PS_LEDGER_H
#define SAINA_PS_LEDGER_H

#include "ps_sim.h"

void ps_ledger_init(struct ps_sim *w);
void ps_ledger_exit(struct ps_sim *w);

/* What a worker says in a step (or round): payload elements. */
const int32_t *ps_value(const struct ps_sim *w, unsigned int worker, uint32_t step,
			   uint32_t segment);
/* Elements for messages whose elements nobody reads. */
const int32_t *ps_unread_values(void);

/* After a packet, ahead of its answers: has another table begun?  False: w->error */
bool ps_ledger_before(struct ps_sim *w);
/* Checks a SUM; if it acknowledges an INC that is counted now, adds it.  False: w->error */
bool ps_ledger_sum(struct ps_sim *w, const struct saina_hdr *h, const uint8_t *payload);
/* After the answers to a packet: takes over what was counted and is not said by any of them. */
void ps_ledger_after(struct ps_sim *w);

#endif /* SAINA_PS_LEDGER_H */
