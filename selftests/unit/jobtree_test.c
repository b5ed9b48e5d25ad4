// SPDX-License-Identifier: GPL-2.0-or-later
/* The job core by its public interface: jobs with nodes and jobs with a parent. */
#include "core/adopt.h"
#include "core/show.h"
#include "jobcore_owner.h"

#define PARENT "10.0.0.7"

static struct saina_job_attrs root_req(const char *name, int workers, ...)
{
	struct saina_job_attrs r = job_req(name, 10000, workers);
	va_list ap;

	va_start(ap, workers);
	for (int w = 0; w < workers; w++)
		r.weights[w] = va_arg(ap, int);
	va_end(ap);
	SAINA_SET(&r, SAINA_A_JOB_WEIGHTS);
	return r;
}

static struct saina_job_attrs leaf_req(const char *name, int workers)
{
	struct saina_job_attrs r = job_req(name, 10000, workers);

	SAINA_PUT(&r.uplink, SAINA_A_UPLINK_ADDRESS, address, inet_addr(PARENT));
	SAINA_PUT_TEXT(&r.uplink, SAINA_A_UPLINK_JOB, job, "root");
	SAINA_PUT(&r.uplink, SAINA_A_UPLINK_WORKER, worker, 2);
	SAINA_SET(&r, SAINA_A_JOB_UPLINK);
	return r;
}

static void refused(struct owner *o, struct saina_job_attrs r, int error, int attr,
		    const char *sentence)
{
	int before = o->published;

	assert_refused(o, job_new(o, &r, NULL), error, attr);
	if (!strstr(o->err.text, sentence))
		fail_msg("\"%s\" is not in: %s", sentence, o->err.text);
	assert_int_equal(o->published, before);
}

static void ranks(void **state)
{
	struct owner *o = *state;
	struct saina_job_attrs r = root_req("root", 4, 8, 1, 3, 65535 - 12), a;
	const struct saina_job *job;

	assert_int_equal(job_new(o, &r, &job), 0);
	/* one of weight 1 may be a node, too */
	assert_int_equal(o->last.worker[1].max_weight, 2);
	assert_int_equal(o->last.worker[2].max_weight, 3);
	assert_int_equal(o->last.worker[4].max_weight, 0);
	assert_int_equal(saina_job_weight(job, 0), 0);
	assert_int_equal(saina_job_weight(job, 1), 8);
	assert_int_equal(saina_job_weight(job, 2), 9);
	assert_int_equal(saina_job_weight(job, 4), 65535);
	saina_job_show(job, 0, &a);
	assert_true(SAINA_HAS(&a, SAINA_A_JOB_WEIGHTS));
	assert_false(SAINA_HAS(&a, SAINA_A_JOB_UPLINK));
	assert_memory_equal(a.weights, r.weights, sizeof(a.weights));

	job = add(o, "flat", 4, NULL);
	assert_int_equal(saina_job_weight(job, 3), 3);
	saina_job_show(job, 0, &a);
	assert_false(SAINA_HAS(&a, SAINA_A_JOB_WEIGHTS));
	assert_int_equal(saina_job_places(job), 4);
}

static void weights_refused(void **state)
{
	struct saina_job_attrs r = root_req("a", 3, 8, 8, 8);
	struct owner *o = *state;
	const int attr = SAINA_A_JOB_WEIGHTS;

	refused(o, root_req("a", 3, 8, 0, 8), -EINVAL, attr, "has 3 workers and needs as many");
	r.workers = 4;
	refused(o, r, -EINVAL, attr, "has 4 workers and needs as many");
	r.workers = 2;
	refused(o, r, -EINVAL, attr, "has 2 workers and needs as many");
	refused(o, root_req("a", 2, 1, 65535), -ERANGE, attr, "more than 65535");
	r = root_req("a", 2, 1, 1);
	r.weights[0] = 65535;
	r.weights[1] = 65535;
	refused(o, r, -ERANGE, attr, "more than 65535");
	r = root_req("a", 2, 33, 32);
	SAINA_PUT(&r, SAINA_A_JOB_ELEM_TYPE, elem_type, SAINA_ELEM_INT16);
	refused(o, r, -EOPNOTSUPP, attr, "room for 64 workers, and these are 65");
	r.weights[0] = 32;
	assert_int_equal(job_new(o, &r, NULL), 0);
	r = root_req("b", 2, 8, 8);
	r.has &= ~BIT_OF(SAINA_A_JOB_ELEMENTS);
	SAINA_PUT(&r, SAINA_A_JOB_ELEMENTS_AUTO, elements_auto, 1);
	refused(o, r, -EOPNOTSUPP, SAINA_A_JOB_ELEMENTS_AUTO, "needs a number");
}

static void uplink_kept(void **state)
{
	struct owner *o = *state;
	struct saina_job_attrs r = leaf_req("leaf", 63), a;
	const struct saina_job *job;
	struct saina_job copy;

	SAINA_PUT_TEXT(&r.uplink, SAINA_A_UPLINK_TOKEN_FILE, token_file, "/etc/saina/token");
	assert_int_equal(job_new(o, &r, &job), 0);
	assert_int_equal(job->uplink.address, inet_addr(PARENT));
	assert_int_equal(ntohs(job->uplink.port), SAINA_PORT_CTRL);
	assert_int_equal(saina_job_places(job), 64);
	saina_job_show(job, 1, &a);
	SAINA_PUT(&a, SAINA_A_JOB_ROUND, round, 0);
	saina_job_read(&a, &copy);
	assert_memory_equal(&copy.uplink, &job->uplink, sizeof(copy.uplink));
	assert_int_equal(saina_core_job_del(o->core, &r, NULL), 0);
	assert_int_equal(saina_core_job_restore(o->core, &copy, &job, &o->err), 0);
	assert_string_equal(job->uplink.job, "root");
	assert_string_equal(job->uplink.token_file, "/etc/saina/token");
	assert_int_equal(job->uplink.worker, 2);
	copy = *job;
	assert_int_equal(saina_core_job_del(o->core, &r, NULL), 0);
	copy.elem = SAINA_ELEM_INT16;
	copy.weight[0] = 3;
	assert_refused(o, saina_core_job_restore(o->core, &copy, NULL, &o->err), -EOPNOTSUPP,
		       SAINA_A_JOB_UPLINK);
}

/* A job may have nodes, and be one. */
static void both(void **state)
{
	struct owner *o = *state;
	struct saina_job_attrs r = leaf_req("inner", 3), a;
	const struct saina_job *job;

	r.weights[0] = 8;
	r.weights[1] = 1;
	r.weights[2] = 4;
	SAINA_SET(&r, SAINA_A_JOB_WEIGHTS);
	assert_int_equal(job_new(o, &r, &job), 0);
	assert_int_equal(saina_job_weight(job, 3), 13);
	assert_int_equal(saina_job_places(job), 4);
	saina_job_show(job, 0, &a);
	assert_true(SAINA_HAS(&a, SAINA_A_JOB_WEIGHTS));
	assert_true(SAINA_HAS(&a, SAINA_A_JOB_UPLINK));
}

static void uplink_refused(void **state)
{
	static const char *const bad[] = { "0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1", "255.255.255.255" };
	struct owner *o = *state;
	struct saina_job_attrs r = leaf_req("a", 4);
	const int attr = SAINA_A_JOB_UPLINK;

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		r.uplink.address = inet_addr(bad[i]);
		refused(o, r, -EINVAL, attr, "needs the address");
	}
	r = leaf_req("a", 4);
	r.uplink.has &= ~BIT_OF(SAINA_A_UPLINK_JOB);
	refused(o, r, -EINVAL, attr, "needs parent-job");
	r = leaf_req("a", 4);
	r.uplink.worker = 64;
	refused(o, r, -ERANGE, attr, "needs parent-worker");
	r = leaf_req("a", 4);
	SAINA_PUT_TEXT(&r.uplink, SAINA_A_UPLINK_TOKEN_FILE, token_file, "token");
	refused(o, r, -EINVAL, attr, "beginning with /");
	r = leaf_req("a", 4);
	SAINA_PUT_TEXT(&r.uplink, SAINA_A_UPLINK_JOB, job, "a\033[2J");
	refused(o, r, -EINVAL, attr, "not printable");
	refused(o, leaf_req("a", 64), -EOPNOTSUPP, attr, "at most 63 workers");
}

static void policies(void **state)
{
	static const struct { const char *policy; bool root, leaf; } row[] = {
		{ "bsp", true, true }, { "fastest:k=2", true, true }, { "timeout:10ms", true, true },
		{ "external:k0=2", true, true }, { "sfcd:k0=1,sth=0.5,cth=5", true, false },
		{ "coded:s=1", false, false }, { "ssp:3", false, false }, { "asp", false, false },
		{ "grouped:g=2", false, false },
	};
	struct owner *o = *state;
	struct saina_job_attrs r = root_req("root", 4, 8, 8, 8, 8);
	const struct saina_job *job[2];

	assert_int_equal(job_new(o, &r, &job[0]), 0);
	r = leaf_req("leaf", 4);
	assert_int_equal(job_new(o, &r, &job[1]), 0);
	for (unsigned int i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		for (int leaf = 0; leaf < 2; leaf++) {
			if (leaf ? row[i].leaf : row[i].root) {
				assert_int_equal(set_policy(o, job[leaf], row[i].policy), 0);
				continue;
			}
			assert_refused(o, set_policy(o, job[leaf], row[i].policy), -EOPNOTSUPP,
				       SAINA_A_JOB_POLICY);
			assert_non_null(strstr(o->err.text, leaf ? "with an uplink" : "with nodes"));
			r = leaf ? leaf_req("new", 4) : root_req("new", 4, 8, 8, 8, 8);
			with_policy(&r, row[i].policy);
			assert_refused(o, job_new(o, &r, NULL), -EOPNOTSUPP, SAINA_A_JOB_POLICY);
		}
}

static void uplink_changed(void **state)
{
	struct owner *o = *state;
	struct saina_job_attrs r = leaf_req("leaf", 2), set;
	const struct saina_job *job;

	assert_int_equal(job_new(o, &r, &job), 0);
	set = r;
	set.has = BIT_OF(SAINA_A_JOB_NAME) | BIT_OF(SAINA_A_JOB_UPLINK);
	set.uplink.address = inet_addr("10.0.0.8");
	SAINA_PUT(&set.uplink, SAINA_A_UPLINK_PORT, port, htons(700));
	assert_int_equal(job_set(o, &set), 0);
	assert_int_equal(job->uplink.address, inet_addr("10.0.0.8"));
	assert_int_equal(ntohs(job->uplink.port), 700);
	assert_int_equal(try_join(o, job, 0, 0), 0);
	assert_refused(o, job_set(o, &set), -EBUSY, SAINA_A_JOB_UPLINK);
	set.has |= BIT_OF(SAINA_A_JOB_WEIGHTS);
	assert_refused(o, job_set(o, &set), -EINVAL, SAINA_A_JOB_WEIGHTS);
	add(o, "flat", 2, NULL);
	set = leaf_req("flat", 2);
	set.has = BIT_OF(SAINA_A_JOB_NAME) | BIT_OF(SAINA_A_JOB_UPLINK);
	assert_refused(o, job_set(o, &set), -EINVAL, SAINA_A_JOB_UPLINK);
}

/* The worker behind the last: admitted, but nobody waits for it. */
static void uplink_worker(void **state)
{
	struct owner *o = *state;
	struct saina_job_attrs r = leaf_req("leaf", 2);
	const struct saina_job *job;

	assert_int_equal(job_new(o, &r, &job), 0);
	assert_int_equal(try_join(o, job, 2, 0), 0);
	assert_int_equal(o->last.worker[2].session, 1002);
	assert_int_equal(o->last.uplink, 1 << 2);
	assert_int_equal(o->last.worker[2].max_weight, 65536);
	assert_int_equal(o->last.worker[0].max_weight, 0);
	assert_int_equal(job->active, 0);
	assert_int_equal(job->state, SAINA_JOB_FORMING);
	assert_refused(o, try_join(o, job, 3, 0), -ERANGE, SAINA_A_WORKER_ID);
	join_all(o, job);
	assert_int_equal(job->state, SAINA_JOB_RUNNING);
	assert_int_equal(o->last.active, 3);
	assert_int_equal(set_state(o, job, 2, SAINA_WORKER_STATE_DEAD), 0);
	assert_int_equal(job->state, SAINA_JOB_RUNNING);
	assert_int_equal(job->active, 3);
	assert_int_equal(try_join(o, job, 2, 0), 0);
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_STATE_LEFT), 0);
	assert_int_equal(set_state(o, job, 1, SAINA_WORKER_STATE_LEFT), 0);
	assert_int_equal(job->state, SAINA_JOB_FORMING);
	/* what it still sends is of the rounds before */
	assert_int_equal(o->last.worker[2].session, 0);
	assert_refused(o, try_join(o, add(o, "flat", 2, NULL), 2, 0), -ERANGE, SAINA_A_WORKER_ID);
}

/* Its nodes come back with sums of the round that they left. */
static void root_goes_on(void **state)
{
	struct owner *o = *state;
	struct saina_job_attrs r = root_req("root", 2, 8, 3);
	const struct saina_job *job;
	__u32 generation;

	assert_int_equal(job_new(o, &r, &job), 0);
	join_all(o, job);
	assert_int_equal(o->last.worker[0].max_weight, 8);
	assert_int_equal(o->last.worker[1].max_weight, 3);
	assert_int_equal(o->last.uplink, 0);
	generation = job->generation;
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_STATE_LEFT), 0);
	assert_int_equal(set_state(o, job, 1, SAINA_WORKER_STATE_DEAD), 0);
	assert_int_equal(job->state, SAINA_JOB_RUNNING);
	assert_int_equal(job->generation, generation);
	assert_int_equal(try_join(o, job, 1, 0), 0);
	assert_int_equal(job->generation, generation);
	assert_int_equal(set_state(o, job, 1, SAINA_WORKER_STATE_DEAD), 0);
	assert_int_equal(set_job_state(o, job, SAINA_JOB_STOPPED), 0);
	assert_true(job->generation > generation);
	generation = job->generation;
	assert_int_equal(set_job_state(o, job, SAINA_JOB_FORMING), 0);
	assert_int_equal(job->generation, generation);
	/* stopped with workers, which then end */
	join_all(o, job);
	assert_int_equal(set_job_state(o, job, SAINA_JOB_STOPPED), 0);
	assert_int_equal(job->generation, generation);
	assert_int_equal(set_state(o, job, 0, SAINA_WORKER_STATE_LEFT), 0);
	assert_int_equal(set_state(o, job, 1, SAINA_WORKER_STATE_LEFT), 0);
	assert_true(job->generation > generation);
}

/* It is known by its incarnation, so it need not leave, and no slot completes without it meanwhile. */
static void node_rebound(void **state)
{
	struct owner *o = *state;
	struct saina_job_attrs r = root_req("root", 2, 4, 4);
	struct saina_worker_attrs again;
	const struct saina_job *job;
	int published;

	assert_int_equal(job_new(o, &r, &job), 0);
	assert_int_equal(try_join(o, job, 0, 0), 0);
	assert_int_equal(try_join(o, job, 1, 0), 0);
	published = o->published;
	again = join_req(job, 1, 0);
	again.udp_port = htons(40001);
	again.session++;
	assert_int_equal(worker_set(o, &again), 0);
	assert_int_equal(o->published, published + 1);
	assert_int_equal(job->active, 3);
	assert_int_equal(job->state, SAINA_JOB_RUNNING);
	assert_int_equal(job->worker[1].bind.udp_port, again.udp_port);
	assert_true(job->worker[1].bind.session == again.session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("tree: the rank of a worker is the sum of the weights before it, and each weighs 1 without weights", ranks),
		TEST("tree: weights that do not fit the workers, the type or 65535 are refused", weights_refused),
		TEST("tree: the uplink of a job is shown, read back and restored", uplink_kept),
		TEST("tree: a job with an uplink can have nodes", both),
		TEST("tree: an uplink without an address, parent or worker of it, or with 64 workers is refused", uplink_refused),
		TEST("tree: which policies the root and a job with an uplink can have", policies),
		TEST("tree: the uplink changes only while no worker is alive, and no job gets one later", uplink_changed),
		TEST("tree: a root whose nodes are all away goes on until it is stopped", root_goes_on),
		TEST("tree: the uplink's worker is bound, but counts for nothing", uplink_worker),
		TEST("tree: a node with a new relay is bound again, and is active all the time", node_rebound),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
