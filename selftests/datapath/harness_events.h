/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What reaches the agent by the ring buffer: events and answers to relay. */
#ifndef SAINA_HARNESS_EVENTS_H
#define SAINA_HARNESS_EVENTS_H

#include "harness.h"

/* The oracle has answered workers behind a relay: the program must send the agent the same. */
void harness_relay_expect(struct harness *r);
/* Are so many waiting that they must be drained now? */
bool harness_drain_due(const struct harness *r);
/* Compares the events and relayed answers since the last call; false: r->diff */
bool harness_drain(struct harness *r);

#endif /* SAINA_HARNESS_EVENTS_H */
