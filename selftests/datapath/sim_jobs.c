// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <string.h>
#include "harness_events.h"
#include "harness_jobs.h"
#include "harness_shm.h"
#include "sim_jobs.h"
#include "sim_policy.h"
#include "sim_uplink.h"

static const unsigned int ports_of_workers[] = { 0, 0, 0, 1, 2 };

/* Requests another policy, for now or on a schedule. */
static void request_policy(struct sim *w, struct sim_job *j)
{
	static const unsigned int on[] = { SAINA_EV_K, SAINA_EV_DEGRADED, SAINA_EV_WORKER_DEAD,
					   SAINA_EV_WORKER_JOINED };
	struct saina_job_conf *c = &j->conf;
	struct rng *r = &w->rng;
	struct saina_policy p;

	/* the scheduled policy is adopted, or is cancelled */
	if (c->next.seq) {
		if (sim_rt(j)->policy.seq == c->next.seq)
			c->policy = c->next;
		memset(&c->next, 0, sizeof(c->next));
		c->next_from = c->next_on = 0;
	}
	sim_policy_draw(w, j, &c->policy, &p);
	if (!j->present || rng_chance(r, 600)) {
		c->policy = p;
		return;
	}
	c->next = p;
	c->next_from = sim_rt(j)->next_round + rng_below(r, 6);
	if (rng_chance(r, 500))
		c->next_on = 1u << on[rng_below(r, 4)] | 1u << on[rng_below(r, 4)];
}

/* A worker that joins, or rejoins, begins in the next round or the one before. */
static void worker_begin(struct sim *w, struct sim_job *j, unsigned int i)
{
	struct sim_worker *s = &j->worker[i];
	uint32_t next = sim_rt(j)->next_round;

	memset(s, 0, sizeof(*s));
	s->alive = true;
	s->round = next > j->first_round ? next - rng_below(&w->rng, 2) : next;
}

/* With an uplink results come from the parent, else from here. */
static void set_uplink(struct sim_job *j, bool on)
{
	j->conf.uplink = on ? 1ull << j->uplink : 0;
	j->ledger.uplink = on ? j->uplink : -1;
	j->ledger.had_uplink |= on;
}

int sim_job_create(struct sim *w, unsigned int i, unsigned int number, unsigned int payload)
{
	static uint32_t generation;
	struct sim_job *j = &w->job[i];
	struct saina_job_conf *c = &j->conf;
	struct rng *r = &w->rng;
	unsigned int most = payload > 352 ? 24 : payload > 128 ? 96 : SIM_SEGMENTS;
	bool shm;
	int err;

	memset(j, 0, sizeof(*j));
	j->sim = w;
	j->workers = rng_chance(r, 200) ? rng_range(r, 1, 64) : rng_range(r, 1, 12);
	j->first_round = rng_chance(r, 300) ? rng_below(r, 100000) : 0;
	j->value_seed = rng_u64(r);
	j->steady = rng_chance(r, 400);
	j->liar = rng_chance(r, 500) ? (int)rng_below(r, j->workers) : -1;
	j->sessions = rng_u64(r);
	j->seen_at = w->harness->packets;
	j->uplink = w->uplinks && j->workers < SAINA_WORKERS_MAX && rng_chance(r, 500) ? (int)j->workers : -1;
	shm = rng_chance(r, 400);
	/* by reference gradients have no weight, so then nobody has: the ledger knows one only */
	j->nodes = w->uplinks && !shm && rng_chance(r, 500);

	c->generation = ++generation;
	c->job = number;
	c->state = SAINA_JOB_RUNNING;
	c->elem = w->int16 && rng_chance(r, 300) ? SAINA_ELEM_INT16 : SAINA_ELEM_INT32;
	c->payload = payload;
	c->workers = j->workers + (j->uplink >= 0);
	c->segments = rng_chance(r, 150) ? 1 : rng_range(r, 1, rng_chance(r, 300) ? most : 20);
	c->pool = 1 << rng_below(r, rng_chance(r, 500) ? 4 : 8);
	c->ring = 2 << rng_below(r, 4);
	c->lock_base = rng_below(r, SAINA_LOCKS);
	c->sign_words = SAINA_SIGN_WORDS(payload, 1);
	c->group = harness_group(number);
	for (unsigned int n = 0; n < j->workers; n++) {
		harness_bind(w->harness, c, n, ports_of_workers[rng_below(r, 5)], ++j->sessions);
		c->active |= 1ull << n;
		if (rng_chance(r, 30))
			c->relay |= 1ull << n;
		c->worker[n].max_weight = sim_max_weight(j, n);
	}
	if (j->uplink >= 0) {
		harness_bind(w->harness, c, j->uplink, ports_of_workers[rng_below(r, 5)], ++j->sessions);
		c->worker[j->uplink].max_weight = sim_max_weight(j, j->uplink);
		set_uplink(j, true);
	}
	for (unsigned int n = 0; n < j->workers; n++)
		if (c->relay >> n & 1)
			c->worker[n].flags |= SAINA_BIND_RELAY;
	request_policy(w, j);
	err = harness_job(w->harness, c, j->first_round);
	if (err)
		return err;
	j->present = true;
	ledger_init(&j->ledger, payload, c->segments, j->first_round, sim_gradient, j);
	set_uplink(j, j->uplink >= 0);
	/* some or all workers use shared memory */
	if (shm) {
		unsigned int share = rng_chance(r, 500) ? 1000 : 600;

		for (unsigned int n = 0; n < j->workers && !err; n++)
			if (rng_chance(r, share))
				err = harness_shm_set(w->harness, number, n, true);
		if (!err && j->uplink >= 0 && rng_chance(r, share))
			err = harness_shm_set(w->harness, number, j->uplink, true);
	}
	for (unsigned int n = 0; n < j->workers; n++)
		worker_begin(w, j, n);
	return err;
}

static void job_del(struct sim *w, unsigned int i)
{
	ledger_exit(&w->job[i].ledger);
	w->job[i].present = false;
	harness_job_remove(w->harness, w->job[i].conf.job);
}

void sim_jobs_remove(struct sim *w)
{
	for (unsigned int i = 0; i < SIM_JOBS; i++)
		if (w->job[i].present)
			job_del(w, i);
}

/* Publishes a change: mostly by a write into the snapshot, now and then as the agent does. */
static int publish(struct sim *w, struct sim_job *j)
{
	return rng_chance(&w->rng, 6) ? harness_job(w->harness, &j->conf, 0) :
					harness_job_overwrite(w->harness, &j->conf);
}

static int death_or_birth(struct sim *w, struct sim_job *j)
{
	struct saina_job_conf *c = &j->conf;
	unsigned int i = rng_below(&w->rng, j->workers);

	if (c->active >> i & 1) {
		if (!(c->active & (c->active - 1)))
			return 0;	/* at least one worker stays alive */
		c->active &= ~(1ull << i);
		j->worker[i].alive = false;
		/* rarely: it waits for grace periods */
		if (rng_chance(&w->rng, 50))
			return harness_shm_set(w->harness, c->job, i, false);
	} else {
		c->active |= 1ull << i;
		c->worker[i].session = ++j->sessions;
		worker_begin(w, j, i);
		if (w->harness->shm[c->job].output && rng_chance(&w->rng, 50))
			return harness_shm_set(w->harness, c->job, i, true);
	}
	return 0;
}

/* The relay starts again; rarely, as it waits for grace periods, the job gets or loses its uplink. */
static int change_uplink(struct sim *w, struct sim_job *j)
{
	if (j->uplink < 0)
		return 0;
	if (!rng_chance(&w->rng, 50) || !sim_uplink_is_idle(w, j)) {
		j->conf.worker[j->uplink].session = ++j->sessions;
		return publish(w, j);
	}
	set_uplink(j, !j->conf.uplink);
	return harness_job(w->harness, &j->conf, 0);
}

int sim_job_change(struct sim *w)
{
	struct sim_job *j = &w->job[rng_below(&w->rng, SIM_JOBS)];

	if (!j->present)
		return 0;
	if (j->conf.state != SAINA_JOB_RUNNING)
		return 0;
	switch (rng_below(&w->rng, 13)) {
	case 0 ... 3:
		if (death_or_birth(w, j))
			return -EINVAL;
		break;
	case 4 ... 6:
		request_policy(w, j);
		break;
	case 7 ... 8:
		j->conf.k_set = rng_below(&w->rng, j->workers + 1);
		break;
	case 9 ... 10:
		return harness_advance_time(w->harness, 1000ull * w->harness->tick_us * rng_range(&w->rng, 1, 3));
	case 11:
		if (w->paused)
			return 0;
		j->conf.state = rng_chance(&w->rng, 500) ? SAINA_JOB_FORMING : SAINA_JOB_STOPPED;
		w->paused = j;
		break;
	case 12:
		return change_uplink(w, j);
	}
	return publish(w, j);
}

int sim_job_resume(struct sim *w)
{
	struct sim_job *j = w->paused;

	w->paused = NULL;
	if (!j || !j->present)
		return 0;
	j->conf.state = SAINA_JOB_RUNNING;
	return publish(w, j);
}

int sim_restart_stuck(struct sim *w)
{
	for (unsigned int i = 0; i < SIM_JOBS; i++) {
		struct sim_job *j = &w->job[i];
		unsigned int number = j->conf.job, payload = j->conf.payload;
		int err;

		if (!j->present)
			continue;
		if (j->ledger.results != j->results_seen) {
			j->results_seen = j->ledger.results;
			j->seen_at = w->harness->packets;
		}
		if (w->harness->packets - j->seen_at < 20000)
			continue;
		w->stuck++;
		if (!harness_drain(w->harness))
			return -EINVAL;
		ledger_exit(&j->ledger);
		oracle_job_remove(&w->harness->o, number);
		err = sim_job_create(w, i, number, payload);
		if (err)
			return err;
	}
	return 0;
}
