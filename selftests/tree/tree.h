/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A tree of aggregators, simulated: section 12 of datapath.rst.  Each place, the root and those
 * below it, is a job of one oracle, which has the slots, the rounds and the admission of frames.
 * Members of a place are workers and nodes, the places right below it.  Workers, relays and agents are
 * small state machines; between them a network loses, duplicates and reorders frames.  Everything
 * follows from the seed.
 *
 * A gradient has a tag, worker and life.  So what a sum consists of is known, and a worker that hears
 * "counted" or "not counted" is right or wrong.  Its elements are random, so a sum proves its tags.
 */
#ifndef SAINA_TREE_H
#define SAINA_TREE_H

#include "lib/rng.h"
#include "oracle/oracle.h"

#define TREE_ELEMS	8
#define TREE_SEGMENTS	5	/* of a job, at most */
#define TREE_PLACES	9	/* at most; place 0 is the root */
#define TREE_WORKERS	256	/* in all */
#define TREE_ROUNDS	512	/* a run has fewer */
#define TREE_RING	8	/* at most */
#define TREE_POOL	4	/* at most */
#define TREE_BODY	(48 + 4 * TREE_ELEMS)

/* Faults that may be planted: the checks must find each. */
enum tree_fault {
	TREE_NO_FAULT,
	TREE_SLOT_ROUND,	/* the relay sends M - 1 in the place of M - c */
	TREE_LAST,		/* counted[].last stays at LATE */
	TREE_FULL,		/* the relay sends full batches only */
	TREE_LENGTH,		/* it goes on without having asked how long the round is */
	TREE_LEAD,		/* bsp has no lead below a parent */
	TREE_EMPTY,		/* a place without members stays active above */
	TREE_ABSENT,		/* so does one whose members are all new, and not in the present round */
	TREE_TORN,		/* AWAY is set before the last gradient is added */
	TREE_AUX,		/* at a reset members are not told what the parent counted */
	TREE_AUX_ONE,		/* the parent is asked about one segment only before a reset */
	TREE_NOT_LATE,		/* the relay does not say LATE */
	TREE_OLD,		/* it goes on by what the parent still calls done of an old round */
	TREE_FORWARD,		/* it never goes back to the round before */
	TREE_NOT_DUE,		/* it does not pull slots that deaths have completed */
	TREE_LEFT,		/* it waits for what the parent has left behind */
	TREE_CUT_OFF,		/* those below a place that has begun anew are waited for */
	TREE_MISSED,		/* a place that has missed rounds without members does them, when it has some */
	TREE_JOINED,		/* slots wait for the earlier lives of members that have joined since */
	TREE_FAULTS
};

struct tree_tags {
	unsigned int n;
	uint16_t tag[TREE_WORKERS];	/* worker << 8 | life */
};

/* The result of a segment at the root. */
struct tree_truth {
	bool there;
	int exponent;
	struct tree_tags in;
	int32_t sum[TREE_ELEMS];
};

/**
 * struct tree_msg - in flight
 * @up: to the place's switch, a frame; else to a worker of it, a message without headers
 * @node: the place whose uplink the frame crosses; 0: none
 */
struct tree_msg {
	bool up;
	uint8_t place, worker, node;
	uint16_t len;
	struct tree_tags *in;		/* a GRAD of a node: what it is the sum of */
	uint8_t data[42 + TREE_BODY] __attribute__((aligned(8)));
};

struct tree_result {
	bool there;
	uint32_t round;
	struct saina_hdr hdr;
	int32_t sum[TREE_ELEMS];
};

struct tree_worker {
	bool alive, join, stale;
	uint8_t place, number, life;
	uint16_t id;
	uint64_t session;
	uint32_t round, known;
	unsigned int assigned;		/* segments of its round that it has begun */
	uint32_t res, sent, resend, pull;	/* masks of segments */
	uint64_t stamp[TREE_SEGMENTS];
	struct tree_result buf[TREE_RING][TREE_SEGMENTS];
	unsigned int slow;		/* permille of its turns that it skips */
};

/* Of a place that has a parent. */
struct tree_relay {
	bool alive, has_round;
	uint64_t local, parent;		/* sessions; 0: none */
	uint32_t round, known;
	uint32_t sent, resend, ask_for, injected;	/* masks of segments */
	uint64_t sent_at[TREE_SEGMENTS], injected_at[TREE_SEGMENTS];
	uint32_t confirmed, due;	/* of @round: DONE here, complete here */
	bool asked;			/* the parent has answered about @round */
	uint32_t parent_done, parent_next;
	uint32_t aux_known;		/* STALE has come about these segments */
	uint32_t aux[TREE_SEGMENTS], stale_next;
	struct tree_result res[TREE_RING][TREE_SEGMENTS];
};

struct tree_place {
	struct saina_job_conf conf;
	unsigned int parent;		/* the place above; its index is less */
	bool inner;			/* it has nodes */
	unsigned int members;		/* numbers for workers and nodes */
	unsigned int uplink;		/* number of the uplink worker here */
	unsigned int node;		/* its number at the parent */
	unsigned int incarnation, known_as;	/* what the parent's agent knows */
	bool left, link_down;
	struct tree_tags in[TREE_POOL];	/* of the hot slots */
	struct tree_relay relay;
	struct { bool there; uint32_t incarnation, hash; } sent[TREE_ROUNDS][TREE_SEGMENTS];
	bool torn[TREE_SEGMENTS];
	int32_t torn_sum[TREE_SEGMENTS][TREE_ELEMS];
};

struct tree {
	struct oracle o;
	struct oracle_out out;
	struct rng rng;
	uint64_t seed, sessions, now;
	enum tree_fault fault;
	unsigned int loss, levels, places, workers, segments, ring, batch;
	unsigned int incarnations;
	bool mixed, nans, fair, no_faults;
	bool bsp;			/* everywhere; else other policies, too */
	bool hurried;			/* rounds go on without those that are slow */
	bool unbounded;			/* somewhere by any number */
	struct tree_place place[TREE_PLACES];
	struct tree_worker worker[TREE_WORKERS];
	int worker_at[TREE_PLACES][SAINA_WORKERS_MAX];	/* index of worker[], -1: a node */
	struct tree_truth truth[TREE_ROUNDS][TREE_SEGMENTS];
	struct tree_msg *msg;
	unsigned int msgs, room;
	struct tree_told { uint32_t round, segment; uint16_t tag; bool counted; } *told;
	unsigned int tolds, tolds_room;
	uint64_t results, up_first, late, forgotten, packets, resets, stales, nan_results, flat;
	uint64_t inner_late, inner_resets, below_resets, below_counted;
	unsigned int broken;		/* number of the T that does not hold; 0: all do */
	char error[256];
};

/* Runs the tree of @seed with a planted fault; t->broken says what did not hold. */
void tree_run(struct tree *t, uint64_t seed, enum tree_fault fault);
void tree_exit(struct tree *t);

/* The parts: what one calls of another. */
void tree_break(struct tree *t, unsigned int number, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool tree_is_in(const struct tree_tags *in, uint16_t tag);
/* Segments that round @round has, in all and in its first request. */
unsigned int tree_length(const struct tree *t, uint32_t round, unsigned int *first);
/* Is the live worker one of the place, or of places below it? */
bool tree_is_under(const struct tree *t, unsigned int place, const struct tree_worker *w);
/* Has a place on its way to the root begun anew since?  Then it will hear STALE, and is no member of anything. */
bool tree_is_cut_off(const struct tree *t, const struct tree_worker *w);
/* Does a live worker there that is not cut off still do an earlier round? */
bool tree_is_behind(const struct tree *t, unsigned int place, uint32_t round);
bool tree_has(const struct tree *t, unsigned int place, uint32_t round, uint32_t segment);
bool tree_has_all(const struct tree *t, unsigned int place, uint32_t round);
struct oracle_slot *tree_slot(struct tree *t, unsigned int place, uint32_t segment);
bool tree_is_slot(const struct oracle_slot *h, unsigned int state, uint32_t round, uint32_t segment);
void tree_publish(struct tree *t, unsigned int place);
static inline struct saina_job_rt *tree_rt(struct tree *t, unsigned int place)
{
	return &t->o.job[place].rt;
}

static inline unsigned int tree_up(const struct tree *t, unsigned int place)
{
	return t->place[place].parent;
}

/* tree_net.c */
void tree_send(struct tree *t, unsigned int place, unsigned int worker, const struct saina_hdr *h, const int32_t *sum,
	       const struct tree_tags *in);
void tree_deliver(struct tree *t, unsigned int i);
void tree_net_clear(struct tree *t);
/* A PULL that the agent makes in the name of @worker: completes a slot that nobody waits for. */
void tree_pull_now(struct tree *t, unsigned int place, unsigned int worker, uint32_t round, uint32_t segment);
/* tree_check.c */
void tree_check_packet(struct tree *t, unsigned int place, unsigned int worker, uint32_t next_before);
void tree_check_end(struct tree *t);
int32_t tree_value(const struct tree *t, uint16_t tag, uint32_t round, uint32_t segment, unsigned int i);
int tree_exponent(const struct tree *t, uint16_t tag, uint32_t round, uint32_t segment);
void tree_settle(struct tree *t, const struct tree_worker *w, uint32_t round, uint32_t segment, bool counted,
		 const char *by);
/* tree_worker.c */
void tree_worker_start(struct tree *t, struct tree_worker *w, uint64_t session, uint32_t round, bool join);
void tree_worker_step(struct tree *t, struct tree_worker *w, bool timer);
void tree_worker_receive(struct tree *t, struct tree_worker *w, const struct saina_hdr *h, const uint8_t *body);
/* tree_relay.c */
void tree_relay_start(struct tree_relay *r);
void tree_relay_step(struct tree *t, unsigned int place, bool timer);
void tree_relay_from_parent(struct tree *t, unsigned int place, const struct saina_hdr *h, const uint8_t *body);
void tree_relay_from_place(struct tree *t, unsigned int place, const struct saina_hdr *h, const uint8_t *body);
/* tree_agent.c */
bool tree_bind(struct tree *t, unsigned int place);
bool tree_has_members(const struct tree *t, unsigned int place);
void tree_reset(struct tree *t, unsigned int place, uint32_t first, bool stale, bool new_maps, uint32_t counted);
void tree_fault(struct tree *t);
void tree_revive(struct tree *t);

#endif /* SAINA_TREE_H */
