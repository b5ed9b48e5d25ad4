// SPDX-License-Identifier: GPL-2.0
#include <linux/kernel.h>
#include <linux/moduleparam.h>

#include "simd.h"
#include "simd_avx2.h"

static bool simd = true;
module_param(simd, bool, 0644);
MODULE_PARM_DESC(simd, "use the vector unit for sums of floats (default on; off gives the same sums, more slowly)");

static char *simd_unit = "none";
module_param(simd_unit, charp, 0444);
MODULE_PARM_DESC(simd_unit, "the vector unit found: avx2 or none (read-only)");

static bool have_avx2 __ro_after_init;

#define F32_QUIET	0x00400000u
#define F32_NAN		0xffc00000u	/* what x86 makes of inf - inf */
#define GUARD		30		/* bits kept below the last place */
#define TOP		(23 + GUARD)	/* the leading one of a normal number */

static bool f32_nan(u32 a)
{
	return (a & 0x7fffffff) > 0x7f800000;
}

static bool f32_inf(u32 a)
{
	return (a & 0x7fffffff) == 0x7f800000;
}

/* Shift right; what falls off is remembered in the lowest bit. */
static u64 shift_sticky(u64 m, int by)
{
	if (by > 60)
		return m != 0;
	return m >> by | ((m & ((1ull << by) - 1)) != 0);
}

static u32 f32_pack(u32 sign, int exp, u64 m)
{
	u32 low, out;

	if (!m)
		return sign;
	if (m >> (TOP + 1)) {
		m = shift_sticky(m, 1);
		exp++;
	}
	for (; exp > 1 && !(m >> TOP); exp--)
		m <<= 1;
	low = m & ((1u << GUARD) - 1);
	out = m >> GUARD;
	if (low > 1u << (GUARD - 1) || (low == 1u << (GUARD - 1) && out & 1))
		out++;
	/*
	 * a carry out of the fraction, or into the first normal number, counts up the
	 * exponent by itself, as the leading one is added to it
	 */
	if (!(out >> 23))
		return sign | out;
	out += (u32)(exp - 1) << 23;
	return sign | min(out, 0x7f800000u);
}

/**
 * saina_f32_add_scalar() - add two float32 without a floating point unit
 * @a: first operand, whose NaN wins
 * @b: second operand
 *
 * IEEE 754, round to nearest even, subnormals kept, NaNs as of x86's vaddps.
 *
 * Return: the bits of the sum.
 */
u32 saina_f32_add_scalar(u32 a, u32 b)
{
	u32 sa = a & 0x80000000, sb = b & 0x80000000, fa, fb;
	int ea, eb;
	u64 ma, mb;

	if (f32_nan(a))
		return a | F32_QUIET;
	if (f32_nan(b))
		return b | F32_QUIET;
	if (f32_inf(a))
		return f32_inf(b) && sa != sb ? F32_NAN : a;
	if (f32_inf(b))
		return b;
	if ((a & 0x7fffffff) < (b & 0x7fffffff)) {
		swap(a, b);
		swap(sa, sb);
	}
	ea = a >> 23 & 0xff;
	eb = b >> 23 & 0xff;
	fa = (a & 0x7fffff) | (ea ? 1u << 23 : 0);
	fb = (b & 0x7fffff) | (eb ? 1u << 23 : 0);
	ea = max(ea, 1);
	eb = max(eb, 1);
	ma = (u64)fa << GUARD;
	mb = shift_sticky((u64)fb << GUARD, ea - eb);
	if (sa == sb)
		return f32_pack(sa, ea, ma + mb);
	if (ma == mb)
		return 0;
	return f32_pack(sa, ea, ma - mb);
}

void saina_f32_add_n(u32 *sums, const u32 *msg, u32 n)
{
	u32 i;

	if (have_avx2 && READ_ONCE(simd) && saina_avx2_begin()) {
		saina_avx2_f32_add(sums, msg, n);
		saina_avx2_end();
		return;
	}
	for (i = 0; i < n; i++)
		sums[i] = saina_f32_add_scalar(sums[i], msg[i]);
}

void saina_bf16_add_n(u32 *sums, const u16 *msg, u32 n)
{
	u32 i;

	if (have_avx2 && READ_ONCE(simd) && saina_avx2_begin()) {
		saina_avx2_bf16_add(sums, msg, n);
		saina_avx2_end();
		return;
	}
	for (i = 0; i < n; i++)
		sums[i] = saina_f32_add_scalar(sums[i], (u32)msg[i] << 16);
}

void saina_bf16_store_n(u32 *sums, const u16 *msg, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		sums[i] = (u32)msg[i] << 16;
}

void __init saina_simd_init(void)
{
	have_avx2 = saina_avx2_usable();
	simd_unit = have_avx2 ? "avx2" : "none";
}
