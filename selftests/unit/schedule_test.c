// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which policy a job has when (kmod/core/schedule.c): set, scheduled by round and by event,
 * refused while another waits, cancelled, reached; and k of an external controller.  What the
 * data path has adopted is said by hand.
 */
#include "jobcore_owner.h"

static struct saina_core_ops ops;

static int setup(void **state)
{
	struct owner *o = calloc(1, sizeof(*o));

	ops = owner_ops;
	ops.floats = 1;
	o->core = saina_core_new(&ops, o, NULL);
	assert_non_null(o->core);
	*state = o;
	return 0;
}

#define NOW	UINT32_MAX	/* for a round: not scheduled by one */

/* @policy from @round, on one of the events @on (0: none). */
static int schedule(struct owner *o, const struct saina_job *job, const char *policy, __u32 round,
		    unsigned int on)
{
	struct saina_job_attrs r = { .has = BIT_OF(SAINA_A_JOB_ID), .id = job->id };

	if (policy)
		with_policy(&r, policy);
	if (round != NOW) {
		SAINA_SET(&r, SAINA_A_JOB_POLICY_FROM);
		r.policy_from = round;
	}
	if (on) {
		SAINA_SET(&r, SAINA_A_JOB_POLICY_ON);
		r.policy_on = on;
	}
	return job_set(o, &r);
}

static int cancel(struct owner *o, const struct saina_job *job, const char *policy)
{
	struct saina_job_attrs r = { .has = BIT_OF(SAINA_A_JOB_ID), .id = job->id, .policy_cancel = 1 };

	SAINA_SET(&r, SAINA_A_JOB_POLICY_CANCEL);
	if (policy)
		with_policy(&r, policy);
	return job_set(o, &r);
}

static int set_k(struct owner *o, const struct saina_job *job, __u32 k)
{
	struct saina_job_attrs r = { .has = BIT_OF(SAINA_A_JOB_ID) | BIT_OF(SAINA_A_JOB_K_SET),
				     .id = job->id, .k_set = k };

	return job_set(o, &r);
}

/* Published last: in force @mode as number @seq; to come @next as number @next_seq, 0: nothing. */
static void assert_published(const struct owner *o, int mode, __u32 seq, int next, __u32 next_seq)
{
	assert_int_equal(o->last.policy.mode, mode);
	assert_int_equal(o->last.policy.seq, seq);
	assert_int_equal(o->last.next.mode, next);
	assert_int_equal(o->last.next.seq, next_seq);
	if (!next_seq) {
		assert_int_equal(o->last.next_from, 0);
		assert_int_equal(o->last.next_on, 0);
	}
}

static void by_round(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add_all(o, 4, "fastest:k=3");

	assert_int_equal(schedule(o, job, "bsp", 500, 0), 0);
	assert_published(o, SAINA_POLICY_FASTEST, 1, SAINA_POLICY_BSP, 2);
	assert_int_equal(o->last.next_from, 500);
	assert_int_equal(o->last.next_on, 0);
	assert_int_equal(job->policy.seq, 1);
	/* round 0 is a round, and the last one is */
	assert_int_equal(cancel(o, job, NULL), 0);
	assert_int_equal(schedule(o, job, "bsp", 0, 0), 0);
	assert_published(o, SAINA_POLICY_FASTEST, 3, SAINA_POLICY_BSP, 4);
	assert_int_equal(cancel(o, job, NULL), 0);
	assert_int_equal(schedule(o, job, "bsp", SAINA_ROUND_MAX, 0), 0);
	assert_int_equal(o->last.next_from, SAINA_ROUND_MAX);
}

static void by_event(void **state)
{
	unsigned int both = 1u << SAINA_EV_WORKER_DEAD | 1u << SAINA_EV_K;
	struct owner *o = *state;
	const struct saina_job *job = add_all(o, 4, "bsp");

	assert_int_equal(schedule(o, job, "fastest:k=2", NOW, both), 0);
	assert_published(o, SAINA_POLICY_BSP, 1, SAINA_POLICY_FASTEST, 2);
	assert_int_equal(o->last.next_on, both);
	assert_int_equal(o->last.next_from, 0);
	assert_int_equal(cancel(o, job, NULL), 0);
	assert_int_equal(schedule(o, job, "fastest:k=2", 77, 1u << SAINA_EV_DEGRADED), 0);
	assert_int_equal(o->last.next_on, 1u << SAINA_EV_DEGRADED);
	assert_int_equal(o->last.next_from, 77);
}

static void refusals(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add_all(o, 4, "bsp");
	int published;

	published = o->published;
	assert_refused(o, schedule(o, job, NULL, 5, 0), -EINVAL, SAINA_A_JOB_POLICY);
	assert_refused(o, schedule(o, job, NULL, NOW, 1u << SAINA_EV_K), -EINVAL,
		       SAINA_A_JOB_POLICY);
	for (int ev = 0; ev < 16; ev++) {
		int allowed = ev == SAINA_EV_K || ev == SAINA_EV_DEGRADED ||
			      ev == SAINA_EV_WORKER_DEAD || ev == SAINA_EV_WORKER_JOINED;

		if (!allowed)
			assert_refused(o, schedule(o, job, "fastest:k=2", NOW, 1u << ev), -EINVAL,
				       SAINA_A_JOB_POLICY_ON);
	}
	assert_refused(o, schedule(o, job, "fastest:k=5", 5, 0), -ERANGE, SAINA_A_JOB_POLICY);
	assert_refused(o, cancel(o, job, NULL), -ENOENT, SAINA_A_JOB_POLICY_CANCEL);
	assert_int_equal(o->published, published);
	assert_int_equal(job->next.seq, 0);
	assert_int_equal(job->policy.seq, 1);
}

/* Events without a bit, and the round that none is. */
static void refused_values(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 4, "bsp");
	struct saina_job_attrs r = { .has = BIT_OF(SAINA_A_JOB_ID), .id = job->id };

	with_policy(&r, "fastest:k=2");
	SAINA_SET(&r, SAINA_A_JOB_POLICY_ON);
	assert_refused(o, job_set(o, &r), -EINVAL, SAINA_A_JOB_POLICY_ON);
	r.policy_on = 1u << SAINA_EV_K;
	SAINA_SET(&r, SAINA_A_JOB_POLICY_FROM);
	r.policy_from = SAINA_ROUND_MAX + 1u;
	assert_refused(o, job_set(o, &r), -ERANGE, SAINA_A_JOB_POLICY_FROM);
	assert_int_equal(job->next.seq, 0);
}

static void busy(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add_all(o, 4, "bsp");
	int published;

	assert_int_equal(schedule(o, job, "fastest:k=2", 500, 0), 0);
	o->adopted = 1;
	published = o->published;
	assert_refused(o, schedule(o, job, "fastest:k=3", NOW, 0), -EBUSY, SAINA_A_JOB_POLICY);
	assert_refused(o, schedule(o, job, "fastest:k=3", 600, 0), -EBUSY, SAINA_A_JOB_POLICY);
	assert_refused(o, schedule(o, job, "fastest:k=3", NOW, 1u << SAINA_EV_K), -EBUSY,
		       SAINA_A_JOB_POLICY);
	assert_refused(o, schedule(o, job, "bsp", NOW, 0), -EBUSY, SAINA_A_JOB_POLICY);
	assert_refused(o, schedule(o, job, "fastest:k=2", 500, 0), -EBUSY, SAINA_A_JOB_POLICY);
	assert_int_equal(o->published, published);
	assert_int_equal(job->next.k, 2);
	assert_int_equal(job->next_from, 500);
}

static void cancelled(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add_all(o, 4, "bsp");

	assert_int_equal(schedule(o, job, "fastest:k=2", 500, 1u << SAINA_EV_K), 0);
	assert_int_equal(cancel(o, job, NULL), 0);
	/* of a later number than the one that waited: it may have come into force meanwhile */
	assert_published(o, SAINA_POLICY_BSP, 3, 0, 0);
	/* and another in its place, in the same request */
	assert_int_equal(schedule(o, job, "fastest:k=2", 500, 0), 0);
	assert_int_equal(cancel(o, job, "fastest:k=3"), 0);
	assert_published(o, SAINA_POLICY_FASTEST, 6, 0, 0);
	assert_int_equal(job->policy.k, 3);
}

/* The number was adopted in the moment before: what is taken back is in force, and is replaced. */
static void cancelled_too_late(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add_all(o, 4, "bsp");

	assert_int_equal(schedule(o, job, "fastest:k=2", 3, 0), 0);
	o->adopted = 2;
	assert_refused(o, cancel(o, job, NULL), -ENOENT, SAINA_A_JOB_POLICY_CANCEL);
	assert_int_equal(schedule(o, job, "bsp", NOW, 0), 0);
	assert_published(o, SAINA_POLICY_BSP, 3, 0, 0);
}

static void reached(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add_all(o, 4, "bsp");

	for (__u32 seq = 2; seq < 20; seq++) {
		int fastest = !(seq & 1);

		assert_int_equal(schedule(o, job, fastest ? "fastest:k=2" : "bsp", 10 * seq, 0), 0);
		assert_int_equal(job->next.seq, seq);
		assert_int_equal(job->policy.seq, seq - 1);
		assert_int_equal(job->policy.mode, fastest ? SAINA_POLICY_BSP : SAINA_POLICY_FASTEST);
		o->adopted = seq;
	}
	/* the same as what is in force, at once: nothing to do */
	assert_int_equal(schedule(o, job, "bsp", NOW, 0), 0);
	assert_int_equal(job->policy.seq, 19);
	assert_int_equal(job->next.seq, 0);
}

static void refused_by_data_path(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add_all(o, 4, "bsp");

	o->refuse = -EIO;
	assert_int_equal(schedule(o, job, "fastest:k=2", 5, 0), -EIO);
	assert_int_equal(job->next.seq, 0);
	o->refuse = 0;
	assert_int_equal(schedule(o, job, "fastest:k=2", 5, 0), 0);
	assert_int_equal(job->next.seq, 2);
	o->refuse = -EIO;
	assert_int_equal(cancel(o, job, NULL), -EIO);
	assert_int_equal(job->next.seq, 2);
	assert_int_equal(job->policy.seq, 1);
}

static void deaths(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add_all(o, 4, "bsp");

	assert_int_equal(schedule(o, job, "fastest:k=2", 500, 1u << SAINA_EV_WORKER_DEAD), 0);
	for (int w = 0; w < 3; w++) {
		assert_int_equal(set_state(o, job, w, SAINA_WORKER_STATE_DEAD), 0);
		/* what has happened is the data path's to say */
		assert_published(o, SAINA_POLICY_BSP, 1, SAINA_POLICY_FASTEST, 2);
		assert_int_equal(o->last.next_on, 1u << SAINA_EV_WORKER_DEAD);
		assert_int_equal(o->last.next_from, 500);
	}
	assert_int_equal(try_join(o, job, 0, 0), 0);
	assert_published(o, SAINA_POLICY_BSP, 1, SAINA_POLICY_FASTEST, 2);
}

static void restart(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add_all(o, 2, "bsp");
	__u32 generation;

	generation = job->generation;
	assert_int_equal(schedule(o, job, "fastest:k=2", 500, 0), 0);
	for (int w = 0; w < 2; w++)
		assert_int_equal(set_state(o, job, w, SAINA_WORKER_STATE_DEAD), 0);
	assert_true(job->generation > generation);
	/* the rounds begin anew, and it waits for the same one of them */
	assert_published(o, SAINA_POLICY_BSP, 1, SAINA_POLICY_FASTEST, 2);
	assert_int_equal(o->last.next_from, 500);
	assert_refused(o, schedule(o, job, "fastest:k=1", NOW, 0), -EBUSY, SAINA_A_JOB_POLICY);
	join_all(o, job);
	assert_published(o, SAINA_POLICY_BSP, 1, SAINA_POLICY_FASTEST, 2);
	assert_int_equal(cancel(o, job, NULL), 0);
	assert_published(o, SAINA_POLICY_BSP, 3, 0, 0);
}

static void stopped(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add_all(o, 2, "bsp");

	assert_int_equal(schedule(o, job, "fastest:k=2", 500, 0), 0);
	assert_int_equal(set_job_state(o, job, SAINA_JOB_STOPPED), 0);
	assert_published(o, SAINA_POLICY_BSP, 1, SAINA_POLICY_FASTEST, 2);
	assert_int_equal(set_job_state(o, job, SAINA_JOB_RUNNING), 0);
	assert_published(o, SAINA_POLICY_BSP, 1, SAINA_POLICY_FASTEST, 2);
	assert_int_equal(job->next_from, 500);
}

/* From rounds to steps, back, and to other groups: not at once where workers are at it. */
static void modes(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 4, "bsp");

	assert_int_equal(schedule(o, job, "ssp:3", NOW, 0), 0);	/* nobody is there */
	assert_published(o, SAINA_POLICY_SSP, 2, 0, 0);
	assert_int_equal(schedule(o, job, "bsp", NOW, 0), 0);
	join_all(o, job);
	assert_int_equal(schedule(o, job, "ssp:3", NOW, 0), 0);
	assert_published(o, SAINA_POLICY_BSP, 3, SAINA_POLICY_SSP, 4);
	assert_refused(o, schedule(o, job, "ssp:5", NOW, 0), -EBUSY, SAINA_A_JOB_POLICY);
	o->adopted = 4;
	assert_int_equal(schedule(o, job, "ssp:5", NOW, 0), 0);	/* another window, at once */
	assert_published(o, SAINA_POLICY_SSP, 5, 0, 0);
	assert_int_equal(schedule(o, job, "grouped:g=2", NOW, 0), 0);
	assert_published(o, SAINA_POLICY_SSP, 5, SAINA_POLICY_GROUPED, 6);
	o->adopted = 6;
	assert_int_equal(schedule(o, job, "grouped:groups=0+1/2+3", NOW, 0), 0);
	assert_published(o, SAINA_POLICY_GROUPED, 6, SAINA_POLICY_GROUPED, 7);
	o->adopted = 7;
	assert_int_equal(schedule(o, job, "bsp", NOW, 0), 0);
	assert_published(o, SAINA_POLICY_GROUPED, 7, SAINA_POLICY_BSP, 8);
}

static void no_steps_of_floats(void **state)
{
	static const char *const steps[] = { "ssp:3", "asp", "grouped:g=2" };
	struct owner *o = *state;
	struct saina_job_attrs r = job_req("a", 10000, 4);
	const struct saina_job *job;

	SAINA_SET(&r, SAINA_A_JOB_ELEM_TYPE);
	r.elem_type = SAINA_ELEM_FLOAT32;
	assert_int_equal(job_new(o, &r, &job), 0);
	for (int i = 0; i < 3; i++) {
		assert_refused(o, schedule(o, job, steps[i], NOW, 0), -EOPNOTSUPP,
			       SAINA_A_JOB_POLICY);
		assert_refused(o, schedule(o, job, steps[i], 500, 0), -EOPNOTSUPP,
			       SAINA_A_JOB_POLICY);
	}
	assert_int_equal(job->next.seq, 0);
}

static void k_of_controller(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add_all(o, 4, "bsp");

	assert_refused(o, set_k(o, job, 2), -EINVAL, SAINA_A_JOB_K_SET);
	assert_int_equal(schedule(o, job, "external:k0=3", NOW, 0), 0);
	assert_int_equal(o->last.k_set, 0);
	for (__u32 k = 1; k <= 4; k++) {
		assert_int_equal(set_k(o, job, k), 0);
		assert_int_equal(o->last.k_set, k);
	}
	assert_refused(o, set_k(o, job, 0), -ERANGE, SAINA_A_JOB_K_SET);
	assert_refused(o, set_k(o, job, 5), -ERANGE, SAINA_A_JOB_K_SET);
	assert_int_equal(o->last.k_set, 4);
	/* the policy stays, and so does what was set */
	assert_int_equal(set_state(o, job, 3, SAINA_WORKER_STATE_DEAD), 0);
	assert_int_equal(o->last.k_set, 4);
	assert_int_equal(schedule(o, job, "external:k0=2", NOW, 0), 0);
	assert_int_equal(o->last.k_set, 0);
	assert_int_equal(set_k(o, job, 3), 0);
	assert_int_equal(schedule(o, job, "bsp", NOW, 0), 0);
	assert_int_equal(o->last.k_set, 0);
	assert_refused(o, set_k(o, job, 2), -EINVAL, SAINA_A_JOB_K_SET);
}

static void k_before_policy(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add_all(o, 4, "bsp");

	assert_int_equal(schedule(o, job, "external:k0=3", 500, 0), 0);
	assert_int_equal(set_k(o, job, 2), 0);
	assert_int_equal(o->last.k_set, 2);
	o->adopted = 2;
	assert_int_equal(schedule(o, job, "external:k0=3", NOW, 0), 0);	/* as it is */
	assert_int_equal(job->policy.seq, 2);
	assert_int_equal(o->last.k_set, 2);
	assert_int_equal(set_k(o, job, 1), 0);
	assert_int_equal(o->last.k_set, 1);
}

static void k_ends_with_policy(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add_all(o, 4, "external:k0=4");

	assert_int_equal(set_k(o, job, 2), 0);
	assert_int_equal(schedule(o, job, "bsp", 100, 0), 0);
	o->adopted = 2;
	assert_int_equal(schedule(o, job, "external:k0=3", 200, 0), 0);
	o->adopted = 3;
	/* bsp came between: k0=3 is for it, not what was set for the one of k0=4 */
	assert_int_equal(schedule(o, job, "external:k0=3", NOW, 0), 0);
	assert_int_equal(job->policy.seq, 3);
	assert_int_equal(job->k_set, 0);
	assert_int_equal(o->last.k_set, 0);
}

static void k_is_of_one_policy(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 5, "external:k0=4");

	assert_int_equal(set_k(o, job, 3), 0);
	assert_int_equal(o->last.k_set, 3);
	assert_int_equal(set_policy(o, job, "bsp"), 0);
	assert_int_equal(set_policy(o, job, "external:k0=4"), 0);
	assert_int_equal(o->last.k_set, 0);

	/* the same, each on a schedule */
	assert_int_equal(set_k(o, job, 3), 0);
	assert_int_equal(schedule(o, job, "bsp", 10, 0), 0);
	assert_int_equal(o->last.k_set, 3); /* bsp is not in force yet */
	o->adopted = job->next.seq;
	assert_int_equal(schedule(o, job, "external:k0=4", 20, 0), 0);
	assert_int_equal(o->last.policy.mode, SAINA_POLICY_BSP);
	assert_int_equal(o->last.k_set, 0);
}

static void k_of_a_policy_to_come(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 5, "bsp");

	assert_int_equal(set_k(o, job, 2), -EINVAL);
	assert_int_equal(schedule(o, job, "external:k0=4", 10, 0), 0);
	assert_int_equal(set_k(o, job, 2), 0);
	o->adopted = job->next.seq;
	assert_int_equal(set_k(o, job, 2), 0); /* any change: the policy to come is the policy */
	assert_int_equal(o->last.policy.mode, SAINA_POLICY_EXTERNAL);
	assert_int_equal(o->last.k_set, 2);

	/* external after external: k is of the first, then nobody's */
	assert_int_equal(schedule(o, job, "external:k0=5", 20, 0), 0);
	assert_int_equal(o->last.k_set, 2);
	o->adopted = job->next.seq;
	assert_int_equal(set_job_state(o, job, SAINA_JOB_STOPPED), 0);
	assert_int_equal(o->last.policy.k, 5);
	assert_int_equal(o->last.k_set, 0);
}

static void k_of_a_policy_cancelled(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 5, "bsp");

	assert_int_equal(schedule(o, job, "external:k0=4", 10, 0), 0);
	assert_int_equal(set_k(o, job, 2), 0);
	assert_int_equal(cancel(o, job, NULL), 0);
	assert_int_equal(o->last.k_set, 0);
	assert_int_equal(schedule(o, job, "external:k0=4", 10, 0), 0);
	assert_int_equal(o->last.k_set, 0);

	assert_int_equal(cancel(o, job, NULL), 0);
	assert_int_equal(set_policy(o, job, "external:k0=4"), 0);
	assert_int_equal(set_k(o, job, 3), 0);
	assert_int_equal(schedule(o, job, "bsp", 10, 0), 0);
	assert_int_equal(cancel(o, job, NULL), 0);
	assert_int_equal(o->last.k_set, 3); /* of the policy that stays */
}

static void kill_all(struct owner *o, const struct saina_job *job)
{
	int w;

	for (w = 0; w < job->workers; w++)
		if (job->active >> w & 1)
			assert_int_equal(set_state(o, job, w, SAINA_WORKER_STATE_DEAD), 0);
	assert_int_equal(job->active, 0);
}

/* The data path has adopted it, nobody has asked since, and then all workers die. */
static void reached_policy_outlives_workers(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add_all(o, 3, "external:k0=3");
	__u32 generation;

	assert_int_equal(set_k(o, job, 2), 0);
	assert_int_equal(schedule(o, job, "grouped:g=3", 10, 0), 0);
	o->adopted = job->next.seq;
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_STATE_DEAD), 0);
	assert_int_equal(set_state(o, job, 1, SAINA_WORKER_STATE_DEAD), 0);
	generation = job->generation;
	assert_int_equal(set_state(o, job, 2, SAINA_WORKER_STATE_DEAD), 0);
	assert_int_equal(job->generation, generation + 1);
	assert_int_equal(o->last.generation, generation + 1);
	assert_int_equal(o->last.policy.mode, SAINA_POLICY_GROUPED);
	assert_int_equal(o->last.policy.seq, 2);
	assert_int_equal(o->last.next.mode, 0);
	assert_int_equal(o->last.next.seq, 0);
	assert_int_equal(o->last.next_from, 0);
	assert_int_equal(o->last.k_set, 0);	/* of the policy before */
	assert_int_equal(job->policy.mode, SAINA_POLICY_GROUPED);

	/* nothing waits any more; in the new generation nothing is adopted */
	join_all(o, job);
	assert_int_equal(schedule(o, job, "bsp", 10, 0), 0);
	assert_int_equal(job->next.seq, 3);
	kill_all(o, job);
	assert_int_equal(o->last.policy.mode, SAINA_POLICY_GROUPED);
	assert_int_equal(o->last.next.mode, SAINA_POLICY_BSP);
	assert_int_equal(o->last.next_from, 10);
}

/* A job that is stopped and formed again begins anew where a worker asks for a later round. */
static void reached_policy_of_a_job_that_forms_again(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add_all(o, 3, "bsp");
	__u32 generation;

	assert_int_equal(schedule(o, job, "fastest:k=2", 10, 0), 0);
	assert_int_equal(set_state(o, job, 2, SAINA_WORKER_STATE_DEAD), 0);
	assert_int_equal(set_job_state(o, job, SAINA_JOB_STOPPED), 0);
	assert_int_equal(set_job_state(o, job, SAINA_JOB_FORMING), 0);
	assert_int_equal(o->last.policy.mode, SAINA_POLICY_BSP);
	o->adopted = 2;
	generation = job->generation;
	assert_int_equal(try_join(o, job, 2, 7), 0);
	assert_int_equal(job->generation, generation + 1);
	assert_int_equal(o->last.policy.mode, SAINA_POLICY_FASTEST);
	assert_int_equal(o->last.next.seq, 0);
}

int main(void)
{
#define SCHEDULE(what, f) statement_with(what, f, setup, owner_teardown)
	const struct CMUnitTest tests[] = {
		SCHEDULE("schedule: a policy from a round waits, and the one in force stays", by_round),
		SCHEDULE("schedule: a policy waits for events, and for a round, too", by_event),
		SCHEDULE("schedule: a wrong schedule is refused and changes nothing", refusals),
		SCHEDULE("schedule: no event and no round are refused by their attributes", refused_values),
		SCHEDULE("schedule: while one policy waits every other is refused with EBUSY", busy),
		SCHEDULE("schedule: a cancelled policy is gone, and another can come with the same request", cancelled),
		SCHEDULE("schedule: a policy that is in force cannot be cancelled", cancelled_too_late),
		SCHEDULE("schedule: a policy that is reached makes room for the next one, again and again", reached),
		SCHEDULE("schedule: what the data path refuses is neither scheduled nor cancelled", refused_by_data_path),
		SCHEDULE("schedule: deaths and joins leave what waits as it is", deaths),
		SCHEDULE("schedule: a job that begins anew waits for the same round", restart),
		SCHEDULE("schedule: stop and start of a job leave what waits as it is", stopped),
		SCHEDULE("schedule: steps, rounds and other groups wait where workers are at it", modes),
		SCHEDULE("schedule: jobs of floats have no policy of steps, now or later", no_steps_of_floats),
		SCHEDULE("schedule: k is set for an external policy alone, and ends with it", k_of_controller),
		SCHEDULE("schedule: k can be set for an external policy that is to come", k_before_policy),
		SCHEDULE("schedule: k set for one external policy is not that of a later one", k_ends_with_policy),
		SCHEDULE("schedule: k that a controller set does not pass to a later external policy", k_is_of_one_policy),
		SCHEDULE("schedule: k set for an external policy to come is kept when that one is in force, and no longer", k_of_a_policy_to_come),
		SCHEDULE("schedule: k set for an external policy to come goes when that one is cancelled", k_of_a_policy_cancelled),
		SCHEDULE("schedule: a policy whose round was reached stays in force when all workers die", reached_policy_outlives_workers),
		SCHEDULE("schedule: a policy whose round was reached stays in force when the job forms again", reached_policy_of_a_job_that_forms_again),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
