/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Checks of a message, in the order of Documentation/datapath.rst sections 1.1 and 2: version,
 * type, job, worker, source, session, states, length, segment, exponent.
 */
#ifndef SAINA_CHECK_BPF_H
#define SAINA_CHECK_BPF_H

#include "config.bpf.h"
#include "count.bpf.h"
#include "ctx.bpf.h"
#include "parse.bpf.h"

/*
 * A data message: what the checks found, and what became of it.  A FETCH has the type DOORBELL, and
 * pulls.
 */
struct message {
	const struct saina_job_conf *conf;
	const struct saina_binding *binding;
	struct saina_counters *wc;
	struct saina_ctx *c;
	struct ctx_in in;
	__u32 type;
};

/* A worker's binding, NULL if it has none. */
static __always_inline const struct saina_binding *check_binding(const struct saina_job_conf *conf,
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

/* Checks 8 to 11: does it come from where the worker was admitted?  COUNT_NONE if so. */
static __always_inline __u32 check_source(const struct frame *f, const struct saina_binding *b)
{
	if (f->ifindex != b->ifindex)
		return SAINA_C_BAD_PORT;
	if (RD(__u32, f->head + 6) != RD(__u32, b->mac) ||
	    RD(__u16, f->head + 10) != RD(__u16, b->mac + 4))
		return SAINA_C_BAD_MAC;
	if (RD(__be32, f->head + SAINA_IP_OFF + 12) != b->ip)
		return SAINA_C_BAD_IP;
	if (RD(__be16, f->head + SAINA_UDP_OFF) != b->udp_port)
		return SAINA_C_BAD_UDP;
	return COUNT_NONE;
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
		/* check 20 */
		flags = 0;
		break;
	case SAINA_MSG_PULL:
	case SAINA_MSG_INC:
	case SAINA_MSG_READ:
	case SAINA_MSG_CLOCK:
	case SAINA_MSG_DOORBELL:
		flags &= ~SAINA_F_RETRANSMIT;
		break;
	case SAINA_MSG_FETCH:
		/* one type, or the verifier walks all that follows twice */
		m->type = SAINA_MSG_DOORBELL;
		m->in.pull = true;
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
	m->binding = check_binding(m->conf, m->in.worker);
	return m->binding ? COUNT_NONE : SAINA_C_NO_WORKER;
}

/* Flags that a result of the parent's job has when it comes back. */
#define FLAGS_ABOVE	(SAINA_F_LATE | SAINA_F_DEGRADED | SAINA_F_DROP_LATE)

/* Checks 20 and 21 of a GRAD: its flags and its weight, which are in @in. */
static __always_inline __u32 check_weight(const struct message *m)
{
	__u32 flags = m->in.flags & ~SAINA_F_RETRANSMIT;

	if (m->in.uplink & UPLINK_SENDER)
		flags &= ~FLAGS_ABOVE;
	/* of integers and floats elsewhere in the tree */
	if (m->binding->max_weight > 1 && exponent_is_nan(m->in.exponent))
		flags &= ~SAINA_F_TYPES;
	if (flags)
		return SAINA_C_FLAGS;
	return m->in.weight && m->in.weight >= m->binding->max_weight ? SAINA_C_WEIGHT : COUNT_NONE;
}

/* Check 14: PULL and ASK of a node pass without its bit, and all of the uplink worker. */
static __always_inline bool check_active(const struct message *m)
{
	if ((m->conf->active | m->conf->uplink) >> m->in.worker & 1)
		return true;
	return m->binding->max_weight > 1 &&
	       (m->type == SAINA_MSG_PULL || m->type == SAINA_MSG_ASK);
}

/* Check 19: is the block scale of a GRAD or INC valid? */
static __always_inline bool check_exponent(const struct message *m, __s32 e)
{
	if (m->type == SAINA_MSG_GRAD)
		return elem_is_int(m->conf->elem) ? exponent_is_valid(m->conf->elem, e) : !e;
	return m->type != SAINA_MSG_INC ||
	       (exponent_is_valid(m->conf->elem, e) && !exponent_is_nan(e));
}

/* Checks 8 to 21, counted for the worker it claims to be from; @len bytes have the whole
 * message.  COUNT_NONE if good; m->in then has its fields, but few of them for a PROBE.
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
	if (!probe && !check_active(m))
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
	if (conf->uplink)
		in->uplink = UPLINK_JOB | (conf->uplink & in->bit ? UPLINK_SENDER : 0);
	in->flags = H(__u8, h, flags);
	in->weight = H(__u32, h, slot_round);
	in->generation = conf->generation;
	in->pool = conf->pool;
	in->lock = (conf->lock_base + (in->segment & (in->pool - 1))) & (SAINA_LOCKS - 1);
	if (m->type == SAINA_MSG_PULL || m->type == SAINA_MSG_READ)
		in->pull = true;
	in->elem = conf->elem;
	/* most gradients have neither */
	if (m->type == SAINA_MSG_GRAD && (in->flags | in->weight))
		return check_weight(m);
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
	if (!conf || !((conf->active | conf->uplink) >> w & 1))
		return false;
	b = check_binding(conf, w);
	reason = b ? check_source(f, b) : COUNT_NONE;
	if (reason == COUNT_NONE)
		return false;
	wc = worker_counters(job, w);
	if (wc)
		count_worker(wc, reason);
	return true;
}

#endif /* SAINA_CHECK_BPF_H */
