/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One message, header and payload in memory: checked, then handed to what its type asks for.
 * A frame may carry several.  Documentation/datapath.rst sections 1.1 and 2.
 */
#ifndef SAINA_DISPATCH_BPF_H
#define SAINA_DISPATCH_BPF_H

#include "away.bpf.h"
#include "check.bpf.h"
#include "event.bpf.h"
#include "lateness.bpf.h"
#include "ps.bpf.h"
#include "round.bpf.h"
#include "run.bpf.h"
#include "shm.bpf.h"

/* Notes the port and MAC that the JOIN at @h, complete, came from, for the agent. */
static __always_inline void note_join_src(const struct frame *f, const void *h)
{
	const void *join = h + sizeof(struct saina_hdr);
	struct saina_addr from = {
		.nonce = RD(__u64, join + offsetof(struct saina_join, nonce)),
		.ip = RD(__be32, f->head + SAINA_IP_OFF + 12),
		.udp_port = RD(__be16, f->head + SAINA_UDP_OFF),
	};
	struct saina_place place = { .ifindex = f->ifindex };

	__builtin_memcpy(place.mac, f->head + ETH_ALEN, ETH_ALEN);
	bpf_map_update_elem(&saina_join_src, &from, &place, BPF_NOEXIST);
}

/* A control message, linear up to @end: true if it goes up to the agent. */
static __always_inline bool dispatch_control(HOOK_CTX *ctx, const struct frame *f, const void *end)
{
	const void *h = f->head + SAINA_HDR_OFF;

	if (h + sizeof(struct saina_hdr) <= end && H(__u8, h, version) == SAINA_PROTO_VERSION) {
		__u32 type = H(__u8, h, type);

		if ((type == SAINA_MSG_READY || type == SAINA_MSG_HEARTBEAT ||
		     type == SAINA_MSG_LEAVE) &&
		    is_spoofed(ctx, f, h))
			return false;
		if (type == SAINA_MSG_JOIN &&
		    h + sizeof(struct saina_hdr) + sizeof(struct saina_join) <= end)
			note_join_src(f, h);
	}
	count_global(SAINA_C_CONTROL);
	return true;
}

/* Rate limit of ASKs. */
#define ASKS_MAX	64	/* of a worker in ASKS_NS */
#define ASKS_NS		1048576

static __always_inline bool may_ask(const struct ctx_in *in)
{
	__u32 key = in->job * SAINA_WORKERS_MAX + in->worker;
	struct saina_asked *a = bpf_map_lookup_elem(&saina_asked, &key);
	__u32 when = bpf_ktime_get_ns() / ASKS_NS;

	if (!a)
		return false;
	if (a->when != when) {
		a->when = when;
		a->count = 0;
	}
	return a->count++ < ASKS_MAX;
}

/* An ASK; c->ask.time is set. */
static __always_inline int dispatch_ask(struct saina_ctx *c, const struct saina_job_conf *conf,
					const struct saina_job_rt *rt)
{
	int known = 0;

	c->out.reason = SAINA_C_ASK_LIMIT;
	if (!may_ask(&c->in))
		return VERDICT_DROP;
	c->out.reason = SAINA_C_INTERNAL;
	c->ask.counted = 0;
	c->ask.done = 0;
	c->ask.due = 0;
	c->ask_away = 0;
	c->in.now = bpf_ktime_get_ns();
	switch (conf->payload) {
#define ASK_CASE(E)					\
	case E:						\
		known = slot_ask_reply_##E(c, conf);	\
		break;
	SAINA_ELEMS_LIST(ASK_CASE)
	}
	if (!known)
		return VERDICT_DROP;
	round_asked(c);
	if (c->ask.done || !round_gone(rt, c->in.round))
		return VERDICT_ASK_REPLY;
	return VERDICT_STALE;
}

/*
 * An INC, READ or CLOCK.  A separate function, which calls the clock and the parameter server
 * one after the other, to stay within 512 bytes of stack.
 */
static __noinline int dispatch_step(HOOK_CTX *ctx, struct saina_ctx *c,
				    const struct saina_job_conf *conf, struct saina_counters *wc,
				    void *p)
{
	int verdict;

	c->ps.must_wait = 0;
	c->ps.step_done = 0;
	c->out.exponent = 0;
	verdict = round_enter_ps(c, conf);
	if (verdict == VERDICT_MISS) {
		ps_open(c);
		verdict = ps_clock(c);
		if (c->out.opened_at)
			lateness_record(&c->in, c->out.opened_at);
		if (verdict != VERDICT_DROP && !c->ps.ended)
			round_follow(c, conf);
		if (verdict == VERDICT_MISS)
			verdict = run_payload(ctx, c, conf, p, true);
		event_flush(ctx);
	}
	c->out.verdict = verdict;
	count_worker(wc, verdict == VERDICT_DROP ? c->out.reason : c->out.counted);
	if (c->ps.must_wait)
		count_worker(wc, SAINA_C_CLOCK_WAIT);
	return verdict;
}

/*
 * All checks of a message; counts one that is dropped.  Return: the state of its job, or NULL if
 * it is dropped.
 */
static __always_inline const struct saina_job_rt *
dispatch_check(HOOK_CTX *ctx, const struct frame *f, const void *h, __u32 len, struct message *m)
{
	__u32 reason = check_message(ctx, h, m), job = m->in.job;
	const struct saina_job_rt *rt;

	if (reason != COUNT_NONE)
		goto drop_global;
	reason = SAINA_C_INTERNAL;
	m->wc = worker_counters(job, m->in.worker);
	if (!m->wc)
		goto drop_global;
	reason = check_sender(f, h, len, m);
	if (reason != COUNT_NONE)
		goto drop;
	rt = bpf_map_lookup_elem(&saina_rt, &job);
	if (rt && rt->generation == m->conf->generation)
		return rt;
	reason = SAINA_C_INTERNAL;
drop:
	count_worker(m->wc, reason);
	return NULL;

drop_global:
	count_global(reason);
	return NULL;
}

/* The context of a message that needs a slot or the clock, and its job's snapshot in *@plain. */
static __always_inline struct saina_ctx *dispatch_context(struct message *m,
							  const struct saina_job_conf **plain)
{
	struct ctx_scratch *scratch = ctx_scratch();

	*plain = config_plain(m->conf);
	if (!scratch || !*plain)
		return NULL;
	m->c = &scratch->ctx;
	ctx_init(m->c, &m->in);
	m->c->max_weight = m->binding->max_weight;
	return m->c;
}

/* The word that the payload of an ASK or a DOORBELL begins with. */
static __always_inline bool dispatch_word(HOOK_CTX *ctx, void *p, const void *end, bool bounded,
					  __u64 *word)
{
	if (bounded && p + sizeof(*word) > end)
		return !hook_load(ctx, SAINA_DATA_OFF, word, sizeof(*word));
	*word = RD(__u64, p);
	return true;
}

/* Events, lateness and counters of a message of rounds. */
static __always_inline int dispatch_account(HOOK_CTX *ctx, struct saina_ctx *c,
					    const struct saina_job_rt *rt, const struct message *m,
					    int verdict)
{
	c->out.verdict = verdict;
	if (c->latch.away)
		away_note(c);
	if (c->out.opened_at) {
		lateness_record(&c->in, c->out.opened_at);
		round_gradient(c);
	}
	if (c->out.verdict == VERDICT_RESULT)
		c->out.next_k = rt->k_next;
	else if (c->out.verdict == VERDICT_STALE)
		event_send(SAINA_EV_STALE, EV_OF(c->in.job, c->in.worker, rt->k), c->in.round,
			   c->in.segment, 0);
	event_flush(ctx);
	if (m->type != SAINA_MSG_DOORBELL)
		count_verdict(c, m->wc);
	return c->out.verdict;
}

/**
 * dispatch_data() - check a data message and do what it asks for; its reply is not sent
 * @ctx: the hook's
 * @f: its frame
 * @h: its header
 * @len: bytes of header and payload, as far as the frame goes
 * @p: its payload; sizeof(struct saina_ask) bytes of it may be read if @len says so
 * @end: as run_sized()
 * @bounded: as run_sized()
 * @m: zeroed
 *
 * Return: enum verdict, counted in m->wc; what the reply says is in m->c
 */
static __always_inline int dispatch_data(HOOK_CTX *ctx, const struct frame *f, const void *h,
					 __u32 len, void *p, const void *end, bool bounded,
					 struct message *m)
{
	const struct saina_job_rt *rt = dispatch_check(ctx, f, h, len, m);
	const struct saina_job_conf *plain;
	struct saina_ctx *c;
	int verdict, added;
	__u64 word;

	if (!rt)
		return VERDICT_DROP;
	added = run_add(m, p, end, bounded);
	if (added != SLOT_NOT_ADDED) {
		m->wc->c[SAINA_C_ADDED]++;
		count_coarsened(m->in.job, added - SLOT_ADDED);
		return VERDICT_CONSUMED;
	}
	if (m->type == SAINA_MSG_PROBE) {
		m->wc->c[SAINA_C_PROBED]++;
		return VERDICT_PROBE_REPLY;
	}
	c = dispatch_context(m, &plain);
	if (!c)
		goto drop;
	if (ps_is_type(m->type)) {
		c->ps.session = H(__u64, h, session);
		c->ps.is_clock = m->type == SAINA_MSG_CLOCK;
		return dispatch_step(ctx, c, plain, m->wc, p);
	}
	if (rt->mode == SAINA_RT_PS && c->in.round >= rt->base) {
		m->wc->c[SAINA_C_MODE]++;
		return ctx_nak_mode(c, rt->base);
	}
	if (m->type != SAINA_MSG_ASK && m->type != SAINA_MSG_DOORBELL) {
		verdict = run_payload(ctx, c, plain, p, false);
	} else if (!dispatch_word(ctx, p, end, bounded, &word)) {
		goto drop;
	} else if (m->type == SAINA_MSG_DOORBELL) {
		c->doorbell.posted = word;
		verdict = shm_doorbell(c, plain, m->wc);
		c->out.next_k = rt->k_next;
	} else {
		c->ask.time = word;
		verdict = dispatch_ask(c, plain, rt);
	}
	return dispatch_account(ctx, c, rt, m, verdict);

drop:
	count_worker(m->wc, SAINA_C_INTERNAL);
	return VERDICT_DROP;
}

#endif /* SAINA_DISPATCH_BPF_H */
