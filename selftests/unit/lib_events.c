// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdbool.h>
#include <stdlib.h>
#include "lib_events.h"

static bool before(const struct event *a, const struct event *b)
{
	return a->at < b->at || (a->at == b->at && a->seq < b->seq);
}

void events_push(struct events *q, struct event e)
{
	size_t i = q->n++;

	if (q->n > q->room) {
		q->room = 2 * q->n;
		q->heap = realloc(q->heap, q->room * sizeof(*q->heap));
		if (!q->heap)
			abort();
	}
	e.seq = q->seq++;
	for (; i && before(&e, &q->heap[(i - 1) / 2]); i = (i - 1) / 2)
		q->heap[i] = q->heap[(i - 1) / 2];
	q->heap[i] = e;
}

struct event events_pop(struct events *q)
{
	struct event top = q->heap[0], last = q->heap[--q->n];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < q->n) {
		if (child + 1 < q->n && before(&q->heap[child + 1], &q->heap[child]))
			child++;
		if (!before(&q->heap[child], &last))
			break;
		q->heap[i] = q->heap[child];
		i = child;
	}
	q->heap[i] = last;
	return top;
}
