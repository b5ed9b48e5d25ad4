// SPDX-License-Identifier: GPL-2.0-or-later
/* The job core by its public interface: jobs restored from a saved state. */
#include "core/adopt.h"
#include "jobcore_owner.h"

static void restore(void **state)
{
	struct owner *o = *state;
	struct saina_job copy = *add(o, "a", 2, "sfcd:k0=1,cth=k"), bad;
	struct saina_job_attrs r = job_req("a", 0, 0);
	const struct saina_job *job;
	int events;

	join_all(o, saina_core_job_next(o->core, 0));
	assert_int_equal(set_policy(o, &copy, "fastest:k=1"), 0);
	copy = *saina_core_job_next(o->core, 0);
	assert_refused(o, saina_core_job_restore(o->core, &copy, NULL, &o->err), -EEXIST,
		       SAINA_A_JOB_NAME);
	r.has = BIT_OF(SAINA_A_JOB_NAME);
	assert_int_equal(saina_core_job_del(o->core, &r, NULL), 0);

	bad = copy;
	bad.generation = 0;
	assert_refused(o, saina_core_job_restore(o->core, &bad, NULL, &o->err), -EINVAL, 0);
	bad = copy;
	bad.workers = 65;
	assert_refused(o, saina_core_job_restore(o->core, &bad, NULL, &o->err), -EINVAL, 0);
	bad = copy;
	bad.exponent = SAINA_EXPONENT_MAX + SAINA_EXPONENT_BIAS + 1;
	assert_refused(o, saina_core_job_restore(o->core, &bad, NULL, &o->err), -ERANGE,
		       SAINA_A_JOB_EXPONENT);
	bad = copy;
	assert_int_equal(saina_policy_parse("fastest:k=3", 3, &bad.policy, NULL), 0);
	assert_refused(o, saina_core_job_restore(o->core, &bad, NULL, &o->err), -ERANGE,
		       SAINA_A_JOB_POLICY);

	events = o->events;
	copy.generation = 41;
	assert_int_equal(saina_core_job_restore(o->core, &copy, &job, &o->err), 0);
	assert_int_equal(o->events, events); /* nothing happened */
	assert_int_equal(o->last.generation, 41);
	assert_int_equal(o->last.active, 3);
	assert_int_equal(o->last.state, SAINA_JOB_RUNNING);
	assert_int_equal(o->last.policy.seq, 2);
	assert_int_equal(job->worker[1].bind.session, 1001);
	assert_true(add(o, "new", 1, NULL)->generation > 41);
}

/* A job with a pending policy and k set, as in a state file; the job itself is deleted. */
static struct saina_job saved_job(struct owner *o, const char *waits)
{
	struct saina_job_attrs r = {
		.has = BIT_OF(SAINA_A_JOB_NAME) | BIT_OF(SAINA_A_JOB_POLICY_FROM) |
		       BIT_OF(SAINA_A_JOB_POLICY_ON) | BIT_OF(SAINA_A_JOB_K_SET),
		.name = "a",
		.policy_from = 500,
		.policy_on = 1u << SAINA_EV_WORKER_DEAD,
		.k_set = 3,
	};
	const struct saina_job *job = add_all(o, 4, "external:k0=4");
	struct saina_job copy;

	with_policy(&r, waits);
	assert_int_equal(saina_core_job_set(o->core, &r, NULL, NULL), 0);
	copy = *job;
	r.has = BIT_OF(SAINA_A_JOB_NAME);
	assert_int_equal(saina_core_job_del(o->core, &r, NULL), 0);
	return copy;
}

static void restore_waiting_policy(void **state)
{
	struct owner *o = *state;
	struct saina_job copy = saved_job(o, "ssp:7");
	const struct saina_job *job;

	assert_int_equal(saina_core_job_restore(o->core, &copy, &job, &o->err), 0);
	assert_int_equal(job->policy.mode, SAINA_POLICY_EXTERNAL);
	assert_int_equal(o->last.k_set, 3);
	assert_int_equal(o->last.next.mode, SAINA_POLICY_SSP);
	assert_int_equal(o->last.next.window, 7);
	assert_int_equal(o->last.next.seq, 2);
	assert_int_equal(o->last.next_from, 500);
	assert_int_equal(o->last.next_on, 1u << SAINA_EV_WORKER_DEAD);
	/* it waits: no other can be asked for, and it can be cancelled */
	assert_refused(o, set_policy(o, job, "bsp"), -EBUSY, SAINA_A_JOB_POLICY);
}

/* What a damaged file may hold instead, and that all but that is restored. */
static void restore_impossible_policy(void **state)
{
	static const struct {
		const char *waits;
		size_t offset;	/* of one byte in the job */
		__u8 value;
		int error, attr;
	} bad[] = {
#define NEXT(field) offsetof(struct saina_job, next) + offsetof(struct saina_policy, field)
		{ "fastest:k=3", NEXT(k), 5, -ERANGE, SAINA_A_JOB_POLICY_NEXT },
		{ "fastest:k=3", NEXT(k), 0, -EINVAL, SAINA_A_JOB_POLICY_NEXT },
		{ "fastest:k=3", NEXT(mode), 0x77, -EINVAL, SAINA_A_JOB_POLICY_NEXT },
		{ "fastest:k=3", NEXT(spread), 1, -EINVAL, SAINA_A_JOB_POLICY_NEXT },
		{ "grouped:groups=0-1/2-3", NEXT(group) + 3, SAINA_GROUP_NONE, -EINVAL,
		  SAINA_A_JOB_POLICY_NEXT },
		{ "grouped:groups=0-1/2-3", NEXT(group) + 4, 1, -ERANGE, SAINA_A_JOB_POLICY_NEXT },
		{ "coded:s=1", NEXT(spread), 2, -EINVAL, SAINA_A_JOB_POLICY_NEXT },
		{ "bsp", NEXT(seq), 1, -EINVAL, SAINA_A_JOB_POLICY_NEXT },
		{ "bsp", NEXT(seq), 0, -EINVAL, SAINA_A_JOB_POLICY_NEXT },
		{ "bsp", offsetof(struct saina_job, next_on), 1, -EINVAL, SAINA_A_JOB_POLICY_NEXT },
		{ "bsp", offsetof(struct saina_job, k_set), 5, -ERANGE, SAINA_A_JOB_K_SET },
#undef NEXT
	};
	struct saina_job_attrs del = { .has = BIT_OF(SAINA_A_JOB_NAME), .name = "a" };
	struct owner *o = *state;
	const struct saina_job *job;
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct saina_job copy = saved_job(o, bad[i].waits);
		bool k = bad[i].attr == SAINA_A_JOB_K_SET;

		((__u8 *)&copy)[bad[i].offset] = bad[i].value;
		memset(&o->err, 0, sizeof(o->err));
		assert_refused(o, saina_core_job_restore(o->core, &copy, NULL, &o->err),
			       bad[i].error, bad[i].attr);
		assert_true(saina_job_leave_out(&copy, o->err.attr));
		assert_int_equal(saina_core_job_restore(o->core, &copy, &job, &o->err), 0);
		assert_int_equal(job->active, 15);
		assert_int_equal(job->policy.mode, SAINA_POLICY_EXTERNAL);
		assert_int_equal(job->k_set, k ? 0 : 3);
		assert_int_equal(job->next.mode, k ? SAINA_POLICY_BSP : 0);
		assert_int_equal(job->next_from, k ? 500 : 0);
		/* above any number that may be in force in the meantime */
		assert_int_equal(o->last.policy.seq, k ? 1 : 3);
		assert_int_equal(saina_core_job_del(o->core, &del, NULL), 0);
	}
	assert_false(saina_job_leave_out(&(struct saina_job){ .id = 1 }, SAINA_A_JOB_NAME));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("job core: a saved job is restored with its generation, a damaged one is refused", restore),
		TEST("job core: a restored job has the pending policy, its schedule, and k as it was set", restore_waiting_policy),
		TEST("job core: a saved pending policy, or a saved k, that cannot be is refused, and the job is restored without it", restore_impossible_policy),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
