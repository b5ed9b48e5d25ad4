/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PS mode: invariants after each packet, and accessors to the state of the job. */
#ifndef SAINA_PS_RULES_H
#define SAINA_PS_RULES_H

#include "ps_sim.h"

/* Checks the invariants of datapath.rst 11; false: w->error */
bool ps_check_rules(struct ps_sim *w);
/* Writes w->error; false. */
bool ps_fail(struct ps_sim *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Workers of the group of worker @i, and the steps that they all have finished, by the oracle. */
uint64_t ps_peers(const struct ps_sim *w, unsigned int i);
uint32_t ps_low(const struct ps_sim *w, unsigned int i);

static inline const struct saina_clock *ps_clock(const struct ps_sim *w)
{
	return &w->harness->o.job[w->conf.job].clock;
}

static inline const struct saina_job_rt *ps_rt(const struct ps_sim *w)
{
	return &w->harness->o.job[w->conf.job].rt;
}

static inline unsigned int ps_group(const struct ps_sim *w, unsigned int i)
{
	return ps_rt(w)->policy.groups ? ps_rt(w)->policy.group[i] : 0;
}

#endif /* SAINA_PS_RULES_H */
