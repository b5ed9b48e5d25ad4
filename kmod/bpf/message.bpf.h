/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One message, header and payload in memory, checked on its own: a frame may carry
 * several.  Documentation/datapath.rst sections 1.1 and 2.
 */
#ifndef SAINA_MESSAGE_BPF_H
#define SAINA_MESSAGE_BPF_H

#include "frame.bpf.h"
#include "slot.bpf.h"

/* A field of the header at @h. */
#define H(type, h, field)	RD(type, (h) + offsetof(struct saina_hdr, field))

/* Everything the checks find out about a data message. */
struct message {
	const struct saina_job_conf *conf;
	const struct saina_binding *binding;
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
	if (m->type != SAINA_MSG_GRAD && m->type != SAINA_MSG_PULL && m->type != SAINA_MSG_PROBE) {
		if (m->type == SAINA_MSG_RESULT || m->type == SAINA_MSG_STALE ||
		    m->type == SAINA_MSG_PROBE_REPLY)
			return SAINA_C_FORGED;
		return SAINA_C_TYPE;
	}
	flags = H(__u8, h, flags);
	if (m->type != SAINA_MSG_PROBE)
		flags &= ~SAINA_F_RETRANSMIT;
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

/* Checks 8 to 18, counted for the worker it claims to be from; @len bytes have the whole
 * message.  COUNT_NONE if good: all of m->in is set, then.
 */
static __always_inline __u32 message_check_sender(const struct frame *f, const void *h, __u32 len,
						  struct message *m)
{
	const struct saina_job_conf *conf = m->conf;
	bool probe = m->type == SAINA_MSG_PROBE;
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
	if (!probe && !(in->active >> in->worker & 1))
		return SAINA_C_INACTIVE;
	count = H(__u16, h, count);
	if (len != sizeof(struct saina_hdr) + control_bytes(conf, count))
		return SAINA_C_LENGTH;
	if (count != (probe ? 0 : conf->payload))
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
	in->bit = 1ull << (in->worker & (SAINA_WORKERS_MAX - 1));
	in->generation = conf->generation;
	in->pool = conf->pool;
	in->lock = (conf->lock_base + (in->segment & (in->pool - 1))) & (SAINA_LOCKS - 1);
	in->pull = m->type == SAINA_MSG_PULL;
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
	bpf_map_update_elem(&saina_learned, &from, &place, BPF_NOEXIST);
}

/**
 * message_run() - a GRAD or PULL through the slot machine
 * @c: what has been checked of it
 * @conf: its job's snapshot
 * @p: its payload, and where the result goes
 * @end: if @bounded, where its memory ends; else there is room for the largest payload
 * @bounded: a constant
 *
 * Return: enum slot_verdict; SLOT_MISS: @p has not all of the payload.
 */
static __always_inline int message_run(struct slot_call *c, const struct saina_job_conf *conf,
				       void *p, const void *end, bool bounded)
{
#define MESSAGE_CASE(E)								\
	case E:									\
		if (bounded && p + sizeof(struct payload_##E) > end)		\
			return SLOT_MISS;					\
		return slot_run_##E(c, conf, p, p);
#ifdef SAINA_KMOD
#define MESSAGE_HALF_CASE(E)							\
	case E:									\
		if (bounded && p + sizeof(struct payload_half_##E) > end)		\
			return SLOT_MISS;					\
		return slot_run_half_##E(c, conf, p, p);

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

/* The common case, for a payload that lies before @end: true if it was one. */
static __always_inline bool message_add(const struct message *m, const void *p, const void *end)
{
	if (m->type != SAINA_MSG_GRAD || slot_away(&m->in))
		return false;
	switch (m->conf->payload) {
#define MESSAGE_ADD_CASE(E)							\
	case E:									\
		return p + sizeof(struct payload_##E) <= end && slot_add_##E(&m->in, p);
	SAINA_ELEMS_LIST(MESSAGE_ADD_CASE)
	}
	return false;
}

#endif /* SAINA_MESSAGE_BPF_H */
