/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Rounds of a relay (saina-uplink): sums of one job that are gradients of another one, and results
 * of that one which are gradients of the uplink worker.  In the place of tensors and residuals the
 * caller has two functions that move sums.  As in rounds of a trainer the transport
 * (transport/flow.h) decides what is sent when; sockets and time are the caller's.
 *
 * A relay submits the segments of a round in order.  It never catches up: saina_relay_round() says
 * where it is, and nothing is sent or asked about a round before that.
 */
#ifndef SAINA_RELAY_H
#define SAINA_RELAY_H

#include "state.h"

/**
 * struct saina_relay_grad - what the header of a GRAD says
 * @exponent: of its sums, as on the wire
 * @flags: SAINA_F_LATE, DEGRADED, DROP_LATE; 0 if it is no result
 * @slot_round: workers that it stands for less 1, as on the wire; of a result: workers in the sum
 *	less those of the slot
 */
struct saina_relay_grad {
	int8_t	 exponent;
	uint8_t	 flags;
	uint32_t slot_round;
};

/**
 * struct saina_relay_calls - what the caller does
 * @fill: writes the sums of a submitted segment of the present round, job->wire bytes, into @sums,
 *	and the rest into @g.  Called for each sending: must give the same each time
 * @take: a RESULT of @h's round and segment has come for the first time, of the present round,
 *	whether the segment is submitted or not.  Sums follow @h
 * @lost: the result of a segment of the present round cannot be had.  @counted: it has this
 *	worker's gradient
 * @asked: an ASK_REPLY (struct saina_ask follows @h) of any round; the transport has acted on it
 *
 * Only @take and @asked may submit segments or begin a round.
 */
struct saina_relay_calls {
	void (*fill)(void *arg, uint32_t segment, struct saina_relay_grad *g, void *sums);
	void (*take)(void *arg, const struct saina_hdr *h);
	void (*lost)(void *arg, uint32_t round, uint32_t segment, bool counted);
	void (*asked)(void *arg, const struct saina_hdr *h);
};

/**
 * saina_relay_init() - a relay's rounds, once WELCOME has come
 * @r: all 0
 * @room: saina_io_room(), or 1 where results do not come by a group
 *
 * From here on @r->ops (struct saina_reduce_ops) takes what comes (RESULT, STALE, ASK_REPLY) and says
 * what to send; saina_round_sent() counts that.
 * Return: 0 or -ENOMEM; @r->ops->exit() is due either way
 */
int saina_relay_init(struct saina_round *r, const struct saina_job *job, uint32_t room,
		     const struct saina_relay_calls *calls, void *arg);

/*
 * @round begins, with nothing submitted: at first, and when the last one is over.  Results of it
 * that have come before are taken now.
 */
void saina_relay_round(struct saina_round *r, uint32_t round, uint64_t now);
/* The next @n segments of the round may be sent: those that are submitted together leave together. */
void saina_relay_submit(struct saina_round *r, uint32_t n);
/* The next @n segments have their results, which an earlier life of the relay has brought. */
void saina_relay_skip(struct saina_round *r, uint32_t n);
/*
 * The next output asks about SAINA_ASK_SEGMENTS segments of the present round, from
 * @segment on; or for the result of @segment.  The caller repeats that until there is an answer:
 * @asked; @take or @lost.  False: later, there is no room.
 */
bool saina_relay_ask(struct saina_round *r, uint32_t segment);
bool saina_relay_pull(struct saina_round *r, uint32_t segment);
/* Has the result of @segment of the present round come, or is it lost? */
bool saina_relay_over(const struct saina_round *r, uint32_t segment);

#endif /* SAINA_RELAY_H */
