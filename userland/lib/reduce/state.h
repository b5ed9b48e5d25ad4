/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * All-reduces in flight, what the transport and the gradient know of them, and the operations of the
 * present mode: rounds (rounds.c), or steps with a parameter server (ps.c).
 */
#ifndef SAINA_REDUCE_STATE_H
#define SAINA_REDUCE_STATE_H

#include "transport/flow.h"
#include "transport/size_check.h"
#include "gradient/gradient.h"
#include "shm/shm.h"

/* An all-reduce in flight: a range of segments of the present round. */
struct saina_req {
	struct saina_req *next;		/* of the same round */
	struct saina	*s;
	struct saina_tensor t;
	enum saina_result_op op;
	uint32_t	segments, done;
	bool		finished;
	int		err;
	uint64_t	integers, floats;	/* -EPROTO: workers that sent them, or would have */
	uint64_t	start_ns;
	struct saina_call call;
};

struct saina_round;

/**
 * struct saina_reduce_ops - what the modes of a job do in their own ways
 * @input: an answer of the data path that saina_session_check() has accepted.  0 or -ENOMEM
 * @output: as saina_round_output()
 * @waits: is an answer of the data path due?
 * @status: the data path opens @next next, and limits or members may have changed
 * @again: admitted once more, as r->job says; false: @text says why it cannot go on
 * @exit: frees the state of all modes
 * @fails_end: a round or step that has failed is over; else it is open until saina_set_round()
 * @check: may @t be submitted?  0, or an error with @text
 * @start: begins @q, which has t.buf, t.n, t.type and op
 * @close: the trainer waits for what it has submitted; NULL: it may submit more nevertheless
 * @next: the trainer has taken all results, the next round or step begins
 * @set: the trainer has a model that holds all rounds before @round.  0, or -EINVAL with @text
 * @fill: what became of the step whose requests are finished
 * @explain: the sentence of -ESTALE, -EDOM or -EPROTO of @q (NULL: of all)
 * @stuck: can it never end, because workers' sizes differ?  @text, if so; NULL: that is not known.
 *	@active: mask of live workers, as the agent said at @heard
 */
struct saina_reduce_ops {
	int (*input)(struct saina_round *r, const struct saina_hdr *h, uint64_t now);
	unsigned int (*output)(struct saina_round *r, uint64_t now, uint8_t *buf, size_t *len,
			       uint64_t *when);
	bool (*waits)(const struct saina_round *r);
	void (*status)(struct saina_round *r, uint32_t next, uint64_t now);
	bool (*again)(struct saina_round *r, uint64_t now, char *text, size_t size);
	void (*exit)(struct saina_round *r);
	bool fails_end;
	int (*check)(const struct saina_round *r, const struct saina_tensor *t, char *text,
		     size_t size);
	void (*start)(struct saina_round *r, struct saina_req *q, uint64_t now);
	void (*close)(struct saina_round *r, uint64_t now);
	void (*next)(struct saina_round *r, uint64_t now);
	int (*set)(struct saina_round *r, uint32_t round, uint64_t now, char *text, size_t size);
	void (*fill)(const struct saina_round *r, struct saina_step *d);
	void (*explain)(const struct saina_round *r, const struct saina_req *q, int err, char *text,
			size_t size);
	bool (*stuck)(struct saina_round *r, uint64_t active, uint64_t heard, uint64_t now,
		      char *text, size_t size);
};

/**
 * struct saina_round
 * @ops: of the present mode
 * @mode: state of its own, if it is not that of rounds
 * @job: of the handle
 * @flow: the transport
 * @grad: what is in the segments
 * @reqs: all-reduces not waited for yet
 * @shm: memory shared with the aggregator, or NULL
 * @notes: where lines for people go, or NULL
 * @copy: a RESULT made of an entry of the output array
 * @fresh: the model is another worker's, and holds all that the aggregator has
 * @any_finished: a request has finished
 * @closed: the trainer waits for what it has submitted, and submits nothing more in this step
 * @act: actions of @flow that were not sent yet, because a batch has messages of one length
 * @acts: how many
 * @newest_round: the newest round of which a result has come
 * @newest_counted: mask of the workers that were counted in it; 0: none has come
 * @submitted: elements submitted in this round
 * @prev_submitted: elements submitted in the previous round
 * @sizes: for size_mismatch.h
 * @stats: of the handle
 */
struct saina_round {
	const struct saina_reduce_ops *ops;
	void	*mode;
	const struct saina_job *job;
	struct saina_flow flow;
	struct saina_gradient grad;
	struct saina_req *reqs;
	const struct saina_shm *shm;
	struct saina_notes *notes;
	struct saina_hdr *copy;
	bool	fresh, any_finished, closed;
	struct saina_act act[SAINA_ASK_SEGMENTS];
	size_t	acts;
	uint32_t newest_round;
	uint64_t newest_counted;
	uint64_t submitted, prev_submitted;
	struct saina_size_check sizes;
	struct saina_stats stats;
};

#endif /* SAINA_REDUCE_STATE_H */
