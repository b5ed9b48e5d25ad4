/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef EXAMPLES_TRAIN_SIM_STEPS_H
#define EXAMPLES_TRAIN_SIM_STEPS_H

#include "train_sim_state.h"

/* Trains in steps.  0 or -ENOMEM. */
int sim_steps(struct sim *s);

#endif /* EXAMPLES_TRAIN_SIM_STEPS_H */
