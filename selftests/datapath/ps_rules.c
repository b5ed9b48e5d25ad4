// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdarg.h>
#include <stdio.h>
#include "ps_rules.h"

bool ps_fail(struct ps_sim *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w->error, sizeof(w->error), fmt, ap);
	va_end(ap);
	return false;
}

uint64_t ps_peers(const struct ps_sim *w, unsigned int i)
{
	uint64_t peers = 0;

	for (unsigned int n = 0; n < w->workers; n++)
		if (ps_clock(w)->members >> n & 1 && ps_group(w, n) == ps_group(w, i))
			peers |= 1ull << n;
	return peers;
}

uint32_t ps_low(const struct ps_sim *w, unsigned int i)
{
	uint64_t peers = ps_peers(w, i);
	uint32_t low = UINT32_MAX;

	for (unsigned int n = 0; n < w->workers; n++)
		if (peers >> n & 1 && ps_clock(w)->done[n] < low)
			low = ps_clock(w)->done[n];
	return low;
}

/* How far a worker that gets a GO now may lead. */
static uint64_t window_of(const struct ps_sim *w)
{
	const struct saina_policy *p = oracle_target_policy(&w->harness->o.job[w->conf.job]);
	const struct saina_policy *have = &ps_rt(w)->policy;

	return oracle_has_steps(p) && p->groups == have->groups ? p->window : have->window;
}

/* How far the fastest of @workers is ahead of the slowest. */
static uint32_t lead_of(const struct saina_clock *k, uint64_t workers)
{
	uint32_t low = UINT32_MAX, high = 0;

	for (; workers; workers &= workers - 1) {
		uint32_t done = k->done[__builtin_ctzll(workers)];

		low = done < low ? done : low;
		high = done > high ? done : high;
	}
	return high > low ? high - low : 0;
}

/* Are all workers within a window, including those that died ahead and would come back there? */
static bool within(const struct ps_sim *w, const struct saina_clock *k, uint64_t window)
{
	for (unsigned int i = 0; i < w->workers; i++)
		if (k->begun[i] > k->low + window + 1)
			return false;
	return lead_of(k, k->members) <= window;
}

/*
 * Checks the program's own clock, without the oracle, after each CLOCK (nothing else makes a step):
 * no live worker leads another one by more than W + 1.  After W was lowered the previous one counts
 * until all workers are within the new one.
 */
static bool bounded(struct ps_sim *w)
{
	const struct saina_job_conf *c = &w->conf;
	struct saina_clock k;
	uint32_t lead;

	if (c->policy.window > w->bound)
		w->bound = c->policy.window;
	if (!w->clocked)
		return true;
	if (saina_dp_job_clock(w->harness->dp, c->job, &k))
		return ps_fail(w, "no clock of job %u", c->job);
	if (k.generation != c->generation)
		return true;
	if (within(w, &k, c->policy.window))
		w->bound = c->policy.window;
	lead = lead_of(&k, k.members & c->active);
	return lead <= w->bound + 1 ||
	       ps_fail(w, "the clocks of live workers are %u apart, W is %llu", lead,
		       (unsigned long long)w->bound);
}

/* The invariants of section 11, of the clock after each packet. */
bool ps_check_rules(struct ps_sim *w)
{
	const struct saina_clock *k = ps_clock(w);
	const struct saina_job_rt *rt = ps_rt(w);
	uint64_t window = window_of(w), lead;
	/* the packet was one CLOCK: all workers that may go are sent a GO */
	bool clocked = !w->harness->tc && w->harness->want.answer == SAINA_MSG_GO;

	if (w->dense && !w->conf.policy.groups && !bounded(w))
		return false;
	if (rt->count[SAINA_JC_POLICY_MIX])
		return ps_fail(w, "a slot mixes two policies");
	if (rt->mode != w->mode)
		w->swaps++;
	w->mode = rt->mode;
	if (rt->mode != SAINA_RT_PS || rt->base != k->base) {
		w->seen = *k;
		return true;
	}
	if (k->low < w->seen.low)
		return ps_fail(w, "low fell from %u to %u", w->seen.low, k->low);
	if (k->members & ~w->conf.active & ~w->seen.members)
		return ps_fail(w, "a member that is not active");
	for (unsigned int i = 0; i < w->workers; i++) {
		struct ps_worker *s = &w->worker[i];

		if (!(k->members >> i & 1))
			continue;
		if (k->done[i] < k->low)
			return ps_fail(w, "worker %u is behind the slowest", i);
		lead = k->done[i] - ps_low(w, i);
		if (k->going >> i & 1 && (!(w->seen.going >> i & 1) || k->done[i] != w->seen.done[i])) {
			if (k->fence && k->fence == w->seen.fence)
				return ps_fail(w, "worker %u may go, but rounds are to begin with %u", i,
					    k->fence);
			if (lead > window)
				return ps_fail(w, "worker %u may go, %llu ahead, window %llu", i,
					    (unsigned long long)lead, (unsigned long long)window);
			s->window = window;
		}
		/* one frame may let it go and finish its step: a CLOCK after W was raised, a batch */
		if (k->done[i] != w->seen.done[i] && window > s->window)
			s->window = window;
		if (lead > s->window + 1 || (w->constant && lead > window + 1))
			return ps_fail(w, "worker %u is %llu ahead, window %llu, let go under %llu", i,
				    (unsigned long long)lead, (unsigned long long)window,
				    (unsigned long long)s->window);
		if (clocked && k->waiting & k->going & 1ull << i &&
		    ps_group(w, i) == ps_group(w, w->harness->want.worker))
			return ps_fail(w, "worker %u may go and was sent no GO", i);
		w->steps += k->done[i] == w->seen.done[i] + 1;
		if (lead > w->widest)
			w->widest = lead;
	}
	w->seen = *k;
	return true;
}

