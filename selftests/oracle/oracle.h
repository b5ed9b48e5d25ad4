/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The oracle: a plain model of the slot machine and its policies, written from
 * Documentation/datapath.rst and from nothing else.  It is fed the frames that
 * the XDP program is fed and says what must come of them.  No cleverness here:
 * whatever differs from the program is to be settled by reading that document.
 */
#ifndef SAINA_ORACLE_H
#define SAINA_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "saina/bpf.h"

#define ORACLE_FRAME_MAX	9216
#define ORACLE_PORTS		8	/* ifindexes 0..7 may have injected faults */
#define ORACLE_LEARNED		1024

enum oracle_verdict {
	ORACLE_PASS,		/* goes on to the bridge, untouched */
	ORACLE_DROP,		/* ends here */
	ORACLE_REDIRECT,	/* rewritten, goes to a worker or to all */
};

struct oracle_slot {
	struct saina_slot_meta meta;	/* csum is not modelled */
	int32_t *sum;			/* OPEN, of floats: float32; DONE: as on the wire; OPEN, exponent NAN: anything */
};

/**
 * struct oracle_job - a job, its state and all it counted
 * @present: there is such a job
 * @conf: the snapshot in force
 * @rt: what the data path decided (lock and times unused)
 * @hot: conf.pool slots; @ring: conf.segments * conf.ring results
 * @last: [segment][worker], 1 + last round counted in
 * @signs: conf.segments * conf.sign_words words
 * @clock: table mode: the workers' steps (lock unused)
 */
struct oracle_job {
	bool present;
	struct saina_job_conf conf;
	struct saina_job_rt rt;
	struct saina_clock clock;
	struct oracle_slot *hot;
	struct oracle_slot *ring;
	uint32_t (*last)[SAINA_WORKERS_MAX];
	uint64_t *signs;
	struct oracle_slot (*view)[SAINA_WORKERS_MAX];	/* [segment][group]: table mode */
	struct saina_arrival arrival[SAINA_WORKERS_MAX];	/* times not modelled */
	int32_t *sums;			/* store of all the sums */
	/* by reference: what each worker has written, entries of 64 + 4 * payload bytes; NULL: no array */
	const uint8_t *input[SAINA_WORKERS_MAX];
	struct oracle_board *board;	/* [round & 1][segment], NULL: there is none */
	struct saina_counters wcount[SAINA_WORKERS_MAX];
	/* of the last event: the job's next round at STALE of each worker, the round at
	 * DEGRADED of the job */
	struct oracle_told {
		uint32_t generation, next;	/* 1 + the newest round */
	} told[SAINA_WORKERS_MAX + 1];
};

/* An entry of the board. */
struct oracle_board {
	uint64_t tag;
	struct saina_slot_meta meta;
	int32_t *sum;
};

struct oracle_learned {
	struct saina_addr addr;
	struct saina_place place;
};

struct oracle {
	struct saina_global global;
	struct saina_port_conf port[ORACLE_PORTS];
	struct saina_counters gcount;
	struct oracle_job job[SAINA_JOBS_MAX];
	struct oracle_learned learned[ORACLE_LEARNED];	/* first of each address and nonce */
	unsigned int learned_n;
	struct saina_event *event;	/* since oracle_events_clear() */
	unsigned int events, events_room;
	uint64_t now;			/* the time, ns: it only goes on when told to */
	bool tc;			/* the tc hook: sends to every port, relays nothing */
	unsigned int linear;		/* bytes of the next frame that lie in one piece */
};

/**
 * struct oracle_out - what must come of one packet
 * @verdict: enum oracle_verdict
 * @frame, @len: REDIRECT: the answer
 * @multicast: the answer goes to the job's group
 * @to: REDIRECT: workers it is redirected to
 * @relayed: workers it is relayed to; @frame holds the answer then, too
 * @job, @worker: whose, if it got past check 7
 * @answer: message type of the answer, 0 if there is none
 * @reason: the counter of a drop, -1 if it was not dropped for a reason
 */
struct oracle_out {
	int verdict;
	unsigned int len;
	bool multicast;
	uint64_t to;
	uint64_t relayed;
	int job;
	int worker;
	int answer;
	int reason;
	uint8_t frame[ORACLE_FRAME_MAX] __attribute__((aligned(8)));
};

void oracle_init(struct oracle *o, const struct saina_global *g);
void oracle_exit(struct oracle *o);

/* As saina_dp_job_publish(): a new generation starts afresh. */
void oracle_job_publish(struct oracle *o, const struct saina_job_conf *conf,
			uint32_t first_round);
void oracle_job_remove(struct oracle *o, unsigned int job);

/* One frame as it came in by @ifindex; @out says what must happen. */
void oracle_packet(struct oracle *o, const uint8_t *frame, unsigned int len,
		   unsigned int ifindex, struct oracle_out *out);

/*
 * The same at the tc hook: a frame of several messages, of @size bytes each but the last
 * one (0: of one message).  out->frame is what leaves, to out->to; job, worker and answer
 * are those of one of its answers.
 */
void oracle_train(struct oracle *o, const uint8_t *frame, unsigned int len, unsigned int size,
		  unsigned int ifindex, struct oracle_out *out);

/* By reference: worker @w writes what is at @input (NULL: nothing) from now on; the board is a new one. */
void oracle_share(struct oracle *o, unsigned int job, unsigned int w, const uint8_t *input);
void oracle_board_new(struct oracle *o, unsigned int job);

void oracle_events_clear(struct oracle *o);

/* Number @n of a port's random sequence: is that frame lost? */
bool oracle_lost(const struct saina_port_conf *p, uint64_t n, bool out);

/* Section 3.1: @x in units that are 2^@d times as large. */
int32_t oracle_shift(int32_t x, unsigned int d);

/* Inside the oracle */

/* Section 11: do workers step on their own? */
static inline bool oracle_has_steps(const struct saina_policy *p)
{
	return p->window || p->groups;
}

/* A data message that has passed all checks of section 2. */
struct oracle_msg {
	struct oracle *o;
	struct oracle_job *j;
	struct oracle_out *out;
	const uint8_t *frame;
	const struct saina_hdr *hdr;
	const uint8_t *payload;		/* little endian words, any alignment */
	unsigned int w;
	uint32_t round, segment;
	bool rung;			/* of a DOORBELL: answers are kept from leaving ... */
	const struct oracle_slot *result;	/* ... and this is what they would say */
};

void oracle_grad(struct oracle_msg *m);
void oracle_pull(struct oracle_msg *m);
void oracle_ask(struct oracle_msg *m);
void oracle_inc(struct oracle_msg *m);
void oracle_read(struct oracle_msg *m);
void oracle_clock(struct oracle_msg *m);
void oracle_doorbell(struct oracle_msg *m);

/* 8.2: the first message of a round, or step, that tells when this worker is there. */
void oracle_arrived(struct oracle_msg *m);

/* Section 11.1: a message of rounds where there are steps, or the other way round. */
bool oracle_is_other_mode(struct oracle_msg *m);

/* What has happened for a schedule; the policy to be in force now; it is adopted; steps begin. */
void oracle_happenings(struct oracle_job *j);
const struct saina_policy *oracle_target(const struct oracle_job *j);
void oracle_table_adopt(struct oracle *o, struct oracle_job *j);
void oracle_table_begin(struct oracle *o, struct oracle_job *j);
/* Is @round the first after a table? */
bool oracle_is_fence(const struct oracle_job *j, uint32_t round);
void oracle_round_open(struct oracle *o, struct oracle_job *j, uint64_t old_members);
void oracle_sfcd_segment(struct oracle *o, struct oracle_job *j, const struct oracle_slot *s);

/* Section 2, check 19: may a GRAD, or the entry of an input array, of the job have it? */
bool oracle_exponent_fits(const struct saina_job_conf *c, int exponent);

void oracle_count(struct oracle_msg *m, int counter);
void oracle_drop(struct oracle_msg *m, int reason);
void oracle_event(struct oracle *o, struct oracle_job *j, unsigned int type,
		  unsigned int worker, uint32_t round, uint64_t a, uint64_t b);

void oracle_answer_all(struct oracle_msg *m, const struct oracle_slot *s);
void oracle_answer_one(struct oracle_msg *m, const struct oracle_slot *s, unsigned int how);
void oracle_answer_stale(struct oracle_msg *m);
void oracle_answer_told(struct oracle_msg *m, const struct saina_ask *told);
void oracle_answer_rung(struct oracle_msg *m, const struct saina_doorbell *doorbell, bool all);
void oracle_answer_probe(struct oracle_msg *m);

/* Table mode: what an answer says beside what the message and the table do. */
struct oracle_table_answer {
	uint32_t low, done;	/* as the message found them */
	uint64_t going;
	unsigned int flags;	/* of SUM */
	unsigned int reason;	/* of NAK, and of a GO that ends the table */
	uint32_t window;	/* of GO */
	bool alone;		/* in its group */
	uint32_t base;		/* first step of the table */
	int8_t exponent;
};

void oracle_answer_sum(struct oracle_msg *m, const struct oracle_table_answer *a,
		       const struct oracle_slot *t);
void oracle_answer_mode(struct oracle_msg *m, uint32_t since);
void oracle_answer_nak(struct oracle_msg *m, const struct oracle_table_answer *a);
void oracle_answer_go(struct oracle_msg *m, const struct oracle_table_answer *a, bool all);

/* Bytes that @count elements take in a message. */
static inline unsigned int oracle_bytes(const struct saina_job_conf *c, unsigned int count)
{
	return count * (c->elem == SAINA_ELEM_BFLOAT16 ? 2 : 4);
}

static inline unsigned int oracle_popcount(uint64_t v)
{
	return __builtin_popcountll(v);
}

#endif /* SAINA_ORACLE_H */
