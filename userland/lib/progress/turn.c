// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A turn of the thread that drives: passes messages and the time to the session and the rounds, and
 * their messages to the sockets.
 */
#include <errno.h>
#include "base.h"
#include "reduce/size_check.h"

#define STILL_NS (2000 * MSEC) /* no turn for this long: the process was suspended */

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
	/* As late as this, as users turn it on in response to a note. */
	j->gro = saina_io_gro(&s->io);
}

static void session_rx(struct saina *s, const struct saina_hdr *h, uint64_t now)
{
	struct saina_session *j = &s->session;
	struct saina_flow *f = &s->round.flow;

	enum saina_session_event event = saina_session_input(j, h, now);

	/* Results say it, too, and are newer: this is for the time before the first one. */
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
		break;
	case SAINA_SESSION_RESUMES:
		if (s->round.ps.on) {
			if (!j->job.formed)
				saina_ps_rejoin(&s->round);
			else
				saina_session_fail(
					j, -ECONNRESET,
					"job %u was started afresh, and its parameter server has "
					"lost the steps: "
					"open it anew, with the model of one of its workers",
					j->job.id);
		} else if (j->job.formed && j->job.first_round < f->round) {
			saina_session_fail(
				j, -ECONNRESET,
				"job %u begins again at round %u, where most of its workers are, "
				"and "
				"this one is at %u: open it anew, with the model of one of them",
				j->job.id, j->job.first_round, f->round);
		} else if (!saina_flow_again(f, j->job.first_round, j->job.formed, now))
			saina_session_fail(
				j, -ECONNRESET,
				"job %u was started afresh in the middle of round %u: open it "
				"anew, with the model of a worker that is not in this round",
				j->job.id, f->round);
		break;
	case SAINA_SESSION_STATUS:
		f->no_peers = j->active == 1ull << j->job.worker;
		if (s->round.ps.on)
			saina_steps_poke(&s->round.ps.steps);
		else
			saina_flow_next(f, j->next_round, now);
		break;
	}
}

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
		if (saina_session_listening(&s->session))
			saina_round_input(&s->round, h, now);
		break;
	case SAINA_MSG_SUM:
	case SAINA_MSG_NAK:
	case SAINA_MSG_GO:
		if (saina_session_listening(&s->session) && saina_ps_input(&s->round, h, now))
			saina_session_fail(&s->session, -ENOMEM,
					   "out of memory for the steps of job %u",
					   s->session.job.id);
		break;
	default:
		saina_fill_nonce(&s->session);
		session_rx(s, h, now);
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

static void receive(struct saina *s, struct saina_ready ready)
{
	if (ready.shm) {
		pthread_mutex_lock(&s->lock);
		saina_shm_receive(&s->shm, &s->session.job, &s->session.notes);
		s->io.shm = s->shm.fd;
		pthread_mutex_unlock(&s->lock);
	}
	receive_datagrams(s, ready);
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

static void print_notes(struct saina *s, struct saina_notes *n)
{
	for (size_t at = 0; at < n->used; at += strlen(n->text + at) + 1) {
		if (s->opts.log)
			s->opts.log(s->opts.log_arg, n->text + at);
		else
			fprintf(stderr, "libsaina: %s\n", n->text + at);
	}
	n->used = 0;
}

static void ctl_send(struct saina *s, const struct saina_session_msg *m)
{
	if (m->probe && !m->twice)
		s->io.segment = false;
	if (!saina_io_message(&s->io, m))
		return;
	pthread_mutex_lock(&s->lock);
	s->session.batched = true;
	pthread_mutex_unlock(&s->lock);
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

static uint64_t earliest(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * A round that can never end is an error, and LEAVE goes to the agent.  While nothing can be sent,
 * what this worker knows is old.
 */
static void abort_on_size_mismatch(struct saina *s, uint64_t now)
{
	struct saina_session *j = &s->session;
	char text[sizeof(j->error)];

	if (j->phase == PHASE_RUNNING && !s->round.ps.on && !s->io.err &&
	    saina_size_check(&s->round, j->active, j->active_ns, now, text, sizeof(text)))
		saina_session_abort(j, -EPROTO, text);
}

/* How long the data path has not answered although it should. */
static uint64_t unanswered_ns(struct saina *s, uint64_t now)
{
	/* This process was suspended, or there was nothing to answer. */
	if (!saina_reduce_waits(&s->round) || now > s->checked_ns + STILL_NS)
		s->answered_ns = now;
	s->checked_ns = now;
	return now - s->answered_ns;
}

/* Sends all that is due, as far as the socket takes it.  Returns when to call again. */
static uint64_t send_due(struct saina *s)
{
	struct saina_notes *notes = &s->notes;
	struct saina_session *j = &s->session;
	struct saina_session_msg m[4];
	uint64_t now, when, w = NEVER;
	unsigned int n, k, done;
	bool went;
	size_t len;

	do {
		n = k = 0;
		went = false;
		pthread_mutex_lock(&s->lock);
		now = saina_now();
		saina_fill_nonce(j);
		j->round = s->round.flow.round;
		j->report = (struct saina_report){
			.refused = htole32(s->io.err),
			.refused_ms = htole32(s->io.err ? (now - j->sent_ns) / MSEC : 0),
			.unanswered_ms = htole32(unanswered_ns(s, now) / MSEC),
			.sent = htole64(s->round.stats.sent),
			.resent = htole64(s->round.stats.resent),
			.rtt_us = htole32(s->round.flow.cwnd.srtt / 1000),
			.window = htole32(s->round.flow.cwnd.size * j->job.per_batch),
		};
		abort_on_size_mismatch(s, now);
		j->mtu = s->io.mtu;
		saina_session_send_errors(j, s->io.err, s->io.ctrl_err, now);
		when = saina_session_run(j, now);
		while (k < 4 && saina_session_output(j, &m[k]))
			k++;
		s->shm.wanted_id = j->output_id;
		if (saina_session_listening(j))
			when = earliest(when, saina_shm_run(&s->shm, &j->job, now));
		s->io.shm = s->shm.fd;
		if (s->io.congested)
			saina_cwnd_overflow(&s->round.flow.cwnd, now);
		s->io.congested = false;
		if (j->phase == PHASE_RUNNING && !saina_io_pending(&s->io))
			n = saina_reduce_output(&s->round, now, s->io.buf, &len, &w);
		wake_waiters(s);
		notes->used = j->notes.used;
		memcpy(notes->text, j->notes.text, notes->used);
		j->notes.used = 0;
		pthread_mutex_unlock(&s->lock);

		print_notes(s, notes);
		for (unsigned int i = 0; i < k; i++)
			ctl_send(s, &m[i]);
		if (saina_io_pending(&s->io)) {
			done = s->io.done;
			saina_io_flush(&s->io, now);
			count_sent(s, done);
			went = true;
		} else if (n) {
			saina_io_send(&s->io, n, len, now);
			count_sent(s, 0);
			went = true;
		}
		print_notes(s, &s->io.notes);
		/* Retry: the socket was still blocked by the previous batch. */
	} while (went && !saina_io_pending(&s->io));
	if (s->io.held_ns)
		when = earliest(when, s->io.held_ns);
	return w < when ? w : when;
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
	receive(s, saina_io_wait(&s->io, when > now ? when - now : 0));
}
