/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A deterministic simulator for libsaina's machines: workers (userland/lib/reduce/round.h), the
 * oracle as their switch, and a network that loses, repeats, reorders and delays, all by
 * one seed and against a clock of its own.
 *
 * What is held to, in every run, whatever happens:
 *   - a result is the sum of what exactly the workers in its mask sent, whoever sees it; if they sent
 *     different exponents, within a unit of the coarsest one for each;
 *   - a result of float32 is what the workers in its mask produced since they were counted last, within
 *     1e-6 of the largest of that (and those units), or NaN because one of them had one;
 *   - all workers that have a result have the same bits;
 *   - what is sent again is the same bits;
 *   - nobody sends what the switch has no slot for, or with an exponent that is too fine, or more than
 *     5 bits coarser than need be;
 *   - what a worker produced was counted, or is in its residual;
 *   - nobody has more batches in flight than its window;
 *   - nobody takes the others for workers that start other sizes;
 *   - where nothing is lost, less than 5 % is sent again, whatever the delays;
 *   - as sent counts what has left, and nothing that was refused;
 *   - every worker comes to the end, with a bounded number of messages.
 */
#ifndef SAINA_LIB_SIM_H
#define SAINA_LIB_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include "saina.h"
#include "saina/proto.h"

#define SIM_PAYLOAD 64	/* elements of a message, and */
#define SIM_MSGLEN (sizeof(struct saina_hdr) + 4 * SIM_PAYLOAD)

/**
 * struct sim_conf
 * @loss, @dup: share of messages, each way and for each receiver on its own
 * @together: messages of a batch to a worker are lost together
 * @burst_us: mean time that all is lost, 0 = messages are lost one by one
 * @per_batch: segments that leave together; @room: batches that a worker can receive at once
 * @delay_us, @jitter_us: of a message; @reorder: it may pass others
 * @svc_us, @queue: a worker's link takes a message each @svc_us and holds @queue, 0 = all;
 *	@slow_svc_us: that of worker 0
 * @host_ns: processor time of a message in the switch, more and more of it
 * @think_us: of a trainer between rounds, at most; @slow_us: of worker 0
 * @k: of the policy; @drop_late: its rule; @lead: it has the default lead, else none
 * @buckets: all-reduces a round is made of
 * @kills: workers that die and come back anew; @forgets: sessions lost by the agent;
 *	@restarts: of the whole switch
 * @jump: magnitudes jump by up to 2^60 from segment to segment, round to round and worker to worker;
 *	some segments are zeros, some hold a NaN or an infinity; float32
 * @refuse: share of batches of which a worker's kernel refuses some or all messages, for a while
 */
struct sim_conf {
	uint64_t seed;
	unsigned int workers, segments, pool, ring, rounds, k, buckets, per_batch, room;
	enum saina_type type;
	bool drop_late, reorder, together, jump, lead;
	double loss, dup, refuse;
	unsigned int burst_us, delay_us, jitter_us, svc_us, slow_svc_us, queue, think_us, slow_us;
	unsigned int host_ns;
	unsigned int kills, forgets, restarts;
};

struct sim_result {
	uint64_t sent, resent, pulled, asked, late, stale, lost, refused, results, twice, ns, mixed, nan;
	unsigned int rejoined;
	char error[256];	/* of the first broken rule, "" if none */
};

/* False if a rule was broken: @r->error says which. */
bool sim_run(const struct sim_conf *c, struct sim_result *r);

#endif /* SAINA_LIB_SIM_H */
