/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A test double of the aggregator, in one thread in a network namespace, with loss
 * and reordering made to order: the oracle (selftests/oracle) behind real sockets,
 * and the agent's side of admission.  Only for unit tests of the library.
 */
#ifndef LIB_AGG_H
#define LIB_AGG_H

#include <stdbool.h>
#include <stdint.h>

struct agg;

/**
 * struct agg_conf - the job and how the network treats its packets
 * @loss: share of datagrams lost, each way, for each receiver on its own
 * @reorder: share of answers held back behind the next ones
 * @fast: probes are answered
 * @late_probes: type of the message that is followed by the answer to a worker's last
 *	probe; there is none before
 * @corrupt: one element in one result is wrong by this
 * @name: of the job; NULL: it knows no names, as agents of version 0.1
 */
struct agg_conf {
	int job;
	unsigned int workers, payload, pool, ring, k;
	uint64_t elements;
	int exponent;
	bool drop_late;
	bool fast;
	int late_probes;
	unsigned int corrupt;
	double loss, reorder;
	unsigned int seed;
	unsigned int heartbeat_ms;
	const char *token, *name;
};

struct agg *agg_start(const struct agg_conf *conf);
void agg_stop(struct agg *a);
const char *agg_address(const struct agg *a);

uint64_t agg_count(struct agg *a, int counter);	/* SAINA_C_*, of all workers */
void agg_set_loss(struct agg *a, double loss);
void agg_hold_multicast(struct agg *a, int worker, bool hold);	/* results do not reach it */
void agg_kill(struct agg *a, int worker);		/* out of the active set */
void agg_forget(struct agg *a, int worker);		/* its session: must join again */
void agg_policy(struct agg *a, unsigned int k);	/* from the next round on */
void agg_asp(struct agg *a);			/* likewise: steps */
void agg_stop_job(struct agg *a);
uint32_t agg_next_round(struct agg *a);

#endif /* LIB_AGG_H */
