/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inside the stand-in for the aggregator: lib_agg.c has the sockets, the thread that
 * reads them and admission, lib_agg_slot.c what becomes of gradients.  All under agg.lock.
 */
#ifndef SAINA_TEST_LIB_AGG_PRIVATE_H
#define SAINA_TEST_LIB_AGG_PRIVATE_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "saina/proto.h"
#include "lib_agg.h"

struct slot {
	uint32_t round;
	uint8_t state;		/* 0 empty, 1 open, 2 done */
	uint8_t k, count;
	int8_t exponent;
	uint64_t seen, members;
	uint32_t *sum;
};

struct peer {
	bool bound, active;
	bool hold;
	bool formed;
	bool forgotten;		/* may join again though alive */
	bool relayed;		/* its READY said so */
	int ready;		/* how many READY came */
	uint16_t session;
	uint64_t nonce;
	uint32_t first;
	struct sockaddr_in addr;
	struct saina_hdr probe;		/* the answer to its last one */
};

struct agg {
	struct agg_conf c;
	char addr[32];
	int data, ctrl, wake;
	pthread_t thread;
	pthread_mutex_t lock;
	bool stop, stopped;
	uint32_t segments, next_round, open;
	uint64_t members;
	uint16_t sessions;
	bool running;
	struct peer w[SAINA_WORKERS_MAX];
	struct slot *slot;		/* [segments * ring] */
	uint32_t *last;			/* [segments * 64] */
	struct agg_count n;
	uint64_t rng;
	struct {
		struct sockaddr_in to;
		size_t len;
		uint8_t msg[48 + 4 * SAINA_ELEMS_MAX];
	} held;
	bool holding;
	struct sockaddr_in group;
};

/* lib_agg.c: @msg leaves by socket @fd, unless it is to be lost or held back */
void agg_out(struct agg *a, int fd, const struct sockaddr_in *to, const void *msg, size_t len);

/* lib_agg_slot.c: a GRAD with its elements, a PULL; of a worker that may send them */
void agg_grad(struct agg *a, const struct saina_hdr *h, const uint32_t *v);
void agg_pull(struct agg *a, const struct saina_hdr *h);
/* Workers that are alive. */
uint64_t agg_active(const struct agg *a);

#endif /* SAINA_TEST_LIB_AGG_PRIVATE_H */
