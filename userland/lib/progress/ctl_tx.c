// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* What the session sends: its messages, with a report in heartbeats, and LEAVE if sizes differ. */
#include <errno.h>
#include "progress.h"
#include "session/session.h"
#include "session/timeout.h"

#define STILL_NS (2000 * MSEC) /* no turn for this long: the process was suspended */

/* How long the data path has not answered although it should. */
static uint64_t unanswered_ns(struct saina *s, uint64_t now)
{
	/* This process was suspended, or there was nothing to answer. */
	if (!s->round.ops->waits(&s->round) || now > s->checked_ns + STILL_NS)
		s->answered_ns = now;
	s->checked_ns = now;
	return now - s->answered_ns;
}

static void fill_report(struct saina *s, uint64_t now)
{
	struct saina_session *j = &s->session;

	j->report = (struct saina_report){
		.refused = htole32(s->io.err),
		.refused_ms = htole32(s->io.err ? (now - j->sent_ns) / MSEC : 0),
		.unanswered_ms = htole32(unanswered_ns(s, now) / MSEC),
		.sent = htole64(s->round.stats.sent),
		.resent = htole64(s->round.stats.resent),
		.rtt_us = htole32(s->round.flow.cwnd.srtt / 1000),
		.window = htole32(s->round.flow.cwnd.size * j->job.per_batch),
	};
}

/*
 * A round that can never end is an error, and LEAVE goes to the agent.  While nothing can be sent,
 * what this worker knows is old.
 */
static void abort_on_size_mismatch(struct saina *s, uint64_t now)
{
	struct saina_session *j = &s->session;
	char text[sizeof(j->error)];

	if (j->phase == PHASE_RUNNING && s->round.ops->stuck && !s->io.err &&
	    s->round.ops->stuck(&s->round, j->active, j->active_ns, now, text, sizeof(text)))
		saina_session_abort(j, -EPROTO, text);
}

void saina_ctl_choose(struct saina *s, struct saina_outgoing *out)
{
	struct saina_session *j = &s->session;

	saina_fill_nonce(j);
	j->round = s->round.flow.round;
	fill_report(s, out->now);
	abort_on_size_mismatch(s, out->now);
	j->mtu = s->io.mtu;
	saina_session_send_errors(j, s->io.err, s->io.ctrl_err, out->now);
	out->when = saina_session_run(j, out->now);
	for (out->ctls = 0; out->ctls < 4 && saina_session_output(j, &out->ctl[out->ctls]);)
		out->ctls++;
}

static void send_one(struct saina *s, const struct saina_session_msg *m)
{
	if (m->probe && !m->twice)
		s->io.segment = false;
	if (!saina_io_message(&s->io, m))
		return;
	pthread_mutex_lock(&s->lock);
	s->session.batched = true;
	pthread_mutex_unlock(&s->lock);
}

void saina_ctl_send(struct saina *s, const struct saina_outgoing *out)
{
	for (unsigned int i = 0; i < out->ctls; i++)
		send_one(s, &out->ctl[i]);
}
