/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Check of a frame's metadata: where the kernel writes a checksum when the frame leaves, and
 * how it cuts a GSO batch.  A sender with a packet socket or a tap chooses both.
 * Documentation/datapath.rst section 10.1.
 */
#ifndef SAINA_CHECK_SKB_BPF_H
#define SAINA_CHECK_SKB_BPF_H

#include <bpf/bpf_core_read.h>
#include "common.bpf.h"

#define CSUM_PARTIAL	3	/* CHECKSUM_PARTIAL */
/* SKB_GSO_DODGY (from a tap), SKB_GSO_UDP_L4, SKB_GSO_FRAGLIST (merged by a device) */
#define GSO_ALLOWED	0x60002u

/* The fields that are read of the kernel's structures. */
struct sk_buff___saina {
	unsigned char *head;
	unsigned char *data;
	unsigned int end;
	__u16 csum_start;
	__u16 csum_offset;
	__u8 ip_summed:2;
} __attribute__((preserve_access_index));

struct skb_shared_info___saina {
	unsigned int gso_type;
} __attribute__((preserve_access_index));

#define SKB_READ(to, field)	\
	bpf_probe_read_kernel(to, sizeof(*(to)), __builtin_preserve_access_index(field))

enum skb_state {
	SKB_BAD,
	SKB_COMPLETE,	/* leaves as it is */
	SKB_PARTIAL,	/* the kernel or a device will finish its UDP checksum */
};

/**
 * check_skb() - does a reply in this frame leave with the bytes that are written to it?
 * @skb: has Ethernet, IPv4 and UDP headers, nothing between
 *
 * It does if no other checksum will be finished, and a GSO batch will be cut into UDP
 * datagrams.
 *
 * Return: enum skb_state
 */
static __noinline int check_skb(struct __sk_buff *skb)
{
	const struct sk_buff___saina *k = (const void *)skb;
	const struct skb_shared_info___saina *shared;
	unsigned char *head, *data;
	enum skb_state meta = SKB_COMPLETE;
	__u16 start, offset;
	__u32 end, type;

	if (SKB_READ(&head, &k->head))
		return SKB_BAD;
	if (BPF_CORE_READ_BITFIELD_PROBED(k, ip_summed) == CSUM_PARTIAL) {
		if (SKB_READ(&data, &k->data) || SKB_READ(&start, &k->csum_start) ||
		    SKB_READ(&offset, &k->csum_offset) || head + start != data + SAINA_UDP_OFF ||
		    offset != offsetof(struct udphdr, check))
			return SKB_BAD;
		meta = SKB_PARTIAL;
	}
	if (!skb->gso_size)
		return meta;
	if (SKB_READ(&end, &k->end))
		return SKB_BAD;
	shared = (const void *)(head + end);
	return SKB_READ(&type, &shared->gso_type) || type & ~GSO_ALLOWED ? SKB_BAD : meta;
}

#endif /* SAINA_CHECK_SKB_BPF_H */
