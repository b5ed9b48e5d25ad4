/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers of the harness on their way to the workers, checked by the ledger. */
#ifndef SAINA_SIM_ANSWERS_H
#define SAINA_SIM_ANSWERS_H

#include "sim.h"

/* Delivers the answers to the last frame to the workers that they are for.  False: w->error */
bool sim_deliver(struct sim *w);

#endif /* SAINA_SIM_ANSWERS_H */
