// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Policy strings: canonical form, refusals, changes of a job's policy, and random strings.
 */
#include "jobcore_owner.h"

static void policy_change(void **state)
{
	struct owner *o = *state;
	const struct saina_job *job = add(o, "a", 8, "fastest:k=6");
	int published = o->published;

	assert_int_equal(set_policy(o, job, "fastest:k=6,late=residual"), 0);
	assert_int_equal(job->policy.seq, 1); /* the same in other words */
	assert_int_equal(o->published, published);
	assert_int_equal(set_policy(o, job, "sfcd"), 0);
	assert_int_equal(o->last.policy.seq, 2);
	assert_int_equal(o->last.policy.mode, SAINA_POLICY_SFCD);
	assert_refused(o, set_policy(o, job, "fastest:k=9"), -ERANGE, SAINA_A_JOB_POLICY);
	assert_int_equal(job->policy.seq, 2);
	/* eight rounds are kept */
	assert_int_equal(set_policy(o, job, "fastest:k=6,lead=6"), 0);
	assert_refused(o, set_policy(o, job, "fastest:k=6,lead=7"), -ERANGE, SAINA_A_JOB_POLICY);
	assert_non_null(strstr(o->err.text, "lead must be 1..6, or none"));
	assert_int_equal(job->policy.seq, 3);
	assert_int_equal(o->last.policy.lead, 6);
	assert_int_equal(set_policy(o, job, "fastest:k=6,lead=none"), 0);
	assert_int_equal(o->last.policy.lead, SAINA_LEAD_NONE);
}

static void policy_canonical(void **state)
{
	static const struct {
		const char *text, *canonical;
	} good[] = {
		{"bsp", "bsp"},
		{"fastest:k=1", "fastest:k=1"},
		{"fastest:k=64,late=residual", "fastest:k=64"},
		{"fastest:late=drop,k=6", "fastest:k=6,late=drop"},
		{"sfcd", "sfcd:k0=1,kmin=1,sth=0.5,cth=5,stride=32"},
		{"sfcd:k0=1,sth=0.5,cth=5", "sfcd:k0=1,kmin=1,sth=0.5,cth=5,stride=32"},
		{"sfcd:k0=2,kmin=2,kmax=8,sth=0.125,cth=k,stride=1,late=drop",
		 "sfcd:k0=2,kmin=2,kmax=8,sth=0.125,cth=k,stride=1,late=drop"},
		{"sfcd:parity", "sfcd:k0=1,kmin=1,sth=0.5,cth=5,stride=32,parity"},
		{"sfcd:sth=1", "sfcd:k0=1,kmin=1,sth=1,cth=5,stride=32"},
		{"sfcd:sth=0", "sfcd:k0=1,kmin=1,sth=0,cth=5,stride=32"},
		{"sfcd:sth=0.05,cth=65535", "sfcd:k0=1,kmin=1,sth=0.05,cth=65535,stride=32"},
		{"sfcd:cth=k,sth=0.500", "sfcd:k0=1,kmin=1,sth=0.5,cth=k,stride=32"},
		{"sfcd:k0=64,kmin=64,kmax=64,sth=0.999,cth=65535,stride=32,late=drop,parity",
		 "sfcd:k0=64,kmin=64,kmax=64,sth=0.999,cth=65535,stride=32,late=drop,parity"},
		{"sfcd:k0=2,down", "sfcd:k0=2,kmin=1,sth=0.5,cth=5,stride=32,down"},
		{"fastest:k=6,timeout=10ms", "fastest:k=6,timeout=10ms"},
		{"fastest:k=6,timeout=1500us,kmin=3,late=drop",
		 "fastest:k=6,timeout=1500us,kmin=3,late=drop"},
		{"timeout:10ms", "timeout:10ms,kmin=1"},
		{"timeout:10ms,kmin=4", "timeout:10ms,kmin=4"},
		{"timeout:kmin=4,timeout=2000ms", "timeout:2s,kmin=4"},
		{"external:k0=4", "external:k0=4"},
		{"fastest:lead=62,k=6", "fastest:k=6,lead=62"},
		{"fastest:k=6,lead=none", "fastest:k=6,lead=none"},
		{"sfcd:lead=1,down", "sfcd:k0=1,kmin=1,sth=0.5,cth=5,stride=32,lead=1,down"},
		{"timeout:10ms,lead=none", "timeout:10ms,kmin=1,lead=none"},
		{"external:k0=4,lead=6", "external:k0=4,lead=6"},
		{"coded:s=1,lead=2", "coded:s=1,lead=2"},
		{"coded:s=1", "coded:s=1"},
		{"coded:s=7", "coded:s=7"},
		{"ssp:0", "ssp:0"},
		{"ssp:w=10", "ssp:10"},
		{"ssp:65535", "ssp:65535"},
		{"asp", "asp"},
		{"grouped:g=4", "grouped:g=4"},
		{"grouped:groups=0+4/1+5/2+6/3+7", "grouped:g=4,groups=0+4/1+5/2+6/3+7"},
		{"grouped:groups=0-3/4-7", "grouped:g=2,groups=0-3/4-7"},
		{"grouped:groups=7/0-2+4-6/3", "grouped:g=3,groups=7/0-2+4-6/3"},
		{"grouped:groups=0,g=1", "grouped:g=1,groups=0"},
		{"grouped:groups=1+0", "grouped:g=1,groups=0-1"},
	};
	char text[SAINA_POLICY_TEXT_LEN];
	struct saina_policy_attrs asked;
	struct saina_core_err err;
	struct saina_policy p, q;
	unsigned int i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if (saina_policy_parse(good[i].text, 0, &p, &err))
			fail_msg("%s: %s", good[i].text, err.text);
		saina_policy_format(&p, text, sizeof(text));
		assert_string_equal(text, good[i].canonical);
		assert_int_equal(saina_policy_parse(text, 0, &q, NULL), 0);
		assert_memory_equal(&p, &q, sizeof(p));
		saina_policy_to_attrs(&p, &asked);
		saina_policy_read(&asked, &q);
		assert_memory_equal(&p, &q, sizeof(p));
		/* an attribute of ssp and asp, unknown to earlier versions */
		assert_int_equal(SAINA_HAS(&asked, SAINA_A_POLICY_WINDOW),
				 p.mode == SAINA_POLICY_SSP || p.mode == SAINA_POLICY_ASP);
	}
	assert_int_equal(saina_policy_parse("sfcd:sth=0.5,cth=5", 8, &p, NULL), 0);
	assert_int_equal(p.s_th, 500);
	assert_int_equal(p.c_th, 5);
	assert_int_equal(p.k_max, 0);
	assert_int_equal(p.late, SAINA_LATE_RESIDUAL);
}

static void policy_refusals(void **state)
{
	static const struct {
		const char *text, *names; /* words that the sentence must have */
	} bad[] = {
		{"", "known are bsp"},
		{"BSP", "'BSP'"},
		{"bsp:", "bsp takes no settings"},
		{"bsp:k=3", "bsp takes no settings"},
		{"asp:1", "asp takes no settings"},
		{"ssp", "ssp needs w, as in 'ssp:W'"},
		{"ssp:", "empty setting"},
		{"ssp:65536", "must be 0..65535"},
		{"ssp:-1", "must be 0..65535"},
		{"ssp:4294967295", "must be 0..65535"},
		{"ssp:w=2x", "must be 0..65535"},
		{"ssp:2,late=drop", "'late'"},
		{"fastest:k=3,lead=0", "'lead=0': must be 1..62 rounds"},
		{"fastest:k=3,lead=63", "'lead=63': must be 1..62 rounds"},
		{"fastest:k=3,lead=255", "'lead=255': must be 1..62 rounds"},
		{"fastest:k=3,lead=all", "or none"},
		{"fastest:k=none", "'k=none'"},
		{"ssp:2,lead=3", "'lead'"},
		{"grouped:g=2,lead=3", "'lead'"},
		{"bsp:lead=3", "bsp takes no settings"},
		{"fastest", "fastest needs k"},
		{"fastest:", "empty setting"},
		{"fastest:k", "'k'"},
		{"fastest:k=", "must be 1..8"},
		{"fastest:k=0", "must be 1..8"},
		{"fastest:k=9", "must be 1..8"},
		{"fastest:k=-1", "must be 1..8"},
		{"fastest:k=2x", "'k=2x'"},
		{"fastest:k= 2", "must be 1..8"},
		{"fastest:k=4294967298", "must be 1..8"},
		{"fastest:k=2,k=3", "'k' is given twice"},
		{"fastest:k=2,", "empty setting"},
		{"fastest:k=2,,late=drop", "empty setting"},
		{"fastest:k=2,late=fold", "residual or drop"},
		{"fastest:k=2,late", "'late'"},
		{"fastest:k=2,sth=0.5", "'sth'"},
		{"fastest:k=2,parity", "'parity'"},
		{"fastest:k=2:late=drop", "must be 1..8"},
		{"sfcd:k=3", "'k'"},
		{"sfcd:k0=0", "must be 1..8"},
		{"sfcd:kmin=9", "must be 1..8"},
		{"sfcd:kmax=0", "must be 1..8"},
		{"sfcd:k0=1,kmin=2", "below kmin=2"},
		{"sfcd:k0=5,kmax=4", "above kmax=4"},
		{"sfcd:sth=1.001", "0..1"},
		{"sfcd:sth=2", "0..1"},
		{"sfcd:sth=.5", "0..1"},
		{"sfcd:sth=0.", "0..1"},
		{"sfcd:sth=0.5555", "three decimals"},
		{"sfcd:sth=-0.5", "0..1"},
		{"sfcd:cth=0", "1..65535"},
		{"sfcd:cth=65536", "1..65535"},
		{"sfcd:cth=K", "1..65535"},
		{"sfcd:stride=3", "1, 2, 4"},
		{"sfcd:stride=128", "1, 2, 4"},
		{"sfcd:parity=1", "'parity'"},
		{"sfcd:parity,stride=16", "parity needs stride=32, not stride=16"},
		{"sfcd:parity,parity", "given twice"},
		{"timeout", "timeout needs timeout"},
		{"timeout:0", "must be 1ms..60s"},
		{"timeout:0ms", "must be 1ms..60s"},
		{"timeout:10", "must be 1ms..60s"},
		{"timeout:999us", "must be 1ms..60s"},
		{"timeout:61s", "must be 1ms..60s"},
		{"timeout:99999999s", "must be 1ms..60s"},
		{"timeout:10ms,kmin=0", "must be 1..8"},
		{"timeout:10ms,kmin=9", "must be 1..8"},
		{"timeout:10ms,k=2", "'k'"},
		{"timeout:10ms,20ms", "'20ms'"},
		{"fastest:k=6,timeout=0ms", "must be 1ms..60s"},
		{"fastest:k=6,kmin=3", "add one, as in timeout=10ms"},
		{"fastest:k=6,timeout=10ms,kmin=7", "above k=6"},
		{"external", "external needs k0"},
		{"external:k0=9", "must be 1..8"},
		{"coded", "coded needs s"},
		{"coded:s=0", "must be 1..7"},
		{"coded:s=8", "must be 1..7"},
		{"coded:s=2", "8 workers cannot be divided into groups of 3"},
		{"grouped", "grouped needs g, as in 'grouped:g=G'"},
		{"grouped:", "empty setting"},
		{"grouped:4", "'4'"},
		{"grouped:g=0", "must be 1..8"},
		{"grouped:g=9", "must be 1..8"},
		{"grouped:g=2,w=3", "takes g=, groups="},
		{"grouped:g=2,groups", "'groups'"},
		{"grouped:groups=", "must name each worker once"},
		{"grouped:groups=0-3/", "must name each worker once"},
		{"grouped:groups=0-3//4-7", "must name each worker once"},
		{"grouped:groups=0-3;4-7", "must name each worker once"},
		{"grouped:groups=3-0/4-7", "must name each worker once"},
		{"grouped:groups=0-64", "must name each worker once"},
		{"grouped:groups=0-3/3-7", "a worker is in two groups"},
		{"grouped:groups=0-7,groups=0-7", "given twice"},
		{"grouped:groups=0-2/4-7", "worker 3 is in none: each of 0..7 must be in one"},
		{"grouped:groups=0-3/4-8", "no worker 8: must be 0..7"},
		{"grouped:g=3,groups=0-3/4-7", "group 2 of g=3 has no worker"},
		{"grouped:groups=0-3/4-7,g=1", "worker 4 is in group 1: must be 0..0, of g=1"},
		{"sfcd:aVeryLongWordThatNobodyWouldEverTypeInEarnestButAFuzzerMight=1",
		 "takes k0="},
	};
	struct saina_core_err err;
	struct saina_policy p, untouched;
	unsigned int i;
	int ret;

	memset(&p, 0x5a, sizeof(p));
	untouched = p;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
				ret = saina_policy_parse(bad[i].text, 8, &p, &err);
		if (ret >= 0 || !strstr(err.text, bad[i].names))
			fail_msg("'%s': %d, '%s' lacks '%s'", bad[i].text, ret, err.text,
				 bad[i].names);
		assert_int_equal(err.attr, SAINA_A_JOB_POLICY);
		assert_true(strlen(err.text) < sizeof(err.text) - 1);
		assert_memory_equal(&p, &untouched, sizeof(p));
	}
}

/*
 * Random sequences of words of the grammar, and random bytes: nothing crashes, and what is accepted
 * is within bounds and survives formatting.
 */
static void policy_fuzz(void **state)
{
	static const char *const words[] = {
		"bsp",	    "fastest",	  "sfcd",   ":",       ",",	 "=",	   "k",
		"k0",	    "kmin",	  "kmax",   "sth",     "cth",	 "stride", "late",
		"residual", "drop",	  "parity", "0",       "1",	 "2",	   "5",
		"8",	    "0.5",	  "0.",	    "1.0",     "32",	 "64",	   "65536",
		"k=3",	    ",late=drop", "k0=2",   ",kmax=7", ",cth=k", "sfcd:",  "fastest:k=",
		"sfcd:k0=", ",sth=0.",	  "",	    "timeout", "timeout:", "10ms", "1500us",
		"2s",	    "external:k0=", "coded:", "s=1", ",timeout=5ms", ",down", "ssp", "ssp:", "asp", ",w=7",
		"grouped:g=", "grouped:groups=", ",groups=", "0-3", "/", "+", "4-7",
	};
	const unsigned int n = sizeof(words) / sizeof(words[0]);
	char text[400], again[SAINA_POLICY_TEXT_LEN];
	struct saina_policy p, q;
	struct saina_core_err err;
	int i, j, len, workers, accepted = 0;
	uint64_t seed = 1;

	for (i = 0; i < 300000; i++) {
		text[0] = 0;
		len = rng_next(&seed) % 8;
		for (j = 0; j < len; j++)
			strcat(text, words[rng_next(&seed) % n]);
		if (i % 7 == 0 && text[0])
			text[rng_next(&seed) % strlen(text)] = 1 + rng_next(&seed) % 255;
		workers = 1 + rng_next(&seed) % 64;
		if (saina_policy_parse(text, workers, &p, &err)) {
			assert_non_null(memchr(err.text, 0, sizeof(err.text)));
			assert_true(err.text[0]);
			continue;
		}
		accepted++;
		assert_non_null(saina_policy_row(p.mode));
		assert_in_range(p.late, SAINA_LATE_RESIDUAL, SAINA_LATE_DROP);
		assert_true(p.k <= workers && p.k_min <= workers && p.k_max <= workers);
		assert_true(p.mode == SAINA_POLICY_BSP || p.k || p.timeout_us || p.spread || p.mode == SAINA_POLICY_SSP || p.window == SAINA_WINDOW_NONE || p.groups);
		assert_true(p.groups <= workers && !p.groups == (p.mode != SAINA_POLICY_GROUPED));
		assert_true(p.s_th <= 1000);
		saina_policy_format(&p, again, sizeof(again));
		assert_true(strlen(again) < sizeof(again) - 1);
		assert_int_equal(saina_policy_parse(again, workers, &q, NULL), 0);
		assert_memory_equal(&p, &q, sizeof(p));
	}
	assert_true(accepted > 1000);
}

/* Structures that no text produces: fields of another mode, no mode, values out of range. */
static void policy_structures(void **state)
{
	static const struct {
		struct saina_policy p;
		const char *names;
	} bad[] = {
		{ { .late = SAINA_LATE_RESIDUAL }, "mode 0 is unknown" },
		{ { .mode = 200, .late = SAINA_LATE_RESIDUAL }, "mode 200 is unknown" },
		{ { .mode = SAINA_POLICY_BSP }, "that bsp does not have" },
		{ { .mode = SAINA_POLICY_BSP, .late = SAINA_LATE_RESIDUAL, .k = 3 },
		  "that bsp does not have" },
		{ { .mode = SAINA_POLICY_FASTEST, .late = SAINA_LATE_RESIDUAL }, "needs k" },
		{ { .mode = SAINA_POLICY_FASTEST, .late = SAINA_LATE_RESIDUAL, .k = 9 },
		  "'k=9': must be 1..8" },
		{ { .mode = SAINA_POLICY_FASTEST, .late = 3, .k = 2 }, "residual or drop" },
		{ { .mode = SAINA_POLICY_FASTEST, .late = 1, .k = 2, .stride = 32 },
		  "that fastest does not have" },
		{ { .mode = SAINA_POLICY_SFCD, .late = 1, .k = 2, .k_min = 1, .s_th = 1001,
		    .stride = 32 }, "'sth=1001/1000'" },
		{ { .mode = SAINA_POLICY_SFCD, .late = 1, .k = 2, .k_min = 1, .stride = 24 },
		  "'stride=24'" },
		{ { .mode = SAINA_POLICY_SFCD, .late = 1, .k = 2, .k_min = 1, .stride = 32,
		    .flags = 0x80 }, "that sfcd does not have" },
		{ { .mode = SAINA_POLICY_BSP, .late = SAINA_LATE_RESIDUAL, .window = 3 },
		  "that bsp does not have" },
		{ { .mode = SAINA_POLICY_SSP, .late = 1, .window = 65536 },
		  "'w=65536': must be 0..65535" },
		{ { .mode = SAINA_POLICY_SSP, .late = 1, .window = SAINA_WINDOW_NONE },
		  "ssp needs w, as in 'ssp:W'" },
		{ { .mode = SAINA_POLICY_BSP, .late = 1, .lead = 3 }, "that bsp does not have" },
		{ { .mode = SAINA_POLICY_FASTEST, .late = 1, .k = 2, .lead = 63 },
		  "'lead=63': must be 1..62 rounds" },
		{ { .mode = SAINA_POLICY_ASP, .late = 1, .window = 5 }, "that asp does not have" },
		{ { .mode = SAINA_POLICY_ASP, .late = 1, .window = SAINA_WINDOW_NONE, .groups = 2 },
		  "that asp does not have" },
		{ { .mode = SAINA_POLICY_BSP, .late = 1, .group = { 1 } }, "that bsp does not have" },
		{ { .mode = SAINA_POLICY_GROUPED, .late = 1, .groups = 9 }, "'g=9': must be 1..8" },
		{ { .mode = SAINA_POLICY_GROUPED, .late = 1, .groups = 2, .window = 3 },
		  "that grouped does not have" },
		{ { .mode = SAINA_POLICY_GROUPED, .late = 1, .groups = 2, .group = { 0, 1, 2 } },
		  "worker 2 is in group 2: must be 0..1" },
	};
	struct saina_policy p, q;
	struct saina_core_err err;
	int i, accepted = 0;
	uint64_t seed = 2;
	char text[SAINA_POLICY_TEXT_LEN];

	for (i = 0; i < (int)(sizeof(bad) / sizeof(bad[0])); i++) {
		if (!saina_policy_check(&bad[i].p, 8, &err) || !strstr(err.text, bad[i].names))
			fail_msg("structure %d: '%s' lacks '%s'", i, err.text, bad[i].names);
		assert_int_equal(err.attr, SAINA_A_JOB_POLICY);
	}
	for (i = 0; i < 300000; i++) {
		saina_policy_preset(&saina_policy_rows[rng_next(&seed) % saina_policy_rows_n], &p);
		if (p.mode != SAINA_POLICY_BSP)
			p.k = rng_next(&seed) % 10;
		if (p.mode == SAINA_POLICY_TIMEOUT || (p.mode == SAINA_POLICY_FASTEST && rng_next(&seed) % 2))
			p.timeout_us = rng_next(&seed) % 90000000;
		if (p.mode == SAINA_POLICY_CODED)
			p.spread = rng_next(&seed) % 9;
		if (p.mode != SAINA_POLICY_BSP && p.mode < SAINA_POLICY_SSP && rng_next(&seed) % 2)
			p.lead = rng_next(&seed) % 2 ? rng_next(&seed) % 65 : SAINA_LEAD_NONE;
		if (p.mode == SAINA_POLICY_SSP)
			p.window = rng_next(&seed) % 70000;
		if (p.mode == SAINA_POLICY_GROUPED) {
			p.groups = rng_next(&seed) % 10;
			saina_policy_deal(&p);
			for (int w = 0; rng_next(&seed) % 2 && w < SAINA_WORKERS_MAX; w++)
				p.group[w] = w < 8 ? rng_next(&seed) % (p.groups + 1) : SAINA_GROUP_NONE;
		}
		if (rng_next(&seed) % 2)
			((unsigned char *)&p)[4 + rng_next(&seed) % (sizeof(p) - 4)] = rng_next(&seed);
		if (saina_policy_check(&p, 8, &err))
			continue;
		accepted++;
		saina_policy_format(&p, text, sizeof(text));
		assert_int_equal(saina_policy_parse(text, 8, &q, &err), 0);
		assert_true(saina_policy_same(&p, &q));
	}
	assert_true(accepted > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("policy: a changed policy gets the next sequence number", policy_change),
		TEST("policy: every accepted text has one canonical form", policy_canonical),
		TEST("policy: a wrong text is refused with the word at fault", policy_refusals),
		TEST("policy: random texts are refused or survive formatting", policy_fuzz),
		TEST("policy: structures that no text gives are refused", policy_structures),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
