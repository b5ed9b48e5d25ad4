/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * What the data path counts: the values of saina_wcount and saina_gcount (saina/bpf.h).
 */
#ifndef _UAPI_SAINA_COUNTERS_H
#define _UAPI_SAINA_COUNTERS_H

#include <linux/types.h>

/*
 * Counters, kept per worker of a job (saina_wcount) or, where a packet cannot
 * be ascribed, globally (saina_gcount).  X(identifier, name, is a drop, text)
 */
#define SAINA_COUNTER_LIST(X) \
	X(STORED,	"stored",	0, "gradients that opened a slot") \
	X(ADDED,	"added",	0, "gradients added to an open slot") \
	X(COMPLETED,	"completed",	0, "results made by this worker's packet") \
	X(DEGRADED,	"degraded",	0, "results made with fewer than the latched k") \
	X(LATE,		"late",		0, "gradients that came after their result; answered") \
	X(RESENT,	"resent",	0, "results sent again to a contributor") \
	X(PULLED,	"pulled",	0, "results sent in answer to a pull") \
	X(STALE,	"stale",	0, "answers saying that the results of a round are gone") \
	X(PROBED,	"probed",	0, "probes answered") \
	X(ASKED,	"asked",	0, "questions answered") \
	X(RELAYED,	"relayed",	0, "answers handed to the agent for slow ports") \
	X(CONTROL,	"control",	0, "control messages passed up") \
	X(DUPLICATE,	"duplicate",	1, "duplicates of a gradient in an open slot") \
	X(SPARE,	"spare",	1, "gradients of a part that another worker has already contributed (coded)") \
	X(PULL_EARLY,	"pull-early",	1, "pulls of a result that is still being made, and in float jobs gradients that just missed it") \
	X(TRUNCATED,	"truncated",	1, "shorter than the header says") \
	X(VERSION,	"version",	1, "protocol version not supported") \
	X(TYPE,		"type",		1, "message type unknown or not allowed here") \
	X(FLAGS,	"flags",	1, "unknown flags or reserved fields set") \
	X(LENGTH,	"length",	1, "element count disagrees with the length") \
	X(ELEMS,	"elements",	1, "payload size is not the job's") \
	X(ELEM_TYPE,	"element-type",	1, "element type is not the job's") \
	X(FRAGMENT,	"fragment",	1, "to the aggregator's port with an IP fragment, IP options, a VLAN tag or offloads that no worker uses") \
	X(NO_JOB,	"no-job",	1, "job unknown") \
	X(NOT_RUNNING,	"not-running",	1, "job is forming or stopped") \
	X(NO_WORKER,	"no-worker",	1, "worker unknown in this job") \
	X(INACTIVE,	"inactive",	1, "worker was declared dead, or has left") \
	X(SESSION,	"session",	1, "session is not its worker's present one") \
	X(BAD_PORT,	"wrong-port",	1, "arrived by another port than its worker's") \
	X(BAD_MAC,	"wrong-mac",	1, "source MAC is not its worker's") \
	X(BAD_IP,	"wrong-ip",	1, "source IP is not its worker's") \
	X(BAD_UDP,	"wrong-udp",	1, "source UDP port is not its worker's") \
	X(INCED,	"inced",	0, "updates added to the parameters; answered") \
	X(READ,		"read",		0, "parameters sent without an update") \
	X(CLOCKED,	"clocked",	0, "steps finished") \
	X(CLOCK_WAIT,	"clock-wait",	0, "clocks answered with: wait") \
	X(CLOCK_ORDER,	"clock-order",	0, "clocks of a step that is long past, not begun or far ahead; answered") \
	X(INC_ORDER,	"inc-order",	0, "updates out of order; refused with an answer") \
	X(INC_WAIT,	"inc-wait",	0, "updates of a step that may not begin yet; refused with an answer") \
	X(MODE,		"wrong-mode",	0, "messages of rounds where there are steps, or the other way round; answered") \
	X(FORGED,	"forged",	1, "result or aggregator address from a worker's port") \
	X(SEGMENT,	"segment",	1, "segment beyond the gradient") \
	X(FUTURE,	"round-future",	1, "round further ahead than the next") \
	X(ROUND_BUSY,	"round-busy",	1, "next round while the present one has open slots") \
	X(ROUND_OLD,	"round-old",	1, "round whose result is gone") \
	X(SLOT_BUSY,	"slot-busy",	1, "window exceeded: the segment before in its slot is not done") \
	X(EXPONENT,	"exponent",	1, "block scale out of range, or not that of the parameters") \
	X(INJECTED_IN,	"injected-in",	1, "lost on purpose on the way in (lab)") \
	X(INJECTED_OUT,	"injected-out",	1, "lost on purpose on the way out (lab)") \
	X(ASK_LIMIT,	"ask-limit",	1, "questions beyond the number answered in a millisecond") \
	X(UNSENT,	"unsent",	1, "answers for which a GSO batch had no room") \
	X(NO_MEMORY,	"no-memory",	1, "ring buffer full, map missing, or no linear copy of a frame") \
	X(INTERNAL,	"internal",	1, "state that should be impossible") \
	X(REFERENCE,	"no-reference",	1, "doorbells where the worker has no input array or the job no output array") \
	X(STAMP,	"stamp",	1, "doorbells for segments whose input is of another round or session") \
	X(COARSENED,	"coarsened",	0, "slots whose block scale is coarser than another worker's, because of this one") \
	X(NONFINITE,	"non-finite",	0, "gradients with a NaN or an infinity, which make their result NaN") \
	X(LEAD,		"lead",		1, "next round while a live worker is too many rounds behind") \
	X(AWAY,		"away",		1, "gradients for a segment whose sum is complete and on its way through the parent's job") \
	X(WEIGHT,	"weight",	1, "gradients said to be of more workers than the sender may stand for")

enum saina_counter {
#define SAINA_COUNTER_ENUM(id, name, drop, text) SAINA_C_##id,
	SAINA_COUNTER_LIST(SAINA_COUNTER_ENUM)
#undef SAINA_COUNTER_ENUM
	SAINA_C_N
};

struct saina_counters {
	__u64	c[SAINA_C_N];
};

/*
 * Counters of a job, in its saina_rt; all begin again when it forms again:
 * X(identifier, name, text).
 * `saina job show`, its JSON and the metrics saina_job_<name>_total are made of this list.
 */
#define SAINA_JOB_COUNTER_LIST(X) \
	X(POLICY_SWAPS,	"policy_swaps",	"policies adopted; begins again when the job forms again") \
	X(POLICY_MIX,	"policy_mix",	"sums completed under two policies: must be 0")

enum saina_job_counter {
#define SAINA_JOB_COUNTER_ENUM(id, name, text) SAINA_JC_##id,
	SAINA_JOB_COUNTER_LIST(SAINA_JOB_COUNTER_ENUM)
#undef SAINA_JOB_COUNTER_ENUM
	SAINA_JC_N
};

#define SAINA_JC_ROOM	8	/* places in saina_rt: more counters need another SAINA_LAYOUT */

#endif /* _UAPI_SAINA_COUNTERS_H */
