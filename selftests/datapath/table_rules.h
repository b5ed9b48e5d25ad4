/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Table mode: rules that hold after each packet, and accessors to the state of the job. */
#ifndef SAINA_TABLE_RULES_H
#define SAINA_TABLE_RULES_H

#include "table_world.h"

/* The rules of datapath.rst 11 that hold whatever happens; false: w->error */
bool table_rules(struct table_world *w);
/* Writes w->error; false. */
bool table_fail(struct table_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Workers of the group of worker @i, and what they all have finished, as the oracle has it. */
uint64_t table_peers(const struct table_world *w, unsigned int i);
uint32_t table_low(const struct table_world *w, unsigned int i);

static inline const struct saina_clock *table_clock(const struct table_world *w)
{
	return &w->rig->o.job[w->conf.job].clock;
}

static inline const struct saina_job_rt *table_rt(const struct table_world *w)
{
	return &w->rig->o.job[w->conf.job].rt;
}

static inline bool table_has_steps(const struct saina_policy *p)
{
	return p->window || p->groups;
}

static inline unsigned int table_group(const struct table_world *w, unsigned int i)
{
	return table_rt(w)->policy.groups ? table_rt(w)->policy.group[i] : 0;
}

#endif /* SAINA_TABLE_RULES_H */
