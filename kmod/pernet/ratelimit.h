/* SPDX-License-Identifier: GPL-2.0 */
/* Limits the events of the data path in each second. */
#ifndef _SAINA_RATELIMIT_H
#define _SAINA_RATELIMIT_H

#include <linux/spinlock.h>
#include <linux/types.h>

/**
 * struct saina_ratelimit - events of the present second
 * @lock: of the rest
 * @begin: of that second, in jiffies
 * @n: events since then
 */
struct saina_ratelimit {
	spinlock_t lock;
	unsigned long begin;
	u32 n;
};

void saina_ratelimit_init(struct saina_ratelimit *r);
/* May one more event pass, of @most in a second?  *first: it is the first that may not. */
bool saina_ratelimit_pass(struct saina_ratelimit *r, unsigned int most, bool *first);

#endif /* _SAINA_RATELIMIT_H */
