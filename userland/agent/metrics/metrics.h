/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the agent knows, in Prometheus's text format by HTTP (sainad.8, METRICS).
 *
 *	http.c      a server of libmicrohttpd, whose epoll set is a source of the loop
 *	snapshot.c  takes down what there is, a few workers a turn
 *	families.c  which metrics there are, and their text, piece by piece
 *
 * Whoever asks waits until a snapshot is complete; nothing waits for whoever asks.
 */
#ifndef AGENT_METRICS_H
#define AGENT_METRICS_H

#include "agent/agent.h"

/* 0 and nothing to serve if cfg.metrics is empty.  Complains. */
int metrics_init(struct agent *a);
void metrics_uninit(struct agent *a);

#endif /* AGENT_METRICS_H */
