/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An epoll loop with timers and a clock: the agent has one, control/ another inside it. */
#ifndef AGENT_LOOP_H
#define AGENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include "monotonic.h"

/* A descriptor to wait for.  Owned by the caller. */
struct source {
	int fd;			/* -1: not in the loop */
	void (*ready)(struct source *s, uint32_t events);
	void *arg;
};

struct loop {
	int epoll;
	bool stop;
};

int loop_init(struct loop *l);
void loop_uninit(struct loop *l);
int loop_add(struct loop *l, struct source *s, uint32_t events);
int loop_change(struct loop *l, struct source *s, uint32_t events);
void loop_del(struct loop *l, struct source *s);	/* does not close fd */

/* Serves at most one ready source.  @timeout_ms < 0: waits for one. */
int loop_turn(struct loop *l, int timeout_ms);
/* Serves sources until l->stop.  Calls @after after each. */
int loop_run(struct loop *l, void (*after)(void *arg), void *arg);

/* A timerfd as a source; @first_ms 0 disarms, @period_ms 0: once. */
int loop_timer_add(struct loop *l, struct source *s);
void loop_timer_set(struct source *s, unsigned int first_ms, unsigned int period_ms);
void loop_timer_ack(struct source *s);
void loop_timer_del(struct loop *l, struct source *s);

uint64_t loop_now(void);	/* CLOCK_MONOTONIC, ns */

#endif /* AGENT_LOOP_H */
