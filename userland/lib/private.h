/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The handle behind saina.h.
 *
 * Two threads: the trainer's, which submits all-reduces and waits for them,
 * and the library's own (recv.c), which does everything else: it owns the sockets
 * after saina_open(), sends, receives, quantises, keeps time.  One mutex guards
 * the whole handle; the receive thread lets go of it while it sleeps and while it
 * copies packets in.  All float arithmetic happens in the receive thread,
 * in the default floating-point environment, whatever the trainer uses.
 */
#ifndef SAINA_PRIVATE_H
#define SAINA_PRIVATE_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "saina.h"
#include "saina/proto.h"
#include "half.h"
#include "quant.h"
#include "rto.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "libsaina copies int32 elements as they are; the wire is little endian"
#endif

#define MSEC		1000000ull
#define NEVER		UINT64_MAX

/* Where this worker stands with the agent (join.c). */
enum saina_phase {
	PHASE_JOINING,		/* JOIN sent */
	PHASE_PROBING,		/* WELCOME heard, can results reach us? */
	PHASE_READYING,		/* READY sent */
	PHASE_FORMING,		/* waits for the other workers */
	PHASE_CONFIRMING,	/* job runs; asks for the first round */
	PHASE_RUNNING,
	PHASE_REJOINING,	/* was RUNNING, the agent forgot us: JOIN sent */
	PHASE_REREADYING,
	PHASE_LEAVING,
	PHASE_FAILED,
};

enum saina_seg_state {
	SEG_IDLE,		/* not part of this round (yet) */
	SEG_QUEUED,		/* may be sent when window and gate allow */
	SEG_ASKING,		/* PULLing the previous round's, for its exponent */
	SEG_SENT,		/* GRAD sent at least once */
	SEG_PULLING,		/* never sent, decided: PULL sent */
	SEG_DONE,
	SEG_STALE,		/* its result cannot be had */
};

/**
 * struct saina_seg - one segment of the gradient
 * @req: the all-reduce it belongs to in this round
 * @first_ns, @sent_ns, @due_ns: first and last transmission, and when to send again
 * @exp_round: round that @exponent is for
 * @exponent: of the next contribution; valid if @exp_round is the present round
 * @state: enum saina_seg_state
 * @tries: transmissions in this state
 * @was_sent: a GRAD of the present round has left
 * @residual: enum saina_type of what is kept in the residual, 0 = nothing
 * @clipped: elements clipped in the present contribution
 * @last: of the last result
 */
struct saina_seg {
	struct saina_req *req;
	uint64_t	first_ns, sent_ns, due_ns;
	uint32_t	exp_round;
	uint32_t	clipped;
	int8_t		exponent;
	uint8_t		state;
	uint8_t		tries;
	uint8_t		was_sent;
	uint8_t		residual;
	struct {
		uint64_t	mask;
		uint32_t	round;
		uint16_t	policy;
		uint8_t		contributors, k, flags;
		int8_t		exponent;
	} last;
};

/* An all-reduce in flight: a range of segments of the present round. */
struct saina_req {
	struct saina_req *next;		/* of the same round */
	struct saina	*s;
	void		*buf;
	size_t		n;
	enum saina_type	type;
	enum saina_result_op op;
	uint32_t	first, segments;
	uint32_t	done;
	bool		taken;		/* seen by the receive thread */
	bool		finished;
	int		err;
	uint64_t	start_ns;
	struct saina_call call;
};

/* Results of a round this worker has not come to yet (kept.c). */
struct saina_kept {
	uint32_t	round;
	uint32_t	have;		/* segments present */
	bool		used;
	uint8_t		*present;	/* per segment */
	struct saina_hdr *hdr;
	uint8_t		*sums;		/* segments * wire, as on the wire */
};

struct saina_join_state {
	struct saina_join body;
	uint64_t	next_ns;	/* when to act again */
	unsigned int	tries;
	uint64_t	probe_ns[32];	/* when probe i left */
	uint64_t	heartbeat_ns;	/* when the next one is due */
	uint64_t	since_ns;	/* of this phase, for time-outs */
	bool		fast;		/* a probe was answered */
	bool		mended;		/* one was, but after READY had said that none is */
	bool		batched;	/* probes went as batches */
	int		refused;	/* refused TAKEN or PORT, that errno; trying again */
	bool		again;		/* this handle has been RUNNING before */
	bool		gone;		/* LEAVE was answered */
	bool		waiting;	/* said that the job waits for workers */
};

/* Messages under way to the kernel (send.c). */
struct saina_batch {
	uint8_t		*buf;		/* messages of one length, back to back */
	size_t		len, msg;
	unsigned int	n, max;
	bool		segment;	/* UDP_SEGMENT works here */
	bool		complained;
};

struct saina {
	pthread_mutex_t	lock;
	pthread_cond_t	cond;		/* something the trainer waits for happened */
	pthread_t	thread;
	bool		started, stop;
	int		wake;		/* eventfd */

	/* who and where; constant after saina_open() */
	struct saina_opts opts;
	char		name[SAINA_NAME_LEN];
	struct sockaddr_in ctrl, data;	/* of the aggregator */
	struct in_addr	local;
	int		ifindex;
	char		ifname[16];
	unsigned int	mtu;
	int		ucast, mcast;	/* sockets; mcast -1 until WELCOME */
	const struct saina_quant *quant;

	/* the job, from WELCOME */
	uint16_t	job;
	uint64_t	session;
	uint8_t		worker, workers, elem;
	int8_t		exponent0;
	uint64_t	elements;
	uint32_t	segments, payload, pool, ring;
	uint32_t	first_round;
	uint16_t	heartbeat_ms, dead_ms;
	uint32_t	group;		/* host order */
	float		limit;
	bool		relayed;
	bool		formed;		/* WELCOME came while the job was forming */
	uint64_t	active;
	size_t		wire;		/* bytes of a payload */
	size_t		msglen;		/* of a GRAD */

	enum saina_phase phase;
	struct saina_join_state join;
	int		err;		/* of PHASE_FAILED */
	char		error[256];
	uint64_t	heard_ns;	/* last valid message of any kind */
	uint64_t	opened_ns, admitted_ns;

	/* the round */
	uint32_t	round;
	uint32_t	assigned;	/* segments given to all-reduces so far */
	uint32_t	last_assigned;	/* of the round before */
	uint32_t	first_open;	/* segments below are over */
	uint32_t	sent_end;	/* segments from here on have not been sent */
	uint32_t	inflight;
	uint32_t	stale;		/* segments found STALE */
	uint32_t	floor;		/* the data path began here: nothing below can be had */
	uint32_t	known_next;	/* the data path opens this round next, at least */
	bool		gated;		/* joined a running job: see flow.c */
	bool		broken;		/* -ESTALE until saina_set_round() */
	bool		saw_result;	/* of this round, at t0_ns */
	uint64_t	gate_ns;
	uint64_t	t0_ns;
	uint64_t	progress_ns;
	unsigned int	stall_tries;	/* since anything moved, 0 = it moves */
	uint64_t	due_ns;		/* earliest of the segments' */
	uint32_t	stall_cursor;
	uint64_t	fetch_ns;	/* background PULLs: next time */
	unsigned int	fetch_tries;
	struct saina_req *reqs;
	struct saina_seg *seg;		/* [segments] */
	struct saina_kept **kept;	/* [ring], by round & (ring - 1) */
	uint32_t	*residual;	/* [segments * payload], float or int32 bits */

	/* flow */
	struct saina_rto rto;
	uint32_t	lost, got;	/* results lost of results lately */
	uint64_t	sampled_ns, shortest_ns, longest_ns;	/* last sample; times since */
	uint32_t	window, window_max;
	uint32_t	window_before;	/* to go back to after probing */
	bool		fixed;		/* the caller's window */
	bool		slow_start;	/* one more with each result */
	bool		crowded;	/* the last epoch's queue was too long */
	bool		probing;	/* the window is small, to measure base_ns */
	uint32_t	grow;		/* results since the window grew */
	uint32_t	epoch_left;	/* results */
	uint64_t	lowest_ns, quick_ns;	/* shortest time of this epoch, of the last */
	uint64_t	base_ns, based_ns;	/* time without a queue of ours; as of when */
	uint64_t	rto_min, rto_max; /* bounds of the time-out, relays and queues apart */
	uint64_t	passed_ns;	/* latest transmission known to be answered: when */
	uint32_t	passed;		/* ... and of which segment */
	uint64_t	narrowed_ns;
	uint32_t	overflow[2];	/* SO_RXQ_OVFL of ucast, mcast */
	struct saina_batch batch;
	void		*rx;		/* recv.c */
	struct saina_stats stats;
};

/* handle.c */
uint64_t saina_now(void);
void saina_log(struct saina *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int saina_error(struct saina *s, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void saina_fail(struct saina *s, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* socket.c */
int saina_socket_open(struct saina *s);
int saina_socket_group(struct saina *s);
void saina_socket_close(struct saina *s);
int saina_socket_gro(struct saina *s);		/* 1 on, 0 off, negative: unknown */

/* join.c */
void saina_join_start(struct saina *s);
void saina_join_again(struct saina *s);
uint64_t saina_join_run(struct saina *s, uint64_t now);	/* returns when to come back */
void saina_join_input(struct saina *s, const struct saina_hdr *h, const void *body, uint64_t now);
void saina_join_leave(struct saina *s);

/* check.c */
bool saina_check(const struct saina *s, const struct sockaddr_in *src, const void *msg,
		 size_t len);

/* recv.c */
int saina_recv_init(struct saina *s);
void saina_recv_exit(struct saina *s);
void *saina_recv_thread(void *arg);
void saina_recv_kick(struct saina *s);
void saina_recv_message(struct saina *s, const struct sockaddr_in *from, const void *msg,
			size_t len, uint64_t now);

/* send.c */
int saina_send_init(struct saina *s);
void saina_send_exit(struct saina *s);
void saina_send_header(struct saina *s, struct saina_hdr *h, int type);
void saina_send_control(struct saina *s, const struct sockaddr_in *to, const void *msg, size_t len);
bool saina_send_probe(struct saina *s, const struct saina_hdr *h);
void *saina_send_slot(struct saina *s);	/* msglen bytes to fill; sent by flush at the latest */
void saina_send_flush(struct saina *s);

/* flow.c */
uint64_t saina_flow_run(struct saina *s, uint64_t now);	/* returns when to come back */
void saina_flow_result(struct saina *s, const struct saina_hdr *h, const void *sums, uint64_t now);
void saina_flow_stale(struct saina *s, const struct saina_hdr *h, uint64_t now);
void saina_flow_next(struct saina *s, uint32_t next);
void saina_flow_begin(struct saina *s);
void saina_flow_again(struct saina *s);
void saina_flow_gate(struct saina *s);

/* window.c */
void saina_window_begin(struct saina *s);
bool saina_window_lossy(const struct saina *s);
void saina_window_result(struct saina *s, const struct saina_seg *g, uint64_t now);
void saina_window_overflow(struct saina *s, int socket, uint32_t drops);

/* round.c */
void saina_round_consume(struct saina *s, uint32_t segment, const struct saina_hdr *h,
			 const void *sums);
void saina_round_stale(struct saina *s, uint32_t segment, bool counted);
void saina_round_take(struct saina *s, uint64_t now);
void saina_round_reset(struct saina *s, uint32_t round);
const void *saina_round_data(const struct saina *s, uint32_t segment, size_t *n);

/* kept.c */
void saina_kept_put(struct saina *s, const struct saina_hdr *h, const void *sums);
struct saina_kept *saina_kept_get(struct saina *s, uint32_t round);
void saina_kept_drop(struct saina *s, uint32_t below);
void saina_kept_forget(struct saina *s, uint32_t from);
const void *saina_kept_sums(const struct saina *s, const struct saina_kept *k, uint32_t segment);
bool saina_kept_complete(struct saina *s, uint32_t round);
void saina_kept_free(struct saina *s);

/* residual.c */
void saina_residual_keep(struct saina *s, uint32_t segment);
void saina_residual_counted(struct saina *s, uint32_t segment, int exponent);
void saina_residual_drop(struct saina *s, uint32_t segment);
const void *saina_residual_of(const struct saina *s, uint32_t segment);

#endif /* SAINA_PRIVATE_H */
