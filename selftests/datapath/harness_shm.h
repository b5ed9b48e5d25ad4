/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared memory: the real input and output arrays, mapped as workers map them. */
#ifndef SAINA_HARNESS_SHM_H
#define SAINA_HARNESS_SHM_H

#include "harness.h"

/* Gives worker @w an input array; @there false: removes it and renews the output array. */
int harness_shm_set(struct harness *r, unsigned int job, unsigned int w, bool there);
/* Unmaps all arrays of a job. */
void harness_shm_unmap(struct harness *r, unsigned int job);
/* The worker's input entry of a segment, elements follow; NULL: it has no input array. */
struct saina_input_head *harness_shm_input(struct harness *r, unsigned int job, unsigned int w,
				   uint32_t segment);
/* An entry of the program's output array; NULL: there is none. */
const struct saina_output_head *harness_shm_output(struct harness *r, unsigned int job, uint32_t round,
					 uint32_t segment);
/* Is the entry of the output array the oracle's? */
bool harness_check_output(struct harness *r, unsigned int job, uint32_t round, uint32_t segment);
/* The entry of worker @w's input array, if a FETCH has put that result there; else NULL. */
const struct saina_output_head *harness_shm_fetched(struct harness *r, unsigned int job, unsigned int w,
						    uint32_t round, uint32_t segment);
/* Is that result, if there is one, the oracle's? */
bool harness_check_fetched(struct harness *r, unsigned int job, unsigned int w, uint32_t round,
			   uint32_t segment);

/*
 * The program runs before the oracle, and a FETCH writes into the worker's input array: during a
 * frame with one the oracle has that array as it was before.
 */
void harness_shm_before(struct harness *r, const uint8_t *frame, unsigned int len, unsigned int size);
void harness_shm_after(struct harness *r);

#endif /* SAINA_HARNESS_SHM_H */
