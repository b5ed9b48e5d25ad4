// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* What the agent's messages change: the job's memory and sockets, and where rounds go on. */
#include <errno.h>
#include "progress.h"
#include "reduce/round.h"
#include "session/session.h"

/* The job is known: allocates its memory, and opens a socket for its results. */
static void job_setup(struct saina *s)
{
	struct saina_session *j = &s->session;
	int ret;

	ret = saina_io_group(&s->io, &j->job);
	if (ret) {
		saina_session_abort(j, ret, s->io.error);
	} else if (saina_io_buffer(&s->io) ||
		   saina_round_init(&s->round, &j->job, saina_io_room(&s->io), s->opts.window,
				    s->opts.rto_min_us * 1000ull)) {
		snprintf(s->io.error, sizeof(s->io.error),
			 "out of memory for job %u of %llu elements", j->job.id,
			 (unsigned long long)j->job.elements);
		saina_session_abort(j, -ENOMEM, s->io.error);
	}
	saina_io_no_errors(&s->io);
	if (s->io.mcast >= 0 && saina_io_loop(&s->io, &j->job))
		j->loop = SAINA_LOOP_SENT;
	s->round.shm = &s->shm;
	s->round.notes = &j->notes;
	/* Read only now, because users turn it on in response to a note. */
	j->gro = saina_io_gro(&s->io);
}

/* Admitted once more: goes on where this worker was, or fails. */
static void resume(struct saina *s, uint64_t now)
{
	struct saina_session *j = &s->session;
	char text[sizeof(j->error)];

	/* While the link was away, batches were refused. */
	if (saina_io_relink(&s->io, &j->job))
		s->io.segment = !j->batched || j->batches;
	if (!s->round.ops->again(&s->round, now, text, sizeof(text)))
		saina_session_fail(j, -ECONNRESET, "%s", text);
}

/* The agent has said who is alive, and which round is next. */
static void status_rx(struct saina *s, uint64_t now)
{
	struct saina_session *j = &s->session;

	s->round.flow.no_peers = j->active == 1ull << j->job.worker;
	s->round.ops->status(&s->round, j->next_round, now);
}

void saina_session_rx(struct saina *s, const struct saina_hdr *h, uint64_t now)
{
	struct saina_session *j = &s->session;
	struct saina_flow *f = &s->round.flow;
	enum saina_session_event event = saina_session_input(j, h, now);

	/* This time-out is for the first round: results have it, too, and are newer. */
	if (j->timeout_ms != f->timeout_ms) {
		f->timeout_ms = j->timeout_ms;
		f->timeout_ns = j->timeout_ms * MSEC;
	}
	switch (event) {
	case SAINA_SESSION_NONE:
		break;
	case SAINA_SESSION_ADMITTED:
		job_setup(s);
		break;
	case SAINA_SESSION_PROBED:
		saina_cwnd_sample(&f->cwnd, j->rtt_ns, now);
		if (j->batched)
			s->io.segment = j->batches;
		break;
	case SAINA_SESSION_BEGINS:
		saina_flow_begin(f, j->job.first_round, j->job.formed, now);
		/* Results of an earlier data path may have been of later rounds. */
		if (j->job.formed)
			s->round.newest_round = s->round.newest_counted = 0;
		break;
	case SAINA_SESSION_RESUMES:
		resume(s, now);
		break;
	case SAINA_SESSION_STATUS:
		status_rx(s, now);
		break;
	}
}
