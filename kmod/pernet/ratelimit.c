// SPDX-License-Identifier: GPL-2.0
#include <linux/jiffies.h>

#include "pernet/ratelimit.h"

void saina_ratelimit_init(struct saina_ratelimit *r)
{
	spin_lock_init(&r->lock);
	r->begin = jiffies;
	r->n = 0;
}

bool saina_ratelimit_pass(struct saina_ratelimit *r, unsigned int most, bool *first)
{
	unsigned long now = jiffies;
	unsigned long flags;
	bool pass;

	spin_lock_irqsave(&r->lock, flags);
	if (time_after_eq(now, r->begin + HZ)) {
		r->begin = now;
		r->n = 0;
	}
	pass = r->n < most;
	*first = r->n == most;
	if (r->n <= most)
		r->n++;
	spin_unlock_irqrestore(&r->lock, flags);
	return pass;
}
