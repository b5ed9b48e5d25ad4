/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory by reference: the real arrays and the output, mapped as workers map them. */
#ifndef SAINA_HARNESS_SHM_H
#define SAINA_HARNESS_SHM_H

#include "harness.h"

/* Gives worker @w of the job an input array; @there false: takes it away, and replaces the output. */
int harness_shm_set(struct harness *r, unsigned int job, unsigned int w, bool there);
/* Unmaps the arrays and the output of a job. */
void harness_shm_unmap(struct harness *r, unsigned int job);
/* Where the worker writes segment @segment, its elements behind it; NULL: it has no array. */
struct saina_input_head *harness_shm_input(struct harness *r, unsigned int job, unsigned int w,
				   uint32_t segment);
/* An entry of the program's output; NULL: there is no output. */
const struct saina_output_head *harness_shm_output(struct harness *r, unsigned int job, uint32_t round,
					 uint32_t segment);
/* Is an entry of the output what the oracle says? */
bool harness_check_output(struct harness *r, unsigned int job, uint32_t round, uint32_t segment);

#endif /* SAINA_HARNESS_SHM_H */
