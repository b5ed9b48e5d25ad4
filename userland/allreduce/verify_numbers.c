// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * float32 through a job of int32, against float64.  Every worker simulates all workers, as in
 * verify_float.c: what each has produced and was not counted with is owed, and a result is the mean of
 * what the workers in its mask owed, within NEAR of the largest of that in the segment; NaN if one of
 * them produced a NaN or an infinity, of which nothing is owed.  A residual is float32, so what is
 * owed for many rounds is further off: by half a unit of a float's last place for each of them.  Of
 * small whole numbers (CONTENTS_WHOLE) nothing is rounded off: their sums are exact.
 *
 * In a job of int16 a worker rounds to the unit of its exponent, which is that of the result or finer,
 * and owes the rest, at most half a unit; slots may round another half of it off.  The unit is at most
 * WIDE / L of the largest magnitude, L being the largest integer that a worker sends: nothing else
 * than the exponent can make these bounds wide.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "contents.h"
#include "verify_numbers.h"
#include "verify_restart.h"

#define NEAR 1e-6
#define HALF 0x1p-24
#define FINEST 149 /* exponent of zeros */
#define WIDE 4 /* as the largest has more than L / 2 units, and exponents may be 1 too coarse */

/**
 * struct verify_owed - of one worker in one segment
 * @peak: the largest magnitude that was ever in it since it was counted last
 * @rounds: since then
 * @rest: int16: bound of what was rounded off of the last one, which is owed, too
 */
struct verify_owed {
	double peak, rounds, rest;
	double v[];	/* [payload] */
};

static double near(const struct verify_owed *o)
{
	return (NEAR + o->rounds * HALF) * (o->peak + o->rest) + o->rest;
}

/* The largest integer that a worker sends in a job of int16. */
static double largest(const struct verify *v)
{
	return 32767 / v->workers - 1;
}

/* Larger magnitudes than int16 can have with the coarsest exponent count as infinite. */
static bool is_finite(const struct verify *v, float f)
{
	return v->wire == SAINA_INT16 ? fabsf(f) <= ldexp(largest(v), 104) : isfinite(f);
}

static struct verify_owed *owed(const struct verify *v, unsigned int w, uint32_t segment)
{
	size_t size = sizeof(struct verify_owed) + v->payload * sizeof(double);

	return (void *)((char *)v->owed + ((size_t)w * v->segments + segment) * size);
}

int verify_numbers_init(struct verify *v, uint32_t first_round)
{
	v->owed = calloc((size_t)v->workers * v->segments,
			 sizeof(struct verify_owed) + v->payload * sizeof(double));
	v->sums = calloc((size_t)v->workers * v->payload, sizeof(*v->sums));
	/* what others owe is not known to one who comes later */
	v->lost = first_round != 0;
	return v->owed && v->sums ? 0 : -ENOMEM;
}

static uint32_t mix(const struct verify *v, unsigned int w, uint32_t r, uint64_t i)
{
	struct verify as = { .type = SAINA_INT32, .contents = CONTENTS_RANDOM, .seed = v->seed };

	return verify_fresh(&as, w, r, i);
}

/* In round 8 n + 3 worker n (modulo their number) has one large value in each segment. */
static float spike(const struct verify *v, unsigned int w, uint32_t r, uint64_t i)
{
	static const float large[] = { 1e6f, -1e12f, 3e38f };

	if (r % 8 == 3 && w == r / 8 % v->workers && i % v->payload == mix(v, 64, r, 0) % v->payload)
		return large[r / 8 % 3];
	return 1e-3f * (1 + i % 7);
}

/* Ten rounds of zeros, ten of ones; of odd workers, every third segment is zeros for ever. */
static float zeros(const struct verify *v, unsigned int w, uint32_t r, uint64_t i)
{
	if (w % 2 && i / v->payload % 3 == 2)
		return i % 2 ? 0.0f : -0.0f;
	return r / 10 % 2 ? 1.0f : 0.0f;
}

/* In odd rounds one worker has a NaN or an infinity in one element of half of the segments. */
static float not_finite(const struct verify *v, unsigned int w, uint32_t r, uint64_t i)
{
	static const float special[] = { NAN, INFINITY, -INFINITY };
	uint32_t x = mix(v, 65, r, i / v->payload);

	if (r % 2 && x & 1 && w == (x >> 1) % v->workers && i % v->payload == (x >> 8) % 64)
		return special[(x >> 16) % 3];
	return 1.0f + w + (i % 128) / 128.0f;
}

/* Magnitudes from 2^-30 to 2^30, for each worker, round and segment; some segments are zeros. */
static float jump(const struct verify *v, unsigned int w, uint32_t r, uint64_t i)
{
	uint32_t x = mix(v, w + 66, r, i / v->payload);

	return x % 8 ? ldexpf((int32_t)mix(v, w, r, i) * 0x1p-31f, (int)(x / 8 % 61) - 30) : 0.0f;
}

float verify_numbers_fresh(const struct verify *v, unsigned int w, uint32_t r, uint64_t i)
{
	switch (v->contents) {
	case CONTENTS_SPIKE:
		return spike(v, w, r, i);
	case CONTENTS_ZEROS:
		return zeros(v, w, r, i);
	case CONTENTS_NAN:
		return not_finite(v, w, r, i);
	case CONTENTS_LARGE:
		return 1000.0f * (1 + i % 4194304);
	case CONTENTS_JUMP:
		return jump(v, w, r, i);
	case CONTENTS_WHOLE:
		return (int)(mix(v, w, r, i) % 121) - 60;
	default:
		return verify_fresh(v, w, r, i) / 1024.0f;
	}
}

/* What worker @w owes in all, in @to; false if what it has produced now is not finite. */
static bool owes(const struct verify *v, unsigned int w, uint32_t segment, uint32_t r, uint32_t n,
		 double *to)
{
	struct verify_owed *o = owed(v, w, segment);
	double peak = o->peak;

	for (uint32_t j = 0; j < n; j++) {
		float f = verify_numbers_fresh(v, w, r, (uint64_t)segment * v->payload + j);

		if (!is_finite(v, f))
			return false;
		to[j] = o->v[j] + f;
		peak = fmax(peak, fmax(fabsf(f), fabs(to[j])));
	}
	o->peak = peak;
	return true;
}

static double *contribution(const struct verify *v, unsigned int w)
{
	return v->sums + (size_t)w * v->payload;
}

/*
 * How far the sum may be from the exact one; below 0: its exponent is too coarse.  @kept: workers
 * whose record goes on with this round.
 */
static double bound(const struct verify *v, uint32_t segment, const struct saina_segment *g, uint64_t kept)
{
	double unit = v->wire == SAINA_INT16 ? ldexp(1, -g->exponent) : 0, off = 0, rounded = 0, peak = 0;

	for (unsigned int w = 0; w < v->workers; w++) {
		struct verify_owed *o = owed(v, w, segment);

		if (!(kept >> w & 1))
			continue;
		o->rounds++;
		if (!(g->mask >> w & 1))
			continue;
		off = fmax(off, near(o) - o->rest);
		rounded += o->rest + unit;
		peak = fmax(peak, o->peak + o->rest);
	}
	return unit * largest(v) > WIDE * peak && g->exponent != FINEST ? -1 : off + rounded;
}

/* What is owed after the result. */
static void settle(const struct verify *v, uint32_t segment, const struct saina_segment *g, uint32_t n,
		   uint64_t kept)
{
	for (unsigned int w = 0; w < v->workers; w++) {
		struct verify_owed *o = owed(v, w, segment);
		bool in = g->mask >> w & 1;

		if (!in && g->flags & SAINA_SEGMENT_DROP_LATE) {
			memset(o->v, 0, n * sizeof(*o->v));
			o->rest = 0;
		} else if (kept >> w & 1) {
			for (uint32_t j = 0; j < n; j++)
				o->v[j] = in ? 0 : contribution(v, w)[j];
			if (in) {
				o->peak = o->rounds = 0;
				o->rest = v->wire == SAINA_INT16 ? ldexp(1, -g->exponent) / 2 : 0;
			}
		}
	}
}

static bool is_right(const struct verify *v, const struct saina_segment *g, double sum, float out,
		     double off, bool nan)
{
	if (nan)
		return isnan(out);
	/* too coarse an exponent makes the result wrong, whatever it is */
	if (v->contents == CONTENTS_WHOLE && off >= 0)
		return out == (float)(sum / g->contributors);
	return fabs((double)out * g->contributors - sum) <= off;
}

static double sent_since(const struct verify *v, unsigned int w, uint32_t since, uint32_t r, uint64_t i)
{
	double sum = 0;

	for (uint32_t q = since; q <= r; q++)
		sum += verify_numbers_fresh(v, w, q, i);
	return sum;
}

static bool is_near(const struct verify *v, const double *c, unsigned int n, float out, double off)
{
	double sum = 0, peak = 0;

	for (unsigned int i = 0; i < n; i++) {
		sum += c[i];
		peak = fmax(peak, fabs(c[i]));
	}
	return fabs((double)out * n - sum) <= off + NEAR * peak;
}

void verify_numbers_segment(struct verify *v, uint32_t segment, const struct saina_segment *g,
			    const float *out, uint32_t n)
{
	struct verify_restart how = { .sent = sent_since, .right = is_near };
	struct verify_restarted restarted[2];
	uint64_t finite = 0, kept;
	bool nan, wrong = false;
	char sentence[180];
	double off;

	if (v->lost) {
		v->unknown++;
		return;
	}
	for (unsigned int w = 0; w < v->workers; w++)
		if (owes(v, w, segment, g->round, n, contribution(v, w)))
			finite |= 1ull << w;
	nan = g->mask & ~finite;
	kept = finite & (nan ? ~g->mask : ~0ull) & (g->flags & SAINA_SEGMENT_DROP_LATE ? g->mask : ~0ull);
	off = bound(v, segment, g, kept);
	for (uint32_t j = 0; j < n && !wrong; j++) {
		double sum = 0;

		for (unsigned int w = 0; w < v->workers && !nan; w++)
			sum += g->mask >> w & 1 ? contribution(v, w)[j] : 0;
		wrong = !is_right(v, g, sum, out[j], off, nan);
		if (wrong)
			snprintf(sentence, sizeof(sentence),
				 "round %u segment %u element %u: mask %#" PRIx64
				 ", expected %.9g%s, the result is %.9g (at most %g off, exponent %d)",
				 g->round, segment, j, g->mask, nan ? NAN : sum / g->contributors,
				 nan ? " in the whole segment" : "", out[j], off, g->exponent);
	}
	if (!wrong) {
		v->right++;
		v->bounded++;
	} else if (nan || off < 0) {
		if (!v->wrong++)
			snprintf(v->what, sizeof(v->what), "%s", sentence);
	} else {
		how.off = off;
		/* what has been counted is owed no more, whatever it was */
		verify_restart_judge(v, segment, g, out, n, &how, sentence, restarted);
	}
	settle(v, segment, g, n, kept);
}

bool verify_numbers_residual(const struct verify *v, uint32_t segment, const float *res, uint32_t n)
{
	const struct verify_owed *o = owed(v, v->me, segment);

	for (uint32_t j = 0; j < n && !v->lost; j++)
		if (!(fabs(res[j] - o->v[j]) <= near(o)))
			return false;
	return true;
}
