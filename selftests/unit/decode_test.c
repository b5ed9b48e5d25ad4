// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests on the agent's control socket: what is taken, what is refused with
 * which guilty attribute, and that no bytes whatever make the decoder read
 * beyond them (each buffer is allocated to its exact size; run it under a
 * memory checker to see more than crashes).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <linux/genetlink.h>

#include "agent/control/decode.h"

#define ALL (~0ull)

static char buf[4096] __attribute__((aligned(8)));
static struct decoded d;
static struct saina_core_err err;

static struct nlmsghdr *start(void)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *g;

	nlh->nlmsg_type = SAINA_NLMSG_TYPE;
	g = mnl_nlmsg_put_extra_header(nlh, sizeof(*g));
	g->cmd = SAINA_CMD_JOB_NEW;
	g->version = SAINA_FAMILY_VERSION;
	return nlh;
}

static void refused(struct nlmsghdr *nlh, int top, __u64 allowed, int error, const void *bad,
		    const char *words)
{
	memset(&err, 0, sizeof(err));
	assert_int_equal(decode_request(nlh, top, allowed, &d, &err), error);
	if (!strstr(err.text, words))
		fail_msg("'%s' lacks '%s'", err.text, words);
	assert_ptr_equal(d.bad, bad);
}

static void whole_job(void **state)
{
	struct nlmsghdr *nlh = start();
	struct nlattr *nest = mnl_attr_nest_start(nlh, SAINA_A_JOB);
	struct saina_job_req r;

	mnl_attr_put_strz(nlh, SAINA_A_JOB_NAME, "mnist");
	mnl_attr_put_u64(nlh, SAINA_A_JOB_ELEMENTS, 1ull << 33);
	mnl_attr_put_u8(nlh, SAINA_A_JOB_WORKERS, 64);
	mnl_attr_put_u16(nlh, SAINA_A_JOB_ID, 255);
	mnl_attr_put_u8(nlh, SAINA_A_JOB_EXPONENT, (__u8)-5);
	mnl_attr_put_strz(nlh, SAINA_A_JOB_TOKEN, "01234567890123456789012345678901");
	mnl_attr_put_strz(nlh, SAINA_A_JOB_POLICY, "sfcd");
	mnl_attr_nest_end(nlh, nest);
	assert_int_equal(decode_request(nlh, SAINA_A_JOB, ALL, &d, &err), 0);
	assert_int_equal(decode_job(&d, &r, &err), 0);
	assert_string_equal(r.name, "mnist");
	assert_int_equal(r.elements, 1ull << 33);
	assert_int_equal(r.workers, 64);
	assert_int_equal(r.id, 255);
	assert_int_equal(r.exponent, -5);
	assert_memory_equal(r.token, "01234567890123456789012345678901", 32);
	assert_int_equal(r.policy.mode, SAINA_POLICY_SFCD);
	assert_int_equal(r.has, 1ull << SAINA_A_JOB_NAME | 1ull << SAINA_A_JOB_ELEMENTS |
					1ull << SAINA_A_JOB_WORKERS | 1ull << SAINA_A_JOB_ID |
					1ull << SAINA_A_JOB_EXPONENT | 1ull << SAINA_A_JOB_TOKEN |
					1ull << SAINA_A_JOB_POLICY);
}

static void empty(void **state)
{
	struct nlmsghdr *nlh = start();

	assert_int_equal(decode_request(nlh, SAINA_A_JOB, ALL, &d, &err), 0);
	assert_null(d.nest);
	assert_int_equal(d.has, 0);
	nlh = start();
	mnl_attr_put_u32(nlh, SAINA_A_GROUPS, 3);
	assert_int_equal(decode_request(nlh, SAINA_A_GROUPS, 0, &d, &err), 0);
	assert_int_equal(mnl_attr_get_u32(d.groups), 3);
}

/* One bad attribute in an otherwise good JOB. */
static void refused_attr(int type, const void *data, size_t len, __u64 allowed, int error,
			 const char *words)
{
	struct nlmsghdr *nlh = start();
	struct nlattr *nest = mnl_attr_nest_start(nlh, SAINA_A_JOB);
	void *bad;

	mnl_attr_put_u16(nlh, SAINA_A_JOB_PAYLOAD, 64);
	bad = mnl_nlmsg_get_payload_tail(nlh);
	mnl_attr_put(nlh, type, len, data);
	mnl_attr_nest_end(nlh, nest);
	refused(nlh, SAINA_A_JOB, allowed, error, bad, words);
}

static void bad_attributes(void **state)
{
	refused_attr(SAINA_A_JOB_ID, "a", 1, ALL, -EINVAL, "JOB.ID: has 1 bytes, must have 2");
	refused_attr(SAINA_A_JOB_ID, "abcd", 4, ALL, -EINVAL, "JOB.ID");
	refused_attr(SAINA_A_JOB_ELEMENTS, "abcd", 4, ALL, -EINVAL, "must have 8");
	refused_attr(SAINA_A_JOB_WORKERS, "", 0, ALL, -EINVAL, "must have 1");
	refused_attr(SAINA_A_JOB_NAME, "abc", 3, ALL, -EINVAL, "does not end with a zero");
	refused_attr(SAINA_A_JOB_NAME, "", 0, ALL, -EINVAL, "does not end with a zero");
	refused_attr(SAINA_A_JOB_NAME, "ab\0c", 5, ALL, -EINVAL, "follow the end");
	refused_attr(SAINA_A_JOB_NAME, "a\033b", 4, ALL, -EINVAL, "cannot be printed");
	refused_attr(SAINA_A_JOB_NAME, "01234567890123456789012345678901", 33, ALL, -ERANGE, "31");
	refused_attr(SAINA_A_JOB_PAYLOAD, "ab", 2, ALL, -EINVAL, "given twice");
	refused_attr(SAINA_A_JOB_NAME, "abc", 4, 1ull << SAINA_A_JOB_PAYLOAD, -EINVAL,
		     "does not take it");
	refused_attr(SAINA_A_JOB_MEMORY, "abcdefgh", 8, ALL, -EINVAL, "not for requests");
	refused_attr(63, "", 0, ALL, -EINVAL, "attribute 63 is unknown");
	refused_attr(64, "", 0, ALL, -EINVAL, "attribute 64 is unknown");
	refused_attr(0, "", 0, ALL, -EINVAL, "attribute 0 is unknown");
	refused_attr(SAINA_A_JOB_ID | NLA_F_NESTED, "ab", 2, ALL, -EINVAL, "neither nested");
}

static void bad_frames(void **state)
{
	struct nlmsghdr *nlh = start();
	struct nlattr *nest, *a;

	/* another object */
	nest = mnl_attr_nest_start(nlh, SAINA_A_WORKER);
	mnl_attr_nest_end(nlh, nest);
	refused(nlh, SAINA_A_JOB, ALL, -EINVAL, nest, "WORKER");
	refused(nlh, 0, 0, -EINVAL, nest, "does not take");
	/* not marked */
	nlh = start();
	a = mnl_nlmsg_get_payload_tail(nlh);
	mnl_attr_put(nlh, SAINA_A_JOB, 0, NULL);
	refused(nlh, SAINA_A_JOB, ALL, -EINVAL, a, "not marked as nested");
	/* twice */
	nlh = start();
	mnl_attr_nest_end(nlh, mnl_attr_nest_start(nlh, SAINA_A_JOB));
	nest = mnl_attr_nest_start(nlh, SAINA_A_JOB);
	mnl_attr_nest_end(nlh, nest);
	refused(nlh, SAINA_A_JOB, ALL, -EINVAL, nest, "given twice");
	/* longer than the message */
	nlh = start();
	nest = mnl_attr_nest_start(nlh, SAINA_A_JOB);
	mnl_attr_nest_end(nlh, nest);
	nest->nla_len += 4;
	refused(nlh, SAINA_A_JOB, ALL, -EINVAL, NULL, "cut short");
	/* an attribute longer than its nest */
	nlh = start();
	nest = mnl_attr_nest_start(nlh, SAINA_A_JOB);
	a = mnl_nlmsg_get_payload_tail(nlh);
	mnl_attr_put_u16(nlh, SAINA_A_JOB_ID, 1);
	mnl_attr_nest_end(nlh, nest);
	a->nla_len += 8;
	refused(nlh, SAINA_A_JOB, ALL, -EINVAL, nest, "cut short");
	a->nla_len = 2;
	refused(nlh, SAINA_A_JOB, ALL, -EINVAL, nest, "cut short");
	/* groups of the wrong size */
	nlh = start();
	a = mnl_nlmsg_get_payload_tail(nlh);
	mnl_attr_put_u16(nlh, SAINA_A_GROUPS, 1);
	refused(nlh, SAINA_A_GROUPS, 0, -EINVAL, a, "must have 4");
}

static uint64_t next(uint64_t *s)
{
	uint64_t z = (*s += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* Good requests with bytes changed, and cut anywhere. */
static void fuzz(void **state)
{
	struct saina_worker_req wr;
	struct saina_job_req jr;
	uint64_t seed = 1;
	int i, j, n, good = 0;

	for (i = 0; i < 200000; i++) {
		int top = 1 + next(&seed) % SAINA_A_LIMITS;
		struct nlmsghdr *nlh = start(), *copy;
		struct nlattr *nest = mnl_attr_nest_start(nlh, top);

		n = next(&seed) % 5;
		for (j = 0; j < n; j++)
			mnl_attr_put(nlh, next(&seed) % 20, next(&seed) % 12, "abcdefghijklm");
		if (next(&seed) % 2)
			mnl_attr_put_u16(nlh, SAINA_A_JOB_ID, 1);
		mnl_attr_nest_end(nlh, nest);
		n = next(&seed) % 4;
		for (j = 0; j < n; j++)
			buf[NLMSG_HDRLEN + next(&seed) % (nlh->nlmsg_len - NLMSG_HDRLEN)] =
				next(&seed);
		if (next(&seed) % 4 == 0)
			nlh->nlmsg_len = NLMSG_HDRLEN + sizeof(struct genlmsghdr) +
					 next(&seed) % (nlh->nlmsg_len - NLMSG_HDRLEN - 3);
		copy = malloc(nlh->nlmsg_len);
		assert_non_null(copy);
		memcpy(copy, nlh, nlh->nlmsg_len);
		if (!decode_request(copy, top, ALL, &d, &err)) {
			good++;
			assert_null(d.bad);
			if (top == SAINA_A_JOB)
				decode_job(&d, &jr, &err);
			if (top == SAINA_A_WORKER)
				decode_worker(&d, &wr);
		} else {
			assert_true(err.text[0]);
			if (d.bad)
				assert_in_range((char *)d.bad - (char *)copy, NLMSG_HDRLEN,
						copy->nlmsg_len - 1);
		}
		free(copy);
	}
	assert_true(good > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_job),	  cmocka_unit_test(empty),
		cmocka_unit_test(bad_attributes), cmocka_unit_test(bad_frames),
		cmocka_unit_test(fuzz),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
