/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events: to the ring buffer and, with SAINA_KMOD, to the module.
 */
#ifndef SAINA_EVENT_BPF_H
#define SAINA_EVENT_BPF_H

#include "count.bpf.h"
#include "hook.bpf.h"
#include "maps.bpf.h"

#ifdef SAINA_KMOD
extern int hook_event(HOOK_CTX *ctx, const struct saina_event *ev, __u32 ev__sz) __ksym;

/* Events of one packet, until event_flush(). */
/* policy or k (opening); k (SFCD); degraded; types; round */
#define EVENTS_PENDING_MAX	5

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
static __always_inline void event_queue(const struct saina_event *ev)
{
}

static __always_inline int event_flush(HOOK_CTX *ctx)
{
	return 0;
}
#endif

/* Limits events that every segment can cause: one STALE of each worker for each round that the
 * job opens, one DEGRADED and one TYPES of the job for each round.  @when: generation << 32 |
 * round.
 */
static __always_inline bool event_is_new(__u32 job, __u32 who, __u64 when)
{
	struct saina_event_seen *t = bpf_map_lookup_elem(&saina_event_seen, &job);
	__u64 last;

	/* for the verifier: what is compared is what is used */
	asm volatile("" : "+r"(who));
	if (!t || who >= SAINA_EVENT_SEEN_N)
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
	if ((ev.type == SAINA_EV_DEGRADED || ev.type == SAINA_EV_TYPES) &&
	    !event_is_new(ev.job,
			  ev.type == SAINA_EV_TYPES ? SAINA_EVENT_SEEN_TYPES :
						      SAINA_EVENT_SEEN_DEGRADED,
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

#endif /* SAINA_EVENT_BPF_H */
