/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory by reference: the real arrays and the board, mapped as workers map them. */
#ifndef SAINA_RIG_SHARED_H
#define SAINA_RIG_SHARED_H

#include "rig.h"

/* Gives worker @w of the job an input array; @there false: takes it away, and replaces the board. */
int rig_share(struct rig *r, unsigned int job, unsigned int w, bool there);
/* Unmaps the arrays and the board of a job. */
void rig_unshare_all(struct rig *r, unsigned int job);
/* Where the worker writes segment @segment, its elements behind it; NULL: it has no array. */
struct saina_input_head *rig_input(struct rig *r, unsigned int job, unsigned int w,
				   uint32_t segment);
/* An entry of the program's board; NULL: there is no board. */
const struct saina_output_head *rig_board(struct rig *r, unsigned int job, uint32_t round,
					 uint32_t segment);
/* Is an entry of the board what the oracle says? */
bool rig_check_board(struct rig *r, unsigned int job, uint32_t round, uint32_t segment);

#endif /* SAINA_RIG_SHARED_H */
