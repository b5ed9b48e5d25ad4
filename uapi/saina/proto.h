/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * The SAINA wire protocol: messages between workers, the BPF programs and the agent.
 * Documentation/protocol.rst draws it; this header is the one copy of its constants.
 *
 * Every message is one UDP datagram (IPv4) that starts with struct saina_hdr.
 * All multi-byte fields after the UDP header, payload elements included, are
 * LITTLE ENDIAN: the aggregator adds payload words where they lie.
 *
 *   worker --> aggregator:48864   GRAD PULL PROBE ASK DOORBELL FETCH, INC READ CLOCK (data plane)
 *   worker --> aggregator:48865   JOIN READY HEARTBEAT LEAVE (agent)
 *   aggregator:48864 --> group:48866   RESULT COMPLETION GO PROBE_REPLY  (to all workers)
 *   aggregator:48864 --> worker   RESULT (RESEND, LATE, PULLED), COMPLETION, STALE, ASK_REPLY,
 *                                 SUM, NAK, GO (unicast)
 *   aggregator:48865 --> worker   WELCOME REFUSE STATUS
 *
 * A worker uses ONE unicast UDP socket for everything it sends, so that the
 * source of its JOIN is the source of its gradients, and a second socket bound
 * to the job's multicast group for results.
 *
 * Versioning: the version is the first byte and covers all that follows.  A
 * receiver drops (and counts) every version it does not speak.  New message
 * types and new flags may be added within a version: unknown types are
 * dropped and counted; unknown flags in a request make it malformed; unknown
 * flags in an answer are ignored.  Anything else takes a new version.
 * struct saina_hdr up to @job, struct saina_refuse and SAINA_REFUSE_VERSION are the
 * same in all versions.  A REFUSE with that reason carries the version of the message
 * it answers, so that a sender of any version can read it.
 */
#ifndef _UAPI_SAINA_PROTO_H
#define _UAPI_SAINA_PROTO_H

#include <linux/types.h>

#define SAINA_PROTO_VERSION	6

#define SAINA_PORT_DATA		48864	/* 0xBEE0, as in the original SAINA */
#define SAINA_PORT_CTRL		48865
#define SAINA_PORT_RESULT	48866	/* destination of multicast results */

/* The multicast group of job j is 239.190.(j >> 8).(j & 255), host order. */
#define SAINA_GROUP_BASE	0xefbe0000u

#define SAINA_WORKERS_MAX	64	/* contributor masks are 64 bits wide */
#define SAINA_RANKS_MAX		65535	/* workers of a tree of jobs */
#define SAINA_DEPTH_MAX		7	/* jobs above another one in its tree */
#define SAINA_JOBS_MAX		256	/* job identifiers are 0..255 */
#define SAINA_WORKER_ANY	0xff	/* JOIN: any free identifier will do */
#define SAINA_ROUND_MAX		0xfffffffeu	/* the last round a job can have */
#define SAINA_ROUND_JOIN 0x7fffffffu	/* only a majority of workers can begin at a later one */
#define SAINA_ROUND_ASK		0xffffffffu	/* CLOCK: asks only: my step, and may I begin it? */

/*
 * Block scales of GRAD, INC and RESULT in jobs of integers: integer = round(value * 2^e), and the
 * message has the exponent e - SAINA_EXPONENT_BIAS.  The coarsest (e = -104) holds every finite
 * float32, summed over SAINA_WORKERS_MAX workers; at the finest (e = 149) every float32 that fits
 * is exact.  SAINA_EXPONENT_NAN marks a segment with a NaN or an infinity, SAINA_EXPONENT_INT
 * (int32 only) one of integers, which have no block scale.
 */
#define SAINA_EXPONENT_BIAS	22
#define SAINA_EXPONENT_MIN	(-126)
#define SAINA_EXPONENT_MAX	127
#define SAINA_EXPONENT_NAN	(-128)
#define SAINA_EXPONENT_INT	(-127)

/* A scale is coarse from so many bits on (2^6 times another's): counter COARSENED. */
#define SAINA_COARSE_BITS	6

/* Payload sizes a job may choose, in elements of 4 bytes, or in pairs of int16. */
#define SAINA_ELEMS_LIST(X) X(64) X(128) X(256) X(352) X(1024) X(2048)
#define SAINA_ELEMS_MAX		2048
#define SAINA_ELEMS_LINEAR_MAX	352	/* the largest that fits MTU 1500 */

enum saina_msg_type {
	SAINA_MSG_UNSPEC	= 0,
	SAINA_MSG_GRAD		= 1,	/* worker: a segment of its gradient */
	SAINA_MSG_RESULT	= 2,	/* a sum, its contributors, its policy */
	SAINA_MSG_NOP		= 3,	/* a message to be skipped (padding) */
	SAINA_MSG_PULL		= 4,	/* worker: asks for a result; as long as one */
	SAINA_MSG_INC		= 5,	/* worker, PS (parameter server): a segment of an update */
	SAINA_MSG_READ		= 6,	/* worker, PS: asks for parameters; as long as a SUM */
	SAINA_MSG_CLOCK		= 7,	/* worker, PS: a step is finished, or SAINA_ROUND_ASK */
	SAINA_MSG_STALE		= 8,	/* that round cannot be had (any more) */
	SAINA_MSG_PROBE		= 9,	/* worker: can results reach me? */
	SAINA_MSG_PROBE_REPLY	= 10,
	SAINA_MSG_ASK		= 11,	/* worker: state of its segments? struct saina_ask */
	SAINA_MSG_ASK_REPLY	= 12,	/* answers ASK; as long as it */
	SAINA_MSG_SUM		= 13,	/* answers INC, READ: parameters, or the group's view */
	SAINA_MSG_NAK		= 14,	/* answers INC: not counted; any message: wrong mode */
	SAINA_MSG_GO		= 15,	/* answers CLOCK; sent to waiters: who may begin a step */
	/* control, struct saina_hdr + a body */
	SAINA_MSG_JOIN		= 16,	/* struct saina_join */
	SAINA_MSG_WELCOME	= 17,	/* struct saina_welcome */
	SAINA_MSG_REFUSE	= 18,	/* struct saina_refuse */
	SAINA_MSG_READY		= 19,	/* worker: admitted and probed (flags FAST) */
	SAINA_MSG_HEARTBEAT	= 20,	/* worker: alive, at hdr.round */
	SAINA_MSG_STATUS	= 21,	/* struct saina_status, answers 19, 20, 22 */
	SAINA_MSG_LEAVE		= 22,	/* worker: goodbye */
	/* data plane, shared memory */
	SAINA_MSG_DOORBELL	= 23,	/* worker: input array is filled; struct saina_doorbell */
	SAINA_MSG_COMPLETION	= 24,	/* answers DOORBELL and FETCH: which results are there */
	SAINA_MSG_FETCH		= 25,	/* worker: asks for results; struct saina_doorbell */
};

/* How gradients of a job may go. */
enum saina_reference {
	SAINA_REFERENCE_NO	= 0,	/* in messages */
	SAINA_REFERENCE_ALLOWED	= 1,	/* by reference while all workers can, else in messages */
	SAINA_REFERENCE_ONLY	= 2,	/* by reference: no message holds a segment */
};

enum saina_elem_type {
	SAINA_ELEM_INT32	= 1,	/* two's complement, wrapping sums */
	SAINA_ELEM_FLOAT32	= 2,	/* needs saina.ko */
	SAINA_ELEM_BFLOAT16	= 3,	/* needs saina.ko */
	SAINA_ELEM_INT16	= 4,	/* two in a word, see SAINA_PAIR() */
};

/* Integers with a block scale, else floats. */
#define SAINA_ELEM_IS_INT(elem) ((elem) == SAINA_ELEM_INT32 || (elem) == SAINA_ELEM_INT16)

/*
 * Jobs of int16 have two elements in each word of 4 bytes: the first one, plus 65536 times the
 * second one, modulo 2^32.  So a sum of words has both sums, as long as each of these fits 16
 * bits.  The payload of a job, and all that is said of elements in messages, slots and signs,
 * counts words.
 */
#define SAINA_PAIR(first, second) ((__u32)(first) + ((__u32)(second) << 16))
#define SAINA_PAIR_FIRST(word)	((__s16)(word))
#define SAINA_PAIR_SECOND(word)	((__s16)(((__u32)(word) + 0x8000) >> 16))

/* Elements of the gradient in a message. */
#define SAINA_SEGMENT_ELEMS(elem, payload) ((elem) == SAINA_ELEM_INT16 ? 2 * (payload) : (payload))

/* hdr.flags of answers */
#define SAINA_F_DEGRADED	0x01	/* fewer than the latched k: workers died, or time-out */
#define SAINA_F_LATE		0x02	/* unicast: you were not counted in it */
#define SAINA_F_RESEND		0x04	/* unicast: you were counted in it */
#define SAINA_F_PULLED		0x08	/* unicast: answers a PULL */
#define SAINA_F_DROP_LATE	0x10	/* policy late=drop: keep no residual */
#define SAINA_F_AWAY		0x20	/* ASK_REPLY: an asked slot's sum is with the parent */
#define SAINA_F_FRESH		0x40	/* SUM: may be used for the next step */
#define SAINA_F_TYPES		0x80	/* RESULT, GRAD of a node: of integers and floats: no sum */
/*
 * hdr.flags of requests.  A GRAD of the job's uplink worker is a result, and has DEGRADED and
 * DROP_LATE of the parent's; LATE: the parent has not counted this job
 */
#define SAINA_F_FAST		0x01	/* READY: a PROBE_REPLY came by redirect */
#define SAINA_F_NAMED		0x02	/* JOIN: struct saina_join_named; hdr.job is 0 */
#define SAINA_F_REPORT		0x04	/* HEARTBEAT: struct saina_report follows */
#define SAINA_F_TREE		0x08	/* JOIN: divides by weight; WELCOME: of a tree */
#define SAINA_F_NODE		0x10	/* JOIN: is a job; struct saina_join_node */
#define SAINA_F_RETRANSMIT	0x20	/* data port, not PROBE, ASK: sent before (statistics) */

/* hdr.k of NAK: why a message is not counted; of GO: 0, or MODE */
enum saina_nak {
	SAINA_NAK_ORDER		= 1,	/* of another step than the one the worker is in */
	SAINA_NAK_WAIT		= 2,	/* the worker may not begin this step yet */
	SAINA_NAK_EXPONENT	= 3,	/* the parameters have another one: hdr.exponent */
	SAINA_NAK_MODE		= 4,	/* the job runs steps, not rounds, or the other way round */
};

#define SAINA_WINDOW_NONE	0xffffffffu	/* hdr.segment of GO: no bound */

/**
 * struct saina_hdr - first 48 bytes of every message
 * @version: SAINA_PROTO_VERSION
 * @type: enum saina_msg_type
 * @flags: SAINA_F_*; 0 where none is defined for the type
 * @elem: enum saina_elem_type of the payload; 0 in control messages
 * @job: job identifier, 0..SAINA_JOBS_MAX-1
 * @k: RESULT: k of the policy that was latched when the slot opened; NAK: enum saina_nak;
 *	STATUS: 1 + the parts that a round's data have under the present policy (CODED; no other
 *	has any), 0: not said
 * @reserved: 0
 * @round: round number, from the job's first round to SAINA_ROUND_MAX; never
 *	wraps.  In parameter-server mode the number of the sender's step
 * @segment: which payload-sized piece of the gradient, 0..segments-1; GO: the window;
 *	STATUS: not 0 while the worker has not shown that results get to it by its port's hook:
 *	a PROBE with this segment may show that, READY with FAST and this segment says so
 * @count: elements in the payload (int16: pairs): the job's payload size in GRAD, PULL,
 *	RESULT, INC, READ and SUM (pad the last segment with zeros), 0 elsewhere
 * @worker: sender (requests) or addressee (unicast answers); 0xff in
 *	multicast
 * @exponent: block scale, SAINA_EXPONENT_MIN..MAX (see there), or
 *	SAINA_EXPONENT_NAN: the segment holds a NaN or an infinity, the payload is not looked at;
 *	SAINA_EXPONENT_INT: it holds integers.  Contributors choose their own; a result has the
 *	coarsest of them, or NAN if any has.  INT if all have; if only some have, the result has
 *	NAN and SAINA_F_TYPES, and its payload begins with the mask (__le64) of those
 * @contributors: RESULT: how many gradients are in the sum (= bits in @mask); 0 only in a job
 *	with a parent that has not counted it.  The divisor of the mean is @contributors +
 *	@slot_round, never the k advertised by anything else; STATUS: the part that
 *	the addressee computes, if there are parts
 * @next_k: RESULT: k of the policy as it will be for the next round, as known
 *	when the result was made (advisory)
 * @policy: RESULT: low 16 bits of the sequence number of the policy that was
 *	latched when the slot opened; SUM, NAK, GO: of the mode's first step
 * @mask: RESULT: bit w set if worker w is in the sum; SUM: its version, the number of
 *	INCs in it; NAK, GO: bit w set if worker w may do the step it is in; ASK_REPLY: bit w set if
 *	@round does not begin because worker w is too many rounds behind; STATUS: bit w set if the
 *	newest open round has waited for live worker w for about a second or longer, 0: for none,
 *	or not said
 * @aux: RESULT with LATE, RESEND or PULLED, STALE, and SUM: 1 + the last round (step) in
 *	which the addressee was counted for this segment, 0 if never; NAK, unicast
 *	GO: the step the addressee is in.  RESULT in multicast: time-out of the
 *	policy in force, microseconds, 0 if it has none; STATUS:
 *	number of the output array that doorbells are answered in, 0: use messages
 * @slot_round: STALE, ASK_REPLY: the next round the data path will open (1 + the newest
 *	opened); SUM, NAK, GO: how many steps all of the worker's group have finished; with k
 *	MODE: the first round or step of the other mode; GRAD: workers whose gradients are in
 *	it, less 1; RESULT: workers in the sum, less @contributors.  Elsewhere 0
 * @session: random, chosen by the agent at each admission; names one
 *	incarnation of a worker and is known to nobody else.  0 in JOIN and in
 *	multicast, but for PROBE_REPLY, which has the worker's
 */
struct saina_hdr {
	__u8	version;
	__u8	type;
	__u8	flags;
	__u8	elem;
	__le16	job;
	__u8	k;
	__u8	reserved;
	__le32	round;
	__le32	segment;
	__le16	count;
	__u8	worker;
	__s8	exponent;
	__u8	contributors;
	__u8	next_k;
	__le16	policy;
	__le64	mask;
	__le32	aux;
	__le32	slot_round;
	__le64	session;
} __attribute__((packed, aligned(2)));

#define SAINA_ASK_SEGMENTS	64	/* that one ASK is about: hdr.segment and those after it */

/**
 * struct saina_ask - body of ASK and ASK_REPLY; bit i is about segment hdr.segment + i of round
 *	hdr.round, 0 in ASK and for segments that the job does not have
 * @time: the asker's, echoed
 * @counted: its gradient is in the sum
 * @done: the result is there
 * @due: it is not, but the slot would complete now: a PULL makes it
 */
struct saina_ask {
	__le64	time;
	__le64	counted;
	__le64	done;
	__le64	due;
} __attribute__((packed, aligned(2)));

#define SAINA_DOORBELL_SEGMENTS	64	/* that one DOORBELL is about, likewise */

/**
 * struct saina_doorbell - body of DOORBELL, FETCH and COMPLETION; bit i is about segment
 *	hdr.segment + i of round hdr.round
 * @posted: DOORBELL: the gradient is in the worker's input array; FETCH: the result is wanted;
 *	COMPLETION: as in the message that it answers
 * @done: COMPLETION: of these, the result is in the output array; in the others ignored
 */
struct saina_doorbell {
	__le64	posted;
	__le64	done;
} __attribute__((packed, aligned(2)));

/* Job states, as sent to workers and shown to users. */
enum saina_job_state {
	SAINA_JOB_FORMING	= 1,	/* waits for its workers */
	SAINA_JOB_RUNNING	= 2,
	SAINA_JOB_STOPPED	= 3,	/* by the operator: packets are refused */
};

/* How results get to a worker, as the agent heard it from its READY. */
enum saina_path {
	SAINA_PATH_UNKNOWN	= 0,	/* no READY was heard in this session */
	SAINA_PATH_FAST		= 1,	/* redirected to its port */
	SAINA_PATH_RELAYED	= 2,	/* through the bridge, slower */
};

#define SAINA_TOKEN_LEN		32	/* bytes, zero padded, compared whole */
#define SAINA_NAME_LEN		32	/* bytes, zero terminated */
#define SAINA_TEXT_LEN		160	/* bytes, zero terminated */
#define SAINA_STATUS_TEXT_LEN	156	/* likewise */
#define SAINA_CTRL_LEN		220	/* of each message to CTRL: none has a longer answer */

/**
 * struct saina_join - body of JOIN (hdr.job, hdr.worker or WORKER_ANY).  hdr.aux, if not 0,
 *	is 1 + the rank that the worker wants, in the job's tree where it has one: then
 *	hdr.worker does not count
 * @token: the job's token
 * @name: who this is, for people (host name, rank)
 * @nonce: random, constant over the retransmissions of one join: a repeated
 *	JOIN gets the same WELCOME again instead of "already joined", and nobody
 *	who does not know it can say where this worker is
 * @elements: elements the worker intends to reduce, 0 = whatever the job has;
 *	more than the job has is refused
 * @arrays: number of arrays that @elements are reduced in, at most.  Each begins at a segment:
 *	where the first worker decides the job's size, it is so much larger.  0: @elements say all
 * @per_worker: .. and that has room for one more array, of so many elements for each worker of
 *	the job
 * @round: the first round this worker would send (0 for a fresh one, at most
 *	SAINA_ROUND_MAX); lets a job that lost its data path go on where most of its
 *	workers are
 */
struct saina_join {
	__u8	token[SAINA_TOKEN_LEN];
	char	name[SAINA_NAME_LEN];
	__le64	nonce;
	__le64	elements;
	__le32	round;
	__le16	arrays;
	__le16	per_worker;
} __attribute__((packed, aligned(4)));

/**
 * struct saina_join_named - body of JOIN with NAMED
 * @join: as without it
 * @job: the job's name, zero terminated and padded; the answers' hdr.job is its number
 *	(a REFUSE's: 0)
 */
struct saina_join_named {
	struct saina_join join;
	char	job[SAINA_NAME_LEN];
} __attribute__((packed, aligned(4)));

/**
 * struct saina_join_node - body of JOIN with NODE: a job joins another one, its parent
 * @named: as with NAMED, @named.job is read only with that flag
 * @incarnation: random, of the job's data path: that a node starts again does not change it
 * @name_hash: of the name of the node's host
 * @max_weight: workers that its gradient may stand for
 * @segments: of the job, as those of the parent's have to be
 * @payload: likewise, counted as in WELCOME
 * @pool: of the job
 * @ring: likewise, as the parent's has to be
 * @elem: likewise
 * @reserved: 0
 */
struct saina_join_node {
	struct saina_join_named named;
	__le64	incarnation;
	__le64	name_hash;
	__le32	max_weight;
	__le32	segments;
	__le16	payload;
	__le16	pool;
	__le16	ring;
	__u8	elem;
	__u8	reserved[9];
} __attribute__((packed, aligned(4)));

/**
 * struct saina_welcome - body of WELCOME (hdr.worker, hdr.session are the
 *	worker's from now on)
 * @nonce: of the JOIN
 * @elements: elements of the job's gradient
 * @segments: ceil(elements / SAINA_SEGMENT_ELEMS(elem, payload))
 * @payload: elements in one message; int16: pairs
 * @pool: hot slots: segment s may be sent once s - pool has its result
 * @ring: rounds of results kept for RESEND, LATE, PULL
 * @workers: size of the job
 * @state: enum saina_job_state
 * @round: first round the worker may contribute to
 * @group: multicast group of the results, IPv4, little endian
 * @heartbeat_ms: send a HEARTBEAT this often
 * @dead_ms: silent for this long means dead
 * @exponent: initial block scale of the parameters (ssp, asp, grouped); ignored in rounds
 * @elem: enum saina_elem_type
 * @part: CODED: the part of the gradient that this worker computes, 0..parts-1
 * @parts: CODED: how many parts there are; else 0: each worker has one of its own
 * @formed: 1: admitted while the job was forming, so @round is the first its data
 *	path opens and has no results before it; 0: came to a running job
 * @reports: 1: a HEARTBEAT may have a struct saina_report
 * @by_reference: enum saina_reference, as the operator has said (saina/shm.h)
 * @reserved: 0
 */
struct saina_welcome {
	__le64	nonce;
	__le64	elements;
	__le32	segments;
	__le16	payload;
	__le16	pool;
	__le16	ring;
	__u8	workers;
	__u8	state;
	__le32	round;
	__le32	group;
	__le16	heartbeat_ms;
	__le16	dead_ms;
	__s8	exponent;
	__u8	elem;
	__u8	formed;
	__u8	reports;
	__u8	part;
	__u8	parts;
	__u8	by_reference;
	__u8	reserved[1];
} __attribute__((packed, aligned(4)));

/**
 * struct saina_welcome_tree - body of WELCOME with TREE, the answer to a JOIN with TREE
 * @welcome: as without it
 * @weight: workers of all jobs of the tree: integers leave room for so many
 * @rank0: the worker's number among these; a node's: the first of its workers
 * @depth: jobs above this one
 * @reserved: 0
 * @quorum: workers without which the tree does not go on; 0: none is set
 */
struct saina_welcome_tree {
	struct saina_welcome welcome;
	__le32	weight;
	__le32	rank0;
	__u8	depth;
	__u8	reserved[3];
	__le32	quorum;
} __attribute__((packed, aligned(4)));

/* Why a JOIN, READY, HEARTBEAT or LEAVE was refused. */
enum saina_refusal {
	SAINA_REFUSE_MALFORMED	= 1,
	SAINA_REFUSE_NO_JOB	= 2,
	SAINA_REFUSE_TOKEN	= 3,
	SAINA_REFUSE_FULL	= 4,
	SAINA_REFUSE_TAKEN	= 5,	/* that worker id is alive already */
	SAINA_REFUSE_ELEMENTS	= 6,
	SAINA_REFUSE_STOPPED	= 7,
	SAINA_REFUSE_PORT	= 8,	/* not seen to come in by a port of ours: ask again */
	SAINA_REFUSE_SESSION	= 9,	/* not, or no longer, admitted: JOIN again */
	SAINA_REFUSE_VERSION	= 10,
	SAINA_REFUSE_TREE	= 11,	/* the job is in a tree, and JOIN has no TREE: say so */
	SAINA_REFUSE_NO_ROOT	= 12,	/* its job's parent has not admitted that: ask again */
	SAINA_REFUSE_MISMATCH	= 13,	/* NODE: segments, payload, ring or type differ */
	SAINA_REFUSE_WEIGHT	= 14,	/* NODE: more workers than the parent has room for */
};

/**
 * struct saina_refuse - body of REFUSE
 * @nonce: of the JOIN, or 0
 * @reason: enum saina_refusal
 * @text: one sentence for people, zero terminated
 */
struct saina_refuse {
	__le64	nonce;
	__le32	reason;
	char	text[SAINA_TEXT_LEN];
} __attribute__((packed, aligned(4)));

/**
 * struct saina_report - body of HEARTBEAT with REPORT: how the worker sees the network
 * @sent: gradients sent for the first time, since it was started
 * @resent: gradients sent again
 * @rtt_us: smoothed time from an ASK to its ASK_REPLY, microseconds; 0: none yet
 * @window: messages it may have in flight
 * @refused: errno (as Linux numbers them) with which its kernel refuses to send gradients; 0: none
 * @refused_ms: time since it last sent one; 0 if @refused is 0
 * @unanswered_ms: time for which it has sent gradients or questions, and nothing has come from the
 *	data path
 */
struct saina_report {
	__le64	sent;
	__le64	resent;
	__le32	rtt_us;
	__le32	window;
	__le32	refused;
	__le32	refused_ms;
	__le32	unanswered_ms;
} __attribute__((packed, aligned(4)));

/**
 * struct saina_status - body of STATUS
 * @active: mask of the workers alive
 * @round: newest round opened in the data path + 1 (the next to open)
 * @state: enum saina_job_state
 * @path: enum saina_path: which READY of this worker was heard, if any
 * @timeout_ms: time-out of the policy, rounded up; 0 if it has none
 * @text: what keeps those away that the newest round (hdr.mask), or a forming job, waits for:
 *	one sentence for people, zero terminated; empty: not known
 */
struct saina_status {
	__le64	active;
	__le32	round;
	__u8	state;
	__u8	path;
	__le16	timeout_ms;
	char	text[SAINA_STATUS_TEXT_LEN];
} __attribute__((packed, aligned(4)));

#define SAINA_ASSERT(e, what) _Static_assert(e, what)
SAINA_ASSERT(sizeof(struct saina_hdr) == 48, "saina_hdr is 48 bytes");
SAINA_ASSERT(__builtin_offsetof(struct saina_hdr, round) == 8, "round at 8");
SAINA_ASSERT(__builtin_offsetof(struct saina_hdr, count) == 16, "count at 16");
SAINA_ASSERT(__builtin_offsetof(struct saina_hdr, slot_round) == 36, "slot_round at 36");
SAINA_ASSERT(__builtin_offsetof(struct saina_hdr, mask) == 24, "mask at 24");
SAINA_ASSERT(__builtin_offsetof(struct saina_hdr, aux) == 32, "aux at 32");
SAINA_ASSERT(__builtin_offsetof(struct saina_hdr, session) == 40, "session at 40");
SAINA_ASSERT(sizeof(struct saina_ask) == 32, "saina_ask is 32 bytes");
SAINA_ASSERT(sizeof(struct saina_doorbell) == 16, "saina_doorbell is 16 bytes");
SAINA_ASSERT(sizeof(struct saina_join) == 88, "saina_join is 88 bytes");
SAINA_ASSERT(sizeof(struct saina_join_named) == 120, "saina_join_named is 120 bytes");
SAINA_ASSERT(sizeof(struct saina_welcome) == 48, "saina_welcome is 48 bytes");
SAINA_ASSERT(sizeof(struct saina_join_node) == 160, "saina_join_node is 160 bytes");
SAINA_ASSERT(sizeof(struct saina_welcome_tree) == 64, "saina_welcome_tree is 64 bytes");
SAINA_ASSERT(sizeof(struct saina_refuse) == 172, "saina_refuse is 172 bytes");
SAINA_ASSERT(sizeof(struct saina_hdr) + sizeof(struct saina_refuse) == SAINA_CTRL_LEN,
	     "a REFUSE is as long as what it answers");
SAINA_ASSERT(sizeof(struct saina_report) == 36, "saina_report is 36 bytes");
SAINA_ASSERT(sizeof(struct saina_hdr) + sizeof(struct saina_status) == SAINA_CTRL_LEN,
	     "a STATUS is as long as what it answers");

#endif /* _UAPI_SAINA_PROTO_H */
