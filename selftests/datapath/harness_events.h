/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent's ring buffer: events and answers to relay. */
#ifndef SAINA_HARNESS_EVENTS_H
#define SAINA_HARNESS_EVENTS_H

#include "harness.h"

/* Expects the answer to relay that the oracle has just made. */
void harness_relay_expect(struct harness *r);
/* Must the ring buffer be drained now? */
bool harness_drain_due(const struct harness *r);
/* Compares the events and relayed answers since the last call; false: r->diff */
bool harness_drain(struct harness *r);

#endif /* SAINA_HARNESS_EVENTS_H */
