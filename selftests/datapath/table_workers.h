/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The workers of a job of table mode: what they send, and what they learn from answers. */
#ifndef SAINA_TABLE_WORKERS_H
#define SAINA_TABLE_WORKERS_H

#include "table_world.h"

/* Worker @i, if it lives and does not straggle, sends what it has to say in its state. */
void table_worker_turn(struct table_world *w, unsigned int i);
/* Worker @i receives an answer, unless the channel loses it. */
void table_worker_hear(struct table_world *w, unsigned int i, const struct saina_hdr *h);

#endif /* SAINA_TABLE_WORKERS_H */
