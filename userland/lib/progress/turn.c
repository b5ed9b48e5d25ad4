// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* A turn of the thread that drives: sends what is due, waits, receives. */
#include <errno.h>
#include "progress.h"
#include "reduce/round.h"
#include "session/session.h"

static uint64_t earliest(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Asks for shared memory, while results are taken. */
static void run_shm(struct saina *s, struct saina_outgoing *out)
{
	struct saina_session *j = &s->session;
	char text[sizeof(j->error)];
	const char *why;

	s->shm.wanted_id = j->output_id;
	if (saina_session_listening(j))
		out->when = earliest(out->when, saina_shm_run(&s->shm, &j->job, out->now));
	why = j->phase < PHASE_LEAVING ? saina_shm_failure(&s->shm, &j->job) : NULL;
	if (why) {
		snprintf(text, sizeof(text), "job %u is by-reference-only: %s", j->job.id, why);
		saina_session_abort(j, -EOPNOTSUPP, text);
	}
	s->io.shm = s->shm.fd;
}

/* Caller holds s->lock.  Wakes the trainer's threads if anything changed for them. */
static void wake_waiters(struct saina *s)
{
	if (s->session.phase == PHASE_FAILED)
		saina_round_fail(&s->round, s->session.err);
	if (s->session.changed || s->round.any_finished)
		pthread_cond_broadcast(&s->cond);
	s->session.changed = s->round.any_finished = false;
}

/* Sends all that is due, as far as the socket takes it.  Returns when to call again. */
static uint64_t send_due(struct saina *s)
{
	struct saina_outgoing out;
	bool sent;

	out.data_when = NEVER;
	do {
		pthread_mutex_lock(&s->lock);
		out.now = saina_now();
		saina_ctl_choose(s, &out);
		run_shm(s, &out);
		saina_data_choose(s, &out);
		wake_waiters(s);
		saina_notes_take(s);
		pthread_mutex_unlock(&s->lock);

		saina_notes_print(s, &s->notes);
		saina_ctl_send(s, &out);
		sent = saina_data_send(s, &out);
		saina_notes_print(s, &s->io.notes);
		/* Again while all that was chosen has left: the socket may take more. */
	} while (sent && !saina_io_pending(&s->io));
	if (s->io.held_ns)
		out.when = earliest(out.when, s->io.held_ns);
	return earliest(out.when, out.data_when);
}

static bool is_finished(struct saina *s, const struct saina_req *req)
{
	bool finished;

	if (!req)
		return false;
	pthread_mutex_lock(&s->lock);
	finished = req->finished;
	pthread_mutex_unlock(&s->lock);
	return finished;
}

void saina_progress(struct saina *s, const struct saina_req *req, uint64_t until)
{
	uint64_t when = earliest(send_due(s), until), now = saina_now();

	/* Its result was there already, or the job has failed. */
	if (is_finished(s, req))
		return;
	saina_receive(s, saina_io_wait(&s->io, when > now ? when - now : 0));
}
