/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One message, header and payload in memory, checked by itself: a frame may carry
 * several.  Documentation/datapath.rst sections 1.1 and 2.
 */
#ifndef SAINA_MESSAGE_BPF_H
#define SAINA_MESSAGE_BPF_H

#include "parse.bpf.h"
#include "slot.bpf.h"
#include "ps.bpf.h"
#include "lateness.bpf.h"

/* A field of the header at @h. */
#define H(type, h, field)	RD(type, (h) + offsetof(struct saina_hdr, field))

/* A data message: what the checks found, and what became of it. */
struct message {
	const struct saina_job_conf *conf;
	const struct saina_binding *binding;
	struct saina_counters *wc;
	struct saina_ctx *c;
	struct ctx_in in;
	__u32 type;
};

/* A worker's binding, NULL if it has none. */
static __always_inline const struct saina_binding *config_binding(const struct saina_job_conf *conf,
								  __u32 w)
{
	const struct saina_binding *b;

	if (w >= SAINA_WORKERS_MAX)
		return NULL;
	/* 6.1 forgets the bound of a copy that was spilled before the compare;
	 * the asm keeps clang from dropping the mask
	 */
	asm volatile("" : "+r"(w));
	b = &conf->worker[w & (SAINA_WORKERS_MAX - 1)];
	return b->flags & SAINA_BIND_BOUND ? b : NULL;
}

/* Checks 2 to 7: counted globally, no worker can be named.  COUNT_NONE if good. */
static __always_inline __u32 check_message(HOOK_CTX *ctx, const void *h, struct message *m)
{
	__u32 flags;

	if (H(__u8, h, version) != SAINA_PROTO_VERSION)
		return SAINA_C_VERSION;
	m->type = H(__u8, h, type);
	flags = H(__u8, h, flags);
	switch (m->type) {
	case SAINA_MSG_GRAD:
	case SAINA_MSG_PULL:
	case SAINA_MSG_INC:
	case SAINA_MSG_READ:
	case SAINA_MSG_CLOCK:
	case SAINA_MSG_DOORBELL:
		flags &= ~SAINA_F_RETRANSMIT;
		break;
	case SAINA_MSG_PROBE:
	case SAINA_MSG_ASK:
		break;
	case SAINA_MSG_RESULT:
	case SAINA_MSG_STALE:
	case SAINA_MSG_PROBE_REPLY:
	case SAINA_MSG_ASK_REPLY:
	case SAINA_MSG_SUM:
	case SAINA_MSG_NAK:
	case SAINA_MSG_GO:
	case SAINA_MSG_COMPLETION:
		return SAINA_C_FORGED;
	default:
		return SAINA_C_TYPE;
	}
	if (flags || H(__u16, h, k))	/* and reserved */
		return SAINA_C_FLAGS;
	m->in.job = H(__u16, h, job);
	if (m->in.job >= SAINA_JOBS_MAX)
		return SAINA_C_NO_JOB;
	m->conf = config_job(ctx, m->in.job);
	if (!m->conf)
		return SAINA_C_NO_JOB;
	m->in.worker = H(__u8, h, worker);
	m->binding = config_binding(m->conf, m->in.worker);
	return m->binding ? COUNT_NONE : SAINA_C_NO_WORKER;
}

/* Check 19: is the block scale of a GRAD or INC valid? */
static __always_inline bool check_exponent(const struct message *m, __s32 e)
{
	if (m->type == SAINA_MSG_GRAD)
		return m->conf->elem == SAINA_ELEM_INT32 ? slot_is_exponent(e) : !e;
	return m->type != SAINA_MSG_INC || (slot_is_exponent(e) && !slot_is_nan(e));
}

/* Checks 8 to 19, counted for the worker it claims to be from; @len bytes have the whole
 * message.  COUNT_NONE if good: all of m->in is set, then.
 */
static __always_inline __u32 check_sender(const struct frame *f, const void *h, __u32 len,
					  struct message *m)
{
	const struct saina_job_conf *conf = m->conf;
	bool probe = m->type == SAINA_MSG_PROBE, ask = m->type == SAINA_MSG_ASK;
	bool doorbell = m->type == SAINA_MSG_DOORBELL;
	struct ctx_in *in = &m->in;
	__u32 count, reason;

	reason = check_source(f, m->binding);
	if (reason != COUNT_NONE)
		return reason;
	if (H(__u64, h, session) != m->binding->session)
		return SAINA_C_SESSION;
	if (conf->state != SAINA_JOB_RUNNING && !(probe && conf->state == SAINA_JOB_FORMING))
		return SAINA_C_NOT_RUNNING;
	in->active = conf->active;
	in->session = m->binding->session;
	if (!probe && !(in->active >> in->worker & 1))
		return SAINA_C_INACTIVE;
	count = H(__u16, h, count);
	if (len != sizeof(struct saina_hdr) + config_bytes(conf, count) +
			   (ask ? sizeof(struct saina_ask) :
			    doorbell ? sizeof(struct saina_doorbell) : 0))
		return SAINA_C_LENGTH;
	if (count != (probe || ask || doorbell || m->type == SAINA_MSG_CLOCK ? 0 : conf->payload))
		return SAINA_C_ELEMS;
	if (probe)
		return COUNT_NONE;
	if (H(__u8, h, elem) != conf->elem)
		return SAINA_C_ELEM_TYPE;
	in->segment = H(__u32, h, segment);
	if (in->segment >= conf->segments)
		return SAINA_C_SEGMENT;
	in->round = H(__u32, h, round);
	in->exponent = H(__s8, h, exponent);
	if (!check_exponent(m, in->exponent))
		return SAINA_C_EXPONENT;
	in->bit = 1ull << (in->worker & (SAINA_WORKERS_MAX - 1));
	in->generation = conf->generation;
	in->pool = conf->pool;
	in->lock = (conf->lock_base + (in->segment & (in->pool - 1))) & (SAINA_LOCKS - 1);
	in->pull = m->type == SAINA_MSG_PULL || m->type == SAINA_MSG_READ;
	in->deferred = conf->elem != SAINA_ELEM_INT32;
	return COUNT_NONE;
}

/* Is a READY, HEARTBEAT or LEAVE of a live worker from another source than the worker's? */
static __always_inline bool is_spoofed(HOOK_CTX *ctx, const struct frame *f, const void *h)
{
	__u32 job = H(__u16, h, job), w = H(__u8, h, worker), reason;
	const struct saina_job_conf *conf;
	const struct saina_binding *b;
	struct saina_counters *wc;

	if (job >= SAINA_JOBS_MAX || w >= SAINA_WORKERS_MAX)
		return false;
	conf = config_job(ctx, job);
	if (!conf || !(conf->active >> w & 1))
		return false;
	b = config_binding(conf, w);
	reason = b ? check_source(f, b) : COUNT_NONE;
	if (reason == COUNT_NONE)
		return false;
	wc = config_counters(job, w);
	if (wc)
		count_worker(wc, reason);
	return true;
}

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

/* An INC or READ that the clock has admitted; as run_payload(). */
static __always_inline int run_ps(struct saina_ctx *c, const struct saina_job_conf *conf, void *p,
				  const void *end, bool bounded)
{
#define RUN_PS_CASE(E)							\
	case E:									\
		if (bounded && p + sizeof(struct payload_##E) > end)		\
			return VERDICT_MISS;					\
		if (c->in.pull && c->ps.view)				\
			return ps_view_##E(c, conf, p);			\
		return ps_run_##E(c, conf, p, p);

	switch (conf->payload) {
	SAINA_ELEMS_LIST(RUN_PS_CASE)
	}
	return VERDICT_DROP;
}

/**
 * run_payload() - a GRAD or PULL to its slot, an INC or READ to the parameter server
 * @c: the message, checked
 * @conf: its job's snapshot
 * @p: its payload, and room for the result; SHM_HEAD_LEN bytes before it are readable
 * @end: if @bounded, where its memory ends; else there is room for the largest payload
 * @bounded: a constant
 * @ps: a constant: INC or READ
 *
 * Return: enum verdict; VERDICT_MISS: @p has not all of the payload.
 */
static __always_inline int run_payload(struct saina_ctx *c, const struct saina_job_conf *conf,
				       void *p, const void *end, bool bounded, bool ps)
{
	if (ps)
		return run_ps(c, conf, p, end, bounded);
#define RUN_CASE(E)								\
	case E:									\
		if (bounded && p + sizeof(struct payload_##E) > end)		\
			return VERDICT_MISS;					\
		return slot_run_##E(c, conf, p - SHM_HEAD_LEN, p - SHM_HEAD_LEN);
#ifdef SAINA_KMOD
#define RUN_HALF_CASE(E)							\
	case E:									\
		if (bounded && p + sizeof(struct payload_half_##E) > end)		\
			return VERDICT_MISS;					\
		return slot_run_half_##E(c, conf, p - SHM_HEAD_LEN, p - SHM_HEAD_LEN);

	if (conf->elem == SAINA_ELEM_BFLOAT16) {
		switch (conf->payload) {
		SAINA_ELEMS_LIST(RUN_HALF_CASE)
		}
		return VERDICT_DROP;
	}
#endif
	switch (conf->payload) {
	SAINA_ELEMS_LIST(RUN_CASE)
	}
	return VERDICT_DROP;
}

/* The common case: true if it was one.  @bounded, @end: as run_payload(). */
static __always_inline bool run_add(struct message *m, const void *p, const void *end, bool bounded)
{
	if (m->type != SAINA_MSG_GRAD || slot_is_deferred(&m->in))
		return false;
	switch (m->conf->payload) {
#define RUN_ADD_CASE(E)							\
	case E:									\
		return (!bounded || p + sizeof(struct payload_##E) <= end) &&	\
		       slot_add_##E(&m->in, p);
	SAINA_ELEMS_LIST(RUN_ADD_CASE)
	}
	return false;
}

/* Rate limit of ASKs. */
#define ASKS_MAX	64	/* of a worker in ASKS_NS */
#define ASKS_NS	1048576

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
	c->out.reason = SAINA_C_ASK_LIMIT;
	if (!may_ask(&c->in))
		return VERDICT_DROP;
	c->ask.counted = 0;
	c->ask.done = 0;
	c->ask.due = 0;
	c->in.now = bpf_ktime_get_ns();
	switch (conf->payload) {
#define ASK_CASE(E)	\
	case E:			\
		slot_ask_reply_##E(c, conf);	\
		break;
	SAINA_ELEMS_LIST(ASK_CASE)
	}
	c->out.next_round = rt->next_round;
	if (c->ask.done || !round_gone(rt, c->in.round))
		return VERDICT_ASK_REPLY;
	return VERDICT_STALE;
}

/* A GRAD or PULL whose payload run_add() did not take: the hook's. */
static __always_inline int hook_run(HOOK_CTX *ctx, struct saina_ctx *c,
				    const struct saina_job_conf *conf, bool ps);

/*
 * Counts the verdict for the worker.  A global function, which the verifier does not walk for
 * each segment of a DOORBELL.
 */
__noinline int count_verdict(const struct saina_ctx *c, struct saina_counters *wc)
{
	if (!c || !wc)
		return 0;
	if (c->out.counted == SAINA_C_ADDED)
		wc->c[SAINA_C_ADDED]++;
	else if (c->out.counted == SAINA_C_STORED)
		wc->c[SAINA_C_STORED]++;
	if (c->out.coarsened)
		wc->c[SAINA_C_COARSENED]++;
	if ((c->out.counted == SAINA_C_ADDED || c->out.counted == SAINA_C_STORED) &&
	    slot_is_nan(c->in.exponent))
		wc->c[SAINA_C_NONFINITE]++;
	switch (c->out.verdict) {
	case VERDICT_RESULT_ALL:
		wc->c[SAINA_C_COMPLETED]++;
		if (c->out.flags & SAINA_F_DEGRADED)
			wc->c[SAINA_C_DEGRADED]++;
		break;
	case VERDICT_RESULT:
		if (c->in.pull)
			wc->c[SAINA_C_PULLED]++;
		else if (c->out.mask & c->in.bit)
			wc->c[SAINA_C_RESENT]++;
		else
			wc->c[SAINA_C_LATE]++;
		break;
	case VERDICT_STALE:
		wc->c[SAINA_C_STALE]++;
		break;
	case VERDICT_ASK_REPLY:
		wc->c[SAINA_C_ASKED]++;
		break;
	case VERDICT_NAK:
		wc->c[SAINA_C_MODE]++;
		break;
	case VERDICT_DROP:
		count_worker(wc, c->out.reason);
		break;
	}
	return 0;
}

/*
 * An INC, READ or CLOCK.  A separate function, which calls the clock and the parameter server
 * one after the other, to stay within 512 bytes of stack.
 */
static __noinline int dispatch_step(HOOK_CTX *ctx, struct saina_ctx *c,
				    const struct saina_job_conf *conf, struct saina_counters *wc)
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
			verdict = hook_run(ctx, c, conf, true);
		event_flush(ctx);
	}
	c->out.verdict = verdict;
	count_worker(wc, verdict == VERDICT_DROP ? c->out.reason : c->out.counted);
	if (c->ps.must_wait)
		count_worker(wc, SAINA_C_CLOCK_WAIT);
	return verdict;
}

/* Segment @i of a DOORBELL, as if it had come in a GRAD of its own.  False: no more of them */
static __always_inline bool shm_doorbell_segment(struct saina_ctx *c,
						 const struct saina_job_conf *conf,
						 struct saina_counters *wc, __u32 i)
{
	int verdict = VERDICT_DROP;

	c->in.lock = (conf->lock_base + (c->in.segment & (c->in.pool - 1))) & (SAINA_LOCKS - 1);
	ctx_reset(c);
	switch (conf->payload) {
#define DOORBELL_CASE(E)			\
	case E:					\
		verdict = shm_run_##E(c, conf);	\
		break;
	SAINA_ELEMS_LIST(DOORBELL_CASE)
	}
	c->out.verdict = verdict;
	/* of segment 0, which can only be the first of them */
	if (!i && c->out.opened_at) {
		lateness_record(&c->in, c->out.opened_at);
		c->out.opened_at = 0;
	}
	if (verdict == VERDICT_STALE || verdict == VERDICT_NAK)
		return false;
	if (verdict == VERDICT_RESULT_ALL || verdict == VERDICT_RESULT)
		c->doorbell.done |= 1ull << (i & (SAINA_DOORBELL_SEGMENTS - 1));
	if (verdict == VERDICT_RESULT_ALL)
		c->completed = 1;
	count_verdict(c, wc);
	return true;
}

/* A DOORBELL; c->doorbell.posted is set. */
static __always_inline int shm_doorbell(struct saina_ctx *c, const struct saina_job_conf *conf,
					struct saina_counters *wc)
{
	__u32 first = c->in.segment, i;
	__u64 posted = c->doorbell.posted;

	c->by_doorbell = true;
	c->doorbell.done = 0;
	c->completed = 0;
	c->out.verdict = VERDICT_DROP;
	for (i = 0; i < SAINA_DOORBELL_SEGMENTS; i++) {
		if (!(posted >> i & 1))
			continue;
		c->in.segment = first + i;
		if (c->in.segment >= conf->segments || !shm_doorbell_segment(c, conf, wc, i))
			break;
	}
	if (c->doorbell.done) {
		c->in.segment = first;
		return c->completed ? VERDICT_COMPLETION_ALL : VERDICT_COMPLETION;
	}
	/* a NAK or STALE names the segment it is about */
	if (c->out.verdict == VERDICT_NAK) {
		wc->c[SAINA_C_MODE]++;
		return VERDICT_NAK;
	}
	if (c->out.verdict != VERDICT_STALE)
		return VERDICT_CONSUMED;
	wc->c[SAINA_C_STALE]++;
	return VERDICT_STALE;
}

/**
 * dispatch_data() - check a data message and do what it asks for; its reply is not sent
 * @ctx: the hook's
 * @f: its frame
 * @h: its header
 * @len: bytes of header and payload, as far as the frame goes
 * @p: its payload; sizeof(struct saina_ask) bytes of it may be read if @len says so
 * @end: as run_payload()
 * @bounded: as run_payload()
 * @m: 0
 *
 * Return: enum verdict, counted in m->wc; what the reply says is in m->c
 */
static __always_inline int dispatch_data(HOOK_CTX *ctx, const struct frame *f, const void *h,
					 __u32 len, const void *p, const void *end, bool bounded,
					 struct message *m)
{
	const struct saina_job_conf *plain;
	const struct saina_job_rt *rt;
	struct ctx_scratch *scratch;
	struct saina_ctx *c;
	__u32 job, reason;
	int verdict;

	reason = check_message(ctx, h, m);
	if (reason != COUNT_NONE)
		goto drop_global;
	job = m->in.job;
	reason = SAINA_C_INTERNAL;
	m->wc = config_counters(job, m->in.worker);
	if (!m->wc)
		goto drop_global;
	reason = check_sender(f, h, len, m);
	if (reason != COUNT_NONE)
		goto drop;
	rt = bpf_map_lookup_elem(&saina_rt, &job);
	reason = SAINA_C_INTERNAL;
	if (!rt || rt->generation != m->conf->generation)
		goto drop;
	if (run_add(m, p, end, bounded)) {
		m->wc->c[SAINA_C_ADDED]++;
		return VERDICT_CONSUMED;
	}
	if (m->type == SAINA_MSG_PROBE) {
		m->wc->c[SAINA_C_PROBED]++;
		return VERDICT_PROBE_REPLY;
	}

	scratch = ctx_scratch();
	plain = config_plain(m->conf);
	if (!scratch || !plain)
		goto drop;
	c = &scratch->ctx;
	m->c = c;
	ctx_init(c, &m->in);
	if (ps_is_type(m->type)) {
		c->ps.session = H(__u64, h, session);
		c->ps.is_clock = m->type == SAINA_MSG_CLOCK;
		return dispatch_step(ctx, c, plain, m->wc);
	}
	if (rt->mode == SAINA_RT_PS && c->in.round >= rt->base) {
		m->wc->c[SAINA_C_MODE]++;
		return ctx_nak_mode(c, rt->base);
	}
	if (m->type == SAINA_MSG_ASK || m->type == SAINA_MSG_DOORBELL) {
		__u64 first;

		if (!bounded || p + sizeof(first) <= end)
			first = RD(__u64, p);
		else if (hook_load(ctx, SAINA_DATA_OFF, &first, sizeof(first)))
			goto drop;
		if (m->type == SAINA_MSG_DOORBELL) {
			c->doorbell.posted = first;
			verdict = shm_doorbell(c, plain, m->wc);
			c->out.next_k = rt->k_next;
		} else {
			c->ask.time = first;
			verdict = dispatch_ask(c, plain, rt);
		}
	} else {
		verdict = hook_run(ctx, c, plain, false);
	}
	c->out.verdict = verdict;
	if (c->out.opened_at)
		lateness_record(&c->in, c->out.opened_at);
	if (c->out.verdict == VERDICT_RESULT)
		c->out.next_k = rt->k_next;
	else if (c->out.verdict == VERDICT_STALE)
		event_send(SAINA_EV_STALE, EV_OF(job, c->in.worker, rt->k), c->in.round,
			   c->in.segment, 0);
	event_flush(ctx);
	if (m->type != SAINA_MSG_DOORBELL)
		count_verdict(c, m->wc);
	return c->out.verdict;

drop:
	count_worker(m->wc, reason);
	return VERDICT_DROP;

drop_global:
	count_global(reason);
	return VERDICT_DROP;
}

#endif /* SAINA_MESSAGE_BPF_H */
