/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Snapshots of jobs, counters and events: from and to the control plane.  Snapshots come
 * from maps that a process fills or, built with SAINA_KMOD, from saina.ko by kfunc; events
 * then go to the module, too.  A hook defines
 *
 *	HOOK_CTX	its context
 *	hook_load	the helper that copies from its frame
 *	hook_job	the module's kfunc for a snapshot
 *	hook_event	the one for an event
 *	HOOK_CSUM	what two elements of a reply add to its checksum, if it has one
 */
#ifndef SAINA_CONTROL_BPF_H
#define SAINA_CONTROL_BPF_H

#include "maps.bpf.h"

/* The snapshot of a job, NULL if there is none; valid to the packet's end. */
#ifdef SAINA_KMOD
extern const __u8 *hook_job(HOOK_CTX *ctx, __u32 job, const __u32 rdonly_buf_size) __ksym;
extern int hook_event(HOOK_CTX *ctx, const struct saina_event *ev, __u32 ev__sz) __ksym;

static __always_inline const struct saina_job_conf *config_job(HOOK_CTX *ctx, __u32 job)
{
	return (const void *)hook_job(ctx, job, sizeof(struct saina_job_conf));
}

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct saina_job_conf);
} saina_plain SEC(".maps");

/* A writable copy of the snapshot, without bindings: the verifier passes no read-only memory
 * to global functions.
 */
static __always_inline const struct saina_job_conf *config_plain(const struct saina_job_conf *conf)
{
	const __u64 *from = (const void *)conf;
	__u32 zero = 0;
	__u64 *to = bpf_map_lookup_elem(&saina_plain, &zero);

	if (!to)
		return NULL;
#pragma unroll
	for (int i = 0; i < (int)offsetof(struct saina_job_conf, worker) / 8; i++)
		to[i] = from[i];
	return (const void *)to;
}

/* Bytes that @count elements take in a message. */
static __always_inline __u32 config_bytes(const struct saina_job_conf *conf, __u32 count)
{
	return count << (conf->elem == SAINA_ELEM_BFLOAT16 ? 1 : 2);
}

/* Events of one packet, until event_flush(). */
#define EVENTS_PENDING_MAX	4	/* policy, k lowered; k raised or degraded; round */

struct events_pending {
	__u32 n;
	__u32 pad;
	struct saina_event ev[EVENTS_PENDING_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct events_pending);
} saina_pending SEC(".maps");

static __always_inline void event_queue(const struct saina_event *ev)
{
	__u32 zero = 0, n;
	struct events_pending *p = bpf_map_lookup_elem(&saina_pending, &zero);

	if (!p)
		return;
	n = p->n;
	if (n >= EVENTS_PENDING_MAX)
		return;
	p->ev[n] = *ev;
	p->n = n + 1;
}

/* Hands the pending events to the module. */
static __noinline int event_flush(HOOK_CTX *ctx)
{
	__u32 zero = 0, n;
	struct events_pending *p = bpf_map_lookup_elem(&saina_pending, &zero);

	if (!p)
		return 0;
	n = p->n;
	p->n = 0;
	for (__u32 i = 0; i < EVENTS_PENDING_MAX; i++) {
		if (i >= n)
			break;
		hook_event(ctx, &p->ev[i], sizeof(p->ev[i]));
	}
	return 0;
}
#else
static __always_inline const struct saina_job_conf *config_job(HOOK_CTX *ctx, __u32 job)
{
	__u32 zero = 0;
	void *inner = bpf_map_lookup_elem(&saina_jobs, &job);

	return inner ? bpf_map_lookup_elem(inner, &zero) : NULL;
}

static __always_inline const struct saina_job_conf *config_plain(const struct saina_job_conf *conf)
{
	return conf;
}

/* Without the module there are jobs of int32 only. */
static __always_inline __u32 config_bytes(const struct saina_job_conf *conf, __u32 count)
{
	return 4 * count;
}

static __always_inline void event_queue(const struct saina_event *ev)
{
}

static __always_inline int event_flush(HOOK_CTX *ctx)
{
	return 0;
}
#endif

static __always_inline void count_global(__u32 counter)
{
	__u32 zero = 0;
	struct saina_counters *c = bpf_map_lookup_elem(&saina_gcount, &zero);

	if (c && counter < SAINA_C_N)
		c->c[counter]++;
}

static __always_inline struct saina_counters *config_counters(__u32 job, __u32 worker)
{
	void *inner = bpf_map_lookup_elem(&saina_wcount, &job);

	return inner ? bpf_map_lookup_elem(inner, &worker) : NULL;
}

/* A function of its own: 6.1 forgets the bound of a copy spilled before the
 * compare.
 */
static __noinline void count_worker(struct saina_counters *wc, __u32 counter)
{
	if (counter < SAINA_C_N)
		wc->c[counter]++;
}

/* Limits events that every segment can cause: one STALE of each worker for each round that the
 * job opens, one DEGRADED of the job for each round.  @when: generation << 32 | round.
 */
static __always_inline bool event_is_new(__u32 job, __u32 who, __u64 when)
{
	struct saina_event_seen *t = bpf_map_lookup_elem(&saina_event_seen, &job);
	__u64 last;

	/* for the verifier: what is compared is what is used */
	asm volatile("" : "+r"(who));
	if (!t || who > SAINA_EVENT_SEEN_JOB)
		return true;
	last = t->last[who];
	if (last >> 32 == when >> 32 && last >= when)
		return false;
	t->last[who] = when;
	return true;
}

static __noinline void event_send(__u32 type, __u32 job_worker_k, __u32 round, __u64 a, __u64 b)
{
	__u32 job = job_worker_k & 0xffff, worker = job_worker_k >> 16 & 0xff, next_round;
	const struct saina_job_rt *rt;
	struct saina_event ev = {
		.type = type,
		.job = job,
		.worker = worker,
		.k = job_worker_k >> 24,
		.round = round,
		.a = a,
		.b = b,
	};

	/* keep the compiler from holding a second copy of @ev on the stack */
	asm volatile("" : : : "memory");
	ev.time = bpf_ktime_get_ns();
	rt = bpf_map_lookup_elem(&saina_rt, &job);
	ev.generation = rt ? rt->generation : 0;
	next_round = rt ? rt->next_round : 0;
	if (ev.type == SAINA_EV_STALE &&
	    !event_is_new(ev.job, ev.worker, (__u64)ev.generation << 32 | next_round))
		return;
	if (ev.type == SAINA_EV_DEGRADED &&
	    !event_is_new(ev.job, SAINA_EVENT_SEEN_JOB,
			  (__u64)ev.generation << 32 | (ev.round + 1)))
		return;
	/* the module first: it may have listeners where nobody reads the ring */
	event_queue(&ev);
	if (bpf_ringbuf_output(&saina_events, &ev, sizeof(ev), 0))
		count_global(SAINA_C_NO_MEMORY);
}

/* Second argument of event_send(). */
#define EV_OF(job, worker, k)	((job) | (__u32)(worker) << 16 | (__u32)(k) << 24)
#define EV_NOBODY		0xffu

#endif /* SAINA_CONTROL_BPF_H */
