// SPDX-License-Identifier: GPL-2.0
/*
 * The XDP program on the ports of the bridge.  What it must do:
 * Documentation/datapath.rst.  This file sorts and checks frames; the slot
 * machine (slot.bpf.h) decides, answer.bpf.h writes.
 */
#include "maps.bpf.h"
#include "control.bpf.h"
#include "slot.bpf.h"
#ifdef SAINA_KMOD
#include "float.bpf.h"
#endif
#include "answer.bpf.h"
#include "inject.bpf.h"
#include "framing.bpf.h"

char _license[] SEC("license") = "GPL";

/* Everything the checks find out about a data message. */
struct message {
	const struct saina_job_conf *conf;
	const struct saina_binding *binding;
	struct slot_key key;
	__u32 type;
	bool linear;
};

/* Checks 1 to 7: what cannot be ascribed to a worker.  SLOT_NONE if good. */
static __always_inline __u32 check_message(struct xdp_md *ctx, struct message *m)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 ip_len, udp_len, flags, w;

	if (data + SAINA_HDR_OFF > end)
		return SAINA_C_TRUNCATED;
	ip_len = bpf_ntohs(RD(__be16, data + SAINA_IP_OFF + 2));
	udp_len = bpf_ntohs(RD(__be16, data + SAINA_UDP_OFF + 4));
	if (udp_len < sizeof(struct udphdr) + sizeof(struct saina_hdr) || udp_len != ip_len - 20)
		return SAINA_C_TRUNCATED;
	m->linear = data + ETH_HLEN + ip_len <= end;
	if (!m->linear && bpf_xdp_get_buff_len(ctx) < ETH_HLEN + ip_len)
		return SAINA_C_TRUNCATED;
	if (data + SAINA_DATA_OFF > end)
		return SAINA_C_TRUNCATED;
	if (RD(__u8, data + HDR_OFF(version)) != SAINA_PROTO_VERSION)
		return SAINA_C_VERSION;
	m->type = RD(__u8, data + HDR_OFF(type));
	if (m->type != SAINA_MSG_GRAD && m->type != SAINA_MSG_PULL && m->type != SAINA_MSG_PROBE) {
		if (m->type == SAINA_MSG_RESULT || m->type == SAINA_MSG_STALE ||
		    m->type == SAINA_MSG_PROBE_REPLY)
			return SAINA_C_FORGED;
		return SAINA_C_TYPE;
	}
	flags = RD(__u8, data + HDR_OFF(flags));
	if (m->type != SAINA_MSG_PROBE)
		flags &= ~SAINA_F_RETRANSMIT;
	if (flags || RD(__u16, data + HDR_OFF(k)))	/* and reserved */
		return SAINA_C_FLAGS;
	m->key.job = RD(__u16, data + HDR_OFF(job));
	if (m->key.job >= SAINA_JOBS_MAX)
		return SAINA_C_NO_JOB;
	m->conf = control_job(ctx, m->key.job);
	if (!m->conf)
		return SAINA_C_NO_JOB;
	w = RD(__u8, data + HDR_OFF(worker));
	m->key.worker = w;
	if (w >= SAINA_WORKERS_MAX)
		return SAINA_C_NO_WORKER;
	/* 6.1 forgets the bound of a copy that was spilled before the compare;
	 * the asm keeps clang from dropping the mask */
	asm volatile("" : "+r"(w));
	m->binding = &m->conf->worker[w & (SAINA_WORKERS_MAX - 1)];
	if (!(m->binding->flags & SAINA_BIND_BOUND))
		return SAINA_C_NO_WORKER;
	return SLOT_NONE;
}

/* Checks 8 to 11: does it come from where the worker was admitted? */
static __always_inline __u32 check_place(struct xdp_md *ctx, const struct saina_binding *b)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (data + SAINA_DATA_OFF > end)
		return SAINA_C_TRUNCATED;
	if (ctx->ingress_ifindex != b->ifindex)
		return SAINA_C_BAD_PORT;
	if (RD(__u32, data + 6) != RD(__u32, b->mac) || RD(__u16, data + 10) != RD(__u16, b->mac + 4))
		return SAINA_C_BAD_MAC;
	if (RD(__be32, data + SAINA_IP_OFF + 12) != b->ip)
		return SAINA_C_BAD_IP;
	if (RD(__be16, data + SAINA_UDP_OFF) != b->udp_port)
		return SAINA_C_BAD_UDP;
	return SLOT_NONE;
}

/* Checks 8 to 18: counted for the worker it claims to be from. */
static __always_inline __u32 check_worker(struct xdp_md *ctx, struct message *m)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct saina_job_conf *conf = m->conf;
	const struct saina_binding *b = m->binding;
	bool probe = m->type == SAINA_MSG_PROBE;
	__u32 count, udp_len, reason;

	reason = check_place(ctx, b);
	if (reason != SLOT_NONE)
		return reason;
	if (data + SAINA_DATA_OFF > end)
		return SAINA_C_TRUNCATED;
	if (RD(__u64, data + HDR_OFF(session)) != b->session)
		return SAINA_C_SESSION;
	if (conf->state != SAINA_JOB_RUNNING && !(probe && conf->state == SAINA_JOB_FORMING))
		return SAINA_C_NOT_RUNNING;
	if (!probe && !(conf->active >> m->key.worker & 1))
		return SAINA_C_INACTIVE;
	count = RD(__u16, data + HDR_OFF(count));
	udp_len = bpf_ntohs(RD(__be16, data + SAINA_UDP_OFF + 4));
	if (udp_len != sizeof(struct udphdr) + sizeof(struct saina_hdr) + control_bytes(conf, count))
		return SAINA_C_LENGTH;
	if (count != (probe ? 0 : conf->payload))
		return SAINA_C_ELEMS;
	m->key.round = RD(__u32, data + HDR_OFF(round));
	m->key.segment = RD(__u32, data + HDR_OFF(segment));
	m->key.exponent = RD(__s8, data + HDR_OFF(exponent));
	if (probe)
		return SLOT_NONE;
	if (RD(__u8, data + HDR_OFF(elem)) != conf->elem)
		return SAINA_C_ELEM_TYPE;
	if (m->key.segment >= conf->segments)
		return SAINA_C_SEGMENT;
	return SLOT_NONE;
}

/*
 * The payload where it lies if it is linear, else in scratch memory and back:
 * no helper may be called under the slot's lock.
 */
#define RUN_ELEMS(E)								\
static __noinline int run_##E(struct xdp_md *ctx, struct slot_call *c,		\
			      const struct saina_job_conf *conf)		\
{										\
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end; \
	struct slot_scratch *scratch;						\
	struct payload_##E *payload;						\
	int verdict;								\
										\
	if (data + SAINA_DATA_OFF + 4 * E <= end)				\
		return slot_run_##E(c, conf, data + SAINA_DATA_OFF);		\
	scratch = slot_scratch();						\
	if (!scratch)								\
		goto internal;							\
	payload = (void *)scratch->payload;					\
	if (!c->pull && bpf_xdp_load_bytes(ctx, SAINA_DATA_OFF, payload, 4 * E)) \
		goto internal;							\
	verdict = slot_run_##E(c, conf, payload);				\
	if ((verdict == SLOT_RESULT || verdict == SLOT_ANSWER) &&		\
	    bpf_xdp_store_bytes(ctx, SAINA_DATA_OFF, payload, 4 * E))		\
		goto internal;							\
	return verdict;								\
internal:									\
	c->reason = SAINA_C_INTERNAL;						\
	return SLOT_DROP;							\
}
SAINA_ELEMS_LIST(RUN_ELEMS)

static __always_inline int run_message(struct xdp_md *ctx, struct slot_call *c,
				       const struct saina_job_conf *conf)
{
#ifdef SAINA_KMOD
	if (conf->elem != SAINA_ELEM_INT32)
		return float_message(ctx, c, conf);
#endif
	switch (conf->payload) {
#define RUN_CASE(E)		\
	case E:			\
		return run_##E(ctx, c, conf);
	SAINA_ELEMS_LIST(RUN_CASE)
	}
	c->reason = SAINA_C_INTERNAL;
	return SLOT_DROP;
}

/* A function of its own: 6.1 forgets the bound of a copy spilled before the
 * compare. */
static __noinline void count_drop(struct saina_counters *wc, __u32 reason)
{
	if (reason < SAINA_C_N)
		wc->c[reason]++;
}

/* The common case, for payloads that lie in one piece. */
static __always_inline bool add_message(struct xdp_md *ctx, const struct message *m)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

#ifdef SAINA_KMOD
	if (m->conf->elem != SAINA_ELEM_INT32)
		return false;
#endif
	switch (m->conf->payload) {
#define ADD_CASE(E)								\
	case E:									\
		return data + SAINA_DATA_OFF + 4 * E <= end &&			\
		       slot_add_##E(&m->key, m->conf, data + SAINA_DATA_OFF);
	SAINA_ELEMS_LIST(ADD_CASE)
	}
	return false;
}

static __always_inline int data_message(struct xdp_md *ctx, const struct saina_global *g)
{
	const struct saina_job_conf *conf, *plain;
	const struct saina_job_rt *rt;
	struct slot_scratch *scratch;
	struct saina_counters *wc;
	struct message m = {};
	struct slot_call *c;
	__u32 job, reason;

	reason = check_message(ctx, &m);
	if (reason != SLOT_NONE) {
		count_global(reason);
		return XDP_DROP;
	}
	conf = m.conf;
	job = m.key.job;
	wc = control_counters(job, m.key.worker);
	if (!wc) {
		count_global(SAINA_C_INTERNAL);
		return XDP_DROP;
	}
	reason = check_worker(ctx, &m);
	if (reason != SLOT_NONE)
		goto drop;
	rt = bpf_map_lookup_elem(&saina_rt, &job);
	reason = SAINA_C_INTERNAL;
	if (!rt || rt->generation != conf->generation)
		goto drop;
	if (m.type == SAINA_MSG_GRAD && add_message(ctx, &m)) {
		wc->c[SAINA_C_ADDED]++;
		return XDP_DROP;
	}
	if (m.type == SAINA_MSG_PROBE)
		return answer_probe(ctx, g, conf, m.binding, wc);

	scratch = slot_scratch();
	if (!scratch)
		goto drop;
	c = &scratch->call;
	slot_call_init(c);
	c->active = conf->active;
	c->bit = 1ull << m.key.worker;
	c->job = job;
	c->generation = conf->generation;
	c->worker = m.key.worker;
	c->round = m.key.round;
	c->segment = m.key.segment;
	c->lock = (conf->lock_base + (m.key.segment & (conf->pool - 1))) & (SAINA_LOCKS - 1);
	c->pull = m.type == SAINA_MSG_PULL;
	c->exponent = m.key.exponent;
	c->linear = m.linear;
	plain = control_plain(conf);
	if (!plain)
		goto drop;
	c->verdict = run_message(ctx, c, plain);
	control_tell(ctx);

	if (c->counted == SAINA_C_ADDED)
		wc->c[SAINA_C_ADDED]++;
	else if (c->counted == SAINA_C_STORED)
		wc->c[SAINA_C_STORED]++;
	switch (c->verdict) {
	case SLOT_KEPT:
		return XDP_DROP;
	case SLOT_RESULT:
		wc->c[SAINA_C_COMPLETED]++;
		if (c->flags & SAINA_F_DEGRADED)
			wc->c[SAINA_C_DEGRADED]++;
		return answer_result(ctx, g, c, conf, wc);
	case SLOT_ANSWER:
		if (c->pull)
			wc->c[SAINA_C_PULLED]++;
		else if (c->mask & c->bit)
			wc->c[SAINA_C_RESENT]++;
		else
			wc->c[SAINA_C_LATE]++;
		c->next_k = rt->k_next;
		return answer_sender(ctx, g, c, conf, wc);
	case SLOT_STALE:
		wc->c[SAINA_C_STALE]++;
		control_event(SAINA_EV_STALE, EV_OF(job, c->worker, rt->k), c->round, c->segment,
			      0);
		control_tell(ctx);
		return answer_sender(ctx, g, c, conf, wc);
	}
	reason = c->reason;
drop:
	count_drop(wc, reason);
	return XDP_DROP;
}

/* In the name of a live worker, but not from its place: dropped and counted. */
static __noinline bool control_spoofed(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct saina_job_conf *conf;
	struct saina_counters *wc;
	__u32 job, w, reason;

	if (data + SAINA_DATA_OFF > end)
		return false;
	job = RD(__u16, data + HDR_OFF(job));
	w = RD(__u8, data + HDR_OFF(worker));
	if (job >= SAINA_JOBS_MAX || w >= SAINA_WORKERS_MAX)
		return false;
	conf = control_job(ctx, job);
	if (!conf || !(conf->active >> w & 1))
		return false;
	asm volatile("" : "+r"(w));	/* as in check_message() */
	w &= SAINA_WORKERS_MAX - 1;
	if (!(conf->worker[w].flags & SAINA_BIND_BOUND))
		return false;
	reason = check_place(ctx, &conf->worker[w]);
	if (reason == SLOT_NONE)
		return false;
	wc = control_counters(job, w);
	if (wc)
		count_drop(wc, reason);
	return true;
}

/* Passed up to the agent; where a JOIN came from is what nobody else knows. */
static __always_inline int control_message(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 type = SAINA_MSG_UNSPEC;

	if (data + SAINA_HDR_OFF + 2 <= end &&
	    RD(__u8, data + HDR_OFF(version)) == SAINA_PROTO_VERSION)
		type = RD(__u8, data + HDR_OFF(type));
	if ((type == SAINA_MSG_READY || type == SAINA_MSG_HEARTBEAT || type == SAINA_MSG_LEAVE) &&
	    control_spoofed(ctx))
		return XDP_DROP;
	if (type == SAINA_MSG_JOIN && data + SAINA_DATA_OFF + sizeof(struct saina_join) <= end) {
		struct saina_addr from = {
			.nonce = RD(__u64, data + JOIN_OFF(nonce)),
			.ip = RD(__be32, data + SAINA_IP_OFF + 12),
			.udp_port = RD(__be16, data + SAINA_UDP_OFF),
		};
		struct saina_place place = {
			.ifindex = ctx->ingress_ifindex,
		};

		__builtin_memcpy(place.mac, data + ETH_ALEN, ETH_ALEN);
		bpf_map_update_elem(&saina_learned, &from, &place, BPF_NOEXIST);
	}
	count_global(SAINA_C_CONTROL);
	return XDP_PASS;
}

/* One of our ports is in it; whose the frame is depends on the addresses. */
static __always_inline int our_ports(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct saina_global *g;
	__be16 sport, dport;
	__be32 daddr, saddr;
	__u32 zero = 0;
	bool more;

	if (data + SAINA_HDR_OFF > end)
		return XDP_PASS;
	saddr = RD(__be32, data + SAINA_IP_OFF + 12);
	daddr = RD(__be32, data + SAINA_IP_OFF + 16);
	more = RD(__be16, data + SAINA_IP_OFF + 6) & bpf_htons(0x2000);
	sport = RD(__be16, data + SAINA_UDP_OFF);
	dport = RD(__be16, data + SAINA_UDP_OFF + 2);
	g = bpf_map_lookup_elem(&saina_global, &zero);
	if (!g)
		return XDP_PASS;

	if (daddr == g->ip &&
	    (dport == bpf_htons(SAINA_PORT_DATA) || dport == bpf_htons(SAINA_PORT_CTRL))) {
		if (g->flags & SAINA_GLOBAL_F_INJECT && inject_in(ctx) != XDP_PASS)
			return XDP_DROP;
		if (more) {
			count_global(SAINA_C_FRAGMENT);
			return XDP_DROP;
		}
		if (dport == bpf_htons(SAINA_PORT_DATA))
			return data_message(ctx, g);
		return control_message(ctx);
	}
	if (is_forged(g, saddr, daddr, sport, dport)) {
		count_global(SAINA_C_FORGED);
		return XDP_DROP;
	}
	return XDP_PASS;
}

SEC("xdp.frags")
int saina_xdp(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__be16 proto, sport, dport;

	if (data + SAINA_HDR_OFF > end)
		return XDP_PASS;
	proto = RD(__be16, data + 12);
	if (proto != bpf_htons(ETH_P_IP))
		return is_tag(proto) ? framing_odd(ctx) : XDP_PASS;
	if (RD(__u8, data + SAINA_IP_OFF) != 0x45)
		return framing_odd(ctx);
	if (RD(__u8, data + SAINA_IP_OFF + 9) != IPPROTO_UDP ||
	    RD(__be16, data + SAINA_IP_OFF + 6) & bpf_htons(0x1fff))
		return XDP_PASS;
	sport = RD(__be16, data + SAINA_UDP_OFF);
	dport = RD(__be16, data + SAINA_UDP_OFF + 2);
	if (is_our_port(dport) || dport == bpf_htons(SAINA_PORT_RESULT) || is_our_port(sport))
		return our_ports(ctx);
	return XDP_PASS;
}

/* Behind the devmap entries of ports that lose or delay on the way out. */
SEC("xdp.frags/devmap")
int saina_egress(struct xdp_md *ctx)
{
	return inject_out(ctx);
}
