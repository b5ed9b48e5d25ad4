/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared memory: the real input arrays and ring, mapped as workers map them. */
#ifndef SAINA_HARNESS_SHM_H
#define SAINA_HARNESS_SHM_H

#include "harness.h"

/* Gives worker @w an input array; @there false: removes it and renews the ring. */
int harness_shm_set(struct harness *r, unsigned int job, unsigned int w, bool there);
/* Unmaps all arrays of a job. */
void harness_shm_unmap(struct harness *r, unsigned int job);
/* The worker's input entry of a segment, elements follow; NULL: it has no input array. */
struct saina_input_head *harness_shm_input(struct harness *r, unsigned int job, unsigned int w,
				   uint32_t segment);
/* An entry of the ring, as workers see it; NULL: nobody has mapped it. */
const struct saina_output_head *harness_shm_output(struct harness *r, unsigned int job, uint32_t round,
					 uint32_t segment);
/* Is it the oracle's? */
bool harness_check_output(struct harness *r, unsigned int job, uint32_t round, uint32_t segment);
#endif /* SAINA_HARNESS_SHM_H */
