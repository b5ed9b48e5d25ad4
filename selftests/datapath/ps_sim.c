// SPDX-License-Identifier: GPL-2.0-or-later
#include "harness_jobs.h"
#include "ps_ledger.h"
#include "ps_rules.h"
#include "ps_workers.h"

static uint32_t some_window(struct rng *r)
{
	return rng_chance(r, 150) ? SAINA_WINDOW_NONE : rng_range(r, 1, rng_chance(r, 600) ? 3 : 20);
}

/* Assigns workers to groups: in turn, or at random. */
static void some_groups(struct ps_sim *w, struct saina_policy *p)
{
	bool dealt = rng_chance(&w->rng, 400);

	p->mode = SAINA_POLICY_GROUPED;
	p->groups = rng_range(&w->rng, 1, w->workers);
	for (unsigned int i = 0; i < SAINA_WORKERS_MAX; i++)
		p->group[i] = dealt ? i % p->groups : i >= w->workers ? SAINA_GROUP_NONE :
			      rng_below(&w->rng, p->groups);
}

/* Draws a policy: @steps: with steps, else with rounds. */
static struct saina_policy some_policy(struct ps_sim *w, bool steps)
{
	struct saina_policy p = { .late = SAINA_LATE_RESIDUAL };
	struct rng *r = &w->rng;

	if (steps && (w->policy == SAINA_POLICY_GROUPED || (!w->policy && rng_chance(r, 400)))) {
		some_groups(w, &p);
	} else if (steps) {
		p.window = w->policy == SAINA_POLICY_ASP ? SAINA_WINDOW_NONE : some_window(r);
		if (w->policy == SAINA_POLICY_SSP && p.window == SAINA_WINDOW_NONE)
			p.window = rng_range(r, 1, SAINA_WINDOW_MAX);
		p.mode = p.window == SAINA_WINDOW_NONE ? SAINA_POLICY_ASP : SAINA_POLICY_SSP;
	} else if (rng_chance(r, 400)) {
		p.mode = rng_chance(r, 700) ? SAINA_POLICY_FASTEST : SAINA_POLICY_EXTERNAL;
		p.k = rng_range(r, 1, w->workers);
		if (p.mode == SAINA_POLICY_FASTEST && rng_chance(r, 300))
			p.timeout_us = UINT32_MAX;	/* never here */
	} else if (rng_chance(r, 400)) {
		p.mode = SAINA_POLICY_SFCD;
		p.k = p.k_min = 1;
		p.s_th = 300;
		p.c_th = 1;
		p.stride = 8;
		p.flags = rng_chance(r, 400) ? SAINA_POLICY_F_DOWN : 0;
	} else if (rng_chance(r, 250) && !(w->workers & 1)) {
		p.mode = SAINA_POLICY_CODED;
		p.spread = 1;
	} else if (rng_chance(r, 250)) {
		p.mode = SAINA_POLICY_TIMEOUT;
		p.timeout_us = UINT32_MAX;	/* never here */
		p.k_min = 1;
	} else {
		p.mode = rng_chance(r, 500) ? SAINA_POLICY_SSP : SAINA_POLICY_BSP;
	}
	return p;
}

static unsigned int groups_of(const struct saina_job_conf *c)
{
	return c->policy.groups > c->next.groups ? c->policy.groups : c->next.groups;
}

/* The data path makes views when a snapshot is published, not when one is written into. */
static int publish(struct ps_sim *w, uint32_t first, bool whole)
{
	int err;

	if (!whole && groups_of(&w->conf) <= w->groups)
		return harness_job_overwrite(w->harness, &w->conf);
	err = harness_job(w->harness, &w->conf, first);
	w->groups = groups_of(&w->conf);
	return err;
}

int ps_sim_init(struct ps_sim *w, struct harness *harness, uint64_t seed, unsigned int payload,
		unsigned int policy, bool dense)
{
	static uint32_t generation;
	struct saina_job_conf *c = &w->conf;
	struct rng *r = &w->rng;
	uint32_t first;

	memset(w, 0, sizeof(*w));
	w->harness = harness;
	w->policy = policy;
	w->dense = dense;
	rng_seed(r, seed);
	ps_ledger_init(w);
	w->workers = rng_chance(r, dense ? 10 : 150) ? rng_range(r, 13, 64) : rng_range(r, 1, dense ? 8 : 12);
	w->constant = rng_chance(r, 500);
	w->value_seed = rng_u64(r);
	w->sessions = rng_u64(r) | 1;
	w->loss_up = rng_below(r, 3) * 80;
	w->loss_down = rng_below(r, 3) * 80;
	w->dup = rng_below(r, 150);
	first = rng_chance(r, 300) ? rng_below(r, 100000) : 0;
	if (rng_chance(r, 50))
		first = SAINA_ROUND_MAX - rng_below(r, 20);	/* close to the last step there is */
	c->generation = ++generation;
	c->job = rng_below(r, SAINA_JOBS_MAX);
	c->state = SAINA_JOB_RUNNING;
	c->elem = SAINA_ELEM_INT32;
	c->payload = payload;
	c->workers = w->workers;
	c->segments = rng_range(r, 1, rng_chance(r, 500) ? 3 : PS_SEGMENTS);
	if (dense && rng_chance(r, 950))
		c->segments = 1;
	c->pool = 1 << rng_below(r, 4);
	c->ring = 2 << rng_below(r, 3);
	c->lock_base = rng_below(r, SAINA_LOCKS);
	c->sign_words = SAINA_SIGN_WORDS(payload, 1);
	c->group = harness_group(c->job);
	w->depth = dense ? rng_range(r, 1, 6) : 16;
	w->swapping = !dense && rng_chance(r, 500);
	/* each time steps begin again, or are resumed, the window may differ */
	w->constant &= !w->swapping;
	c->policy = some_policy(w, !w->swapping || rng_chance(r, 700));
	c->policy.seq = 1;
	for (unsigned int n = 0; n < w->workers; n++) {
		harness_bind(harness, c, n, rng_below(r, 5) % HARNESS_PORTS, w->sessions += 2);
		c->active |= (uint64_t)rng_chance(r, 800) << n;
		if (!rng_chance(r, 30))
			continue;
		c->relay |= 1ull << n;
		c->worker[n].flags |= SAINA_BIND_RELAY;
	}
	c->active |= 1;
	w->seen.low = first;
	return publish(w, first, true);
}

void ps_sim_exit(struct ps_sim *w)
{
	ps_ledger_exit(w);
	harness_job_remove(w->harness, w->conf.job);
}

bool ps_sim_next(struct ps_sim *w, struct ps_message *m)
{
	unsigned int i;

	for (unsigned int n = 0; w->in_flight < w->depth && n < w->workers; n++)
		ps_worker_send(w, (rng_below(&w->rng, w->workers) + n) % w->workers);
	if (!w->in_flight)
		return false;
	i = rng_below(&w->rng, w->in_flight);
	*m = w->flight[i];
	w->clocked = m->type == SAINA_MSG_CLOCK;
	if (rng_chance(&w->rng, w->dup))
		return true;		/* it stays in flight: a duplicate will come */
	w->flight[i] = w->flight[--w->in_flight];
	return !rng_chance(&w->rng, w->loss_up);
}

bool ps_sim_more(struct ps_sim *w, const struct ps_message *like,
		 struct ps_message *m)
{
	for (unsigned int i = 0; i < w->in_flight; i++) {
		*m = w->flight[i];
		if (m->worker != like->worker)
			continue;
		w->flight[i] = w->flight[--w->in_flight];
		return true;
	}
	return false;
}

unsigned int ps_sim_frame(struct ps_sim *w, const struct ps_message *m,
			  uint8_t *frame)
{
	const struct saina_doorbell doorbell = { .posted = 5 };
	const struct saina_ask ask = {};
	const void *payload = ps_unread_values();
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION, .type = m->type, .flags = m->flags,
		.elem = SAINA_ELEM_INT32, .job = w->conf.job, .session = m->session,
		.round = m->round, .segment = m->segment, .worker = m->worker,
		.exponent = m->exponent, .count = w->conf.payload,
	};

	if (m->type == SAINA_MSG_INC || m->type == SAINA_MSG_GRAD)
		payload = ps_value(w, m->worker, m->round, m->segment);
	if (m->type == SAINA_MSG_CLOCK || m->type == SAINA_MSG_ASK || m->type == SAINA_MSG_DOORBELL ||
	    m->type == SAINA_MSG_FETCH)
		h.count = 0;
	if (m->type == SAINA_MSG_DOORBELL || m->type == SAINA_MSG_FETCH)
		return frame_make(frame, &w->harness->g, &w->conf.worker[m->worker], &h, &doorbell,
				  sizeof(doorbell));
	if (m->type == SAINA_MSG_ASK)
		return frame_make(frame, &w->harness->g, &w->conf.worker[m->worker], &h, &ask, sizeof(ask));
	return frame_make(frame, &w->harness->g, &w->conf.worker[m->worker], &h, payload, 4 * h.count);
}

bool ps_sim_deliver(struct ps_sim *w)
{
	const struct harness *r = w->harness;

	if (!ps_ledger_before(w))
		return false;
	for (unsigned int n = 0; n < r->answers; n++) {
		struct saina_hdr h;

		memcpy(&h, r->answer[n].message, sizeof(h));
		if (h.type == SAINA_MSG_SUM && !ps_ledger_sum(w, &h, r->answer[n].message + sizeof(h)))
			return false;
		for (unsigned int i = 0; i < w->workers; i++)
			if (r->answer[n].to >> i & 1)
				ps_worker_receive(w, i, &h);
	}
	ps_ledger_after(w);
	return ps_check_rules(w);
}

/* Requests another policy: for now or, as the control plane does, scheduled as the next one. */
static void request_policy(struct ps_sim *w)
{
	struct saina_job_conf *c = &w->conf;
	struct rng *r = &w->rng;
	bool steps = oracle_has_steps(&c->policy);
	uint32_t seq = (c->next.seq ? c->next.seq : c->policy.seq) + 1;

	if (c->next.seq && ps_rt(w)->policy.seq == c->next.seq) {
		c->policy = c->next;
		steps = oracle_has_steps(&c->policy);
		memset(&c->next, 0, sizeof(c->next));
	}
	if (c->next.seq) {
		if (!rng_chance(r, 200))
			return;		/* it stays scheduled; else it is cancelled */
		memset(&c->next, 0, sizeof(c->next));
		c->policy.seq = seq;
		return;
	}
	if (w->swapping && rng_chance(r, 800)) {
		c->next = some_policy(w, !steps);
		c->next.seq = seq;
		c->next_from = rng_chance(r, 300) ? ps_rt(w)->next_round + rng_below(r, 9) : 0;
		c->next_on = rng_chance(r, 300) ? 1u << SAINA_EV_WORKER_DEAD |
						  1u << SAINA_EV_WORKER_JOINED : 0;
		if (!rng_chance(r, 100))
			return;
		/* as after a restart: no policy is scheduled */
		c->policy = c->next;
		memset(&c->next, 0, sizeof(c->next));
		return;
	}
	if (w->constant)
		return;
	w->windows++;
	c->policy = some_policy(w, steps);
	c->policy.seq = seq;
}

int ps_sim_job_change(struct ps_sim *w)
{
	unsigned int i = rng_below(&w->rng, w->workers);
	struct saina_job_conf *c = &w->conf;

	switch (rng_below(&w->rng, 8)) {
	case 0 ... 3:
		request_policy(w);
		if (rng_chance(&w->rng, 200))
			c->k_set = rng_below(&w->rng, w->workers + 1);
		break;
	case 4:		/* a worker restarted before its death was noticed */
		c->worker[i].session = w->sessions += 2;
		w->worker[i].state = PS_ASKS;
		break;
	default:
		if (c->active >> i & 1) {
			if (c->active & (c->active - 1)) {
				c->active &= ~(1ull << i);
				w->deaths++;
			}
			break;
		}
		c->active |= 1ull << i;
		c->worker[i].session = w->sessions += 2;
		w->worker[i].state = PS_ASKS;
		w->worker[i].stall = 0;
	}
	return publish(w, 0, rng_chance(&w->rng, 10));
}
