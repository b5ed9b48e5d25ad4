// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests on the agent's control socket: which are accepted, which are refused and for which
 * attribute, and that the decoder never reads beyond the message (each buffer has exactly the
 * size of its message, so a memory checker finds more than crashes).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/genetlink.h>

#include "agent/control/decode.h"
#include "../lib/rng.h"
#include "../lib/statement.h"

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

static void refused(struct nlmsghdr *nlh, const struct saina_attr_class *c, __u64 takes, int error,
		    const void *bad, const char *words)
{
	memset(&err, 0, sizeof(err));
	assert_int_equal(decode_request(nlh, c, takes, &d, &err), error);
	if (!strstr(err.text, words))
		fail_msg("'%s' lacks '%s'", err.text, words);
	assert_ptr_equal(d.bad, bad);
}

static void whole_job(void **state)
{
	const struct saina_job_attrs *r = &d.attrs.job;
	struct nlmsghdr *nlh = start();
	struct nlattr *nest;

	mnl_attr_put_strz(nlh, SAINA_A_JOB_NAME, "mnist");
	mnl_attr_put_u64(nlh, SAINA_A_JOB_ELEMENTS, 1ull << 33);
	mnl_attr_put_u8(nlh, SAINA_A_JOB_WORKERS, 64);
	mnl_attr_put_u16(nlh, SAINA_A_JOB_ID, 255);
	mnl_attr_put_u32(nlh, SAINA_A_JOB_EXPONENT, -5);
	mnl_attr_put_strz(nlh, SAINA_A_JOB_TOKEN, "01234567890123456789012345678901");
	nest = mnl_attr_nest_start(nlh, SAINA_A_JOB_POLICY);
	mnl_attr_put_u8(nlh, SAINA_A_POLICY_MODE, SAINA_POLICY_FASTEST);
	mnl_attr_put_u8(nlh, SAINA_A_POLICY_K, 6);
	mnl_attr_nest_end(nlh, nest);
	assert_int_equal(decode_request(nlh, &saina_job_class, ALL, &d, &err), 0);
	assert_string_equal(r->name, "mnist");
	assert_int_equal(r->elements, 1ull << 33);
	assert_int_equal(r->workers, 64);
	assert_int_equal(r->id, 255);
	assert_int_equal(r->exponent, -5);
	assert_string_equal(r->token, "01234567890123456789012345678901");
	assert_int_equal(r->policy.mode, SAINA_POLICY_FASTEST);
	assert_int_equal(r->policy.k, 6);
	assert_int_equal(r->policy.has, 1ull << SAINA_A_POLICY_MODE | 1ull << SAINA_A_POLICY_K);
	assert_int_equal(r->has, 1ull << SAINA_A_JOB_NAME | 1ull << SAINA_A_JOB_ELEMENTS |
					 1ull << SAINA_A_JOB_WORKERS | 1ull << SAINA_A_JOB_ID |
					 1ull << SAINA_A_JOB_EXPONENT | 1ull << SAINA_A_JOB_TOKEN |
					 1ull << SAINA_A_JOB_POLICY);
}

static void empty(void **state)
{
	struct nlmsghdr *nlh = start();

	assert_int_equal(decode_request(nlh, &saina_job_class, ALL, &d, &err), 0);
	assert_int_equal(d.attrs.has, 0);
	nlh = start();
	mnl_attr_put_u32(nlh, SAINA_A_SUBSCRIPTION_GROUPS, 3);
	assert_int_equal(decode_request(nlh, &saina_subscription_class, ALL, &d, &err), 0);
	assert_int_equal(d.attrs.subscription.groups, 3);
}

/* One bad attribute in an otherwise good request. */
static void refused_attr(int type, const void *data, size_t len, __u64 takes, int error,
			 const char *words)
{
	struct nlmsghdr *nlh = start();
	void *bad;

	mnl_attr_put_u16(nlh, SAINA_A_JOB_PAYLOAD, 64);
	bad = mnl_nlmsg_get_payload_tail(nlh);
	mnl_attr_put(nlh, type, len, data);
	refused(nlh, &saina_job_class, takes, error, bad, words);
}

/* The errnos are those of the kernel's policies: see lib/nlattr.c there. */
static void bad_attributes(void **state)
{
	char long_name[64] = "";

	refused_attr(SAINA_A_JOB_ID, "a", 1, ALL, -EINVAL, "id: has 1 bytes, must have 2");
	refused_attr(SAINA_A_JOB_ID, "abcd", 4, ALL, -EINVAL, "id");
	refused_attr(SAINA_A_JOB_ELEMENTS, "abcd", 4, ALL, -EINVAL, "must have 8");
	refused_attr(SAINA_A_JOB_WORKERS, "", 0, ALL, -EINVAL, "must have 1");
	refused_attr(SAINA_A_JOB_NAME, "abc", 3, ALL, -EINVAL, "must end with a zero");
	refused_attr(SAINA_A_JOB_NAME, "", 0, ALL, -EINVAL, "must end with a zero");
	refused_attr(SAINA_A_JOB_NAME, "01234567890123456789012345678901", 33, ALL, -EINVAL, "31");
	refused_attr(SAINA_A_JOB_NAME, long_name, 34, ALL, -ERANGE, "at most 32");
	refused_attr(SAINA_A_JOB_PAYLOAD, "ab", 2, ALL, -EINVAL, "given twice");
	refused_attr(SAINA_A_JOB_STATE, "\0", 1, ALL, -ERANGE, "state: 0: must be 1..3");
	refused_attr(SAINA_A_JOB_STATE, "\4", 1, ALL, -ERANGE, "must be 1..3");
	refused_attr(SAINA_A_JOB_NAME, "abc", 4, 1ull << SAINA_A_JOB_PAYLOAD, -EINVAL,
		     "does not take this attribute");
	refused_attr(SAINA_A_JOB_PAD, "", 0, ALL, -EINVAL, "unknown");
	refused_attr(63, "", 0, ALL, -EINVAL, "attribute 63 is unknown");
	refused_attr(64, "", 0, ALL, -EINVAL, "attribute 64 is unknown");
	refused_attr(0, "", 0, ALL, -EINVAL, "attribute 0 is unknown");
	refused_attr(SAINA_A_JOB_ID | NLA_F_NESTED, "ab", 2, ALL, -EINVAL, "must not be marked");
	refused_attr(SAINA_A_JOB_POLICY, "", 0, ALL, -EINVAL, "must be marked as nested");
}

static void bad_numbers(void **state)
{
	struct nlmsghdr *nlh = start();
	struct nlattr *a = mnl_nlmsg_get_payload_tail(nlh);

	mnl_attr_put(nlh, SAINA_A_WORKER_MAC, 5, "abcde");
	refused(nlh, &saina_worker_class, ALL, -ERANGE, a, "mac: has 5 bytes, must have 6");
	nlh = start();
	a = mnl_nlmsg_get_payload_tail(nlh);
	mnl_attr_put_u32(nlh, SAINA_A_SUBSCRIPTION_GROUPS, 5);
	refused(nlh, &saina_subscription_class, ALL, -EINVAL, a, "0x3 are known");
}

static void bad_frames(void **state)
{
	struct nlmsghdr *nlh = start();
	struct nlattr *nest, *a;

	/* longer than the message */
	a = mnl_nlmsg_get_payload_tail(nlh);
	mnl_attr_put_u16(nlh, SAINA_A_JOB_ID, 1);
	a->nla_len += 8;
	refused(nlh, &saina_job_class, ALL, -EINVAL, NULL, "cut short");
	a->nla_len = 2;
	refused(nlh, &saina_job_class, ALL, -EINVAL, NULL, "cut short");
	/* in the nest */
	nlh = start();
	nest = mnl_attr_nest_start(nlh, SAINA_A_JOB_POLICY);
	a = mnl_nlmsg_get_payload_tail(nlh);
	mnl_attr_put_u8(nlh, SAINA_A_POLICY_MODE, 10);
	mnl_attr_nest_end(nlh, nest);
	refused(nlh, &saina_job_class, ALL, -ERANGE, a, "mode: 10: must be 1..9");
	a->nla_len += 8;
	refused(nlh, &saina_job_class, ALL, -EINVAL, NULL, "policy: an attribute is cut short");
}

/* Good requests with bytes changed, and cut anywhere. */
static void fuzz(void **state)
{
	static const struct saina_attr_class *const classes[] = {
		&saina_job_class, &saina_worker_class, &saina_port_class, &saina_slot_class,
		&saina_stats_class, &saina_limits_class, &saina_subscription_class,
	};
	uint64_t seed = 1;
	int i, j, n, good = 0;

	for (i = 0; i < 200000; i++) {
		const struct saina_attr_class *c = classes[rng_next(&seed) % 7];
		struct nlmsghdr *nlh = start(), *copy;
		struct nlattr *nest;

		n = rng_next(&seed) % 5;
		for (j = 0; j < n; j++)
			mnl_attr_put(nlh, rng_next(&seed) % 20, rng_next(&seed) % 12, "abcdefghijklm");
		if (rng_next(&seed) % 2)
			mnl_attr_put_u16(nlh, SAINA_A_JOB_ID, 1);
		if (rng_next(&seed) % 2) {
			nest = mnl_attr_nest_start(nlh, SAINA_A_JOB_POLICY);
			mnl_attr_put_u8(nlh, rng_next(&seed) % 12, rng_next(&seed) % 5);
			mnl_attr_nest_end(nlh, nest);
		}
		n = rng_next(&seed) % 4;
		for (j = 0; j < n; j++)
			buf[NLMSG_HDRLEN + rng_next(&seed) % (nlh->nlmsg_len - NLMSG_HDRLEN)] =
				rng_next(&seed);
		if (rng_next(&seed) % 4 == 0)
			nlh->nlmsg_len = NLMSG_HDRLEN + sizeof(struct genlmsghdr) +
					 rng_next(&seed) % (nlh->nlmsg_len - NLMSG_HDRLEN - 3);
		copy = malloc(nlh->nlmsg_len);
		assert_non_null(copy);
		memcpy(copy, nlh, nlh->nlmsg_len);
		if (!decode_request(copy, c, ALL, &d, &err)) {
			good++;
			assert_null(d.bad);
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
		statement("decode: every attribute of a request is decoded", whole_job),
		statement("decode: a request without attributes is accepted", empty),
		statement("decode: a malformed, unknown or repeated attribute is refused and named", bad_attributes),
		statement("decode: a MAC of 5 bytes and an unknown subscription group are refused", bad_numbers),
		statement("decode: an attribute that is cut short is refused, also in a nest", bad_frames),
		statement("decode: random requests are decoded or refused with a sentence", fuzz),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
