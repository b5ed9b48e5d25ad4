/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of the oracle: what one calls of another. */
#ifndef SAINA_ORACLE_INTERNAL_H
#define SAINA_ORACLE_INTERNAL_H

#include "oracle.h"

#define HEADERS	(14 + 20 + 8)

/* Big endian, at any alignment. */
static inline unsigned int be16(const uint8_t *p)
{
	return p[0] << 8 | p[1];
}

static inline void put_be16(uint8_t *p, unsigned int v)
{
	p[0] = v >> 8;
	p[1] = v;
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
	bool by_reference;		/* a segment of a DOORBELL or FETCH: its answer does not leave ... */
	const struct oracle_slot *result;	/* ... and would have these sums */
};

/* slot.c: messages of rounds */
void oracle_grad(struct oracle_msg *m);
void oracle_pull(struct oracle_msg *m);
void oracle_ask(struct oracle_msg *m);
/* ps.c: messages of steps */
void oracle_inc(struct oracle_msg *m);
void oracle_read(struct oracle_msg *m);
void oracle_clock(struct oracle_msg *m);
/* Section 11.1: a message of rounds where there are steps, or the other way round. */
bool oracle_is_wrong_mode(struct oracle_msg *m);

/* shm.c */
/* DOORBELL and FETCH */
void oracle_by_reference(struct oracle_msg *m);

/* schedule.c */
/* The workers alive in the snapshot, ascending. */
struct oracle_workers oracle_alive(const struct oracle_job *j);
bool oracle_is_alive(const struct oracle_job *j, unsigned int w);
bool oracle_is_one_of(const struct oracle_workers *l, unsigned int w);
/* As a mask, for headers and state. */
uint64_t oracle_mask(const struct oracle_workers *l);
/* The members are now those that are alive. */
void oracle_members_renew(struct oracle_job *j);
/* A scheduled policy may wait for such an event. */
void oracle_happens(struct oracle_job *j, unsigned int type);
void oracle_k_changes(struct oracle *o, struct oracle_job *j, unsigned int from, unsigned int to);
/* Notes a schedule that is new, and deaths and joins since the members were last renewed. */
void oracle_note_events(struct oracle_job *j);

/* sfcd.c */
/* The policy that begins is SFCD's, after @old. */
void oracle_sfcd_adopt(struct oracle_job *j, const struct saina_policy *old);
/* Rounds decided so far do not count any more, nor do the signs that were seen. */
void oracle_sfcd_forget(struct oracle_job *j);
/* A segment of the round is done. */
void oracle_sfcd_segment(struct oracle *o, struct oracle_job *j, const struct oracle_slot *s);

/* round.c */
/* Adopts the target policy, if it has steps. */
void oracle_ps_adopt(struct oracle *o, struct oracle_job *j);
/* PS mode begins. */
void oracle_ps_begin(struct oracle *o, struct oracle_job *j);
/* Is @round the first one after PS mode? */
bool oracle_is_fence(const struct oracle_job *j, uint32_t round);
/* Section 5.1: worker @w needs no results of rounds before @round. */
void oracle_reached(struct oracle_job *j, unsigned int w, uint32_t round);
/* Section 5.1: notes who begins with the next round, of which worker @w has sent a gradient. */
void oracle_note_starts(struct oracle_job *j, unsigned int w);
/* Section 5.1: live workers that are too far behind for the next round to open. */
struct oracle_workers oracle_too_far_behind(const struct oracle_job *j);
void oracle_round_open(struct oracle *o, struct oracle_job *j);

/* Section 12: does worker @w bring results of the parent? */
static inline bool oracle_is_uplink(const struct oracle_job *j, unsigned int w)
{
	return j->conf.uplink == 1ull << w;
}

/* Section 3.3: the two numbers of a word of an int16 job. */
static inline int oracle_first(uint32_t word)
{
	int low = word % 65536;

	return low >= 32768 ? low - 65536 : low;
}

static inline int oracle_second(uint32_t word)
{
	uint32_t high = (word - (uint32_t)oracle_first(word)) / 65536;

	return high >= 32768 ? (int)high - 65536 : (int)high;
}

static inline bool oracle_in_range(int exponent)
{
	return exponent >= SAINA_EXPONENT_MIN && exponent <= SAINA_EXPONENT_MAX;
}

/* Section 2, check 19: may a GRAD, or an entry of an input array, of the job have the exponent? */
static inline bool oracle_exponent_fits(const struct saina_job_conf *c, int exponent)
{
	if (c->elem == SAINA_ELEM_FLOAT32 || c->elem == SAINA_ELEM_BFLOAT16)
		return exponent == 0;
	if (exponent == SAINA_EXPONENT_INT)
		return c->elem == SAINA_ELEM_INT32;
	return oracle_in_range(exponent) || exponent == SAINA_EXPONENT_NAN;
}

/* state.c */
void oracle_count(struct oracle_msg *m, int counter);
void oracle_drop(struct oracle_msg *m, int reason);
void oracle_event(struct oracle *o, struct oracle_job *j, unsigned int type,
		  unsigned int worker, uint32_t round, uint64_t a, uint64_t b);
/* Section 12: the message's slot has become AWAY. */
void oracle_note_away(struct oracle_msg *m);
/* 8.2: counts the arrival of a worker, once for each round or step. */
void oracle_note_arrival(struct oracle_msg *m);

/* answer.c */
void oracle_answer_all(struct oracle_msg *m, const struct oracle_slot *s);
void oracle_answer_one(struct oracle_msg *m, const struct oracle_slot *s, unsigned int how);
void oracle_answer_stale(struct oracle_msg *m);
/* @away: one of the segments waits for the parent */
void oracle_answer_ask(struct oracle_msg *m, const struct saina_ask *ask, bool away);
void oracle_answer_completion(struct oracle_msg *m, const struct saina_doorbell *doorbell, bool all);
void oracle_answer_probe(struct oracle_msg *m);

/* PS mode: fields of an answer that are neither the message's nor the sums'. */
struct oracle_ps_answer {
	uint32_t low, done;	/* before the message */
	uint64_t going;
	unsigned int flags;	/* of SUM */
	unsigned int reason;	/* of NAK, and of a GO that ends PS mode */
	uint32_t window;	/* of GO */
	bool alone;		/* in its group */
	uint32_t base;		/* first step since PS mode began */
	int8_t exponent;
};

void oracle_answer_sum(struct oracle_msg *m, const struct oracle_ps_answer *a,
		       const struct oracle_slot *t);
void oracle_answer_mode(struct oracle_msg *m, uint32_t since);
void oracle_answer_nak(struct oracle_msg *m, const struct oracle_ps_answer *a);
void oracle_answer_go(struct oracle_msg *m, const struct oracle_ps_answer *a, bool all);

#endif /* SAINA_ORACLE_INTERNAL_H */
