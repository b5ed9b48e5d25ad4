/* SPDX-License-Identifier: GPL-2.0 */
/* What every file of the XDP program needs. */
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

#endif /* SAINA_COMMON_BPF_H */
