// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The state file of sainad: a complete file is read; of a cut or damaged one, what precedes
 * the damage is used, and no byte beyond the end is read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>

#include "agent/control/state.h"
#include "lib/rng.h"
#include "lib/statement.h"

#define JOBS 3

static char file[16384] __attribute__((aligned(8)));
static size_t len;

static struct nlmsghdr *start(int cmd)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(file + len);
	struct genlmsghdr *g;

	nlh->nlmsg_type = SAINA_NLMSG_TYPE;
	g = mnl_nlmsg_put_extra_header(nlh, sizeof(*g));
	g->cmd = cmd;
	g->version = SAINA_FAMILY_VERSION;
	return nlh;
}

static void end(const struct nlmsghdr *nlh)
{
	len += NLMSG_ALIGN(nlh->nlmsg_len);
}

static void put_worker(int job, int w)
{
	struct nlmsghdr *nlh = start(SAINA_CMD_WORKER_SET);
	struct state_worker *sw;

	mnl_attr_put_u16(nlh, SAINA_A_WORKER_JOB_ID, job);
	mnl_attr_put_u8(nlh, SAINA_A_WORKER_ID, w);
	mnl_attr_put_strz(nlh, SAINA_A_WORKER_NAME, "host");
	mnl_attr_put_u8(nlh, SAINA_A_WORKER_STATE, SAINA_WORKER_STATE_ALIVE);
	mnl_attr_put_u32(nlh, SAINA_A_WORKER_IFINDEX, 5);
	mnl_attr_put_u64(nlh, SAINA_A_WORKER_SESSION, 0x123456789abcdefull);
	if (w)
		mnl_attr_put_u32(nlh, SAINA_A_WORKER_ROUND, 70);
	end(nlh);
	nlh = start(STATE_CMD_WORKER);
	/* worker 0 in the format of earlier versions */
	sw = mnl_nlmsg_put_extra_header(nlh, w ? sizeof(*sw) : offsetof(struct state_worker, shm_session));
	sw->nonce = 4711 + w;
	sw->worker = w;
	if (w)
		sw->shm_session = 0x123456789abcdefull;
	end(nlh);
}

static struct nlattr *policy_k; /* of the pending policy of the last job */

/* from round 500 on fastest:k=1 */
static void put_waiting_policy(struct nlmsghdr *nlh)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, SAINA_A_JOB_POLICY_NEXT);

	mnl_attr_put_u8(nlh, SAINA_A_POLICY_MODE, SAINA_POLICY_FASTEST);
	policy_k = mnl_nlmsg_get_payload_tail(nlh);
	mnl_attr_put_u8(nlh, SAINA_A_POLICY_K, 1);
	mnl_attr_nest_end(nlh, nest);
	mnl_attr_put_u32(nlh, SAINA_A_JOB_POLICY_NEXT_SEQ, 4);
	mnl_attr_put_u32(nlh, SAINA_A_JOB_POLICY_FROM, 500);
	mnl_attr_put_u32(nlh, SAINA_A_JOB_POLICY_ON, 0);
}

static void put_job(int id)
{
	struct nlmsghdr *nlh = start(SAINA_CMD_JOB_NEW);
	char name[] = "job0";

	name[3] += id;
	mnl_attr_put_u16(nlh, SAINA_A_JOB_ID, id);
	mnl_attr_put_strz(nlh, SAINA_A_JOB_NAME, name);
	mnl_attr_put_u8(nlh, SAINA_A_JOB_STATE, SAINA_JOB_RUNNING);
	mnl_attr_put_u64(nlh, SAINA_A_JOB_ELEMENTS, 1000);
	mnl_attr_put_u8(nlh, SAINA_A_JOB_WORKERS, 2);
	mnl_attr_put_u32(nlh, SAINA_A_JOB_GENERATION, 9);
	mnl_attr_put_u32(nlh, SAINA_A_JOB_POLICY_SEQ, 3);
	mnl_attr_put_u32(nlh, SAINA_A_JOB_ROUND, 77);
	put_waiting_policy(nlh);
	mnl_attr_put_u8(nlh, SAINA_A_JOB_K_SET, 2);
	end(nlh);
	put_worker(id, 0);
	put_worker(id, 1);
}

static int make_file(void **state)
{
	struct nlmsghdr *nlh;
	__u32 *backend;
	int id;

	len = 0;
	memset(file, 0, sizeof(file));
	nlh = start(STATE_CMD_BACKEND);
	backend = mnl_nlmsg_put_extra_header(nlh, sizeof(*backend));
	*backend = SAINA_BACKEND_AGENT;
	end(nlh);
	nlh = start(SAINA_CMD_LIMITS_SET);
	mnl_attr_put_u32(nlh, SAINA_A_LIMITS_JOBS, 7);
	mnl_attr_put_u64(nlh, SAINA_A_LIMITS_MEMORY_JOB, 1 << 20);
	mnl_attr_put_u64(nlh, SAINA_A_LIMITS_MEMORY, 1 << 24);
	end(nlh);
	for (id = 0; id < JOBS; id++)
		put_job(id);
	nlh = mnl_nlmsg_put_header(file + len);
	nlh->nlmsg_type = NLMSG_DONE;
	end(nlh);
	return 0;
}

/* As state_load(): a copy of exactly that length, followed by 8 bytes. */
static int parse(struct saved *s, const char *from, size_t n)
{
	char *copy = calloc(1, n + 8);
	int ret;

	memcpy(copy, from, n);
	memset(s, 0, sizeof(*s));
	ret = state_parse(s, copy, n);
	free(copy);
	return ret;
}

static void whole_file(void **state)
{
	struct saved s;

	assert_int_equal(parse(&s, file, len), 0);
	assert_int_equal(s.backend, SAINA_BACKEND_AGENT);
	assert_int_equal(s.limits.jobs, 7);
	assert_int_equal(s.n, JOBS);
	assert_string_equal(s.job[1].job.name, "job1");
	assert_int_equal(s.job[1].job.first_round, 77);
	assert_int_equal(s.job[1].job.generation, 9);
	assert_true(s.job[1].job.worker[1].bind.session == 0x123456789abcdefull);
	assert_int_equal(s.job[1].job.worker[0].round, 0);
	assert_int_equal(s.job[1].job.worker[1].round, 70);
	assert_int_equal(s.job[1].worker[0].nonce, 4711);
	assert_int_equal(s.job[1].worker[1].nonce, 4712);
	assert_true(s.job[1].worker[0].shm_session == 0);
	assert_true(s.job[1].worker[1].shm_session == 0x123456789abcdefull);
	assert_int_equal(s.job[1].job.policy.seq, 3);
	assert_int_equal(s.job[1].job.next.mode, SAINA_POLICY_FASTEST);
	assert_int_equal(s.job[1].job.next.k, 1);
	assert_int_equal(s.job[1].job.next.seq, 4);
	assert_int_equal(s.job[1].job.next_from, 500);
	assert_int_equal(s.job[1].job.k_set, 2);
	assert_string_equal(s.job[1].refused, "");
	free(s.job);
}

static void cut_at_every_byte(void **state)
{
	struct saved s;
	size_t n;
	int before = 0;

	for (n = 0; n < len; n++) {
		assert_int_equal(parse(&s, file, n), -EBADMSG);
		assert_in_range(s.n, before, JOBS);
		before = s.n;
		free(s.job);
	}
	assert_int_equal(before, JOBS);
}

static void unknown_message_in_the_middle(void **state)
{
	struct nlmsghdr *nlh = (void *)file;
	struct saved s;

	/* of the second job */
	for (int i = 0; i < 2 + 5; i++)
		nlh = (void *)((char *)nlh + NLMSG_ALIGN(nlh->nlmsg_len));
	((struct genlmsghdr *)mnl_nlmsg_get_payload(nlh))->cmd = 0x7f;
	assert_int_equal(parse(&s, file, len), -EBADMSG);
	assert_int_equal(s.n, 1);
	assert_string_equal(s.job[0].job.name, "job0");
	free(s.job);
}

/* The job is read without its policy, and so is what follows it. */
static void expect_left_out(const char *why)
{
	struct saved s;

	assert_int_equal(parse(&s, file, len), 0);
	assert_int_equal(s.n, JOBS);
	assert_string_equal(s.job[1].refused, "");
	assert_non_null(strstr(s.job[2].refused, why));
	assert_int_equal(s.job[2].job.next.mode, 0);
	assert_int_equal(s.job[2].job.next.seq, 0);
	assert_int_equal(s.job[2].job.next_from, 0);
	assert_int_equal(s.job[2].job.policy.seq, 5);	/* the data path may have adopted number 4 */
	assert_int_equal(s.job[2].job.k_set, 2);
	assert_int_equal(s.job[2].job.elements, 1000);
	assert_int_equal(s.job[2].worker[1].nonce, 4712);
	free(s.job);
}

static void damaged_waiting_policy(void **state)
{
	const struct nlattr good = *policy_k;

	policy_k->nla_type = 0x3f;
	expect_left_out("attribute 63 is unknown");
	policy_k->nla_type = SAINA_A_POLICY_MODE;
	expect_left_out("given twice");
	*policy_k = good;
	policy_k->nla_len = 400;
	expect_left_out("cut short");
	*policy_k = good;
	policy_k->nla_len++;
	expect_left_out("k: has 2 bytes, must have 1");
}

static void random_damage(void **state)
{
	static char copy[sizeof(file)];
	struct rng r;
	struct saved s;

	rng_seed(&r, 1);
	for (int i = 0; i < 20000; i++) {
		memcpy(copy, file, len);
		for (int k = rng_below(&r, 8); k >= 0; k--)
			copy[rng_below(&r, len)] = (char)rng_u64(&r);
		parse(&s, copy, len);
		assert_in_range(s.n, 0, SAINA_JOBS_MAX);
		free(s.job);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement_with("state file: a whole file gives its limits, jobs and workers", whole_file, make_file, NULL),
		statement_with("state file: a file that is cut at any byte gives the jobs before the cut", cut_at_every_byte, make_file, NULL),
		statement_with("state file: an unknown message keeps the jobs before it", unknown_message_in_the_middle, make_file, NULL),
		statement_with("state file: a damaged pending policy is dropped, and nothing else is lost", damaged_waiting_policy, make_file, NULL),
		statement_with("state file: random damage is not read beyond the end of the file", random_damage, make_file, NULL),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
