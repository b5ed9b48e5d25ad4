// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * float32 through the integers of rounds, against sums in float64: libsaina's machines and the
 * oracle as their switch, in steps of a millisecond of a clock of the test's own.
 *
 * What a worker owes is what it produced and was not counted with.  A result must be the mean of what the
 * workers in its mask owe, within a share of the largest of that in the segment.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "reduce/round.h"
#include "lib/rng.h"
#include "lib/tap.h"
#include "lib_switch.h"

#define PAYLOAD	 64
#define SEGMENTS 2
#define ELEMENTS (PAYLOAD + 37)	/* the last segment is padded */
#define MSGLEN	 (sizeof(struct saina_hdr) + 4 * PAYLOAD)
#define WORKERS	 16
#define EXACT	 1e-6
#define LEAST	 0x1p-149 /* float32 */

struct member {
	struct saina_job job;
	struct saina_round r;
	struct saina_req req;
	float buf[ELEMENTS];
	float fresh[ELEMENTS];
	double owed[ELEMENTS], peak[SEGMENTS];
};

static struct {
	struct lib_switch sw;
	struct member m[WORKERS];
	unsigned int n;
	uint64_t now, rng;
	double loss, worst;	/* .. distance from the true sum, as a share of the largest owed */
	uint64_t nan, late;
	char error[200];
} s;

#define broken(...) \
	do { \
		if (!s.error[0]) \
			snprintf(s.error, sizeof(s.error), __VA_ARGS__); \
	} while (0)

static uint64_t draw(uint64_t below)
{
	return rng_next_below(&s.rng, below);
}

static bool chance(double p)
{
	return draw(1u << 30) < p * (1u << 30);
}

static void begin(unsigned int n, unsigned int k, double loss)
{
	memset(&s, 0, sizeof(s));
	s.n = n;
	s.loss = loss;
	s.rng = n + k * 64 + 1;
	s.now = 1000 * MSEC;
	switch_init(&s.sw, 7, PAYLOAD, ELEMENTS, 8, 4);
	switch_policy(&s.sw, k, false);
	for (unsigned int i = 0; i < n; i++) {
		struct member *m = &s.m[i];

		m->job = (struct saina_job){
			.id = 7, .session = 100 + i, .worker = i, .workers = n, .elem = SAINA_ELEM_INT32,
			.exponent0 = 20 - SAINA_EXPONENT_BIAS, .elements = ELEMENTS, .segments = SEGMENTS, .payload = PAYLOAD,
			.pool = 8, .ring = 4, .wire = 4 * PAYLOAD, .msglen = MSGLEN, .per_batch = 2,
			.heartbeat_ms = 500, .dead_ms = 5000,
		};
		switch_bind(&s.sw, i, m->job.session);
		if (saina_round_init(&m->r, &m->job, 2, 0, 0))
			abort();
		saina_flow_begin(&m->r.flow, 0, true, s.now);
	}
	s.sw.conf.state = SAINA_JOB_RUNNING;
	switch_publish(&s.sw);
}

static bool end(void)
{
	for (unsigned int i = 0; i < s.n; i++)
		saina_round_exit(&s.m[i].r);
	switch_exit(&s.sw);
	if (s.error[0])
		tap_note("%s", s.error);
	return !s.error[0];
}

static void turn(unsigned int w)
{
	struct member *m = &s.m[w];
	uint8_t buf[SAINA_ASK_SEGMENTS * MSGLEN];
	struct saina_hdr *answer;
	uint64_t when, to;
	unsigned int n;
	size_t len;

	for (int left = 16; left && (n = saina_round_output(&m->r, s.now, buf, &len, &when)); left--)
		for (unsigned int i = 0; i < n; i++) {
			if (chance(s.loss) || !switch_message(&s.sw, w, buf + i * len, len, &to, (void **)&answer))
				continue;
			for (unsigned int j = 0; j < s.n; j++)
				if (to >> j & 1 && !chance(s.loss))
					saina_round_input(&s.m[j].r, answer, s.now);
		}
}

static void start(unsigned int w)
{
	struct member *m = &s.m[w];

	memcpy(m->buf, m->fresh, sizeof(m->buf));
	memset(&m->req, 0, sizeof(m->req));
	m->req.t = (struct saina_tensor){ .buf = m->buf, .n = ELEMENTS, .type = SAINA_FLOAT32 };
	m->req.op = SAINA_MEAN;
	saina_round_start(&m->r, &m->req, s.now);
}

/* Until those of the first @n workers of @order have their results. */
static void run(const unsigned int *order, unsigned int n)
{
	bool all = false;

	for (int ms = 0; ms < 60000 && !all; ms++, s.now += MSEC) {
		all = true;
		for (unsigned int i = 0; i < n; i++) {
			turn(order[i]);
			all &= s.m[order[i]].req.finished;
		}
	}
	if (!all)
		broken("a round does not end");
}

/* What worker @w owes of @segment after what it has produced now, in @to; false if it is not finite. */
static bool owes(unsigned int w, unsigned int segment, double *to, double *largest)
{
	struct member *m = &s.m[w];
	unsigned int first = segment * PAYLOAD;

	for (unsigned int j = first; j < ELEMENTS && j < first + PAYLOAD; j++) {
		if (!isfinite(m->fresh[j]))
			return false;
		to[j - first] = m->owed[j] + m->fresh[j];
		m->peak[segment] = fmax(m->peak[segment], fmax(fabs(to[j - first]), fabsf(m->fresh[j])));
	}
	*largest = m->peak[segment];
	return true;
}

/* All workers have the same result of @segment, and it is the right one.  Settles what they owe. */
static void check(unsigned int segment, double share)
{
	const struct saina_segment_state *p = &s.m[0].r.grad.state[segment];
	unsigned int first = segment * PAYLOAD, count = segment == SEGMENTS - 1 ? ELEMENTS - first : PAYLOAD;
	double sum[PAYLOAD] = { 0 }, own[PAYLOAD], largest = 0, l;
	uint32_t round = s.m[0].r.flow.round;
	bool nan = false;

	for (unsigned int w = 0; w < s.n; w++) {
		if (s.m[w].r.grad.state[segment].last.mask != p->last.mask ||
		    memcmp(s.m[w].buf + first, s.m[0].buf + first, 4 * count))
			broken("round %u: worker %u has another result", round, w);
		if (p->last.mask >> w & 1)
			nan |= !owes(w, segment, own, &l);
	}
	for (unsigned int w = 0; w < s.n; w++) {
		bool in = p->last.mask >> w & 1, finite = owes(w, segment, own, &l);

		s.late += !in;
		if (!finite || (in && nan))
			continue;
		for (unsigned int j = 0; j < count; j++) {
			sum[j] += in ? own[j] : 0;
			s.m[w].owed[first + j] = in ? 0 : own[j];
		}
		if (in) {
			largest = fmax(largest, l);
			s.m[w].peak[segment] = 0;
		}
	}
	s.nan += nan;
	for (unsigned int j = 0; j < count; j++) {
		double got = (double)s.m[0].buf[first + j] * p->last.contributors;

		if (nan && isnan(got))
			continue;
		if (largest > 0 && fabs(got - sum[j]) / largest > s.worst)
			s.worst = fabs(got - sum[j]) / largest;
		/* half the least float32 is rounded off of a mean that is a denormal */
		if (nan || !(fabs(got - sum[j]) <= share * largest + LEAST / 2 * p->last.contributors))
			broken("round %u segment %u element %u: %.9g instead of %s%.9g, largest %g, exponent %d, mask %#llx",
			       round, segment, j, got, nan ? "NaN or " : "", sum[j], largest, p->last.exponent,
			       (unsigned long long)p->last.mask);
	}
}

/* The residuals are what is owed. */
static void check_residuals(void)
{
	for (unsigned int w = 0; w < s.n; w++)
		for (unsigned int j = 0; j < ELEMENTS; j++) {
			const struct member *m = &s.m[w];
			float res = m->r.grad.state[j / PAYLOAD].residual ?
					    ((const float *)m->r.grad.residual)[j] : 0;

			if (!(fabs(res - m->owed[j]) <= EXACT * m->peak[j / PAYLOAD]))
				broken("round %u: worker %u element %u keeps %g instead of %g", m->r.flow.round,
				       w, j, res, m->owed[j]);
		}
}

/* A round in which workers send in the order @order, those from @n on when it is over for the others. */
static void play_in(const unsigned int *order, unsigned int n, double share)
{
	for (unsigned int i = 0; i < n; i++)
		start(order[i]);
	run(order, n);
	for (unsigned int i = n; i < s.n; i++)
		start(order[i]);
	run(order, s.n);
	for (unsigned int i = 0; i < SEGMENTS && !s.error[0]; i++)
		check(i, share);
	check_residuals();
	for (unsigned int w = 0; w < s.n; w++) {
		saina_round_forget(&s.m[w].r, &s.m[w].req);
		saina_flow_round(&s.m[w].r.flow, s.m[w].r.flow.round + 1);
	}
}

/* All others are in time, in a random order; @late of them are not. */
static void play(unsigned int late, double share)
{
	unsigned int order[WORKERS];

	for (unsigned int i = 0; i < s.n; i++) {
		unsigned int j = draw(i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	play_in(order, s.n - late, share);
}

/* --- the rows of the table ------------------------------------------------------------------ */

typedef float (*fill)(unsigned int w, uint32_t round, unsigned int j);

static float nan_once(unsigned int w, uint32_t round, unsigned int j)
{
	static const float special[] = { NAN, INFINITY, -INFINITY };
	static const unsigned int place[] = { 0, 17, PAYLOAD - 1, PAYLOAD, ELEMENTS - 1 };

	if (w == 1 && round % 2 && j == place[round / 2 % 5])
		return special[round % 3];
	return w + 1.0f + j / 128.0f;
}

static float two_infinities(unsigned int w, uint32_t round, unsigned int j)
{
	return round == 2 && j == 5 && w < 2 ? (w ? INFINITY : -INFINITY) : 1.0f;
}

static float thousand(unsigned int w, uint32_t round, unsigned int j)
{
	return 1000.0f;
}

static float zeros_first(unsigned int w, uint32_t round, unsigned int j)
{
	return round < 10 ? (j & 1 ? -0.0f : 0.0f) : 1.0f;
}

static float zeros_for_long(unsigned int w, uint32_t round, unsigned int j)
{
	return round < 30 ? 0.0f : 1.0f;
}

static float spike_of(float large, unsigned int w, uint32_t round, unsigned int j)
{
	return round == 1 && w == 0 && j == 3 ? large : 1e-3f * (1 + j % 7);
}

static float spike_1e6(unsigned int w, uint32_t round, unsigned int j)
{
	return spike_of(1e6f, w, round, j);
}

static float spike_1e12(unsigned int w, uint32_t round, unsigned int j)
{
	return spike_of(1e12f, w, round, j);
}

static float spike_3e38(unsigned int w, uint32_t round, unsigned int j)
{
	return spike_of(3e38f, w, round, j);
}

/* After its spike worker 0 sends zeros: they must not keep the block coarse. */
static float spike_then_zeros(unsigned int w, uint32_t round, unsigned int j)
{
	return round > 1 && w == 0 ? 0.0f : spike_of(1e12f, w, round, j);
}

/* A head that is not used for 40 steps. */
static float head_unused(unsigned int w, uint32_t round, unsigned int j)
{
	return j >= PAYLOAD && round < 40 ? 0.0f : (w + 1) * (j % 9 - 4.0f);
}

static float loss_scaled(unsigned int w, uint32_t round, unsigned int j)
{
	return 0x1p22f * (1 + (w * 31 + round * 17 + j) % 100) / 300.0f;
}

static float small_whole(unsigned int w, uint32_t round, unsigned int j)
{
	return (w * 7 + round * 5 + j) % 116;
}

/* From 2^-86 (1e-26) in steps of 1000 down to the least float32; some are zeros, of both signs. */
static float tiny(unsigned int w, uint32_t round, unsigned int j)
{
	float x = ldexpf(1 + (w * 31 + j * 7) % 64 / 64.0f, round < 7 ? -86 - 10 * (int)round : -149);

	return j % 11 == 0 ? -0.0f : j % 2 ? -x : x;
}

static float denormal(unsigned int w, uint32_t round, unsigned int j)
{
	return round & 1 ? (float)LEAST * (1 + j) : 1e-26f * (1 + j % 3);
}

/* One worker's magnitudes are the largest there are, the others' the smallest. */
static float far_apart(unsigned int w, uint32_t round, unsigned int j)
{
	return w == round % 2 ? 1e37f * (1 + j % 3) : 1.2e-38f * (1 + j);
}

static const struct row {
	const char *what;
	fill fill;
	unsigned int rounds, nan;	/* segments that are NaN where all workers are counted */
	bool exact;			/* to the bit */
} rows[] = {
	{ "one worker's NaN, Inf or -Inf, in the first, last or a padded segment's element", nan_once, 20, 10, false },
	{ "-Inf and Inf of two workers", two_infinities, 4, 1, false },
	{ "1000 from the first round on", thousand, 4, 0, true },
	{ "zeros for 10 rounds, then 1", zeros_first, 13, 0, true },
	{ "zeros for 30 rounds, then 1", zeros_for_long, 33, 0, true },
	{ "a spike of 1e6, then 1e-3", spike_1e6, 6, 0, false },
	{ "a spike of 1e12, then 1e-3", spike_1e12, 6, 0, false },
	{ "a spike of 3e38, then 1e-3", spike_3e38, 6, 0, false },
	{ "a spike of 1e12, then zeros of this worker and 1e-3 of others", spike_then_zeros, 6, 0, false },
	{ "a segment that is zeros for 40 rounds", head_unused, 43, 0, true },
	{ "gradients of a loss scaled by 2^22, first round", loss_scaled, 3, 0, false },
	{ "sums of small whole numbers", small_whole, 4, 0, true },
	{ "magnitudes of 1e-26 down to the least denormal, and negative zeros", tiny, 9, 0, false },
	{ "magnitudes of 1e-26 and denormals in turn", denormal, 6, 0, false },
	{ "1e37 of one worker, 1.2e-38 of the others", far_apart, 6, 0, false },
};

static bool play_row(const struct row *row, unsigned int n, unsigned int k, double loss)
{
	bool ok, all = k == n && !loss;

	begin(n, k, loss);
	for (uint32_t r = 0; r < row->rounds && !s.error[0]; r++) {
		for (unsigned int w = 0; w < n; w++)
			for (unsigned int j = 0; j < ELEMENTS; j++)
				s.m[w].fresh[j] = row->fill(w, r, j);
		play(n - k, row->exact && all ? 0x1p-23 : EXACT);
	}
	if (all && s.nan != row->nan)
		broken("%llu segments are NaN instead of %u", (unsigned long long)s.nan, row->nan);
	if (!all && k < n && !s.late)
		broken("nobody was late");
	ok = end();
	if (!ok)
		tap_note("%u workers, k %u, loss %g", n, k, loss);
	return ok;
}

static void test_rows(void)
{
	static const unsigned int crowd[] = { 2, 4, 16 };

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		bool ok = true;

		for (unsigned int c = 0; c < 3; c++) {
			ok &= play_row(&rows[i], crowd[c], crowd[c], 0);
			ok &= play_row(&rows[i], crowd[c], crowd[c], 0.2);
			ok &= play_row(&rows[i], crowd[c], (crowd[c] + 1) / 2, 0);
			ok &= play_row(&rows[i], crowd[c], (crowd[c] + 1) / 2, 0.2);
		}
		tap_ok(ok, "numbers: %s: as float64 would give, for 2, 4 and 16 workers, with losses and late workers",
		       rows[i].what);
	}
}

/* --- at random ------------------------------------------------------------------------------ */

/* Magnitudes of a segment of a worker are 2^-30 to 2^30 times what is drawn; some are zeros. */
static void jump(unsigned int w)
{
	for (unsigned int j = 0; j < ELEMENTS; j++) {
		static float scale;

		if (j % PAYLOAD == 0)
			scale = draw(8) ? ldexpf(1, (int)draw(61) - 30) : 0;
		s.m[w].fresh[j] = (int32_t)draw(1ull << 32) * 0x1p-31f * scale;
	}
}

static void test_random(unsigned int rounds)
{
	static const unsigned int crowd[] = { 2, 4, 16 };
	bool ok = true;

	for (unsigned int c = 0; c < 3; c++) {
		begin(crowd[c], crowd[c] - crowd[c] / 4, 0);
		for (unsigned int r = 0; r < rounds && !s.error[0]; r++) {
			for (unsigned int w = 0; w < s.n; w++)
				jump(w);
			play(draw(2) ? 0 : s.n / 4, EXACT);
		}
		tap_note("%u workers: at most %.3g of the largest", crowd[c], s.worst);
		ok &= end();
	}
	tap_ok(ok, "numbers: %u rounds whose magnitudes jump by up to 2^60 are within 1e-6 of float64", rounds);
}

/*
 * One worker's contribution is so large that the others' are nearly lost, in all rounds; it is the
 * first or the last in each.  What is rounded off is kept by nobody and goes nowhere else.
 */
static bool coarse_contributor(bool first)
{
	double exact[ELEMENTS] = { 0 }, got[ELEMENTS] = { 0 }, unit = 0;
	unsigned int order[4] = { 0, 1, 2, 3 };

	if (!first)
		order[0] = 3, order[3] = 0;
	begin(4, 4, 0);
	for (uint32_t r = 0; r < 200 && !s.error[0]; r++) {
		for (unsigned int w = 0; w < 4; w++)
			for (unsigned int j = 0; j < ELEMENTS; j++) {
				s.m[w].fresh[j] = w ? 0.3f * w + j * 1e-3f : j % PAYLOAD ? 0 : 0x1p29f;
				exact[j] += s.m[w].fresh[j];
			}
		play_in(order, 4, EXACT);
		for (unsigned int j = 0; j < ELEMENTS; j++)
			got[j] += 4.0 * s.m[0].buf[j];
		unit += ldexp(1, -s.m[0].r.grad.state[0].last.exponent);
		for (unsigned int j = 0; j < ELEMENTS; j++)
			/* a float32 mean rounds as well */
			if (fabs(got[j] - exact[j]) > 4 * .5 * unit + exact[j] * 0x1p-23)
				broken("after %u rounds element %u is %g instead of %g", r + 1, j, got[j], exact[j]);
		for (unsigned int w = 0; w < 4; w++)
			if (s.m[w].r.grad.state[0].residual || s.m[w].r.grad.state[1].residual)
				broken("worker %u keeps a residual", w);
	}
	return end();
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 3000;

	test_rows();
	tap_ok(coarse_contributor(true), "numbers: a coarse contributor that is always first: no total drifts in 200 rounds");
	tap_ok(coarse_contributor(false), "numbers: a coarse contributor that is always last: no total drifts in 200 rounds");
	test_random(rounds);
	return tap_done();
}
