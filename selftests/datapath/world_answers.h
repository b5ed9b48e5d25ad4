/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers of the rig on their way to the workers, checked by the ledger and by recompute. */
#ifndef SAINA_WORLD_ANSWERS_H
#define SAINA_WORLD_ANSWERS_H

#include "world.h"

/* Delivers the answers to the last frame to the workers that they are for.  False: w->error */
bool world_answer(struct world *w);

#endif /* SAINA_WORLD_ANSWERS_H */
