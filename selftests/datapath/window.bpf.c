// SPDX-License-Identifier: GPL-2.0
/*
 * The XDP program with waits, for race_window_test.c: where a gradient or a PULL has left its slot's
 * lock and not looked at the round, and where the fast path has looked at its slot and not taken
 * the lock.
 */
#include "round.bpf.h"
#include "../selftests/datapath/window.h"

#define TURNS	(1u << 23)	/* the most that bpf_loop() takes */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct window);
} window SEC(".maps");

struct wait {
	struct window *w;
	__u64 until;
};

static long wait_turn(__u32 i, struct wait *t)
{
	if (*(volatile __u32 *)&t->w->release)
		return 1;
	if (bpf_ktime_get_ns() < t->until)
		return 0;
	t->w->expired = 1;
	return 1;
}

static long wait_turns(__u32 i, struct wait *t)
{
	/* fewer than TURNS: it has ended */
	return bpf_loop(TURNS, wait_turn, t, 0) < TURNS;
}

__noinline int window_hold(__u32 who)
{
	__u32 zero = 0;
	struct wait t = { .w = bpf_map_lookup_elem(&window, &zero) };

	if (!t.w || t.w->worker != who + 1)
		return 0;
	t.w->worker = 0;
	t.until = bpf_ktime_get_ns() + WINDOW_NS;
	*(volatile __u32 *)&t.w->inside = 1;
	bpf_loop(TURNS, wait_turns, &t, 0);
	return 0;
}

#define round_permit(c, conf)	(window_hold((c)->in.worker), round_permit(c, conf))
#define round_missed(c)		(window_hold((c)->in.worker), round_missed(c))
/* slot_add() alone calls it with these words */
#define map_counted(job, segment)						\
	(sizeof(#job #segment) == sizeof("job" "in->segment") ?			\
		 window_hold(WINDOW_CPU + bpf_get_smp_processor_id()) : 0,	\
	 map_counted(job, segment))
#include "saina_xdp.bpf.c"
