// SPDX-License-Identifier: GPL-2.0-or-later
/* A session and its sockets. */
#include <arpa/inet.h>
#include <errno.h>
#include "base.h"
#include "member.h"
#include "session/timeout.h"

#define JOIN_MS	   5000
#define SILENCE_MS 60000

int member_open(struct member *m, const struct member_conf *c, uint64_t now)
{
	struct saina_session *j = &m->session;
	char address[INET_ADDRSTRLEN], text[INET_ADDRSTRLEN + 8];
	int ret;

	m->io.ucast = m->io.mcast = m->io.wake = m->io.timer = m->io.shm = -1;
	inet_ntop(AF_INET, &c->ip, address, sizeof(address));
	snprintf(text, sizeof(text), "%s:%u", address, c->port);
	ret = saina_io_open(&m->io, text, NULL);
	if (ret) {
		snprintf(m->error, sizeof(m->error), "%s: %.*s", m->what,
			 (int)sizeof(m->error) - 20, m->io.error);
		return ret;
	}
	j->job.id = c->job;
	if (c->job_name[0])
		snprintf(j->named, sizeof(j->named), "%s", c->job_name);
	j->job.worker = j->wanted = c->worker;
	memcpy(j->body.token, c->token, sizeof(j->body.token));
	snprintf(j->body.name, sizeof(j->body.name), "%s", c->name);
	j->body.elements = htole64(c->elements);
	j->body.round = htole32(c->round);
	j->round = c->round;
	j->tree = true;
	j->is_node = c->node != NULL;
	j->no_results = !m->group;
	if (c->node)
		j->node = *c->node;
	j->join_ms = JOIN_MS;
	j->start_ms = -1;
	j->silence_ms = SILENCE_MS;
	j->address = m->io.address;
	j->port = c->port;
	j->ifname = m->io.ifname;
	j->mtu = m->io.mtu;
	saina_fill_nonce(j);
	saina_session_start(j, now);
	return 0;
}

bool member_admitted(const struct member *m)
{
	return m->session.job.session && m->session.phase < PHASE_LEAVING;
}

bool member_failed(const struct member *m)
{
	return m->session.phase == PHASE_FAILED;
}

/* Lines for people, which sainad puts into its log.  How results come to the own port matters to nobody. */
static void print_notes(const struct member *m, struct saina_notes *n)
{
	for (const char *p = n->text; m->group && p < n->text + n->used; p += strlen(p) + 1)
		fprintf(stderr, "saina-uplink: %s: %s\n", m->what, p);
	n->used = 0;
}

uint64_t member_run(struct member *m, uint64_t now)
{
	struct saina_session *j = &m->session;
	struct saina_session_msg msg;
	uint64_t when;

	saina_fill_nonce(j);
	j->mtu = m->io.mtu;
	saina_session_send_errors(j, m->io.err, m->io.ctrl_err, now);
	when = saina_session_run(j, now);
	while (saina_session_output(j, &msg)) {
		if (msg.probe && !msg.twice)
			m->io.segment = false;
		if (saina_io_message(&m->io, &msg))
			j->batched = true;
	}
	if (saina_io_pending(&m->io)) {
		saina_io_flush(&m->io, now);
		if (saina_io_pending(&m->io) && when > now + MSEC)
			when = now + MSEC;
	}
	print_notes(m, &j->notes);
	print_notes(m, &m->io.notes);
	if (member_failed(m) && !m->error[0])
		snprintf(m->error, sizeof(m->error), "%s: %.*s", m->what,
			 (int)sizeof(m->error) - 20, j->error);
	return when;
}

void member_send(struct member *m, unsigned int n, size_t len, uint64_t now)
{
	m->bytes_out += n * len;
	saina_io_send(&m->io, n, len, now);
}

/* The job is known: a socket for its results, and what the interface can do. */
static void job_setup(struct member *m)
{
	struct saina_session *j = &m->session;
	int ret = m->group ? saina_io_group(&m->io, &j->job) : 0;

	if (ret)
		saina_session_abort(j, ret, m->io.error);
	saina_io_no_errors(&m->io);
	if (m->io.mcast >= 0 && saina_io_loop(&m->io, &j->job))
		j->loop = SAINA_LOOP_SENT;
	j->gro = saina_io_gro(&m->io);
}

static void session_rx(struct member *m, const struct saina_hdr *h, uint64_t now)
{
	struct saina_session *j = &m->session;
	enum saina_session_event event;

	saina_fill_nonce(j);
	event = saina_session_input(j, h, now);
	if (event == SAINA_SESSION_ADMITTED)
		job_setup(m);
	if (event == SAINA_SESSION_PROBED && j->batched)
		m->io.segment = j->batches;
	if (event == SAINA_SESSION_RESUMES && m->group)
		saina_io_relink(&m->io, &j->job);
	if (event != SAINA_SESSION_NONE)
		m->ops->event(m, event, now);
}

static void input(struct member *m, enum saina_source from, const void *msg, size_t len, uint64_t now)
{
	const struct saina_hdr *h = msg;

	if (!saina_session_check(&m->session, from, msg, len))
		return;
	m->session.heard_ns = now;
	switch (h->type) {
	case SAINA_MSG_NOP:
		break;
	case SAINA_MSG_RESULT:
	case SAINA_MSG_STALE:
	case SAINA_MSG_ASK_REPLY:
		m->bytes_in += len;
		if (saina_session_listening(&m->session))
			m->ops->input(m, h, now);
		break;
	case SAINA_MSG_WELCOME:
	case SAINA_MSG_REFUSE:
	case SAINA_MSG_STATUS:
	case SAINA_MSG_PROBE_REPLY:
		session_rx(m, h, now);
		break;
	}
}

static void input_datagrams(struct member *m, bool mcast, int n)
{
	struct saina_datagram d;
	uint64_t now = saina_now();

	for (int i = 0; i < n; i++) {
		saina_io_datagram(&m->io, mcast, i, &d);
		m->io.congested |= d.overflow;
		if (d.from == SAINA_FROM_SELF) {
			m->session.loop = SAINA_LOOP_HEARD;
			continue;
		}
		do {
			size_t len = d.left < d.size ? d.left : d.size;

			input(m, d.from, d.p, len, now);
			d.p += len;
			d.left -= len;
		} while (d.left);
	}
}

/*
 * Results that were sent before a unicast answer are processed before it, or they would be taken for
 * lost: the answers are read first, and processed when no result is left.
 */
void member_receive(struct member *m)
{
	int answers = saina_io_receive(&m->io, false), results;
	enum saina_unreached why = saina_io_unreached(&m->io);
	bool more;

	if (why)
		m->session.unreached = why;
	do {
		results = m->io.mcast < 0 ? 0 : saina_io_receive(&m->io, true);
		more = results > 0 && m->io.more;
		input_datagrams(m, true, results);
	} while (more);
	input_datagrams(m, false, answers);
}
