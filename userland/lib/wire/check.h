/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Validates answers of the data path before anything acts on them. */
#ifndef SAINA_CHECK_H
#define SAINA_CHECK_H

#include "job.h"

static inline bool saina_exponent_valid(int e)
{
	return e >= SAINA_EXPONENT_MIN;
}

/* May a result have this exponent?  @elem: of the job */
static inline bool saina_exponent_valid_in_result(int elem, int e)
{
	if (e == SAINA_EXPONENT_INT)
		return elem == SAINA_ELEM_INT32;
	return SAINA_ELEM_IS_INT(elem) ? saina_exponent_valid(e) || e == SAINA_EXPONENT_NAN : !e;
}

/* Workers in the sum of a result; 0: no sum of the job has so many, or none. */
uint32_t saina_check_weight(const struct saina_job *job, const struct saina_hdr *h);
bool saina_check_round(__le32 round);
/* Is it an answer to this worker, about a job whose WELCOME has come? */
bool saina_check_unicast(const struct saina_job *job, const struct saina_hdr *h);
/* RESULT, STALE, ASK_REPLY, COMPLETION, SUM, NAK or GO, with @len bytes after the header. */
bool saina_check_answer(const struct saina_job *job, const struct saina_hdr *h, size_t len);

#endif /* SAINA_CHECK_H */
