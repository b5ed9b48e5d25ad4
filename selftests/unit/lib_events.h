/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is to happen in the simulator (lib_sim.c), and when: a heap, the earliest first. */
#ifndef SAINA_LIB_EVENTS_H
#define SAINA_LIB_EVENTS_H

#include <stddef.h>
#include <stdint.h>

enum what { TO_HOST, TO_SWITCH, TO_WORKER, TIMER, BEAT, KILL, DEAD, REJOIN, FORGET, CRASH, RESTART };

struct event {
	uint64_t at, seq;	/* events of the same time keep their order */
	enum what what;
	unsigned int w, life, len;
	uint8_t *msg;		/* of @len bytes; whoever takes the event frees it */
};

/* All zeros at the start; @heap is freed in the end. */
struct events {
	struct event *heap;
	size_t n, room;
	uint64_t seq;
};

void events_push(struct events *q, struct event e);
/* The earliest of @q->n > 0 events. */
struct event events_pop(struct events *q);

#endif /* SAINA_LIB_EVENTS_H */
