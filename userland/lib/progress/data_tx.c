// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* What rounds and steps send. */
#include "progress.h"
#include "reduce/round.h"

void saina_data_choose(struct saina *s, struct saina_outgoing *out)
{
	if (s->io.congested)
		saina_cwnd_overflow(&s->round.flow.cwnd, out->now);
	s->io.congested = false;
	out->n = 0;
	if (s->session.phase == PHASE_RUNNING && !saina_io_pending(&s->io))
		out->n = s->round.ops->output(&s->round, out->now, s->io.buf, &out->len,
					      &out->data_when);
}

/* Counts messages of the buffer that were sent since @done of them had been. */
static void count_sent(struct saina *s, unsigned int done)
{
	if (s->io.done == done)
		return;
	pthread_mutex_lock(&s->lock);
	saina_round_sent(&s->round, s->io.buf + done * s->io.msg, s->io.done - done, s->io.msg);
	pthread_mutex_unlock(&s->lock);
}

bool saina_data_send(struct saina *s, const struct saina_outgoing *out)
{
	unsigned int done = 0;

	if (saina_io_pending(&s->io)) {
		done = s->io.done;
		saina_io_flush(&s->io, out->now);
	} else if (out->n) {
		saina_io_send(&s->io, out->n, out->len, out->now);
	} else {
		return false;
	}
	count_sent(s, done);
	return true;
}
