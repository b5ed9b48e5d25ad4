// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* What has come: datagrams are split into messages, which go to the session, rounds or steps. */
#include <errno.h>
#include "progress.h"

void saina_input(struct saina *s, enum saina_source from, const void *msg, size_t len, uint64_t now)
{
	const struct saina_hdr *h = msg;

	if (!saina_session_check(&s->session, from, msg, len)) {
		s->bad_messages++;
		return;
	}
	s->session.heard_ns = now;
	if (from == SAINA_FROM_DATA || h->type == SAINA_MSG_RESULT)
		s->answered_ns = now;
	switch (h->type) {
	case SAINA_MSG_NOP:
		break;
	case SAINA_MSG_RESULT:
	case SAINA_MSG_COMPLETION:
	case SAINA_MSG_STALE:
	case SAINA_MSG_ASK_REPLY:
	case SAINA_MSG_SUM:
	case SAINA_MSG_NAK:
	case SAINA_MSG_GO:
		if (saina_session_listening(&s->session) && s->round.ops->input(&s->round, h, now))
			saina_session_fail(&s->session, -ENOMEM, "out of memory for the steps of job %u",
					   s->session.job.id);
		break;
	default:
		saina_fill_nonce(&s->session);
		saina_session_rx(s, h, now);
	}
}

/* Caller holds s->lock.  Takes the first @n buffers of a socket. */
static void input_datagrams(struct saina *s, bool mcast, int n)
{
	struct saina_datagram d;
	uint64_t now;

	for (int i = 0; i < n; i++) {
		now = saina_now();
		saina_io_datagram(&s->io, mcast, i, &d);
		if (d.overflow && s->session.job.segments)
			saina_cwnd_overflow(&s->round.flow.cwnd, now);
		if (d.from == SAINA_FROM_SELF) {
			s->session.loop = SAINA_LOOP_HEARD;
			continue;
		}
		/* An empty datagram is one bad message, not none. */
		do {
			size_t len = d.left < d.size ? d.left : d.size;

			saina_input(s, d.from, d.p, len, now);
			d.p += len;
			d.left -= len;
		} while (d.left);
	}
}

/* Keeps the ICMP error that says why a JOIN has no answer. */
static void record_unreached(struct saina *s)
{
	enum saina_unreached why = saina_io_unreached(&s->io);

	if (!why)
		return;
	pthread_mutex_lock(&s->lock);
	s->session.unreached = why;
	pthread_mutex_unlock(&s->lock);
}

/*
 * Results that were sent before a unicast answer must be processed before it, or they would be
 * taken for lost.  So the answer is read first, and processed when no result is left.
 */
static void receive_datagrams(struct saina *s, struct saina_ready ready)
{
	int answers = ready.ucast ? saina_io_receive(&s->io, false) : 0, results;
	bool more;

	if (ready.ucast && s->io.errors)
		record_unreached(s);
	if (!ready.mcast && answers <= 0)
		return;
	do {
		results = s->io.mcast < 0 ? 0 : saina_io_receive(&s->io, true);
		more = results > 0 && s->io.more && answers > 0;
		pthread_mutex_lock(&s->lock);
		input_datagrams(s, true, results);
		if (!more)
			input_datagrams(s, false, answers);
		pthread_mutex_unlock(&s->lock);
	} while (more);
}

void saina_receive(struct saina *s, struct saina_ready ready)
{
	if (ready.shm) {
		pthread_mutex_lock(&s->lock);
		saina_shm_receive(&s->shm, &s->session.job, &s->session.notes);
		s->io.shm = s->shm.fd;
		pthread_mutex_unlock(&s->lock);
	}
	receive_datagrams(s, ready);
}
