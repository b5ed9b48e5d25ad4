/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames through the program and the oracle, and the comparison of what comes out. */
#ifndef SAINA_HARNESS_PACKETS_H
#define SAINA_HARNESS_PACKETS_H

#include "harness.h"

#define HARNESS_SKB_MAX 3600	/* largest frame that TEST_RUN takes for a tc program, in bytes */

/*
 * One frame through both.  False if verdict or answer differ (r->diff).
 * The frame may come in by any of r->port[].
 */
bool harness_packet(struct harness *r, const uint8_t *frame, unsigned int len, unsigned int ifindex);
/* By the tc hook: a GSO batch of messages of @size bytes, the last one may be shorter. */
bool harness_batch(struct harness *r, const uint8_t *frame, unsigned int len, unsigned int size,
		   unsigned int ifindex);

/* The same without the oracle, for what it does not model. */
bool harness_packet_alone(struct harness *r, const uint8_t *frame, unsigned int len,
			  unsigned int ifindex);
bool harness_batch_alone(struct harness *r, const uint8_t *frame, unsigned int len, unsigned int size,
			 unsigned int ifindex);

#endif /* SAINA_HARNESS_PACKETS_H */
