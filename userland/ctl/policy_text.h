/* SPDX-License-Identifier: GPL-2.0 */
/* Policies as strings. */
#ifndef _SAINA_CORE_POLICY_TEXT_H
#define _SAINA_CORE_POLICY_TEXT_H

#include "core/policy.h"

/* The longest policy string, with its terminator. */
#define SAINA_POLICY_TEXT_LEN 256

int saina_policy_parse(const char *text, int workers, struct saina_policy *p,
		       struct saina_core_err *err);
void saina_policy_to_attrs(const struct saina_policy *p, struct saina_policy_attrs *a);
void saina_policy_format(const struct saina_policy *p, char *text, unsigned long size);

#endif /* _SAINA_CORE_POLICY_TEXT_H */
