/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What reaches the agent by the ring buffer: events and answers to relay. */
#ifndef SAINA_RIG_EVENTS_H
#define SAINA_RIG_EVENTS_H

#include "rig.h"

/* The oracle has answered workers behind a relay: the program must send the agent the same. */
void rig_relay_expect(struct rig *r);
/* Are so many waiting that they must be drained now? */
bool rig_drain_due(const struct rig *r);
/* Compares the events and relayed answers since the last call; false: r->diff */
bool rig_drain(struct rig *r);

#endif /* SAINA_RIG_EVENTS_H */
