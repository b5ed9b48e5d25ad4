// SPDX-License-Identifier: GPL-2.0-or-later
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/pkt_cls.h>
#include <stdio.h>
#include "harness_events.h"
#include "harness_packets.h"
#include "harness_shm.h"

/* Does TEST_RUN accept the frame for a tc program?  At most a page, with whole headers. */
static bool is_skb(const uint8_t *frame, unsigned int len)
{
	return len >= FRAME_HDR && len <= HARNESS_SKB_MAX &&
	       (frame[12] != 0x86 || frame[13] != 0xdd || len >= 54);
}

static int test_run_tc(struct harness *r, const uint8_t *frame, unsigned int len, unsigned int size,
		       unsigned int ifindex)
{
	struct __sk_buff ctx = { .ifindex = ifindex, .gso_size = size };
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, t,
		.data_in = frame,
		.data_size_in = len,
		.data_out = r->got,
		.data_size_out = sizeof(r->got),
		.ctx_in = &ctx,
		.ctx_size_in = sizeof(ctx),
		.repeat = 1);
	int err = bpf_prog_test_run_opts(r->tc, &t);

	r->verdict = t.retval;
	r->len = t.data_size_out;
	return err;
}

static int test_run(struct harness *r, const uint8_t *frame, unsigned int len, unsigned int ifindex)
{
	struct xdp_md ctx = { .data_end = len, .ingress_ifindex = ifindex };
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, t,
		.data_in = frame,
		.data_size_in = len,
		.data_out = r->got,
		.data_size_out = sizeof(r->got),
		.repeat = 1);
	bool in_pieces = r->linear && r->linear < len && !r->no_linear;
	int err;

	if (ifindex != r->port[0] || in_pieces) {
		t.ctx_in = &ctx;
		t.ctx_size_in = sizeof(ctx);
		if (in_pieces)
			ctx.data_end = r->linear;
	}
	err = bpf_prog_test_run_opts(r->prog, &t);
	if (err && in_pieces) {
		r->no_linear = true;
		return test_run(r, frame, len, ifindex);
	}
	r->verdict = t.retval;
	r->len = t.data_size_out;
	return err;
}

bool harness_packet_alone(struct harness *r, const uint8_t *frame, unsigned int len,
			  unsigned int ifindex)
{
	r->diff[0] = 0;
	return !test_run(r, frame, len, ifindex) ||
	       harness_differs(r, "BPF_PROG_TEST_RUN: %s\n", strerror(errno));
}

static const char *answer_text(const uint8_t *f, unsigned int len, char *s, size_t size)
{
	struct saina_hdr h;

	if (len < FRAME_PAYLOAD)
		return "(short)";
	memcpy(&h, f + FRAME_HDR, sizeof(h));
	snprintf(s, size, "type %u flags %#x job %u session %llu round %u segment %u count %u "
		 "worker %u exponent %d contributors %u k %u next_k %u policy %u mask %llx aux %u "
		 "slot_round %u", h.type, h.flags, h.job, (unsigned long long)h.session, h.round, h.segment, h.count,
		 h.worker, h.exponent, h.contributors, h.k, h.next_k, h.policy, h.mask, h.aux,
		 h.slot_round);
	return s;
}

static bool same_frame(struct harness *r, const uint8_t *want, unsigned int len)
{
	unsigned int i;
	char s[512];

	if (r->len == len && !memcmp(r->got, want, len))
		return true;
	for (i = 0; i < len && i < r->len && r->got[i] == want[i]; i++)
		;
	harness_differs(r, "frame: want %u bytes, got %u; first difference at byte %u: want %02x got %02x\n",
			len, r->len, i, i < len ? want[i] : 0, i < r->len ? r->got[i] : 0);
	harness_differs(r, "  want: %s\n", answer_text(want, len, s, sizeof(s)));
	return harness_differs(r, "  got:  %s\n", answer_text(r->got, r->len, s, sizeof(s)));
}

static const char *want_text(const struct harness *r)
{
	static const char *const name[] = { [ORACLE_PASS] = "passed", [ORACLE_DROP] = "dropped",
					    [ORACLE_REDIRECT] = "redirected" };

	return name[r->want.verdict];
}

/* The verdict of the program in the oracle's terms; -1: the oracle has no such verdict. */
static int got_verdict(const struct harness *r)
{
	if (r->tc)
		return r->verdict == TC_ACT_UNSPEC   ? ORACLE_PASS :
		       r->verdict == TC_ACT_SHOT     ? ORACLE_DROP :
		       r->verdict == TC_ACT_REDIRECT ? ORACLE_REDIRECT : -1;
	return r->verdict == XDP_PASS	  ? ORACLE_PASS :
	       r->verdict == XDP_DROP	  ? ORACLE_DROP :
	       r->verdict == XDP_REDIRECT ? ORACLE_REDIRECT : -1;
}

/* Lists the answers to workers in r->answer[]. */
static void take_answers(struct harness *r, unsigned int size)
{
	const uint8_t *f = r->want.verdict == ORACLE_REDIRECT ? r->got : r->want.frame;
	unsigned int bytes = r->want.len - FRAME_HDR;

	r->answers = 0;
	if (!(r->want.to | r->want.relayed))
		return;
	if (!size)
		size = bytes;
	for (unsigned int at = 0; at < bytes && r->answers < 64; at += size) {
		r->answer[r->answers].to = r->want.to | r->want.relayed;
		r->answer[r->answers].message = f + FRAME_HDR + at;
		if (f[FRAME_HDR + at + 1] != SAINA_MSG_NOP)
			r->answers++;
	}
}

/* Compares verdict and frame of the program with those of the oracle. */
static bool compare(struct harness *r, const uint8_t *frame, unsigned int len)
{
	r->packets++;
	if (got_verdict(r) != r->want.verdict)
		return harness_differs(r, "verdict: want it %s (%s), got %d\n", want_text(r),
				       r->want.reason < 0 ? "no reason" :
				       saina_counter_info[r->want.reason].name, r->verdict);
	if (r->want.relayed)
		harness_relay_expect(r);
	if (r->want.verdict == ORACLE_PASS && !same_frame(r, frame, len))
		return false;
	if (r->want.verdict == ORACLE_REDIRECT && !same_frame(r, r->want.frame, r->want.len))
		return false;
	return !harness_drain_due(r) || harness_drain(r);
}

/*
 * The limit of answered ASKs depends on time, which the oracle does not model: reset the counts of
 * the workers that ask in this frame, so that the limit is never reached.  tc_test tests the limit,
 * with harness_batch_alone().
 */
static bool forget_asked(struct harness *r, const uint8_t *frame, unsigned int len, unsigned int size)
{
	static const struct saina_asked none;
	struct saina_hdr h;

	for (unsigned int at = FRAME_HDR; at + sizeof(h) <= len; at += size ? size : len) {
		__u32 key;

		memcpy(&h, frame + at, sizeof(h));
		if (h.type != SAINA_MSG_ASK || h.job >= SAINA_JOBS_MAX ||
		    h.worker >= SAINA_WORKERS_MAX)
			continue;
		key = h.job * SAINA_WORKERS_MAX + h.worker;
		if (bpf_map_update_elem(r->asked, &key, &none, BPF_ANY))
			return harness_differs(r, "saina_asked: %s\n", strerror(errno));
	}
	return true;
}

bool harness_batch_alone(struct harness *r, const uint8_t *frame, unsigned int len, unsigned int size,
			 unsigned int ifindex)
{
	r->diff[0] = 0;
	return !test_run_tc(r, frame, len, size, ifindex) ||
	       harness_differs(r, "BPF_PROG_TEST_RUN: %s\n", strerror(errno));
}

bool harness_batch(struct harness *r, const uint8_t *frame, unsigned int len, unsigned int size,
		   unsigned int ifindex)
{
	r->diff[0] = 0;
	r->answers = 0;
	if (!is_skb(frame, len))
		return true;
	if (!forget_asked(r, frame, len, size))
		return false;
	if (test_run_tc(r, frame, len, size, ifindex))
		return harness_differs(r, "BPF_PROG_TEST_RUN: %s (%u bytes)\n", strerror(errno), len);
	oracle_batch(&r->o, frame, len, size, ifindex, &r->want);
	if (!compare(r, frame, len))
		return false;
	take_answers(r, size);
	return true;
}

bool harness_packet(struct harness *r, const uint8_t *frame, unsigned int len, unsigned int ifindex)
{
	if (r->tc)
		return harness_batch(r, frame, len, 0, ifindex);
	r->diff[0] = 0;
	if (!forget_asked(r, frame, len, 0))
		return false;
	if (test_run(r, frame, len, ifindex))
		return harness_differs(r, "BPF_PROG_TEST_RUN: %s\n", strerror(errno));
	r->o.linear = r->linear && !r->no_linear ? r->linear : FRAME_LINEAR;
	oracle_packet(&r->o, frame, len, ifindex, &r->want);
	if (!compare(r, frame, len))
		return false;
	take_answers(r, 0);
	return true;
}
