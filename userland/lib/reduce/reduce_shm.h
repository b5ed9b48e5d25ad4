/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Rounds through shared memory: doorbells and the output array. */
#ifndef SAINA_REDUCE_SHM_H
#define SAINA_REDUCE_SHM_H

#include "round.h"

#define SAINA_DOORBELL_LEN (sizeof(struct saina_hdr) + sizeof(struct saina_doorbell))

/* Takes a result from the output array; false: it is not there (any more). */
bool saina_shm_result(struct saina_round *r, uint32_t round, uint32_t segment, uint8_t next_k,
		      uint64_t now);
/* A COMPLETION that saina_session_check() has accepted. */
void saina_shm_completion(struct saina_round *r, const struct saina_hdr *h, uint64_t now);

/* Are these nothing but gradients of one round that one DOORBELL can name? */
bool saina_shm_fits_doorbell(const struct saina_round *r, const struct saina_act *a, size_t n);
/* Puts @n gradients into the input array, and a DOORBELL for them into @buf. */
void saina_shm_put_doorbell(struct saina_round *r, void *buf, const struct saina_act *a, size_t n);

#endif /* SAINA_REDUCE_SHM_H */
