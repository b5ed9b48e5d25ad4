/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * Maps of the BPF programs, as user space (sainad, tests, benchmarks) reads and writes
 * them: names, keys and values.  Host byte order unless a type says otherwise.
 *
 * Map names (kmod/bpf/maps.bpf.h), J = job identifier:
 *
 *   saina_global    ARRAY[1]              struct saina_global
 *   saina_jobs      ARRAY_OF_MAPS[256]    J -> ARRAY[1] of struct saina_job_conf
 *   saina_rt        ARRAY[256]            J -> struct saina_job_rt
 *   saina_clock     ARRAY[256]            J -> struct saina_clock
 *   saina_hot_<E>   ARRAY_OF_MAPS[256]    J -> ARRAY[pool] of slots of E elements, which the
 *                                         relay of a job with an uplink has mapped to read
 *   saina_ring_<E>  ARRAY_OF_MAPS[256]    J -> ARRAY[segments * ring] of the same, which workers
 *                                         by reference have mapped to read
 *   saina_view_<E>  ARRAY_OF_MAPS[256 * 64] J * 64 + group -> ARRAY[segments] of the same: the
 *                                         parameters as the group sees them
 *   saina_arrival   ARRAY[256 * 64]       J * 64 + worker -> struct saina_arrival
 *   saina_input_<E> ARRAY_OF_MAPS[256 * 64] J * 64 + worker -> ARRAY[pool] of inputs of
 *                                         E elements, which the worker has mapped
 *   saina_counted   ARRAY_OF_MAPS[256]    J -> ARRAY[segments] of struct saina_counted
 *   saina_signs     ARRAY_OF_MAPS[256]    J -> ARRAY[segments * sign words] of __u64
 *   saina_fanout    ARRAY_OF_MAPS[256]    J -> DEVMAP_HASH of the job's fast ports
 *   saina_wcount    ARRAY_OF_MAPS[256]    J -> PERCPU_ARRAY[64] of struct saina_counters
 *   saina_gcount    PERCPU_ARRAY[1]       struct saina_counters: what has no job/worker
 *   saina_locks     ARRAY[SAINA_LOCKS]    struct saina_slot_lock
 *   saina_ports     HASH                  ifindex -> struct saina_port_conf
 *   saina_tx        DEVMAP_HASH           ifindex -> unicast answers leave here
 *   saina_fanout_ifb ARRAY[256]           J -> ifindex of the ifb with the job's ports, or 0
 *   saina_tc_handoff HASH                 ifindex of ports where XDP leaves results to tc
 *   saina_asked     ARRAY[256 * 64]       J * 64 + worker -> struct saina_asked
 *   saina_event_seen ARRAY[256]           J -> struct saina_event_seen
 *   saina_join_src  LRU_HASH              struct saina_addr -> struct saina_place
 *   saina_events    RINGBUF               struct saina_event
 *   saina_relay     RINGBUF               struct saina_relay_msg: results for slow ports
 *   saina_away      ARRAY_OF_MAPS[256]    J -> RINGBUF of struct saina_away, of jobs with an uplink
 *
 * A job's configuration is replaced as a whole: a new one-element inner map is
 * put in saina_jobs, so a program sees the old or the new snapshot, never a
 * mixture, and an update that has returned is in force.
 */
#ifndef _UAPI_SAINA_BPF_H
#define _UAPI_SAINA_BPF_H

#include <linux/types.h>
#include <linux/bpf.h>
#include "saina/counters.h"
#include "saina/proto.h"
#include "saina/shm.h"

/*
 * Version of the maps' names, types, keys, values, sizes and meaning.  Any change takes the next
 * number.  Maps pinned under another number are neither opened nor read.
 */
#define SAINA_LAYOUT		22

#define SAINA_LOCKS		16384	/* power of two */
#define SAINA_POOL_MAX		4096	/* hot slots of one job, power of two */
#define SAINA_RING_MIN		2
#define SAINA_RING_MAX		64	/* rounds kept, power of two */
#define SAINA_SEGMENTS_MAX	(1u << 22)
#define SAINA_FANOUT_MAX	128	/* ports of one job */
#define SAINA_PORTS_MAX		1024

/* Words of 64 sign bits a segment has for E elements sampled every stride. */
#define SAINA_SIGN_WORDS(elems, stride) ((((elems) + (stride) - 1) / (stride) + 63) / 64)

/* Each is one row of the table in kmod/core/policy.c. */
enum saina_policy_mode {
	SAINA_POLICY_BSP	= 1,	/* complete when all members are in */
	SAINA_POLICY_FASTEST	= 2,	/* ... when k are */
	SAINA_POLICY_SFCD	= 3,	/* ... when k are, k from SFCD */
	SAINA_POLICY_TIMEOUT	= 4,	/* ... when all are, or enough after a time */
	SAINA_POLICY_EXTERNAL	= 5,	/* ... when k are, k from a controller */
	SAINA_POLICY_CODED	= 6,	/* ... when each part is, whoever computed it */
	SAINA_POLICY_SSP	= 7,	/* parameter server: workers lead by at most a window */
	SAINA_POLICY_ASP	= 8,	/* parameter server: by any number of steps */
	SAINA_POLICY_GROUPED	= 9,	/* parameter server: those of a group step together */
};

#define SAINA_WINDOW_MAX	65535	/* of SSP */
#define SAINA_GROUP_NONE	0xff	/* of a place that is in no group */
#define SAINA_LEAD_NONE		0xff	/* rounds lead without a bound */

enum saina_late_rule {
	SAINA_LATE_RESIDUAL	= 1,	/* the worker keeps it and adds it next time */
	SAINA_LATE_DROP		= 2,
};

#define SAINA_POLICY_F_PARITY	0x01	/* decide as SAINA's published rule does */
#define SAINA_POLICY_F_DOWN	0x02	/* SFCD: lower k when signs flip less again */

/**
 * struct saina_policy - a synchronisation policy, as written by
 *	"bsp", "fastest:k=6,late=drop", "sfcd:k0=1,sth=0.5,cth=5", "timeout:10ms,kmin=4"
 * @seq: sequence number of the policy within the job, from 1; a changed
 *	number is what makes the data path adopt the policy at the next round
 * @mode: enum saina_policy_mode
 * @late: enum saina_late_rule
 * @k: FASTEST: k; SFCD, EXTERNAL: k0; else 0
 * @k_min: SFCD never goes below (members permitting), >= 1; others: least number of
 *	contributors after @timeout_us
 * @k_max: SFCD never goes above; 0 = the number of members
 * @flags: SAINA_POLICY_F_*
 * @s_th: share of flipped signs that counts as converged, in 1/1000
 * @c_th: net converged rounds before k is raised; 0: as many as k is ("k*")
 * @stride: every how many elements a sign is sampled: 1, 2, 4 .. 64
 * @timeout_us: a slot open for so long completes with @k_min contributors; 0: never
 * @window: not 0: parameter-server mode, in which the fastest worker may lead by so many steps,
 *	SAINA_WINDOW_NONE: by any number.  0: rounds, also of SSP
 * @spread: CODED: workers that compute the same part, less one
 * @groups: GROUPED: how many there are; parameter-server mode, in which the workers of a group
 *	step together; else 0
 * @lead: FASTEST, SFCD, TIMEOUT, EXTERNAL, CODED: no round opens that is more than so many rounds
 *	ahead of a live worker; 0: as many as the ring keeps safely; SAINA_LEAD_NONE: no bound
 * @pad: 0
 * @group: GROUPED: by worker: its group, 0..@groups-1, or SAINA_GROUP_NONE; else 0
 */
struct saina_policy {
	__u32	seq;
	__u8	mode;
	__u8	late;
	__u8	k;
	__u8	k_min;
	__u8	k_max;
	__u8	flags;
	__u16	s_th;
	__u16	c_th;
	__u16	stride;
	__u32	timeout_us;
	__u32	window;
	__u8	spread;
	__u8	groups;
	__u8	lead;
	__u8	pad[5];
	__u8	group[SAINA_WORKERS_MAX] __attribute__((aligned(8)));
};
SAINA_ASSERT(sizeof(struct saina_policy) == 96, "saina_policy is 96 bytes");

/*
 * Rounds that the slowest live worker may be behind in a job with this policy; ~0: any number.
 * @uplink: not 0, such as its mask: the job has one, whose results come without its own workers.
 */
static inline __u32 saina_policy_lead(const struct saina_policy *p, __u32 ring, __u64 uplink)
{
	if ((p->mode == SAINA_POLICY_BSP && !uplink) || p->mode == SAINA_POLICY_SSP || p->window ||
	    p->groups || p->lead == SAINA_LEAD_NONE)
		return ~0u;
	if (p->lead)
		return p->lead;
	return ring > 3 ? ring - 2 : 1;
}

#define SAINA_BIND_BOUND	0x01	/* worker admitted: the rest is valid */
#define SAINA_BIND_RELAY	0x02	/* its port cannot take redirected frames */

/**
 * struct saina_binding - where worker w of a job must send from
 * @session: that it was admitted with
 * @ifindex: port of the switch
 * @ip: source address
 * @udp_port: source port
 * @mac: source MAC
 * @flags: SAINA_BIND_*
 * @pad: 0
 * @max_weight: a GRAD with slot_round not 0 and >= max_weight is dropped (WEIGHT).  A worker of
 *	a job without nodes: 0 or 1; of one with nodes: how many workers it may stand for, but 2 at
 *	least, which makes it a node; the uplink worker: one more than the largest tree has
 */
struct saina_binding {
	__u64	session;
	__u32	ifindex;
	__be32	ip;
	__be16	udp_port;
	__u8	mac[6];
	__u8	flags;
	__u8	pad[3];
	__u32	max_weight;
};

/**
 * struct saina_job_conf - immutable snapshot of a job, made by the job core
 * @generation: of the job: distinguishes jobs that had the same number
 * @job: its number
 * @state: enum saina_job_state
 * @elem: enum saina_elem_type
 * @payload: elements of one message, one of SAINA_ELEMS_LIST
 * @segments: segments of the whole gradient
 * @pool: hot slots, power of two; slot of a segment = segment & (pool - 1)
 * @ring: rounds of results kept, power of two; entry of a result =
 *	(round & (ring - 1)) * segments + segment: what one round writes and reads lies together
 * @lock_base: lock of a slot = (lock_base + slot) & (SAINA_LOCKS - 1)
 * @sign_words: words of sign bits a segment has room for in saina_signs
 *	(SAINA_SIGN_WORDS(payload, 1))
 * @active: workers alive
 * @relay: workers whose results take the slow path
 * @uplink: bit of the uplink worker, whose GRADs are results of the parent's job; 0: there is none.
 *	It is BOUND, but in no other mask.  Changes only while no slot is AWAY
 * @group: multicast group of the results
 * @pad: 0
 * @policy: the policy asked for; in force from the first round that opens
 *	after the program has seen it
 * @next: the policy to come after that, seq 0: none; once it is in force it stays
 * @next_from: not before this round
 * @next_on: bits 1 << enum saina_event_type: ... and one of these has happened; 0: at once
 * @workers: places for workers
 * @k_set: k as the controller has set it, 0: as the policy says; of @policy if that is EXTERNAL,
 *	else of @next
 * @worker: bindings
 */
struct saina_job_conf {
	__u32	generation;
	__u16	job;
	__u8	state;
	__u8	elem;
	__u32	payload;
	__u32	segments;
	__u32	pool;
	__u32	ring;
	__u32	lock_base;
	__u32	sign_words;
	__u64	active;
	__u64	relay;
	__u64	uplink;
	__be32	group;
	__u32	pad;
	struct saina_policy policy;
	struct saina_policy next;
	__u32	next_from;
	__u16	next_on;
	__u8	workers;
	__u8	k_set;
	struct saina_binding worker[SAINA_WORKERS_MAX];
};

/* What a job's workers send */
enum saina_rt_mode {
	SAINA_RT_SLOTS		= 0,	/* gradients of rounds */
	SAINA_RT_PS		= 1,	/* parameter server: updates of steps */
	SAINA_RT_FENCE		= 2,	/* gradients, after PS; the first round waits for all */
};

/**
 * struct saina_job_rt - what the data path decides about a job, under @lock
 * @lock: of all that follows
 * @generation: must equal the snapshot's, else the packet is dropped
 * @next_round: the next round to open; rounds below have been opened.  PS: steps that all
 *	have finished
 * @open_slots: slots of round next_round - 1 that are open
 * @segs_done: segments of round next_round - 1 that are done
 * @members: workers that round next_round - 1 waits for (those active when
 *	it opened)
 * @policy: latched when that round opened
 * @k: k of that round (all members for BSP; adapted by SFCD)
 * @k_next: k of the round to come, as decided so far
 * @primed: SFCD: the bitmap holds the signs of the previous round
 * @mode: enum saina_rt_mode
 * @converged: SFCD: net converged rounds (the counter compared with c_th)
 * @flips: SFCD: signs of round next_round - 1 that have flipped, so far
 * @observed: SFCD: signs of that round that were compared, so far
 * @last_flips: SFCD: flips of the last round decided
 * @last_observed: SFCD: signs compared in that round
 * @last_round: SFCD: the last round decided
 * @opened_at: when round next_round - 1 opened, CLOCK_MONOTONIC ns
 * @count: by enum saina_job_counter
 * @asked: seq of the policy to come that @happened is for
 * @happened: bits 1 << enum saina_event_type, since then
 * @resumed: SFCD with DOWN: net rounds that were not converged
 * @base: first round or step of @mode
 * @behind: workers that were too far behind when round next_round was last refused for that; 0:
 *	it was not
 * @at: the last round that a worker is known to have reached; written without @lock, too
 */
struct saina_job_rt {
	struct bpf_spin_lock lock;
	__u32	generation;
	__u32	next_round;
	__u32	open_slots;
	__u32	segs_done;
	__u8	k;
	__u8	k_next;
	__u8	primed;
	__u8	mode;
	__u64	members;
	struct saina_policy policy;
	__u32	converged;
	__u32	last_round;
	__u64	flips;
	__u64	observed;
	__u64	last_flips;
	__u64	last_observed;
	__u64	opened_at;
	__u64	count[SAINA_JC_ROOM];
	__u32	asked;
	__u32	happened;
	__u32	resumed;
	__u32	base;
	__u64	behind;
	__u32	at[SAINA_WORKERS_MAX];
};

/**
 * struct saina_clock - the workers' steps in parameter-server mode, under @lock
 * @lock: of all that follows
 * @generation: must equal the snapshot's
 * @low: steps that all members have finished; never falls
 * @base: first step of the mode; the parameters are in the ring entries of the round of this number
 * @fence: the job goes back to rounds: from this one on, when all members are there; 0: it does not
 * @groups: of the policy; 0: one group of all workers, without a view
 * @top: the largest of @begun
 * @pad: 0
 * @members: workers that @low is of
 * @going: members that may do the step they are in
 * @waiting: members whose last CLOCK was answered with wait
 * @session: of the last message of a worker, 0: none since it became a member
 * @mask: of a group: its workers
 * @first_at: of a group: when the first of it finished step @first - 1, CLOCK_MONOTONIC ns
 * @done: steps that a worker has finished, hence number of the one it is in
 * @begun: 1 + the last step that a worker has begun
 * @first: of a group: 1 + the last step that any of it has finished; 0: none yet
 * @lows: of a group: steps that all its members have finished; all ones: it has none
 * @group: of a worker: its group
 */
struct saina_clock {
	struct bpf_spin_lock lock;
	__u32	generation;
	__u32	low;
	__u32	base;
	__u32	fence;
	__u32	groups;
	__u32	top;
	__u32	pad;
	__u64	members;
	__u64	going;
	__u64	waiting;
	__u64	session[SAINA_WORKERS_MAX];
	__u64	mask[SAINA_WORKERS_MAX];
	__u64	first_at[SAINA_WORKERS_MAX];
	__u32	first[SAINA_WORKERS_MAX];
	__u32	done[SAINA_WORKERS_MAX];
	__u32	begun[SAINA_WORKERS_MAX];
	__u32	lows[SAINA_WORKERS_MAX];
	__u8	group[SAINA_WORKERS_MAX];
};

enum saina_slot_state {
	SAINA_SLOT_EMPTY	= 0,
	SAINA_SLOT_OPEN		= 1,
	SAINA_SLOT_DONE		= 2,
	SAINA_SLOT_PS		= 3,	/* parameters: a ring entry, or a group's view of it */
	SAINA_SLOT_AWAY		= 4,	/* complete, and frozen until its result comes from above */
};

/**
 * struct saina_slot_meta - head of a hot slot or ring entry; the sums follow
 * @round: of the sums; valid unless EMPTY
 * @segment: of the sums; valid unless EMPTY
 * @state: enum saina_slot_state (ring entries: EMPTY, DONE or PS)
 * @k: latched when the slot opened
 * @count: contributors so far
 * @exponent: block scale of the sums: the coarsest of the contributors', or
 *	SAINA_EXPONENT_NAN: the sums mean nothing (OPEN) or are all 0 (DONE), but for SAINA_F_TYPES;
 *	SAINA_EXPONENT_INT: they are of integers
 * @policy: seq of the latched policy
 * @seen: mask of the contributors
 * @members: latched: the workers waited for
 * @opened_at: when the first packet came, CLOCK_MONOTONIC ns
 * @csum: DONE: one's complement sum of the payload, folded to 16 bits, host
 *	order, not inverted; OPEN, CODED: the parts that are in, as bits
 * @flags: SAINA_F_* that every answer from this entry carries
 * @applied: float jobs: of @count, those that are in the sums already
 * @k_min: latched: contributors that are enough at @deadline
 * @parts: latched, CODED: parts of the gradient; worker w computes part w % parts; else 0
 * @sum_tag: float jobs: what the sums are of; saina.ko's, under its own lock.  PS:
 *	version, the number of INCs in the sums.  (Of a view @round is the step, @policy the
 *	base.)
 * @scale_by: rounds of integers: 1 + the worker that brought @exponent, 0 once that was counted
 * @weight: rounds of integers: workers in the sums, less @count: the sum of GRAD.slot_round, or the
 *	uplink worker's
 * @deadline: when the time-out is over, CLOCK_MONOTONIC ns; 0: there is none
 */
struct saina_slot_meta {
	__u32	round;
	__u32	segment;
	__u8	state;
	__u8	k;
	__u8	count;
	__s8	exponent;
	__u32	policy;
	__u64	seen;
	__u64	members;
	__u64	opened_at;
	__u32	csum;
	__u8	flags;
	__u8	applied;
	__u8	k_min;
	__u8	parts;
	union {
		__u64	sum_tag;
		struct {
			__u32	scale_by;
			__u32	weight;
		};
	};
	__u64	deadline;
};
SAINA_ASSERT(sizeof(struct saina_slot_meta) == 64, "saina_slot_meta is 64 bytes");
SAINA_ASSERT(__builtin_offsetof(struct saina_slot_meta, sum_tag) == 48, "sum_tag at 48");

#define SAINA_SLOT_DECL(E)				\
struct saina_slot_##E {					\
	struct saina_slot_meta meta;			\
	__s32	sum[E];					\
};
SAINA_ELEMS_LIST(SAINA_SLOT_DECL)

/* Mapped by workers: saina/shm.h. */
#define SAINA_SHM_DECL(E)				\
struct saina_input_##E {				\
	struct saina_input_head head;			\
	__s32	v[E];					\
};
SAINA_ELEMS_LIST(SAINA_SHM_DECL)

/* Workers see a ring entry's head as struct saina_output_head. */
#define SAINA_SHM_SAME(IN_SLOT, IN_OUTPUT)						\
	SAINA_ASSERT(__builtin_offsetof(struct saina_slot_meta, IN_SLOT) ==		\
			     __builtin_offsetof(struct saina_output_head, IN_OUTPUT),	\
		     "saina_output_head: " #IN_OUTPUT)
SAINA_SHM_SAME(round, round);
SAINA_SHM_SAME(segment, segment);
SAINA_SHM_SAME(state, state);
SAINA_SHM_SAME(k, k);
SAINA_SHM_SAME(count, contributors);
SAINA_SHM_SAME(exponent, exponent);
SAINA_SHM_SAME(policy, policy);
SAINA_SHM_SAME(seen, mask);
SAINA_SHM_SAME(flags, flags);
SAINA_SHM_SAME(weight, weight);
SAINA_ASSERT(SAINA_SLOT_DONE == SAINA_OUTPUT_VALID, "SAINA_OUTPUT_VALID");

struct saina_counted {
	__u32	last[SAINA_WORKERS_MAX];	/* 1 + last round counted in, 0 never */
};

#define SAINA_ARRIVAL_BUCKETS	24

/**
 * struct saina_arrival - lateness of a worker: how much later than the round's first gradient
 *	its own comes (segment 0).  With groups: how much later than the first of its group it
 *	finishes a step
 * @generation: of the job
 * @round: 1 + the last round counted, 0: none yet
 * @n: rounds
 * @sum_us: of all of them, microseconds
 * @last_us: of @round
 * @hist: by time, in whole microseconds: [0] 0 us, [i] from 2^(i-1) us to less than 2^i us, the
 *	last one all above; saina_arrival_end_us()
 */
struct saina_arrival {
	__u32	generation;
	__u32	round;
	__u64	n;
	__u64	sum_us;
	__u64	last_us;
	__u64	hist[SAINA_ARRIVAL_BUCKETS];
};

/* The first microsecond above bucket @i.  The last bucket has none: treated as twice as wide as
 * the one before.
 */
static inline __u64 saina_arrival_end_us(unsigned int i)
{
	return 1ull << i;
}

struct saina_slot_lock {
	struct bpf_spin_lock lock;
	__u32	pad[15];			/* one cache line each */
};

#define SAINA_GLOBAL_F_OBSERVE	0x01	/* reserved */
#define SAINA_GLOBAL_F_INJECT	0x02	/* some port loses frames on purpose */

/**
 * struct saina_global - of the whole data path
 * @ip: the aggregator's address on the bridge; only UDP to this address is
 *	looked at
 * @mac: its MAC: source of results
 * @flags: SAINA_GLOBAL_F_*
 */
struct saina_global {
	__be32	ip;
	__u8	mac[6];
	__u16	flags;
};

/**
 * struct saina_port_conf - injected faults of one port (all 0: none)
 * @loss_in: probability * 2^32 of losing a frame of ours that comes in by this port
 * @loss_out: the same for one that leaves by it, of every copy on its own
 * @seed: of the port's random sequence
 * @drawn_in: numbers drawn so far for frames that come in (kept by the program)
 * @drawn_out: numbers drawn so far for frames that leave
 */
struct saina_port_conf {
	__u32	loss_in;
	__u32	loss_out;
	__u64	seed;
	__u64	drawn_in;
	__u64	drawn_out;
};

/*
 * Source of a JOIN, noted by the data path.  The first frame of each nonce counts, until
 * the agent takes it out: a sender that does not know the nonce can neither change it nor
 * come first.
 */
struct saina_addr {
	__u64	nonce;
	__be32	ip;
	__be16	udp_port;
	__u16	pad;
};

struct saina_place {
	__u32	ifindex;
	__u8	mac[6];
	__u16	pad;
};

/**
 * struct saina_asked - rate limit of a worker's ASKs
 * @when: number of the present period, of 2^20 ns
 * @count: ASKs received in it, whether answered or dropped
 */
struct saina_asked {
	__u32	when;
	__u32	count;
};

#define SAINA_EVENT_SEEN_DEGRADED	SAINA_WORKERS_MAX
#define SAINA_EVENT_SEEN_TYPES		(SAINA_WORKERS_MAX + 1)
#define SAINA_EVENT_SEEN_N		(SAINA_WORKERS_MAX + 2)

/**
 * struct saina_event_seen - the last events sent, so that none is repeated
 * @last: generation << 32 | a round: of each worker STALE, the job's next round then; of the
 *	job DEGRADED and TYPES, 1 + the round meant
 */
struct saina_event_seen {
	__u64	last[SAINA_EVENT_SEEN_N];
};

/**
 * struct saina_away - a slot has become AWAY
 * @round: of its sum
 * @segment: of its sum
 *
 * Records are lost if the ring is full; heads of hot slots say which slots are AWAY.
 */
struct saina_away {
	__u32	round;
	__u32	segment;
};

enum saina_event_type {
	SAINA_EV_ROUND		= 1,	/* all segments done: a = flips, b = observed */
	SAINA_EV_K		= 2,	/* k will change: a = old, b = new */
	SAINA_EV_POLICY		= 3,	/* policy adopted: a = old seq, b = new seq */
	SAINA_EV_DEGRADED	= 4,	/* a = segment, b = contributors */
	SAINA_EV_STALE		= 5,	/* worker asked for an expired round: a = segment */
	/* made by the control plane, not by the data path */
	SAINA_EV_JOB_STATE	= 6,	/* a = old, b = new */
	SAINA_EV_WORKER_JOINED	= 7,
	SAINA_EV_WORKER_LEFT	= 8,
	SAINA_EV_WORKER_DEAD	= 9,
	SAINA_EV_WORKER_LATE	= 10,	/* a = gradients late since the last such event */
	SAINA_EV_PORT		= 11,	/* a = ifindex, b = 1 attached, 0 gone */
	SAINA_EV_CONTROLLER	= 12,	/* the job's controller is gone: a = k that stays, 0: k0 */
	SAINA_EV_WORKER_NONFINITE = 13,	/* a = gradients with NaN or Inf since the last one */
	SAINA_EV_WORKER_COARSENED = 14,	/* a = slots whose scale it made coarser, b = of how many */
	SAINA_EV_WORKER_BEHIND	= 15,	/* a = rounds, b = the lead: a round waits for it */
	/* made by the data path */
	SAINA_EV_TYPES		= 16,	/* no sum: a = mask of those with integers, b = of all */
};

struct saina_event {
	__u64	time;		/* CLOCK_MONOTONIC ns */
	__u32	type;		/* enum saina_event_type */
	__u16	job;
	__u8	worker;		/* 0xff: none */
	__u8	k;		/* in force */
	__u32	round;
	__u32	generation;	/* of the job; 0: none */
	__u64	a, b;
};

/* A reply to workers whose ports cannot take redirected frames; the agent sends it on. */
struct saina_relay_msg {
	__u64	workers;	/* of hdr.job */
	__u32	len;		/* bytes of header and payload that are valid */
	__u32	pad;
	struct saina_hdr hdr;
	__u8	payload[4 * SAINA_ELEMS_MAX];	/* as much of it as len says */
};

#endif /* _UAPI_SAINA_BPF_H */
