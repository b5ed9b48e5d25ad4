// SPDX-License-Identifier: GPL-2.0-or-later
/* What saina-allreduce takes for a right sum (userland/allreduce/verify.h). */
#include <stdio.h>
#include <string.h>
#include "verify.h"
#include "../lib/statement.h"

#define N 16	/* elements: one segment */

static struct verify v;
static int32_t sum[N];

static int begin(void **state)
{
	memset(&v, 0, sizeof(v));
	v = (struct verify){
		.type = SAINA_INT32, .wire = SAINA_INT32, .seed = 7, .workers = 3, .me = 0,
		.segments = 1, .payload = N, .restarts = true,
	};
	memset(sum, 0, sizeof(sum));
	return verify_init(&v, 0);
}

static int end(void **state)
{
	verify_free(&v);
	return 0;
}

/* What worker @w produces in the rounds @from to @to is in the next result. */
static void contribute(unsigned int w, uint32_t from, uint32_t to)
{
	for (uint32_t r = from; r <= to; r++)
		for (unsigned int i = 0; i < N; i++)
			sum[i] = (uint32_t)sum[i] + (uint32_t)verify_fresh(&v, w, r, i);
}

static void result(uint32_t round, uint64_t mask)
{
	struct saina_segment g = { .round = round, .mask = mask, .contributors = __builtin_popcountll(mask) };

	verify_segment(&v, 0, &g, sum, N);
	memset(sum, 0, sizeof(sum));
}

/* Rounds @from to @to, each with worker 0 alone. */
static void alone(uint32_t from, uint32_t to)
{
	for (uint32_t r = from; r <= to; r++) {
		contribute(0, r, r);
		result(r, 1);
	}
}

static void test_residual(void **state)
{
	alone(0, 9);
	contribute(0, 10, 10);
	contribute(1, 0, 10);
	result(10, 3);
	assert_true(v.right == 11 && !v.wrong);
}

static void test_restart(void **state)
{
	alone(0, 999);
	contribute(0, 1000, 1000);
	contribute(1, 700, 1000);
	result(1000, 3);
	assert_true(v.right == 1001 && !v.wrong);
}

static void test_no_restarts(void **state)
{
	v.restarts = false;
	alone(0, 9);
	contribute(0, 10, 10);
	contribute(1, 5, 10);
	result(10, 3);
	/* not wrong: nobody has said that there were none */
	assert_true(v.right == 10 && !v.wrong && v.unknown == 1);
	assert_non_null(strstr(v.what, "right if workers were restarted, which --restarts accepts: round 10"));
}

static void test_twice(void **state)
{
	alone(0, 9);
	contribute(0, 10, 10);
	contribute(1, 0, 10);
	result(10, 3);
	/* it has not noticed that it was counted */
	contribute(0, 11, 11);
	contribute(1, 0, 11);
	result(11, 3);
	assert_int_equal(v.wrong, 1);
}

static void test_two(void **state)
{
	alone(0, 9);
	contribute(0, 10, 10);
	contribute(1, 5, 10);
	contribute(2, 7, 10);
	result(10, 7);
	assert_true(v.right == 11 && !v.wrong);
}

/* Workers 1 and 2 are killed in round 10, which all are counted in, and produce 9 and 10 again. */
static void two_in_lockstep(void)
{
	for (uint32_t r = 0; r < 10; r++) {
		for (unsigned int w = 0; w < 3; w++)
			contribute(w, r, r);
		result(r, 7);
	}
	contribute(0, 10, 10);
	contribute(1, 9, 10);
	contribute(2, 8, 10);
}

static void test_lockstep(void **state)
{
	two_in_lockstep();
	result(10, 7);
	assert_true(v.right == 11 && !v.wrong);
}

static void test_lockstep_strict(void **state)
{
	v.restarts = false;
	two_in_lockstep();
	result(10, 7);
	assert_true(v.right == 10 && !v.wrong && v.unknown == 1);
	/* the next ones are on record again */
	for (unsigned int w = 0; w < 3; w++)
		contribute(w, 11, 11);
	result(11, 7);
	assert_true(v.right == 11 && !v.wrong && v.unknown == 1);
}

static void test_planted(void **state)
{
	for (int strict = 0; strict < 2; strict++) {
		for (unsigned int i = 0; i < N; i += 5) {
			end(state);
			begin(state);
			v.restarts = !strict;
			two_in_lockstep();
			sum[i]++;
			result(10, 7);
			assert_true(v.right == 10 && v.wrong == 1);
		}
	}
}

/* More histories than can be compared: what they would explain is not called wrong. */
static void test_many(void **state)
{
	alone(0, 3000);
	contribute(0, 3001, 3001);
	contribute(1, 1000, 3001);
	contribute(2, 5, 3001);
	result(3001, 7);
	assert_true(!v.wrong && v.right + v.unknown == 3002);
}

static void test_sentence(void **state)
{
	char want[64];
	int64_t n = 0;

	alone(0, 9);
	sum[0] = 12345;
	for (uint32_t r = 0; r <= 10; r++)
		n += verify_fresh(&v, 1, r, 0);
	snprintf(want, sizeof(want), "expected %lld,", (long long)n);
	result(10, 2);
	assert_int_equal(v.wrong, 1);
	assert_non_null(strstr(v.what, "round 10 segment 0 element 0: mask 0x2"));
	assert_non_null(strstr(v.what, want));
}

/* --- float32: in jobs of int32, of int16 and of floats ------------------------------------------ */

static const struct wire {
	enum saina_type type;
	enum contents contents;
} wires[] = {
	{ SAINA_INT32, CONTENTS_WHOLE }, { SAINA_INT32, CONTENTS_JUMP }, { SAINA_INT32, CONTENTS_LARGE },
	{ SAINA_INT16, CONTENTS_JUMP }, { SAINA_FLOAT32, CONTENTS_RANDOM }, { SAINA_FLOAT32, CONTENTS_WILD },
	{ SAINA_BFLOAT16, CONTENTS_WILD },
};

static double total[N];
static float kept[3][N];	/* bfloat16: what each worker has rounded off */

static float bfloat16(float f)
{
	uint32_t u;

	memcpy(&u, &f, 4);
	u = (u + 0x7fff + (u >> 16 & 1)) & 0xffff0000;
	memcpy(&f, &u, 4);
	return f;
}

static void begin_float(void **state, const struct wire *as, bool restarts)
{
	end(state);
	memset(total, 0, sizeof(total));
	memset(kept, 0, sizeof(kept));
	v = (struct verify){
		.type = SAINA_FLOAT32, .wire = as->type, .contents = as->contents, .seed = 7, .workers = 3, .me = 0,
		.segments = 1, .payload = N, .restarts = restarts,
	};
	assert_int_equal(verify_init(&v, 0), 0);
}

/* Worker @w contributes what it has produced in the rounds @from to @to, of which nothing was counted. */
static void contribute_float(unsigned int w, uint32_t from, uint32_t to)
{
	for (unsigned int i = 0; i < N; i++) {
		float sent = kept[w][i], whole;

		for (uint32_t r = from; r <= to; r++) {
			struct verify as = v;
			float fresh[N];

			as.me = w;
			verify_fill(&as, r, 0, fresh, N);
			sent += fresh[i];
		}
		whole = sent;
		if (v.wire == SAINA_BFLOAT16)
			sent = bfloat16(whole);
		kept[w][i] = whole - sent;
		total[i] += sent;
	}
}

/* @lie: how wrong the first element is; what is on record has up to 2^31 */
static void result_float(uint32_t round, uint64_t mask, float lie)
{
	struct saina_segment g = {
		.round = round, .mask = mask, .contributors = __builtin_popcountll(mask), .exponent = 149,
	};
	float out[N];

	for (unsigned int i = 0; i < N; i++)
		out[i] = v.wire == SAINA_BFLOAT16 ? bfloat16((float)total[i]) / g.contributors :
						    (float)(total[i] / g.contributors);
	out[0] += lie;
	verify_segment(&v, 0, &g, out, N);
	memset(total, 0, sizeof(total));
}

/* Worker 0 is alone until worker 1, which was restarted in round 7, is counted in round 8. */
static void restarted(void **state, const struct wire *as, bool restarts, float lie)
{
	begin_float(state, as, restarts);
	for (uint32_t r = 0; r < 8; r++) {
		contribute_float(0, r, r);
		result_float(r, 1, 0);
	}
	assert_true(!v.wrong && !v.unknown);
	contribute_float(0, 8, 8);
	contribute_float(1, 7, 8);
	result_float(8, 3, lie);
}

static void test_float_restart(void **state)
{
	for (size_t i = 0; i < sizeof(wires) / sizeof(*wires); i++) {
		restarted(state, &wires[i], true, 0);
		/* what it keeps since then is on record */
		for (uint32_t r = 9; r < 14; r++) {
			contribute_float(0, r, r);
			contribute_float(1, r, r);
			result_float(r, 3, 0);
		}
		assert_true(!v.wrong && !v.unknown);
		restarted(state, &wires[i], false, 0);
		assert_true(!v.wrong && v.unknown == 1);
		assert_non_null(strstr(v.what, "right if workers were restarted, which --restarts accepts: round 8"));
	}
}

static void test_float_planted(void **state)
{
	for (size_t i = 0; i < sizeof(wires) / sizeof(*wires); i++) {
		for (int restarts = 0; restarts < 2; restarts++) {
			restarted(state, &wires[i], restarts, 0x1p31f);
			assert_true(v.wrong == 1 && !v.unknown);
		}
	}
}

static void test_float_two(void **state)
{
	for (size_t i = 0; i < sizeof(wires) / sizeof(*wires); i++) {
		restarted(state, &wires[i], true, 0);
		contribute_float(0, 9, 9);
		memset(&kept[1], 0, 2 * sizeof(kept[1]));
		contribute_float(1, 8, 9);
		contribute_float(2, 6, 9);
		result_float(9, 7, 0);
		assert_true(!v.wrong && !v.unknown);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement_with("verify: what was not counted is in the next contribution", test_residual, begin, end),
		statement_with("verify: a worker that restarted may be counted hundreds of rounds later", test_restart,
			       begin, end),
		statement_with("verify: without --restarts another history than that on record is right for nobody, and not wrong", test_no_restarts, begin, end),
		statement_with("verify: what was counted and comes again is wrong, also where workers restart", test_twice,
			       begin, end),
		statement_with("verify: two workers may have restarted in one round", test_two, begin, end),
		statement_with("verify: two workers that restarted produce rounds again that all were counted in", test_lockstep, begin, end),
		statement_with("verify: .. without --restarts that is neither right nor wrong", test_lockstep_strict, begin, end),
		statement_with("verify: a sum with one element changed is wrong, with and without --restarts", test_planted, begin, end),
		statement_with("verify: more histories than can be compared: not wrong", test_many, begin, end),
		statement_with("verify: the sentence about a wrong sum says what the record asks for", test_sentence, begin, end),
		statement_with("verify: float32: a worker that was restarted has less to contribute than is on record", test_float_restart, begin, end),
		statement_with("verify: float32: two workers may have restarted in one round, one of them after it was counted", test_float_two, begin, end),
		statement_with("verify: float32: a sum with one element changed is wrong, with and without --restarts", test_float_planted, begin, end),
	};

	return cmocka_run_group_tests_name("verify", tests, NULL, NULL);
}
