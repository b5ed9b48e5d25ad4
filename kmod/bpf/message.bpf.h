/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One message, header and payload in memory, checked on its own: a frame may carry
 * several.  Documentation/datapath.rst sections 1.1 and 2.
 */
#ifndef SAINA_MESSAGE_BPF_H
#define SAINA_MESSAGE_BPF_H

#include "frame.bpf.h"
#include "slot.bpf.h"
#include "table.bpf.h"
#include "arrival.bpf.h"

/* A field of the header at @h. */
#define H(type, h, field)	RD(type, (h) + offsetof(struct saina_hdr, field))

/* Everything the checks find out about a data message, and what became of it. */
struct message {
	const struct saina_job_conf *conf;
	const struct saina_binding *binding;
	struct saina_counters *wc;
	struct slot_call *call;
	struct slot_in in;
	__u32 type;
};

/* A worker's binding, NULL if it has none. */
static __always_inline const struct saina_binding *
message_binding(const struct saina_job_conf *conf, __u32 w)
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

/* Checks 2 to 7: what cannot be ascribed to a worker.  COUNT_NONE if good. */
static __always_inline __u32 message_check(HOOK_CTX *ctx, const void *h, struct message *m)
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
	m->conf = control_job(ctx, m->in.job);
	if (!m->conf)
		return SAINA_C_NO_JOB;
	m->in.worker = H(__u8, h, worker);
	m->binding = message_binding(m->conf, m->in.worker);
	return m->binding ? COUNT_NONE : SAINA_C_NO_WORKER;
}

/* Check 19: is the block scale of a GRAD or INC one that can be? */
static __always_inline bool message_exponent_fits(const struct message *m, __s32 e)
{
	if (m->type == SAINA_MSG_GRAD)
		return m->conf->elem == SAINA_ELEM_INT32 ? slot_is_exponent(e) : !e;
	return m->type != SAINA_MSG_INC || (slot_is_exponent(e) && !slot_is_nan(e));
}

/* Checks 8 to 19, counted for the worker it claims to be from; @len bytes have the whole
 * message.  COUNT_NONE if good: all of m->in is set, then.
 */
static __always_inline __u32 message_check_sender(const struct frame *f, const void *h, __u32 len,
						  struct message *m)
{
	const struct saina_job_conf *conf = m->conf;
	bool probe = m->type == SAINA_MSG_PROBE, ask = m->type == SAINA_MSG_ASK;
	bool doorbell = m->type == SAINA_MSG_DOORBELL;
	struct slot_in *in = &m->in;
	__u32 count, reason;

	reason = frame_place(f, m->binding);
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
	if (len != sizeof(struct saina_hdr) + control_bytes(conf, count) +
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
	if (!message_exponent_fits(m, in->exponent))
		return SAINA_C_EXPONENT;
	in->bit = 1ull << (in->worker & (SAINA_WORKERS_MAX - 1));
	in->generation = conf->generation;
	in->pool = conf->pool;
	in->lock = (conf->lock_base + (in->segment & (in->pool - 1))) & (SAINA_LOCKS - 1);
	in->pull = m->type == SAINA_MSG_PULL || m->type == SAINA_MSG_READ;
	in->away = conf->elem != SAINA_ELEM_INT32;
	return COUNT_NONE;
}

/* READY, HEARTBEAT or LEAVE in the name of a live worker, but not from its place? */
static __always_inline bool message_is_spoofed(HOOK_CTX *ctx, const struct frame *f, const void *h)
{
	__u32 job = H(__u16, h, job), w = H(__u8, h, worker), reason;
	const struct saina_job_conf *conf;
	const struct saina_binding *b;
	struct saina_counters *wc;

	if (job >= SAINA_JOBS_MAX || w >= SAINA_WORKERS_MAX)
		return false;
	conf = control_job(ctx, job);
	if (!conf || !(conf->active >> w & 1))
		return false;
	b = message_binding(conf, w);
	reason = b ? frame_place(f, b) : COUNT_NONE;
	if (reason == COUNT_NONE)
		return false;
	wc = control_counters(job, w);
	if (wc)
		count_worker(wc, reason);
	return true;
}

/* Where the JOIN at @h, whole, came from: what nobody but the data path knows. */
static __always_inline void message_learn(const struct frame *f, const void *h)
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

/* A control message, of which what is linear ends at @end: does it go up to the agent? */
static __always_inline bool message_control(HOOK_CTX *ctx, const struct frame *f, const void *end)
{
	const void *h = f->head + SAINA_HDR_OFF;

	if (h + sizeof(struct saina_hdr) <= end && H(__u8, h, version) == SAINA_PROTO_VERSION) {
		__u32 type = H(__u8, h, type);

		if ((type == SAINA_MSG_READY || type == SAINA_MSG_HEARTBEAT ||
		     type == SAINA_MSG_LEAVE) && message_is_spoofed(ctx, f, h))
			return false;
		if (type == SAINA_MSG_JOIN &&
		    h + sizeof(struct saina_hdr) + sizeof(struct saina_join) <= end)
			message_learn(f, h);
	}
	count_global(SAINA_C_CONTROL);
	return true;
}

/* An INC or READ that its clock has let through; as message_run(). */
static __always_inline int message_table(struct slot_call *c, const struct saina_job_conf *conf,
					 void *p, const void *end, bool bounded)
{
#define MESSAGE_TABLE_CASE(E)							\
	case E:									\
		if (bounded && p + sizeof(struct payload_##E) > end)		\
			return SLOT_MISS;					\
		if (c->in.pull && c->table.view)				\
			return table_view_##E(c, conf, p);			\
		return table_run_##E(c, conf, p, p);

	switch (conf->payload) {
	SAINA_ELEMS_LIST(MESSAGE_TABLE_CASE)
	}
	return SLOT_DROP;
}

/**
 * message_run() - a GRAD or PULL through the slot machine, an INC or READ through the table
 * @c: what has been checked of it
 * @conf: its job's snapshot
 * @p: its payload, and where the result goes; SLOT_BEFORE bytes before it are there, too
 * @end: if @bounded, where its memory ends; else there is room for the largest payload
 * @bounded: a constant
 * @table: a constant: INC or READ
 *
 * Return: enum slot_verdict; SLOT_MISS: @p has not all of the payload.
 */
static __always_inline int message_run(struct slot_call *c, const struct saina_job_conf *conf,
				       void *p, const void *end, bool bounded, bool table)
{
	if (table)
		return message_table(c, conf, p, end, bounded);
#define MESSAGE_CASE(E)								\
	case E:									\
		if (bounded && p + sizeof(struct payload_##E) > end)		\
			return SLOT_MISS;					\
		return slot_run_##E(c, conf, p - SLOT_BEFORE, p - SLOT_BEFORE);
#ifdef SAINA_KMOD
#define MESSAGE_HALF_CASE(E)							\
	case E:									\
		if (bounded && p + sizeof(struct payload_half_##E) > end)		\
			return SLOT_MISS;					\
		return slot_run_half_##E(c, conf, p - SLOT_BEFORE, p - SLOT_BEFORE);

	if (conf->elem == SAINA_ELEM_BFLOAT16) {
		switch (conf->payload) {
		SAINA_ELEMS_LIST(MESSAGE_HALF_CASE)
		}
		return SLOT_DROP;
	}
#endif
	switch (conf->payload) {
	SAINA_ELEMS_LIST(MESSAGE_CASE)
	}
	return SLOT_DROP;
}

/* The common case: true if it was one.  @bounded, @end: as message_run(). */
static __always_inline bool message_add(struct message *m, const void *p, const void *end,
					bool bounded)
{
	if (m->type != SAINA_MSG_GRAD || slot_away(&m->in))
		return false;
	switch (m->conf->payload) {
#define MESSAGE_ADD_CASE(E)							\
	case E:									\
		return (!bounded || p + sizeof(struct payload_##E) <= end) &&	\
		       slot_add_##E(&m->in, p);
	SAINA_ELEMS_LIST(MESSAGE_ADD_CASE)
	}
	return false;
}

/* How many questions of a worker have been answered lately. */
#define MESSAGE_ASKS	64	/* in a MESSAGE_ASK_NS */
#define MESSAGE_ASK_NS	1048576

static __always_inline bool message_may_ask(const struct slot_in *in)
{
	__u32 key = in->job * SAINA_WORKERS_MAX + in->worker;
	struct saina_asked *a = bpf_map_lookup_elem(&saina_asked, &key);
	__u32 when = bpf_ktime_get_ns() / MESSAGE_ASK_NS;

	if (!a)
		return false;
	if (a->when != when) {
		a->when = when;
		a->count = 0;
	}
	return a->count++ < MESSAGE_ASKS;
}

/* An ASK; what it says of the time is in c->told already. */
static __always_inline int message_ask(struct slot_call *c, const struct saina_job_conf *conf,
				       const struct saina_job_rt *rt)
{
	c->out.reason = SAINA_C_ASK_LIMIT;
	if (!message_may_ask(&c->in))
		return SLOT_DROP;
	c->told.counted = 0;
	c->told.done = 0;
	c->told.due = 0;
	c->in.now = bpf_ktime_get_ns();
	switch (conf->payload) {
#define MESSAGE_ASK_CASE(E)	\
	case E:			\
		slot_told_##E(c, conf);	\
		break;
	SAINA_ELEMS_LIST(MESSAGE_ASK_CASE)
	}
	c->out.next_round = rt->next_round;
	if (c->told.done || !round_gone(rt, c->in.round))
		return SLOT_ASK_REPLY;
	return SLOT_STALE;
}

/* A GRAD or PULL whose payload message_add() did not take: the hook's. */
static __always_inline int hook_run(HOOK_CTX *ctx, struct slot_call *c,
				    const struct saina_job_conf *conf, bool table);

/*
 * What has become of a message, in the counters of its worker.  A function of its own for the
 * verifier, which would go through it for each segment of a DOORBELL.
 */
__noinline int message_count(const struct slot_call *c, struct saina_counters *wc)
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
	case SLOT_RESULT:
		wc->c[SAINA_C_COMPLETED]++;
		if (c->out.flags & SAINA_F_DEGRADED)
			wc->c[SAINA_C_DEGRADED]++;
		break;
	case SLOT_ANSWER:
		if (c->in.pull)
			wc->c[SAINA_C_PULLED]++;
		else if (c->out.mask & c->in.bit)
			wc->c[SAINA_C_RESENT]++;
		else
			wc->c[SAINA_C_LATE]++;
		break;
	case SLOT_STALE:
		wc->c[SAINA_C_STALE]++;
		break;
	case SLOT_ASK_REPLY:
		wc->c[SAINA_C_ASKED]++;
		break;
	case SLOT_NAK:
		wc->c[SAINA_C_MODE]++;
		break;
	case SLOT_DROP:
		count_worker(wc, c->out.reason);
		break;
	}
	return 0;
}

/*
 * An INC, READ or CLOCK.  A function of its own, and clock and table not one from the
 * other, for the sake of 512 bytes of stack.
 */
static __noinline int message_step(HOOK_CTX *ctx, struct slot_call *c,
				   const struct saina_job_conf *conf, struct saina_counters *wc)
{
	int verdict;

	c->table.waits = 0;
	c->table.over = 0;
	c->out.exponent = 0;
	verdict = round_table(c, conf);
	if (verdict == SLOT_MISS) {
		table_open(c);
		verdict = table_clock(c);
		if (c->out.opened_at)
			arrival_note(&c->in, c->out.opened_at);
		if (verdict != SLOT_DROP && !c->table.after)
			round_follow(c, conf);
		if (verdict == SLOT_MISS)
			verdict = hook_run(ctx, c, conf, true);
		control_flush_events(ctx);
	}
	c->out.verdict = verdict;
	count_worker(wc, verdict == SLOT_DROP ? c->out.reason : c->out.counted);
	if (c->table.waits)
		count_worker(wc, SAINA_C_CLOCK_WAIT);
	return verdict;
}

/* Segment @i of a DOORBELL, as if it had come in a GRAD of its own.  False: no more of them */
static __always_inline bool message_doorbell_one(struct slot_call *c,
					     const struct saina_job_conf *conf,
					     struct saina_counters *wc, __u32 i)
{
	int verdict = SLOT_DROP;

	c->in.lock = (conf->lock_base + (c->in.segment & (c->in.pool - 1))) & (SAINA_LOCKS - 1);
	slot_call_begin(c);
	switch (conf->payload) {
#define MESSAGE_DOORBELL_CASE(E)			\
	case E:					\
		verdict = doorbell_run_##E(c, conf);	\
		break;
	SAINA_ELEMS_LIST(MESSAGE_DOORBELL_CASE)
	}
	c->out.verdict = verdict;
	/* of segment 0, which can only be the first of them */
	if (!i && c->out.opened_at) {
		arrival_note(&c->in, c->out.opened_at);
		c->out.opened_at = 0;
	}
	if (verdict == SLOT_STALE || verdict == SLOT_NAK)
		return false;
	if (verdict == SLOT_RESULT || verdict == SLOT_ANSWER)
		c->doorbell.done |= 1ull << (i & (SAINA_DOORBELL_SEGMENTS - 1));
	if (verdict == SLOT_RESULT)
		c->completed = 1;
	message_count(c, wc);
	return true;
}

/* A DOORBELL; what it rings for is in c->doorbell already. */
static __always_inline int message_doorbell(struct slot_call *c, const struct saina_job_conf *conf,
					struct saina_counters *wc)
{
	__u32 first = c->in.segment, i;
	__u64 rung = c->doorbell.posted;

	c->rung = true;
	c->doorbell.done = 0;
	c->completed = 0;
	c->out.verdict = SLOT_DROP;
	for (i = 0; i < SAINA_DOORBELL_SEGMENTS; i++) {
		if (!(rung >> i & 1))
			continue;
		c->in.segment = first + i;
		if (c->in.segment >= conf->segments || !message_doorbell_one(c, conf, wc, i))
			break;
	}
	if (c->doorbell.done) {
		c->in.segment = first;
		return c->completed ? SLOT_COMPLETION : SLOT_COMPLETION_ONE;
	}
	/* about the segment that it is true of; all else is counted */
	if (c->out.verdict == SLOT_NAK) {
		wc->c[SAINA_C_MODE]++;
		return SLOT_NAK;
	}
	if (c->out.verdict != SLOT_STALE)
		return SLOT_KEPT;
	wc->c[SAINA_C_STALE]++;
	return SLOT_STALE;
}

/**
 * message_data() - all that becomes of a data message, but sending
 * @ctx: the hook's
 * @f: its frame
 * @h: its header
 * @len: bytes of header and payload, as far as the frame goes
 * @p: its payload; sizeof(struct saina_ask) bytes of it may be read if @len says so
 * @end: as message_run()
 * @bounded: as message_run()
 * @m: 0
 *
 * Return: enum slot_verdict: RESULT, ANSWER, STALE, ASK_REPLY, SUM, NAK, GO and GO_ALL are in
 * m->call, to be sent, and
 * PROBED is to be answered; counted in m->wc
 */
static __always_inline int message_data(HOOK_CTX *ctx, const struct frame *f, const void *h,
					__u32 len, const void *p, const void *end, bool bounded,
					struct message *m)
{
	const struct saina_job_conf *plain;
	const struct saina_job_rt *rt;
	struct slot_scratch *scratch;
	struct slot_call *c;
	__u32 job, reason;
	int verdict;

	reason = message_check(ctx, h, m);
	if (reason != COUNT_NONE)
		goto drop_global;
	job = m->in.job;
	reason = SAINA_C_INTERNAL;
	m->wc = control_counters(job, m->in.worker);
	if (!m->wc)
		goto drop_global;
	reason = message_check_sender(f, h, len, m);
	if (reason != COUNT_NONE)
		goto drop;
	rt = bpf_map_lookup_elem(&saina_rt, &job);
	reason = SAINA_C_INTERNAL;
	if (!rt || rt->generation != m->conf->generation)
		goto drop;
	if (message_add(m, p, end, bounded)) {
		m->wc->c[SAINA_C_ADDED]++;
		return SLOT_KEPT;
	}
	if (m->type == SAINA_MSG_PROBE) {
		m->wc->c[SAINA_C_PROBED]++;
		return SLOT_PROBED;
	}

	scratch = slot_scratch();
	plain = control_plain(m->conf);
	if (!scratch || !plain)
		goto drop;
	c = &scratch->call;
	m->call = c;
	slot_call_init(c, &m->in);
	if (table_is_type(m->type)) {
		c->table.session = H(__u64, h, session);
		c->table.tick = m->type == SAINA_MSG_CLOCK;
		return message_step(ctx, c, plain, m->wc);
	}
	if (rt->mode == SAINA_RT_PS && c->in.round >= rt->base) {
		m->wc->c[SAINA_C_MODE]++;
		return slot_other_mode(c, rt->base);
	}
	if (m->type == SAINA_MSG_ASK || m->type == SAINA_MSG_DOORBELL) {
		__u64 first;

		if (!bounded || p + sizeof(first) <= end)
			first = RD(__u64, p);
		else if (hook_load(ctx, SAINA_DATA_OFF, &first, sizeof(first)))
			goto drop;
		if (m->type == SAINA_MSG_DOORBELL) {
			c->doorbell.posted = first;
			verdict = message_doorbell(c, plain, m->wc);
			c->out.next_k = rt->k_next;
		} else {
			c->told.time = first;
			verdict = message_ask(c, plain, rt);
		}
	} else {
		verdict = hook_run(ctx, c, plain, false);
	}
	c->out.verdict = verdict;
	if (c->out.opened_at)
		arrival_note(&c->in, c->out.opened_at);
	if (c->out.verdict == SLOT_ANSWER)
		c->out.next_k = rt->k_next;
	else if (c->out.verdict == SLOT_STALE)
		control_event(SAINA_EV_STALE, EV_OF(job, c->in.worker, rt->k), c->in.round,
			      c->in.segment, 0);
	control_flush_events(ctx);
	if (m->type != SAINA_MSG_DOORBELL)
		message_count(c, m->wc);
	return c->out.verdict;

drop:
	count_worker(m->wc, reason);
	return SLOT_DROP;

drop_global:
	count_global(reason);
	return SLOT_DROP;
}

#endif /* SAINA_MESSAGE_BPF_H */
