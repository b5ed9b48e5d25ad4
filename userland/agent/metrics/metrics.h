/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Metrics in Prometheus's text format, by HTTP (sainad.8, METRICS).
 *
 *	http.c      server (libmicrohttpd), whose epoll set is a source of the loop
 *	snapshot.c  copies the state of the agent, a few workers at a time
 *	families.c  table of the metrics, and their text, piece by piece
 *
 * A request waits until a snapshot is complete.  The agent never waits for a reader.
 */
#ifndef AGENT_METRICS_H
#define AGENT_METRICS_H

#include "agent/agent.h"

/* Does nothing if cfg.metrics is empty.  Logs errors. */
int metrics_init(struct agent *a);
void metrics_uninit(struct agent *a);

#endif /* AGENT_METRICS_H */
