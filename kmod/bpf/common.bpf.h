/* SPDX-License-Identifier: GPL-2.0 */
/* What every file of the BPF programs needs: headers, offsets, arithmetic. */
#ifndef SAINA_COMMON_BPF_H
#define SAINA_COMMON_BPF_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "saina/proto.h"
#include "saina/bpf.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "payloads are little endian and added where they lie"
#endif

/* A packed struct makes clang load byte by byte; the machines this runs on
 * read unaligned words well, and so does the verifier.
 */
#define RD(type, p)	(*(const type *)(const void *)(p))
#define WR(type, p, v)	(*(type *)(void *)(p) = (v))

#define SAINA_IP_OFF	ETH_HLEN
#define SAINA_UDP_OFF	(SAINA_IP_OFF + 20)
#define SAINA_HDR_OFF	(SAINA_UDP_OFF + 8)
#define SAINA_DATA_OFF	(SAINA_HDR_OFF + (int)sizeof(struct saina_hdr))

#define HDR_OFF(field)	(SAINA_HDR_OFF + (int)offsetof(struct saina_hdr, field))

/* A field of the header at @h. */
#define H(type, h, field)	RD(type, (h) + offsetof(struct saina_hdr, field))

#define COUNT_NONE	0xffffffffu	/* no counter */

static __always_inline __u32 popcount64(__u64 x)
{
	x -= (x >> 1) & 0x5555555555555555ull;
	x = (x & 0x3333333333333333ull) + ((x >> 2) & 0x3333333333333333ull);
	x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return (x * 0x0101010101010101ull) >> 56;
}

/* One's complement sum of many 16-bit words, folded. */
static __always_inline __u32 csum_fold64(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* Of the pseudo header of a UDP datagram; all in network order. */
static __always_inline __u32 csum_pseudo(__be16 udp_len, __be32 saddr, __be32 daddr)
{
	return csum_fold64((__u64)bpf_htons(IPPROTO_UDP) + udp_len + saddr + daddr);
}

/* Returns @x, whose bounds the verifier does not know any more. */
static __always_inline __u32 through_memory(__u32 *at, __u32 x)
{
	*(volatile __u32 *)at = x;
	return *(volatile __u32 *)at;
}

static __always_inline bool exponent_is_nan(__s32 exponent)
{
	return exponent == SAINA_EXPONENT_NAN;
}

/* Integers with a block scale?  There is no int16 with the module: its programs have no room. */
static __always_inline bool elem_is_int(__u32 elem)
{
#ifdef SAINA_KMOD
	return elem == SAINA_ELEM_INT32;
#else
	return SAINA_ELEM_IS_INT(elem);
#endif
}

/* Of floats that are finite?  @exponent: one that is valid for a gradient */
static __always_inline bool exponent_is_scale(__s32 exponent)
{
	return exponent >= SAINA_EXPONENT_MIN;
}

/* Valid for a gradient of a job of integers, of type @elem? */
static __always_inline bool exponent_is_valid(__u32 elem, __s32 e)
{
	return e != SAINA_EXPONENT_INT || elem == SAINA_ELEM_INT32;
}

/* 1 if a > b, else 0.  Without a branch: the verifier walks what is inlined under the lock once
 * for each size.
 */
static __always_inline __u64 is_above(__u64 a, __u64 b)
{
	__u64 borrow = (~b & a) | (~(b ^ a) & (b - a));

	/* or clang knows what it is, and branches */
	asm volatile("" : "+r"(borrow));
	return borrow >> 63;
}

#define CODED_SPREAD_MAX	8	/* workers that compute the same part */

/* CODED: the parts that @workers compute, as bits; @parts: how many there are. */
static __always_inline __u32 coded_parts(__u64 workers, __u32 parts)
{
	__u64 have = 0;

	for (__u32 i = 0, shift = 0; i < CODED_SPREAD_MAX && shift < 64; i++, shift += parts)
		have |= workers >> shift;
	return have & ((1ull << (parts & 63)) - 1);
}

/* CODED: the bit of the part that @worker computes; 0 if there are no parts. */
static __always_inline __u32 coded_part(__u32 parts, __u32 worker)
{
	/* x % 0 is x */
	return is_above(parts, 0) << (worker % parts & 31);
}

#endif /* SAINA_COMMON_BPF_H */
