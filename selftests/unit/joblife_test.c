// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The job core by its public interface: workers, their states, snapshots; random calls
 * against the rules.
 */
#include "jobcore_owner.h"

static void snapshot_of_a_job(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 3, "fastest:k=2,late=drop");
	struct saina_job_conf *c = &o->last;

	assert_int_equal(try_join(o, job, 1, 0), 0);
	assert_int_equal(c->job, 0);
	assert_int_equal(c->generation, job->generation);
	assert_int_equal(c->state, SAINA_JOB_FORMING);
	assert_int_equal(c->payload, 352);
	assert_int_equal(c->segments, 29);
	assert_int_equal(c->pool, 32);
	assert_int_equal(c->ring, 8);
	assert_int_equal(c->active, 2);
	assert_int_equal(c->relay, 0);
	assert_int_equal(c->group, htonl(0xefbe0000));
	assert_int_equal(c->policy.mode, SAINA_POLICY_FASTEST);
	assert_int_equal(c->policy.late, SAINA_LATE_DROP);
	assert_int_equal(c->policy.k, 2);
	assert_int_equal(c->policy.seq, 1);
	assert_int_equal(c->worker[0].flags, 0);
	assert_int_equal(c->worker[1].flags, SAINA_BIND_BOUND);
	assert_int_equal(c->worker[1].ifindex, 11);
	assert_int_equal(c->worker[1].ip, htonl(0x0a000002));
	assert_int_equal(c->worker[1].udp_port, htons(40001));
	assert_int_equal(c->worker[1].session, 1001);
	assert_int_equal(c->worker[1].mac[5], 1);
}

static void runs_when_all_are_there(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 3, NULL);

	assert_int_equal(try_join(o, job, 2, 0), 0);
	assert_int_equal(try_join(o, job, 0, 0), 0);
	assert_int_equal(job->state, SAINA_JOB_FORMING);
	assert_int_equal(o->last.state, SAINA_JOB_FORMING);
	assert_int_equal(try_join(o, job, 1, 0), 0);
	assert_int_equal(job->state, SAINA_JOB_RUNNING);
	assert_int_equal(o->last.state, SAINA_JOB_RUNNING);
	assert_int_equal(o->last.active, 7);
	assert_int_equal(o->event[o->events - 2].type, SAINA_EV_WORKER_JOINED);
	assert_int_equal(o->event[o->events - 1].type, SAINA_EV_JOB_STATE);
	assert_int_equal(o->event[o->events - 1].a, SAINA_JOB_FORMING);
	assert_int_equal(o->event[o->events - 1].b, SAINA_JOB_RUNNING);
	assert_int_equal(o->note[o->notes - 2], SAINA_CMD_WORKER_NTF);
	assert_int_equal(o->note[o->notes - 1], SAINA_CMD_JOB_NTF);
}

static void operator_starts_a_job(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 3, NULL);

	assert_refused(o, set_job_state(o, job, SAINA_JOB_RUNNING), -ENOTCONN, SAINA_A_JOB_STATE);
	assert_int_equal(try_join(o, job, 0, 0), 0);
	assert_int_equal(set_job_state(o, job, SAINA_JOB_RUNNING), 0);
	assert_int_equal(o->last.state, SAINA_JOB_RUNNING);
	assert_refused(o, set_job_state(o, job, SAINA_JOB_FORMING), -EBUSY, SAINA_A_JOB_STATE);
	assert_refused(o, set_job_state(o, job, 9), -EINVAL, SAINA_A_JOB_STATE);
	assert_int_equal(try_join(o, job, 1, 0), 0); /* late comers are welcome */
	assert_int_equal(o->last.active, 3);
}

static void first_round_of_those_who_agree(void **state)
{
	enum { MAX = SAINA_ROUND_MAX, JOIN = SAINA_ROUND_JOIN };
	static const struct {
		__u32 rounds[5];	/* that workers name in their JOINs */
		int n;
		__u32 first;
	} jobs[] = {
		{ { 0, 0, 0 }, 3, 0 },
		{ { 5, 3, 4 }, 3, 5 },				/* all within the ring (8) */
		{ { 0, 0, 77 }, 3, 77 },			/* the others are fresh */
		{ { 500, 400, 500, 499, 450 }, 5, 500 },	/* one is far behind */
		{ { 1000, 1001, MAX }, 3, 1001 },		/* one lies */
		{ { MAX, 1000, 1001, 1000, 0 }, 5, 1001 },
		{ { MAX, 1000, 1001, MAX, 1001 }, 5, 1001 },	/* two lie, fewer than the others */
		{ { 1000, MAX }, 2, 1000 },
		{ { 1000, 900000 }, 2, 1000 },			/* who is right? nobody skips rounds */
		{ { 1000, 3, 1001, 2000000 }, 4, 1001 },
		{ { MAX, 0, 0 }, 3, 0 },			/* the job could not train */
		{ { JOIN + 1u, 0, 0 }, 3, 0 },
		{ { JOIN, 0, 0 }, 3, JOIN },			/* it can */
		{ { MAX - 10, MAX - 10, 0 }, 3, MAX - 10 },	/* most say so */
		{ { MAX - 10, MAX - 10, 0, 0 }, 4, 0 },		/* not most */
		{ { MAX }, 1, MAX },
	};
	struct owner *o = *state;
	const struct saina_job *job;
	__u32 generation;
	char name[8];
	int i, w;

	for (i = 0; i < (int)(sizeof(jobs) / sizeof(jobs[0])); i++) {
		snprintf(name, sizeof(name), "j%d", i);
		job = add(o, name, jobs[i].n, NULL);
		assert_int_equal(job->ring, 8);
		generation = job->generation;
		for (w = 0; w < jobs[i].n; w++) {
			assert_int_equal(job->first_round, 0); /* until it runs */
			assert_int_equal(job->generation, generation);
			assert_int_equal(try_join(o, job, w, jobs[i].rounds[w]), 0);
		}
		assert_int_equal(job->state, SAINA_JOB_RUNNING);
		assert_int_equal(job->first_round, jobs[i].first);
		assert_int_equal(o->last_first_round, jobs[i].first);
		/* or the data path would not see it */
		assert_int_equal(job->generation, generation + !!jobs[i].first);
		/* a running job does not ask anybody where it is */
		assert_int_equal(set_state(o, job, 0, SAINA_WORKER_STATE_DEAD), 0);
		if (jobs[i].n == 1)
			continue;
		generation = job->generation;
		assert_int_equal(try_join(o, job, 0, 100), 0);
		assert_int_equal(job->first_round, jobs[i].first);
		assert_int_equal(job->generation, generation);
	}
}

static void first_round_of_the_live(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 3, NULL);

	/* who goes again leaves nothing */
	assert_int_equal(try_join(o, job, 0, 70), 0);
	assert_int_equal(try_join(o, job, 1, SAINA_ROUND_JOIN), 0);
	assert_int_equal(set_state(o, job, 1, SAINA_WORKER_STATE_LEFT), 0);
	assert_int_equal(try_join(o, job, 1, 0), 0);
	/* by word of the operator, who stopped it before */
	assert_int_equal(set_job_state(o, job, SAINA_JOB_STOPPED), 0);
	assert_int_equal(set_job_state(o, job, SAINA_JOB_RUNNING), 0);
	assert_int_equal(job->first_round, 70);
	assert_int_equal(o->last_first_round, 70);
	/* once */
	assert_int_equal(set_job_state(o, job, SAINA_JOB_STOPPED), 0);
	o->last_first_round = 1;
	assert_int_equal(set_job_state(o, job, SAINA_JOB_RUNNING), 0);
	assert_int_equal(job->first_round, 70);
}

static void first_round_that_cannot_be(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 1, NULL);

	assert_refused(o, try_join(o, job, 0, SAINA_ROUND_MAX + 1), -ERANGE, SAINA_A_WORKER_ROUND);
	assert_int_equal(job->active, 0);
	assert_int_equal(job->first_round, 0);
}

static void death_and_return(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add_all(o, 3, NULL);
	__u32 generation = job->generation;

	assert_int_equal(set_state(o, job, 1, SAINA_WORKER_STATE_DEAD), 0);
	assert_int_equal(o->last.active, 5);
	assert_int_equal(o->last.state, SAINA_JOB_RUNNING);
	assert_int_equal(o->last.worker[1].flags, SAINA_BIND_BOUND); /* counted as inactive */
	assert_int_equal(o->event[o->events - 1].type, SAINA_EV_WORKER_DEAD);
	assert_int_equal(o->event[o->events - 1].worker, 1);
	assert_int_equal(set_state(o, job, 1, SAINA_WORKER_STATE_DEAD), -ENOTCONN);
	assert_int_equal(set_state(o, job, 1, SAINA_WORKER_STATE_ALIVE), -ENOTCONN); /* must join */
	assert_int_equal(try_join(o, job, 1, 0), 0);
	assert_int_equal(o->last.active, 7);
	assert_int_equal(job->generation, generation);
}

static void last_worker_leaves(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 2, NULL);
	__u32 generation;

	assert_int_equal(try_join(o, job, 0, 7), 0);
	assert_int_equal(try_join(o, job, 1, 7), 0);
	generation = job->generation;
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_STATE_LEFT), 0);
	assert_int_equal(job->state, SAINA_JOB_RUNNING);
	assert_int_equal(o->event[o->events - 1].type, SAINA_EV_WORKER_LEFT);
	assert_int_equal(set_state(o, job, 1, SAINA_WORKER_STATE_DEAD), 0);
	assert_int_equal(job->state, SAINA_JOB_FORMING);
	assert_int_equal(job->first_round, 0);
	assert_int_equal(job->generation, generation + 1);
	assert_int_equal(o->last.generation, generation + 1);
	assert_int_equal(o->last.active, 0);
	join_all(o, job);
	assert_int_equal(job->state, SAINA_JOB_RUNNING);
	assert_int_equal(job->generation, generation + 1);
}

static void stopped(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 2, NULL);
	__u32 generation = job->generation;

	assert_int_equal(try_join(o, job, 0, 0), 0);
	assert_int_equal(set_job_state(o, job, SAINA_JOB_STOPPED), 0);
	assert_int_equal(o->last.state, SAINA_JOB_STOPPED);
	assert_refused(o, try_join(o, job, 1, 0), -ESHUTDOWN, SAINA_A_WORKER_JOB_NAME);
	assert_int_equal(set_job_state(o, job, SAINA_JOB_FORMING), 0);
	assert_int_equal(try_join(o, job, 1, 0), 0);
	assert_int_equal(job->state, SAINA_JOB_RUNNING);
	assert_int_equal(set_job_state(o, job, SAINA_JOB_STOPPED), 0);
	/* forming lifts it, and all are there */
	assert_int_equal(set_job_state(o, job, SAINA_JOB_FORMING), 0);
	assert_int_equal(job->state, SAINA_JOB_RUNNING);
	assert_int_equal(job->generation, generation);
	/* the last to leave a stopped job leaves it stopped, without its earlier state */
	assert_int_equal(set_job_state(o, job, SAINA_JOB_STOPPED), 0);
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_STATE_LEFT), 0);
	assert_int_equal(set_state(o, job, 1, SAINA_WORKER_STATE_LEFT), 0);
	assert_int_equal(job->state, SAINA_JOB_STOPPED);
	assert_int_equal(job->generation, generation + 1);
	assert_int_equal(set_job_state(o, job, SAINA_JOB_FORMING), 0);
	join_all(o, job);
	assert_int_equal(o->last.state, SAINA_JOB_RUNNING);
}

static void slow_is_alive(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add_all(o, 2, NULL);
	int published;

	published = o->published;
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_STATE_SLOW), 0);
	assert_int_equal(job->active, 3);
	assert_int_equal(o->published, published); /* nothing the data path could tell */
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_STATE_ALIVE), 0);
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_STATE_SLOW), 0);
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_STATE_DEAD), 0);
	assert_int_equal(o->last.active, 2);
}

static void relay(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 2, NULL);
	struct saina_worker_attrs r = {
		.has = BIT_OF(SAINA_A_WORKER_JOB_ID) | BIT_OF(SAINA_A_WORKER_ID) |
		       BIT_OF(SAINA_A_WORKER_RELAY),
		.relay = 1,
	};

	assert_refused(o, worker_set(o, &r), -ENOTCONN, SAINA_A_WORKER_ID);
	join_all(o, job);
	assert_int_equal(worker_set(o, &r), 0);
	assert_int_equal(o->last.relay, 1);
	assert_int_equal(o->last.worker[0].flags, SAINA_BIND_BOUND | SAINA_BIND_RELAY);
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_STATE_DEAD), 0);
	assert_int_equal(o->last.relay, 0); /* of live workers only */
	assert_int_equal(try_join(o, job, 0, 0), 0);
	assert_int_equal(o->last.relay, 0); /* a new life, a new probe */
	r.relay = 2;
	assert_refused(o, worker_set(o, &r), -ERANGE, SAINA_A_WORKER_RELAY);
}

static void join_refusals(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 2, NULL);
	struct saina_worker_attrs r;
	int attr;

	assert_refused(o, try_join(o, job, 2, 0), -ERANGE, SAINA_A_WORKER_ID);
	for (attr = SAINA_A_WORKER_IFINDEX; attr <= SAINA_A_WORKER_SESSION; attr++) {
		if (attr == SAINA_A_WORKER_IFNAME)
			continue;
		r = join_req(job, 0, 0);
		r.has &= ~BIT_OF(attr);
		assert_refused(o, worker_set(o, &r), -EINVAL, attr);
	}
#define BAD(field, value, ATTR, error)                                                      \
	do {                                                                                \
		r = join_req(job, 0, 0);                                                    \
		r.has |= BIT_OF(SAINA_A_WORKER_##ATTR);                                     \
		r.field = value;                                                            \
		assert_refused(o, worker_set(o, &r), error,     \
			       SAINA_A_WORKER_##ATTR);                                      \
	} while (0)
	BAD(ifindex, 0, IFINDEX, -EINVAL);
	BAD(ip, 0, IP, -EINVAL);
	BAD(mac[0], 1, MAC, -EINVAL); /* multicast */
	BAD(udp_port, 0, UDP_PORT, -EINVAL);
	BAD(session, 0, SESSION, -EINVAL);
	BAD(relay, 2, RELAY, -ERANGE);
#undef BAD
	r = join_req(job, 0, 0);
	memset(r.mac, 0, sizeof(r.mac));
	assert_refused(o, worker_set(o, &r), -EINVAL, SAINA_A_WORKER_MAC);
	r = join_req(job, 0, 0);
	r.has |= BIT_OF(SAINA_A_WORKER_STATE);
	r.state = SAINA_WORKER_STATE_DEAD;
	assert_refused(o, worker_set(o, &r), -EINVAL, SAINA_A_WORKER_STATE);
	r = join_req(job, 0, 0);
	r.job_id = 5;
	assert_refused(o, worker_set(o, &r), -ENOENT, SAINA_A_WORKER_JOB_ID);
	r.has &= ~(BIT_OF(SAINA_A_WORKER_JOB_ID) | BIT_OF(SAINA_A_WORKER_ID));
	assert_refused(o, worker_set(o, &r), -EINVAL, SAINA_A_WORKER_JOB_NAME);
	r.has |= BIT_OF(SAINA_A_WORKER_JOB_NAME);
	snprintf(r.job_name, sizeof(r.job_name), "a");
	assert_refused(o, worker_set(o, &r), -EINVAL, SAINA_A_WORKER_ID);
	assert_int_equal(job->active, 0);

	assert_int_equal(try_join(o, job, 0, 0), 0);
	assert_refused(o, try_join(o, job, 0, 0), -EEXIST, SAINA_A_WORKER_ID);
	/* the same socket behind another link, by its next session; no other socket may do that */
	r = join_req(job, 0, 0);
	r.session++;
	r.ifindex++;
	r.udp_port = htons(40001);
	assert_refused(o, worker_set(o, &r), -EEXIST, SAINA_A_WORKER_ID);
	r.udp_port = join_req(job, 0, 0).udp_port;
	assert_int_equal(worker_set(o, &r), 0);
	assert_int_equal(job->worker[0].bind.ifindex, r.ifindex);
	assert_int_equal(job->active, 1);
	r = join_req(job, 1, 0);
	r.ip = htonl(0x0a000001);
	r.udp_port = htons(40000);
	assert_refused(o, worker_set(o, &r), -EADDRINUSE, SAINA_A_WORKER_UDP_PORT);
	assert_int_equal(set_state(o, job, 0, 9), -EINVAL);
	r = (struct saina_worker_attrs){
		.has = BIT_OF(SAINA_A_WORKER_JOB_ID) | BIT_OF(SAINA_A_WORKER_ID) |
		       BIT_OF(SAINA_A_WORKER_ROUND),
		.round = 3,
	};
	assert_refused(o, worker_set(o, &r), -EINVAL, SAINA_A_WORKER_ROUND);
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_STATE_ABSENT), -EINVAL);
}

/* Says something to the subscribers and changes nothing. */
static void worker_late(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 2, NULL);
	struct saina_worker_attrs r = {
		.has = BIT_OF(SAINA_A_WORKER_JOB_ID) | BIT_OF(SAINA_A_WORKER_ID) |
		       BIT_OF(SAINA_A_WORKER_LATE),
		.late = 7,
	};
	int events, notes, published;

	assert_refused(o, worker_set(o, &r), -ENOTCONN, SAINA_A_WORKER_ID);
	join_all(o, job);
	events = o->events;
	notes = o->notes;
	published = o->published;
	assert_int_equal(worker_set(o, &r), 0);
	assert_int_equal(o->events, events + 1);
	assert_int_equal(o->event[events].type, SAINA_EV_WORKER_LATE);
	assert_int_equal(o->event[events].worker, 0);
	assert_int_equal(o->event[events].a, 7);
	assert_int_equal(o->notes, notes);
	assert_int_equal(o->published, published);
	r.has |= BIT_OF(SAINA_A_WORKER_STATE);
	r.state = SAINA_WORKER_STATE_SLOW;
	assert_refused(o, worker_set(o, &r), -EINVAL, SAINA_A_WORKER_LATE);
}

static void worker_del(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 2, NULL);
	struct saina_worker_attrs r = {
		.has = BIT_OF(SAINA_A_WORKER_JOB_ID) | BIT_OF(SAINA_A_WORKER_ID),
	};

	assert_refused(o, saina_core_worker_del(o->core, &r, &o->err), -ENOENT, SAINA_A_WORKER_ID);
	join_all(o, job);
	assert_int_equal(saina_core_worker_del(o->core, &r, &o->err), 0);
	assert_int_equal(o->last.worker[0].flags, 0);
	assert_int_equal(o->last.active, 2);
	assert_int_equal(job->worker[0].state, SAINA_WORKER_STATE_ABSENT);
	assert_int_equal(o->event[o->events - 1].type, SAINA_EV_WORKER_LEFT);
}

/*
 * Random calls against the rules of life: whatever happens, what is published
 * last is what the table says, and the invariants hold.
 */
static void life_fuzz(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 5, "fastest:k=3");
	uint64_t seed = 2;
	__u32 generation, seq;
	int i, w, s;

	for (i = 0; i < 100000; i++) {
		generation = job->generation;
		seq = job->policy.seq;
		w = rng_next(&seed) % 5;
		o->refuse = rng_next(&seed) % 16 ? 0 : -EIO;
		o->notes = o->events = 0;
		switch (rng_next(&seed) % 6) {
		case 0:
		case 1:
		case 2:
			try_join(o, job, w, rng_next(&seed) % 4 ? 0 : rng_next(&seed) % 100);
			break;
		case 3:
			set_state(o, job, w, 1 + rng_next(&seed) % 4);
			break;
		case 4:
			set_job_state(o, job, 1 + rng_next(&seed) % 3);
			break;
		case 5:
			set_policy(o, job, rng_next(&seed) % 2 ? "bsp" : "sfcd");
			break;
		}
		assert_int_equal(o->last.generation, job->generation);
		assert_int_equal(o->last.active, job->active);
		assert_int_equal(o->last.state, job->state);
		assert_int_equal(o->last.policy.seq, job->policy.seq);
		assert_int_equal(o->last_first_round, job->first_round);
		assert_true(job->generation - generation <= 1 && job->policy.seq - seq <= 1);
		for (w = 0; w < 5; w++) {
			s = job->worker[w].state;
			assert_int_equal(!!(job->active & 1 << w),
					 s == SAINA_WORKER_STATE_ALIVE || s == SAINA_WORKER_STATE_SLOW);
		}
		if (job->state == SAINA_JOB_RUNNING)
			assert_true(job->active && !job->worker[0].round && !job->worker[4].round);
		if (job->state == SAINA_JOB_FORMING)
			assert_int_not_equal(job->active, 31);
		if (!job->active)
			assert_int_equal(job->first_round, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("job core: the published snapshot has the parameters and workers of the job", snapshot_of_a_job),
		TEST("job core: a job runs when all its workers have joined", runs_when_all_are_there),
		TEST("job core: job-set state running starts a job before all workers have joined", operator_starts_a_job),
		TEST("job core: a job begins at the round that most of its workers support", first_round_of_those_who_agree),
		TEST("job core: the round of a worker that left before the job ran is forgotten", first_round_of_the_live),
		TEST("job core: a first round that cannot be is refused", first_round_that_cannot_be),
		TEST("job core: a dead worker is inactive until it joins again", death_and_return),
		TEST("job core: a job without live workers forms again, as a new generation", last_worker_leaves),
		TEST("job core: a stopped job refuses workers until its state is set to forming", stopped),
		TEST("job core: a slow worker stays active", slow_is_alive),
		TEST("job core: relay is set for live workers only, and cleared when a worker joins", relay),
		TEST("job core: a join with a missing, wrong or taken attribute is refused", join_refusals),
		TEST("job core: late gradients of a worker are sent as an event and change nothing", worker_late),
		TEST("job core: a deleted worker is absent and no longer published", worker_del),
		TEST("job core: the published snapshot and the table agree after random calls", life_fuzz),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
