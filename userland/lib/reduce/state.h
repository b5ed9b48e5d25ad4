/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The state behind rounds (round.h) and steps (ps.h): all-reduces in flight, and what the transport
 * and the gradient know of them.
 */
#ifndef SAINA_REDUCE_STATE_H
#define SAINA_REDUCE_STATE_H

#include "transport/flow.h"
#include "transport/size_check.h"
#include "transport/steps.h"
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

/**
 * struct saina_ps
 * @on: the job has steps, not rounds
 * @fresh: the model holds all updates that the server has, whichever these are
 * @epoch_known: @epoch is known
 * @noted: the note that updates do not fit was given
 * @epoch: low 16 bits of the server's first step
 * @seen: [segments * payload]: the sums that the model holds
 * @first_round: the first round after the steps
 * @exponent: [segments]; SAINA_EXPONENT_NAN: unknown, nothing was pushed yet
 * @bad: element that is not finite, of the update that cannot be pushed
 * @steps: what to send when
 * @closed_ns: when the trainer completed the step
 * @wait_ns: how long the trainer waited for the step
 * @version_min: updates that the server had summed, least over the segments of the step
 * @version_max: likewise, most
 * @updates_min: updates in the differences of the step, least over the segments
 * @updates_max: likewise, most
 */
struct saina_ps {
	bool on, fresh, epoch_known, noted;
	uint16_t epoch;
	uint32_t *seen, first_round;
	int8_t *exponent;
	size_t bad;
	struct saina_steps steps;
	uint64_t closed_ns, wait_ns;
	uint64_t version_min, version_max;
	uint64_t updates_min, updates_max;
};

/**
 * struct saina_round
 * @job: of the handle
 * @flow: the transport
 * @grad: what is in the segments
 * @reqs: all-reduces not waited for yet
 * @shm: memory shared with the aggregator, or NULL
 * @notes: where lines for people go, or NULL
 * @copy: a RESULT made of an entry of the output array
 * @ps: replaces @flow where the job has steps instead of rounds
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
	const struct saina_job *job;
	struct saina_flow flow;
	struct saina_gradient grad;
	struct saina_req *reqs;
	const struct saina_shm *shm;
	struct saina_notes *notes;
	struct saina_hdr *copy;
	struct saina_ps ps;
	bool	any_finished, closed;
	struct saina_act act[SAINA_ASK_SEGMENTS];
	size_t	acts;
	uint32_t newest_round;
	uint64_t newest_counted;
	uint64_t submitted, prev_submitted;
	struct saina_size_check sizes;
	struct saina_stats stats;
};

#endif /* SAINA_REDUCE_STATE_H */
