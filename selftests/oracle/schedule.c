// SPDX-License-Identifier: GPL-2.0-or-later
/* Section 5, 2 of Documentation/datapath.rst: what has happened to a job, and which policy is due. */
#include "internal.h"

bool oracle_is_alive(const struct oracle_job *j, unsigned int w)
{
	return j->conf.active >> w & 1;
}

struct oracle_workers oracle_alive(const struct oracle_job *j)
{
	struct oracle_workers alive = {};

	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++)
		if (oracle_is_alive(j, w))
			alive.w[alive.n++] = w;
	return alive;
}

bool oracle_is_one_of(const struct oracle_workers *l, unsigned int w)
{
	for (unsigned int i = 0; i < l->n; i++)
		if (l->w[i] == w)
			return true;
	return false;
}

uint64_t oracle_mask(const struct oracle_workers *l)
{
	uint64_t mask = 0;

	for (unsigned int i = 0; i < l->n; i++)
		mask |= 1ull << l->w[i];
	return mask;
}

void oracle_members_renew(struct oracle_job *j)
{
	j->members = oracle_alive(j);
	j->rt.members = oracle_mask(&j->members);
}

/* Since the schedule was first seen. */
static bool has_happened(const struct oracle_job *j, unsigned int type)
{
	return j->history.last[type] > j->history.asked_at;
}

static void show_history(struct oracle_job *j)
{
	j->rt.happened = 0;
	for (unsigned int type = 0; type < 16; type++)
		j->rt.happened += has_happened(j, type) << type;
}

void oracle_happens(struct oracle_job *j, unsigned int type)
{
	j->history.last[type] = ++j->history.moment;
	show_history(j);
}

void oracle_k_changes(struct oracle *o, struct oracle_job *j, unsigned int from, unsigned int to)
{
	oracle_happens(j, SAINA_EV_K);
	oracle_event(o, j, SAINA_EV_K, 0xff, j->rt.next_round - 1, from, to);
}

/* How many of @a are not in @b? */
static unsigned int missing(const struct oracle_workers *a, const struct oracle_workers *b)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < a->n; i++)
		n += !oracle_is_one_of(b, a->w[i]);
	return n;
}

void oracle_note_events(struct oracle_job *j)
{
	struct oracle_workers alive = oracle_alive(j);

	if (j->conf.next.seq != j->rt.asked) {
		j->rt.asked = j->conf.next.seq;
		j->history.asked_at = j->history.moment;
		show_history(j);
	}
	if (missing(&j->members, &alive))
		oracle_happens(j, SAINA_EV_WORKER_DEAD);
	if (j->members.n && missing(&alive, &j->members))
		oracle_happens(j, SAINA_EV_WORKER_JOINED);
}

/* Has the scheduled policy what it waits for, if the next round opens now? */
static bool is_due(const struct oracle_job *j)
{
	if (j->rt.next_round < j->conf.next_from)
		return false;
	if (!j->conf.next_on)
		return true;
	if (j->rt.asked != j->conf.next.seq)
		return false;
	for (unsigned int type = 0; type < 16; type++)
		if (j->conf.next_on >> type & 1 && has_happened(j, type))
			return true;
	return false;
}

const struct saina_policy *oracle_target_policy(const struct oracle_job *j)
{
	bool scheduled = j->conf.next.seq, adopted = j->conf.next.seq == j->rt.policy.seq;

	return scheduled && (adopted || is_due(j)) ? &j->conf.next : &j->conf.policy;
}
