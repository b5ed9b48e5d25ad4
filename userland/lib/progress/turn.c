// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A turn of the thread that drives: gives the machines (join.h, round.h) messages and the
 * time, and what they say to the sockets.
 */
#include <errno.h>
#include <sys/random.h>
#include "base.h"
#include "reduce/size_check.h"

#define STILL_NS (2000 * MSEC)	/* whoever waits looks more often */

/* The job is known: memory, and a socket for its results. */
static void admitted(struct saina *s)
{
	struct saina_session *j = &s->session;
	int ret;

	ret = saina_io_group(&s->io, &j->job);
	if (ret) {
		saina_join_abort(j, ret, s->io.error);
	} else if (saina_io_buffer(&s->io) ||
		   saina_round_init(&s->round, &j->job, saina_io_room(&s->io), s->opts.window,
				    s->opts.rto_min_us * 1000ull)) {
		snprintf(s->io.error, sizeof(s->io.error),
			 "out of memory for job %u of %llu elements", j->job.id,
			 (unsigned long long)j->job.elements);
		saina_join_abort(j, -ENOMEM, s->io.error);
	}
	saina_io_no_errors(&s->io);
	if (s->io.mcast >= 0 && saina_io_loop(&s->io, &j->job))
		j->loop = SAINA_LOOP_SENT;
	s->round.lent = &s->lent;
	s->round.notes = &j->notes;
	/* Asked for as late as this because people turn it on when told to. */
	j->gro = saina_io_gro(&s->io);
}

static void control(struct saina *s, const struct saina_hdr *h, uint64_t now)
{
	struct saina_session *j = &s->session;
	struct saina_flow *f = &s->round.flow;

	enum saina_join_event event = saina_join_input(j, h, now);

	/* Results say it, too, and are nearer to the truth: this is for before the first. */
	if (j->timeout_ms != f->timeout_ms) {
		f->timeout_ms = j->timeout_ms;
		f->timeout_ns = j->timeout_ms * MSEC;
	}
	switch (event) {
	case SAINA_JOIN_NONE:
		break;
	case SAINA_JOIN_ADMITTED:
		admitted(s);
		break;
	case SAINA_JOIN_PROBED:
		saina_window_sample(&f->window, j->rtt_ns, now);
		if (j->batched)
			s->io.segment = j->batches;
		break;
	case SAINA_JOIN_BEGINS:
		saina_flow_begin(f, j->job.first_round, j->job.formed, now);
		break;
	case SAINA_JOIN_BEGINS_AGAIN:
		if (s->round.table.on) {
			if (!j->job.formed)
				saina_table_again(&s->round);
			else
				saina_join_fail(j, -ECONNRESET,
						"job %u was started afresh, and the table of its steps is gone: "
						"open it anew, with the model of one of its workers",
						j->job.id);
		} else if (j->job.formed && j->job.first_round < f->round) {
			saina_join_fail(j, -ECONNRESET,
					"job %u begins again at round %u, where most of its workers are, and "
					"this one is at %u: open it anew, with the model of one of them",
					j->job.id, j->job.first_round, f->round);
		} else if (!saina_flow_again(f, j->job.first_round, j->job.formed, now))
			saina_join_fail(j, -ECONNRESET,
					"job %u was started afresh in the middle of round %u: open it "
					"anew, with the model of a worker that is not in this round",
					j->job.id, f->round);
		break;
	case SAINA_JOIN_STATUS:
		f->alone = j->active == 1ull << j->job.worker;
		if (s->round.table.on)
			saina_steps_poke(&s->round.table.steps);
		else
			saina_flow_next(f, j->next_round, now);
		break;
	}
}

void saina_fill_nonce(struct saina_session *j)
{
	while (!j->spare_nonce)
		if (getrandom(&j->spare_nonce, sizeof(j->spare_nonce), 0) < 0)
			j->spare_nonce = saina_now();
}

void saina_input(struct saina *s, enum saina_source from, const void *msg, size_t len, uint64_t now)
{
	const struct saina_hdr *h = msg;

	if (!saina_check(&s->session, from, msg, len)) {
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
		if (saina_join_listening(&s->session))
			saina_round_input(&s->round, h, now);
		break;
	case SAINA_MSG_SUM:
	case SAINA_MSG_NAK:
	case SAINA_MSG_GO:
		if (saina_join_listening(&s->session) && saina_table_input(&s->round, h, now))
			saina_join_fail(&s->session, -ENOMEM, "out of memory for the table of job %u",
					s->session.job.id);
		break;
	default:
		saina_fill_nonce(&s->session);
		control(s, h, now);
	}
}

/* The first @n buffers of a socket; locked. */
static void take(struct saina *s, bool mcast, int n)
{
	struct saina_datagram d;
	uint64_t now;

	for (int i = 0; i < n; i++) {
		now = saina_now();
		saina_io_datagram(&s->io, mcast, i, &d);
		if (d.overflow && s->session.job.segments)
			saina_window_overflow(&s->round.flow.window, now);
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

/* Why a JOIN may have no answer. */
static void note_unreached(struct saina *s)
{
	enum saina_unreached why = saina_io_unreached(&s->io);

	if (!why)
		return;
	pthread_mutex_lock(&s->lock);
	s->session.unreached = why;
	pthread_mutex_unlock(&s->lock);
}

/*
 * The results that were sent before a unicast answer are to be looked at before it, or
 * they seem to be lost.  So it is read first, and looked at when there
 * are no more of them.
 */
static void receive_datagrams(struct saina *s, struct saina_ready ready)
{
	int answers = ready.ucast ? saina_io_receive(&s->io, false) : 0, results;
	bool more;

	if (ready.ucast && s->io.errors)
		note_unreached(s);
	if (!ready.mcast && answers <= 0)
		return;
	do {
		results = s->io.mcast < 0 ? 0 : saina_io_receive(&s->io, true);
		more = results > 0 && s->io.more && answers > 0;
		pthread_mutex_lock(&s->lock);
		take(s, true, results);
		if (!more)
			take(s, false, answers);
		pthread_mutex_unlock(&s->lock);
	} while (more);
}

static void receive(struct saina *s, struct saina_ready ready)
{
	if (ready.lender) {
		pthread_mutex_lock(&s->lock);
		saina_lent_receive(&s->lent, &s->session.job, &s->session.notes);
		s->io.lender = s->lent.fd;
		pthread_mutex_unlock(&s->lock);
	}
	receive_datagrams(s, ready);
}

/* Wakes the trainer if there is something for it; locked. */
static void tell(struct saina *s)
{
	if (s->session.phase == PHASE_FAILED)
		saina_round_fail(&s->round, s->session.err);
	if (s->session.changed || s->round.news)
		pthread_cond_broadcast(&s->cond);
	s->session.changed = s->round.news = false;
}

static void show(struct saina *s, struct saina_notes *n)
{
	for (size_t at = 0; at < n->used; at += strlen(n->text + at) + 1) {
		if (s->opts.log)
			s->opts.log(s->opts.log_arg, n->text + at);
		else
			fprintf(stderr, "libsaina: %s\n", n->text + at);
	}
	n->used = 0;
}

static void say(struct saina *s, const struct saina_join_msg *m)
{
	if (m->probe && !m->twice)
		s->io.segment = false;
	if (!saina_io_message(&s->io, m))
		return;
	pthread_mutex_lock(&s->lock);
	s->session.batched = true;
	pthread_mutex_unlock(&s->lock);
}

/* @done of the messages in the buffer had left before: the others that have left since count. */
static void count_left(struct saina *s, unsigned int done)
{
	if (s->io.done == done)
		return;
	pthread_mutex_lock(&s->lock);
	saina_round_left(&s->round, s->io.buf + done * s->io.msg, s->io.done - done, s->io.msg);
	pthread_mutex_unlock(&s->lock);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * A round that can never end is an error; the other workers are told that this one is gone.  While
 * nothing can be sent nobody is asked, so that what is known is old.
 */
static void end_unequal(struct saina *s, uint64_t now)
{
	struct saina_session *j = &s->session;
	char text[sizeof(j->error)];

	if (j->phase == PHASE_RUNNING && !s->round.table.on && !s->io.err &&
	    saina_unequal(&s->round, j->active, j->active_ns, now, text, sizeof(text)))
		saina_join_abort(j, -EPROTO, text);
}

/* How long the data path has been silent although it is to answer. */
static uint64_t unanswered(struct saina *s, uint64_t now)
{
	const struct saina_steps *t = &s->round.table.steps;
	bool waits = s->round.table.on ? t->flying || t->phase == SAINA_STEPS_ASKS ||
					 t->phase == SAINA_STEPS_CLOCKS :
					 s->round.flow.inflight;

	/* This process has stood still, or there was nothing to answer. */
	if (!waits || now > s->looked_ns + STILL_NS)
		s->answered_ns = now;
	s->looked_ns = now;
	return now - s->answered_ns;
}

/* All that is due is sent, as far as the socket takes it.  Returns when to come back. */
static uint64_t output(struct saina *s)
{
	struct saina_notes *notes = &s->notes;
	struct saina_session *j = &s->session;
	struct saina_join_msg m[4];
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
			.unanswered_ms = htole32(unanswered(s, now) / MSEC),
			.sent = htole64(s->round.stats.sent),
			.resent = htole64(s->round.stats.resent),
			.rtt_us = htole32(s->round.flow.window.srtt / 1000),
			.window = htole32(s->round.flow.window.size * j->job.train),
		};
		end_unequal(s, now);
		j->mtu = s->io.mtu;
		saina_join_refused(j, s->io.err, s->io.ctrl_err, now);
		when = saina_join_run(j, now);
		while (k < 4 && saina_join_output(j, &m[k]))
			k++;
		s->lent.wanted = j->board;
		if (saina_join_listening(j))
			when = earlier(when, saina_lent_run(&s->lent, &j->job, now));
		s->io.lender = s->lent.fd;
		if (s->io.congested)
			saina_window_overflow(&s->round.flow.window, now);
		s->io.congested = false;
		if (j->phase == PHASE_RUNNING && !saina_io_pending(&s->io))
			n = s->round.table.on ?
				    saina_table_output(&s->round, now, s->io.buf, &len, &w) :
				    saina_round_output(&s->round, now, s->io.buf, &len, &w);
		tell(s);
		notes->used = j->notes.used;
		memcpy(notes->text, j->notes.text, notes->used);
		j->notes.used = 0;
		pthread_mutex_unlock(&s->lock);

		show(s, notes);
		for (unsigned int i = 0; i < k; i++)
			say(s, &m[i]);
		if (saina_io_pending(&s->io)) {
			done = s->io.done;
			saina_io_flush(&s->io, now);
			count_left(s, done);
			went = true;
		} else if (n) {
			saina_io_send(&s->io, n, len, now);
			count_left(s, 0);
			went = true;
		}
		show(s, &s->io.notes);
		/* What was pending was in the way of what is due. */
	} while (went && !saina_io_pending(&s->io));
	if (s->io.held_ns)
		when = earlier(when, s->io.held_ns);
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

void saina_turn(struct saina *s, const struct saina_req *req, uint64_t until)
{
	uint64_t when = earlier(output(s), until), now = saina_now();

	/* By a result that was here already, or because the job has failed. */
	if (is_finished(s, req))
		return;
	receive(s, saina_io_wait(&s->io, when > now ? when - now : 0));
}
