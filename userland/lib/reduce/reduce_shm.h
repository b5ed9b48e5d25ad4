/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Rounds through shared memory: doorbells and fetches, and where results are. */
#ifndef SAINA_REDUCE_SHM_H
#define SAINA_REDUCE_SHM_H

#include "round.h"

#define SAINA_DOORBELL_LEN (sizeof(struct saina_hdr) + sizeof(struct saina_doorbell))

/* Takes a result from shared memory; false: it is not there (any more). */
bool saina_shm_result(struct saina_round *r, uint32_t round, uint32_t segment, uint8_t next_k,
		      uint64_t now);
/* A COMPLETION that saina_session_check() has accepted. */
void saina_shm_completion(struct saina_round *r, const struct saina_hdr *h, uint64_t now);

/* How many of @n actions, from the first one on, one DOORBELL or FETCH can name. */
size_t saina_shm_takes(const struct saina_round *r, const struct saina_act *a, size_t n);
/*
 * Puts these into @buf: gradients, which are put into the input array, as a DOORBELL, or as a FETCH
 * the results that are not there yet.  False: all are.
 */
bool saina_shm_put(struct saina_round *r, void *buf, const struct saina_act *a, size_t n,
		   uint64_t now);

#endif /* SAINA_REDUCE_SHM_H */
