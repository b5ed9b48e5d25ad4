/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The messages of one frame of the tc hook: loaded one after the other, replaced by their
 * replies, sent as one frame to one kind of receiver.  Documentation/datapath.rst
 * section 10.
 */
#ifndef SAINA_GSO_BPF_H
#define SAINA_GSO_BPF_H

#include <linux/pkt_cls.h>
#include "check.bpf.h"
#include "count.bpf.h"
#include "maps.bpf.h"
#include "reply.bpf.h"

#define GSO_SEGMENTS_MAX	64	/* messages in a frame; one with more is dropped */

/* To whom the frame goes. */
enum gso_dest {
	GSO_TO_NOBODY,
	GSO_TO_PORT,	/* the sender */
	GSO_TO_PROBE,	/* the sender, by the address of all */
	GSO_TO_ALL,	/* the workers of its job */
};

/**
 * struct gso_batch - a frame in the tc hook
 * @head: its headers, as they came
 * @partial: the kernel or a device will finish its UDP checksum
 * @pad: 0
 * @ifindex: of its port
 * @bytes: of all messages
 * @size: of each, but perhaps the last
 * @n: how many
 * @to: enum gso_dest
 * @job: of the replies in it
 * @replied: bit i: message i has become a reply
 * @reply: the last of them: for the frame's addresses
 * @msg: the present message
 */
struct gso_batch {
	__u8	head[SAINA_HDR_OFF];
	__u8	partial;
	__u8	pad[5];
	__u32	ifindex;
	__u32	bytes;
	__u32	size;
	__u32	n;
	__u32	to;
	__u32	job;
	__u64	replied;
	struct reply reply;
	struct {
		struct saina_hdr hdr;
		__s32 payload[SAINA_ELEMS_MAX];
	} msg;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct gso_batch);
} saina_gso SEC(".maps");

/* A message to be skipped: header and zeros. */
struct gso_nop {
	struct saina_hdr hdr;
	__u8 payload[4 * SAINA_ELEMS_MAX];
};

static const struct gso_nop gso_nop = {
	.hdr = { .version = SAINA_PROTO_VERSION, .type = SAINA_MSG_NOP },
};

static __always_inline struct gso_batch *gso_batch(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&saina_gso, &zero);
}

/* How many messages to look at; 0: too many, or no memory.  @head is not valid any more. */
static __always_inline __u32 gso_begin(struct __sk_buff *skb, const void *head, bool partial)
{
	__u32 udp_len = bpf_ntohs(RD(__be16, head + SAINA_UDP_OFF + 4));
	__u32 bytes = udp_len - sizeof(struct udphdr);
	struct gso_batch *b = gso_batch();

	if (!b)
		return 0;
	__builtin_memcpy(b->head, head, SAINA_HDR_OFF);
	/* bytes behind the datagram are the sender's: do not forward them */
	if (skb->len > SAINA_UDP_OFF + udp_len &&
	    bpf_skb_change_tail(skb, SAINA_UDP_OFF + udp_len, 0)) {
		count_global(SAINA_C_NO_MEMORY);
		b->replied = 0;
		return 0;
	}
	b->ifindex = skb->ifindex;
	b->bytes = bytes;
	b->size = skb->gso_size ? skb->gso_size : bytes;
	/* the kernel finishes the checksums of what it cuts up in any case */
	b->partial = partial || skb->gso_size;
	b->n = (bytes + b->size - 1) / b->size;
	b->to = GSO_TO_NOBODY;
	b->replied = 0;
	if (b->n > GSO_SEGMENTS_MAX) {
		count_global(SAINA_C_LENGTH);
		b->n = 0;
	}
	return b->n;
}

/* Where message @i lies and how long it is, 0 if it is not there. */
static __always_inline __u32 gso_segment(const struct gso_batch *b, __u32 i, __u32 *off)
{
	__u32 at = i * b->size;

	*off = SAINA_HDR_OFF + at;
	if (at >= b->bytes)
		return 0;
	return b->bytes - at < b->size ? b->bytes - at : b->size;
}

/* Message @i into b->msg, as far as there is room; its length, 0 if it has no whole header. */
static __always_inline __u32 gso_load(struct __sk_buff *skb, struct gso_batch *b, __u32 i)
{
	__u32 off, len = gso_segment(b, i, &off), n = len;

	if (n > sizeof(b->msg))
		n = sizeof(b->msg);
	/* for the verifier: the bound is of what the helper is given */
	asm volatile("" : "+r"(n));
	if (n < sizeof(struct saina_hdr) || n > sizeof(b->msg) ||
	    bpf_skb_load_bytes(skb, off, &b->msg, n))
		return 0;
	return len;
}

/*
 * May a reply to that destination share the frame with those in it?  One to all displaces
 * those to the sender, who will ask again.
 */
static __always_inline bool gso_admits(struct gso_batch *b, __u32 to, __u32 job,
				       struct saina_counters *wc)
{
	if (b->to == to && b->job == job)
		return true;
	if (b->to != GSO_TO_NOBODY && (to != GSO_TO_ALL || b->to == GSO_TO_ALL)) {
		wc->c[SAINA_C_UNSENT]++;
		return false;
	}
	wc->c[SAINA_C_UNSENT] += popcount64(b->replied);
	b->replied = 0;
	b->to = to;
	b->job = job;
	return true;
}

/**
 * gso_reply() - replace message @i by its reply
 * @skb: the frame
 * @b: its state
 * @i: number of the message
 * @len: of the message: the reply is as long, padded with zeros
 * @verdict: VERDICT_RESULT_ALL, RESULT, STALE, ASK_REPLY, COMPLETION_ALL,
 *	COMPLETION, PROBE_REPLY, SUM, NAK, GO or GO_ALL
 * @m: the message
 */
static __always_inline void gso_reply(struct __sk_buff *skb, struct gso_batch *b, __u32 i,
				      __u32 len, int verdict, const struct message *m)
{
	bool all = verdict == VERDICT_RESULT_ALL || verdict == VERDICT_COMPLETION_ALL ||
		   verdict == VERDICT_GO_ALL;
	__u32 to = all ? GSO_TO_ALL :
		   verdict == VERDICT_PROBE_REPLY ? GSO_TO_PROBE : GSO_TO_PORT;
	struct reply *a = &b->reply;
	__u64 *hdr = (__u64 *)&b->msg.hdr;
	__u32 off;

	if (!gso_admits(b, to, m->in.job, m->wc))
		return;
	__builtin_memset(a, 0, sizeof(*a));
	if (all)
		reply_all(a, m->c, m->conf);
	else if (verdict == VERDICT_PROBE_REPLY)
		reply_probe(a, hdr, m->conf);
	else
		reply_sender(a, m->c, m->conf);
#pragma unroll
	for (int w = 0; w < 6; w++)
		hdr[w] = a->hdr[w];
	if (verdict == VERDICT_ASK_REPLY)
		__builtin_memcpy(b->msg.payload, &m->c->ask, sizeof(m->c->ask));
	else if (verdict == VERDICT_COMPLETION_ALL || verdict == VERDICT_COMPLETION)
		__builtin_memcpy(b->msg.payload, &m->c->doorbell, sizeof(m->c->doorbell));
	gso_segment(b, i, &off);
	asm volatile("" : "+r"(len));
	if (len < sizeof(struct saina_hdr) || len > sizeof(b->msg))
		return;
	/* unshare the frame once, before the first write */
	if (!b->replied && bpf_skb_pull_data(skb, skb->len))
		goto no_memory;
	if (verdict == VERDICT_STALE || verdict == VERDICT_NAK) {
		if (bpf_skb_store_bytes(skb, off, &gso_nop, len, 0) ||
		    bpf_skb_store_bytes(skb, off, &b->msg, sizeof(struct saina_hdr), 0))
			goto no_memory;
	} else if (bpf_skb_store_bytes(skb, off, &b->msg, len, 0)) {
		goto no_memory;
	}
	b->replied |= 1ull << (i & (GSO_SEGMENTS_MAX - 1));
	return;

no_memory:
	m->wc->c[SAINA_C_NO_MEMORY]++;
}

/* Blanks message @i unless it is a reply: it is somebody's gradient. */
__noinline int gso_blank(struct __sk_buff *skb, __u32 i)
{
	struct gso_batch *b = gso_batch();
	__u32 off, len;

	if (!b)
		return -1;
	if (b->replied >> (i & (GSO_SEGMENTS_MAX - 1)) & 1)
		return 0;
	len = gso_segment(b, i, &off);
	if (!len)
		return 0;
	if (len > sizeof(gso_nop))
		return -1;
	/* for 6.1: that it is not 0 */
	len = ((len - 1) & 0x3fff) + 1;
	asm volatile("" : "+r"(len));
	if (len > sizeof(gso_nop))
		return -1;
	return bpf_skb_store_bytes(skb, off, &gso_nop, len, 0);
}

/*
 * Addresses, ports and checksums of the reply; lengths stay.  Where the kernel or a device
 * will finish the UDP checksum, the field has the sum of the pseudo header; else it is 0.
 */
static __always_inline void gso_write_headers(struct gso_batch *b, const struct saina_global *g)
{
	const struct reply *a = &b->reply;
	void *h = b->head;
	__u16 ip_len = RD(__u16, h + SAINA_IP_OFF + 2), udp_len = RD(__u16, h + SAINA_UDP_OFF + 4);
	__u64 sum;

	WR(__u32, h, RD(__u32, a->mac));
	WR(__u16, h + 4, RD(__u16, a->mac + 4));
	WR(__u32, h + 6, RD(__u32, g->mac));
	WR(__u16, h + 10, RD(__u16, g->mac + 4));
	WR(__u32, h + SAINA_IP_OFF, 0x0045 | (__u32)ip_len << 16);
	WR(__u32, h + SAINA_IP_OFF + 4, (__u32)bpf_htons(0x4000) << 16);
	sum = 0x0045ull + ip_len + bpf_htons(0x4000) + (a->ttl | IPPROTO_UDP << 8) + g->ip +
	      a->daddr;
	WR(__u32, h + SAINA_IP_OFF + 8,
	   a->ttl | IPPROTO_UDP << 8 | (~csum_fold64(sum) & 0xffff) << 16);
	WR(__u32, h + SAINA_IP_OFF + 12, g->ip);
	WR(__u32, h + SAINA_IP_OFF + 16, a->daddr);
	WR(__u32, h + SAINA_UDP_OFF, bpf_htons(SAINA_PORT_DATA) | (__u32)a->dport << 16);
	WR(__u16, h + SAINA_UDP_OFF + 6, b->partial ? csum_pseudo(udp_len, g->ip, a->daddr) : 0);
}

/* Sends the frame if there is a reply in it. */
static __always_inline int gso_send(struct __sk_buff *skb)
{
	const struct saina_global *g = map_global();
	struct gso_batch *b = gso_batch();
	__u32 ifb;

	if (!b || !g || !b->replied)
		return TC_ACT_SHOT;
	for (__u32 i = 0; i < GSO_SEGMENTS_MAX; i++) {
		if (i >= b->n)
			break;
		if (gso_blank(skb, i))
			goto internal;
	}
	gso_write_headers(b, g);
	if (bpf_skb_store_bytes(skb, 0, b->head, sizeof(b->head), 0))
		goto internal;
	if (b->to != GSO_TO_ALL)
		return bpf_redirect(b->ifindex, 0);
	ifb = map_fanout_ifb(b->job);
	if (ifb)
		return bpf_redirect(ifb, 0);

internal:
	count_global(SAINA_C_INTERNAL);
	return TC_ACT_SHOT;
}

#endif /* SAINA_GSO_BPF_H */
