/* SPDX-License-Identifier: GPL-2.0 */
/* Refusals: an errno, the guilty attribute and one sentence. */
#ifndef _SAINA_CORE_ERR_H
#define _SAINA_CORE_ERR_H

#include "saina/proto.h"

/**
 * struct saina_core_err - why a call was refused
 * @attr: the guilty attribute (SAINA_A_JOB_*, SAINA_A_WORKER_*,
 *	SAINA_A_LIMITS_*, as fits the call), 0 if none
 * @text: one sentence, zero terminated
 *
 * The errno is the call's return value, negative.
 */
struct saina_core_err {
	__u16	attr;
	char	text[SAINA_TEXT_LEN];
};

/* Fills @err (which may be NULL) and returns @error: `return saina_refuse(...)`. */
int saina_refuse(struct saina_core_err *err, int error, unsigned int attr, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif /* _SAINA_CORE_ERR_H */
