/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The messages of one frame of the tc hook: loaded one after the other, answered each in
 * its place, sent as one frame to one kind of receiver.  Documentation/datapath.rst
 * section 10.
 */
#ifndef SAINA_TRAIN_BPF_H
#define SAINA_TRAIN_BPF_H

#include "answer.bpf.h"
#include "inject.bpf.h"

#define TRAIN_MAX	64	/* messages in a frame; one with more is dropped */

/* To whom the frame goes. */
enum train_to {
	TRAIN_NOBODY,
	TRAIN_PORT,	/* the sender */
	TRAIN_PROBE,	/* the sender, by the address of all */
	TRAIN_ALL,	/* the workers of its job */
};

/**
 * struct train - a frame on its way through the tc hook
 * @head: its headers, as they came
 * @partial: its UDP checksum is still to be finished
 * @pad: 0
 * @ifindex: of its port
 * @bytes: of all messages
 * @size: of each, but perhaps the last
 * @n: how many
 * @to: enum train_to
 * @job: whose answers are in it
 * @answered: bit i: message i is an answer
 * @answer: the last of them: for the frame's addresses
 * @msg: the message at hand
 */
struct train {
	__u8	head[SAINA_HDR_OFF];
	__u8	partial;
	__u8	pad[5];
	__u32	ifindex;
	__u32	bytes;
	__u32	size;
	__u32	n;
	__u32	to;
	__u32	job;
	__u64	answered;
	struct answer answer;
	struct {
		struct saina_hdr hdr;
		__s32 payload[SAINA_ELEMS_MAX];
	} msg;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct train);
} saina_train SEC(".maps");

/* A message to be skipped: header and zeros. */
struct train_nop {
	struct saina_hdr hdr;
	__u8 payload[4 * SAINA_ELEMS_MAX];
};

static const struct train_nop train_nop = {
	.hdr = { .version = SAINA_PROTO_VERSION, .type = SAINA_MSG_NOP },
};

static __always_inline struct train *train(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&saina_train, &zero);
}

/* How many messages there are to look at; 0: too many.  @head is not valid any more. */
static __always_inline __u32 train_begin(struct __sk_buff *skb, const void *head, bool partial)
{
	__u32 udp_len = bpf_ntohs(RD(__be16, head + SAINA_UDP_OFF + 4));
	__u32 bytes = udp_len - sizeof(struct udphdr);
	struct train *t = train();

	if (!t)
		return 0;
	__builtin_memcpy(t->head, head, SAINA_HDR_OFF);
	/* what lies behind is the sender's, and is not to go to others */
	if (skb->len > SAINA_UDP_OFF + udp_len &&
	    bpf_skb_change_tail(skb, SAINA_UDP_OFF + udp_len, 0)) {
		count_global(SAINA_C_NO_MEMORY);
		t->answered = 0;
		return 0;
	}
	t->ifindex = skb->ifindex;
	t->bytes = bytes;
	t->size = skb->gso_size ? skb->gso_size : bytes;
	/* what the kernel cuts up has each checksum finished in any case */
	t->partial = partial || skb->gso_size;
	t->n = (bytes + t->size - 1) / t->size;
	t->to = TRAIN_NOBODY;
	t->answered = 0;
	if (t->n > TRAIN_MAX) {
		count_global(SAINA_C_LENGTH);
		t->n = 0;
	}
	return t->n;
}

/* Where message @i lies and how long it is, 0 if it is not there. */
static __always_inline __u32 train_place(const struct train *t, __u32 i, __u32 *off)
{
	__u32 at = i * t->size;

	*off = SAINA_HDR_OFF + at;
	if (at >= t->bytes)
		return 0;
	return t->bytes - at < t->size ? t->bytes - at : t->size;
}

/* Message @i into t->msg, as far as there is room; its length. */
static __always_inline __u32 train_load(struct __sk_buff *skb, struct train *t, __u32 i)
{
	__u32 off, len = train_place(t, i, &off), n = len;

	if (n > sizeof(t->msg))
		n = sizeof(t->msg);
	/* for the verifier: the bound is of what the helper is given */
	asm volatile("" : "+r"(n));
	if (n < sizeof(struct saina_hdr) || n > sizeof(t->msg) ||
	    bpf_skb_load_bytes(skb, off, &t->msg, n))
		return 0;
	return len;
}

/*
 * May an answer of that kind go with those that are in the frame already?  A result for
 * all displaces what is for one: that one will ask again.
 */
static __always_inline bool train_admits(struct train *t, __u32 to, __u32 job,
					 struct saina_counters *wc)
{
	if (t->to == to && t->job == job)
		return true;
	if (t->to != TRAIN_NOBODY && (to != TRAIN_ALL || t->to == TRAIN_ALL)) {
		wc->c[SAINA_C_UNSENT]++;
		return false;
	}
	wc->c[SAINA_C_UNSENT] += popcount64(t->answered);
	t->answered = 0;
	t->to = to;
	t->job = job;
	return true;
}

/**
 * train_answer() - message @i becomes its answer
 * @skb: the frame
 * @t: what is known of it
 * @i: number of the message
 * @len: of the message: the answer has as many bytes, zeros behind what it says
 * @verdict: SLOT_RESULT, ANSWER, STALE, ASK_REPLY, COMPLETION, COMPLETION_ONE, PROBED, SUM, NAK, GO or GO_ALL
 * @m: the message
 */
static __always_inline void train_answer(struct __sk_buff *skb, struct train *t, __u32 i, __u32 len,
					 int verdict, const struct message *m)
{
	bool all = verdict == SLOT_RESULT || verdict == SLOT_COMPLETION || verdict == SLOT_GO_ALL;
	__u32 to = all ? TRAIN_ALL :
		   verdict == SLOT_PROBED ? TRAIN_PROBE : TRAIN_PORT;
	struct answer *a = &t->answer;
	__u64 *hdr = (__u64 *)&t->msg.hdr;
	__u32 off;

	if (!train_admits(t, to, m->in.job, m->wc))
		return;
	__builtin_memset(a, 0, sizeof(*a));
	if (all)
		answer_all(a, m->call, m->conf);
	else if (verdict == SLOT_PROBED)
		answer_probe(a, hdr, m->conf);
	else
		answer_sender(a, m->call, m->conf);
#pragma unroll
	for (int w = 0; w < 6; w++)
		hdr[w] = a->hdr[w];
	if (verdict == SLOT_ASK_REPLY)
		__builtin_memcpy(t->msg.payload, &m->call->told, sizeof(m->call->told));
	else if (verdict == SLOT_COMPLETION || verdict == SLOT_COMPLETION_ONE)
		__builtin_memcpy(t->msg.payload, &m->call->doorbell, sizeof(m->call->doorbell));
	train_place(t, i, &off);
	asm volatile("" : "+r"(len));
	if (len < sizeof(struct saina_hdr) || len > sizeof(t->msg))
		return;
	/* one copy of the frame, that only we have, for all that is written to it */
	if (!t->answered && bpf_skb_pull_data(skb, skb->len))
		goto no_memory;
	if (verdict == SLOT_STALE || verdict == SLOT_NAK) {
		if (bpf_skb_store_bytes(skb, off, &train_nop, len, 0) ||
		    bpf_skb_store_bytes(skb, off, &t->msg, sizeof(struct saina_hdr), 0))
			goto no_memory;
	} else if (bpf_skb_store_bytes(skb, off, &t->msg, len, 0)) {
		goto no_memory;
	}
	t->answered |= 1ull << (i & (TRAIN_MAX - 1));
	return;

no_memory:
	m->wc->c[SAINA_C_NO_MEMORY]++;
}

/* Whatever is no answer must say nothing: it is somebody's gradient. */
__noinline int train_blank(struct __sk_buff *skb, __u32 i)
{
	struct train *t = train();
	__u32 off, len;

	if (!t)
		return -1;
	if (t->answered >> (i & (TRAIN_MAX - 1)) & 1)
		return 0;
	len = train_place(t, i, &off);
	if (!len)
		return 0;
	if (len > sizeof(train_nop))
		return -1;
	/* for 6.1: that it is not 0 */
	len = ((len - 1) & 0x3fff) + 1;
	asm volatile("" : "+r"(len));
	if (len > sizeof(train_nop))
		return -1;
	return bpf_skb_store_bytes(skb, off, &train_nop, len, 0);
}

/*
 * Addresses, ports and checksums for the answer; lengths stay.  Where the kernel or a
 * device is still to write the UDP checksum, the field has the sum of the pseudo header
 * to begin with.  Else there is none.
 */
static __always_inline void train_head(struct train *t, const struct saina_global *g)
{
	const struct answer *a = &t->answer;
	void *h = t->head;
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
	WR(__u16, h + SAINA_UDP_OFF + 6,
	   t->partial ? csum_pseudo(udp_len, g->ip, a->daddr) : 0);
}

/* The frame leaves, if there is an answer in it. */
static __always_inline int train_send(struct __sk_buff *skb)
{
	const struct saina_global *g = frame_global();
	struct train *t = train();
	__u32 outlet;

	if (!t || !g || !t->answered)
		return TC_ACT_SHOT;
	for (__u32 i = 0; i < TRAIN_MAX; i++) {
		if (i >= t->n)
			break;
		if (train_blank(skb, i))
			goto internal;
	}
	train_head(t, g);
	if (bpf_skb_store_bytes(skb, 0, t->head, sizeof(t->head), 0))
		goto internal;
	if (t->to != TRAIN_ALL)
		return bpf_redirect(t->ifindex, 0);
	outlet = map_fanout_ifb(t->job);
	if (outlet)
		return bpf_redirect(outlet, 0);

internal:
	count_global(SAINA_C_INTERNAL);
	return TC_ACT_SHOT;
}

#endif /* SAINA_TRAIN_BPF_H */
