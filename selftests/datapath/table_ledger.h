/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ledger of steps: conservation, checked from outside.  It knows what workers said and sees
 * the answers; a SUM must be the sum of exactly what was counted, and count nothing twice.
 */
#ifndef SAINA_TABLE_LEDGER_H
#define SAINA_TABLE_LEDGER_H

#include "table_world.h"

void table_ledger_init(struct table_world *w);
void table_ledger_exit(struct table_world *w);

/* What a worker says in a step (or round): payload elements. */
const int32_t *table_value(const struct table_world *w, unsigned int worker, uint32_t step,
			   uint32_t segment);
/* Elements for messages whose elements nobody reads. */
const int32_t *table_unread_values(void);

/* After a packet, ahead of its answers: has another table begun?  False: w->error */
bool table_ledger_before(struct table_world *w);
/* Checks a SUM; if it acknowledges an INC that is counted now, adds it.  False: w->error */
bool table_ledger_sum(struct table_world *w, const struct saina_hdr *h, const uint8_t *payload);
/* After the answers to a packet: takes over what was counted and is not said by any of them. */
void table_ledger_after(struct table_world *w);

#endif /* SAINA_TABLE_LEDGER_H */
