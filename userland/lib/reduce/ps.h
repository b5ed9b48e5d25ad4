/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * A worker's steps with the parameter server: does to the bytes what transport/steps.h decides.
 * The server's sums only have a meaning as differences: the trainer gets what was added since its
 * model was last brought up to date, its own updates included.
 * Documentation/datapath.rst section 11.
 */
#ifndef SAINA_PS_H
#define SAINA_PS_H

#include "state.h"

/* The job has steps from @base on, until it has rounds again.  0 or -ENOMEM */
int saina_ps_enter(struct saina_round *r, uint32_t base, uint64_t now);

#endif /* SAINA_PS_H */
