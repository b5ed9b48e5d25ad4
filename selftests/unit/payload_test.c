// SPDX-License-Identifier: GPL-2.0-or-later
/* The payload of a job that does not say (userland/ctl/payload.h). */
#include "ctl/payload.h"
#include "linux/saina.h"
#include "saina/proto.h"
#include "../lib/statement.h"

#define HEADERS (28 + 48)	/* IPv4 and UDP, SAINA: protocol.rst 3 */

/* 0: left as it is. */
static unsigned int chosen(unsigned int mtu, bool jumbo, unsigned int type)
{
	struct saina_job_attrs req = { 0 };

	if (type)
		SAINA_PUT(&req, SAINA_A_JOB_ELEM_TYPE, elem_type, type);
	saina_payload_choose(&req, mtu, jumbo);
	assert_int_equal(!!SAINA_HAS(&req, SAINA_A_JOB_PAYLOAD), req.payload != 0);
	return req.payload;
}

static void test_usual(void **state)
{
	assert_int_equal(chosen(1500, true, 0), 352);
	assert_int_equal(chosen(1500, false, 0), 352);
	assert_int_equal(chosen(1500, true, SAINA_ELEM_INT32), 352);
	assert_int_equal(chosen(1500, true, SAINA_ELEM_FLOAT32), 352);
	assert_int_equal(chosen(1450, true, 0), 256);
	assert_int_equal(chosen(9000, true, 0), 2048);
}

/* To the byte: where a payload just fits, and where it just does not. */
static void test_edges(void **state)
{
	static const unsigned int sizes[] = { 64, 128, 256, 352, 1024, 2048 };

	for (unsigned int i = 0; i < 6; i++) {
		unsigned int before = i ? sizes[i - 1] : 0;

		assert_int_equal(chosen(HEADERS + 4 * sizes[i], true, 0), sizes[i]);
		assert_int_equal(chosen(HEADERS + 4 * sizes[i] - 1, true, 0), before);
		assert_int_equal(chosen(HEADERS + 2 * sizes[i], true, SAINA_ELEM_BFLOAT16), sizes[i]);
		assert_int_equal(chosen(HEADERS + 2 * sizes[i] - 1, true, SAINA_ELEM_BFLOAT16), before);
	}
	assert_int_equal(chosen(0, true, 0), 0);
	assert_int_equal(chosen(65535, true, 0), 2048);
}

static void test_no_jumbo(void **state)
{
	assert_int_equal(chosen(9000, false, 0), SAINA_ELEMS_LINEAR_MAX);
	assert_int_equal(chosen(1500, true, SAINA_ELEM_BFLOAT16), 352);
	assert_int_equal(chosen(9000, false, SAINA_ELEM_BFLOAT16), SAINA_ELEMS_LINEAR_MAX);
}

static void test_said(void **state)
{
	struct saina_job_attrs req = { 0 };

	SAINA_PUT(&req, SAINA_A_JOB_PAYLOAD, payload, 64);
	saina_payload_choose(&req, 9000, true);
	assert_int_equal(req.payload, 64);
	req.payload = 7;	/* not a payload: the job core refuses it */
	saina_payload_choose(&req, 9000, true);
	assert_int_equal(req.payload, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement("payload: 352 elements fit an MTU of 1500, 256 one of 1450, 2048 one of 9000", test_usual),
		statement("payload: the largest that fits the MTU is chosen, to the byte", test_edges),
		statement("payload: at most 352 elements where jumbo results are relayed by the agent", test_no_jumbo),
		statement("payload: what a job asks for is left as it is", test_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
