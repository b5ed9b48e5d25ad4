// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Admission to a job, and staying admitted.
 *
 *	JOINING --WELCOME--> PROBING --PROBE_REPLY or none--> READYING --STATUS--+
 *	   ^                                                                    |
 *	   | REFUSE(SESSION)      job was forming: FORMING <--------------------+
 *	   |                                          | STATUS running          |
 *	   |                                      CONFIRMING --WELCOME--> RUNNING
 *	   |                                                                    |
 *	   |  REREADYING <--WELCOME-- REJOINING <--------REFUSE(SESSION)---------+
 *
 * Every message is sent again until it is answered.  While a job is forming, a later worker may
 * raise its first round.  So this worker repeats its JOIN (same nonce) once the job runs.
 */
#include <errno.h>
#include "session.h"
#include "timeout.h"

#define BATCH_PROBES 10 /* so many probes are sent as batches of two */
#define PROBE_NS     (40 * MSEC)
#define PROBING_NS   (3000 * MSEC)
#define WAITING_NS   (2000 * MSEC) /* note a job that waits for workers after this */
#define AGAIN_NS     (10000 * MSEC) /* .. and every so often from then on */
#define FORMING_NS   (50 * MSEC)

static void set_phase(struct saina_session *j, enum saina_phase phase, uint64_t now)
{
	j->phase = phase;
	j->next_ns = 0;
	j->tries = 0;
	j->since_ns = now;
	j->changed = true;
}

static void take_nonce(struct saina_session *j)
{
	j->body.nonce = j->spare_nonce;
	j->spare_nonce = 0;
}

void saina_session_start(struct saina_session *j, uint64_t now)
{
	take_nonce(j);
	j->heard_ns = j->opened_ns = now;
	set_phase(j, PHASE_JOINING, now);
}

void saina_session_leave(struct saina_session *j, uint64_t now)
{
	if (j->phase != PHASE_FAILED)
		set_phase(j, PHASE_LEAVING, now);
}

/* The agent does not know this worker (any more). */
static void join_again(struct saina_session *j, uint64_t now)
{
	take_nonce(j);
	if (!j->again) {
		set_phase(j, PHASE_JOINING, now);
		return;
	}
	j->rejoins++;
	saina_note(&j->notes, "the agent no longer knows worker %u of job %u: joining again",
		   j->job.worker, j->job.id);
	set_phase(j, PHASE_REJOINING, now);
}

/* --- sending ---------------------------------------------------------------------------- */

static void send_join(struct saina_session *j)
{
	bool named = saina_session_by_name(j);
	struct saina_session_msg *m = saina_session_message(j, SAINA_MSG_JOIN);
	struct saina_hdr *h = (void *)m->buf;
	struct saina_join_node *node = (void *)(h + 1);

	h->session = 0;
	if (j->phase == PHASE_JOINING) {
		h->worker = j->wanted;
		h->aux = htole32(j->wanted_rank);
	} else {
		j->body.round = htole32(j->round);
	}
	h->flags = (named ? SAINA_F_NAMED : 0) | (j->tree ? SAINA_F_TREE : 0) |
		   (j->is_node ? SAINA_F_NODE : 0);
	if (j->is_node)
		*node = j->node;
	node->named.join = j->body;
	memcpy(node->named.job, j->named, named ? sizeof(j->named) : 0);
}

static void send_probe(struct saina_session *j, uint64_t now)
{
	struct saina_session_msg *m = saina_session_message(j, SAINA_MSG_PROBE);
	struct saina_hdr *h = (void *)m->buf;

	j->probe_ns[j->tries] = now;
	h->elem = j->job.elem;
	h->round = htole32(j->tries);
	m->probe = true;
	m->twice = j->tries < BATCH_PROBES || !j->batched;
}

/* Tests whether results reach us after the agent has moved our port to another hook. */
static void send_path_probe(struct saina_session *j)
{
	struct saina_session_msg *m = saina_session_message(j, SAINA_MSG_PROBE);
	struct saina_hdr *h = (void *)m->buf;

	h->elem = j->job.elem;
	h->round = htole32(SAINA_SESSION_PROBES);
	h->segment = htole32(j->probe);
	m->probe = true;
}

static void send_short(struct saina_session *j, int type, uint64_t now)
{
	struct saina_hdr *h;
	bool report;

	if (type == SAINA_MSG_HEARTBEAT && j->probe && j->proved == j->probe)
		send_short(j, SAINA_MSG_READY, now);
	else if (type == SAINA_MSG_HEARTBEAT && j->probe)
		send_path_probe(j);
	report = type == SAINA_MSG_HEARTBEAT && j->job.reports;
	h = (void *)saina_session_message(j, type)->buf;
	if (report) {
		h->flags = SAINA_F_REPORT;
		memcpy(h + 1, &j->report, sizeof(j->report));
	}
	h->round = htole32(j->round);
	if (type == SAINA_MSG_READY && j->fast) {
		h->flags = SAINA_F_FAST;
		h->segment = htole32(j->proved);
	}
	if (type == SAINA_MSG_HEARTBEAT)
		j->heartbeat_ns = now;
}

/*
 * How long to wait for a PROBE_REPLY.  Without GRO none will come; otherwise the host may be busy
 * with the other workers.
 */
static uint64_t probing_ns(const struct saina_session *j)
{
	return j->gro ? PROBING_NS : SAINA_SESSION_PROBES * PROBE_NS;
}

/* Says which workers a job that does not run yet waits for. */
static void note_missing(struct saina_session *j)
{
	char text[512];

	saina_session_awaited(j, text, sizeof(text));
	if (*text)
		saina_note(&j->notes, "job %u waits for its workers: %s", j->job.id, text);
}

/* Returns when the next heartbeat is due, NEVER if none are. */
static uint64_t run_heartbeats(struct saina_session *j, uint64_t now)
{
	uint64_t beat = j->job.heartbeat_ms * MSEC;

	/* Not before READY is answered, as a heartbeat has the same answer. */
	if (j->phase < PHASE_FORMING || j->phase > PHASE_RUNNING)
		return NEVER;
	if (j->phase == PHASE_FORMING && beat > FORMING_NS)
		beat = FORMING_NS;
	if (j->phase == PHASE_FORMING && !j->waiting_ns)
		j->waiting_ns = now + WAITING_NS;
	if (j->phase == PHASE_FORMING && now >= j->waiting_ns) {
		j->waiting_ns = now + AGAIN_NS;
		note_missing(j);
	}
	if (now >= j->heartbeat_ns + beat)
		send_short(j, SAINA_MSG_HEARTBEAT, now);
	return j->heartbeat_ns + beat;
}

/* Sends one probe after the other, then waits. */
static void probe_path(struct saina_session *j, uint64_t now)
{
	if (j->tries < SAINA_SESSION_PROBES) {
		send_probe(j, now);
		j->next_ns = now + PROBE_NS;
		j->tries++;
	} else if (now < j->since_ns + probing_ns(j)) {
		j->next_ns = j->since_ns + probing_ns(j);
	} else {
		saina_session_explain_slow(j);
		set_phase(j, PHASE_READYING, now);
	}
}

uint64_t saina_session_run(struct saina_session *j, uint64_t now)
{
	uint64_t beat, first;

	if (j->phase == PHASE_FAILED || saina_session_timed_out(j, now))
		return NEVER;
	beat = run_heartbeats(j, now);
	if (now >= j->next_ns) {
		switch (j->phase) {
		case PHASE_JOINING:
		case PHASE_REJOINING:
		case PHASE_CONFIRMING:
			send_join(j);
			break;
		case PHASE_PROBING:
			probe_path(j, now);
			return j->next_ns;
		case PHASE_READYING:
		case PHASE_REREADYING:
			send_short(j, SAINA_MSG_READY, now);
			break;
		case PHASE_LEAVING:
			send_short(j, SAINA_MSG_LEAVE, now);
			break;
		default:
			j->next_ns = NEVER;
			return beat;
		}
		/* LEAVE is repeated sooner, as saina_close() does not wait long for the answer. */
		first = j->phase == PHASE_LEAVING ? 20 * MSEC : 50 * MSEC;
		j->next_ns = now + (j->tries < 3 ? first << j->tries : 400 * MSEC);
		j->tries++;
	}
	return beat < j->next_ns ? beat : j->next_ns;
}

/* --- receiving -------------------------------------------------------------------------- */

/* Takes the parameters of the job; false: it cannot be joined, and the session has failed. */
static bool adopt_job(struct saina_session *j, const struct saina_hdr *h,
		      const struct saina_welcome *w)
{
	struct saina_job *job = &j->job;
	char text[sizeof(j->error)];
	int err;

	job->elements = le64toh(w->elements);
	job->payload = SAINA_SEGMENT_ELEMS(w->elem, le16toh(w->payload));
	job->pool = le16toh(w->pool);
	job->ring = le16toh(w->ring);
	job->workers = w->workers;
	job->elem = w->elem;
	job->group = le32toh(w->group);
	job->heartbeat_ms = le16toh(w->heartbeat_ms);
	job->dead_ms = le16toh(w->dead_ms);
	job->exponent0 = w->exponent;
	job->wire = (size_t)le16toh(w->payload) * (w->elem == SAINA_ELEM_BFLOAT16 ? 2 : 4);
	job->msglen = sizeof(struct saina_hdr) + job->wire;
	job->per_batch = saina_job_per_batch(job->msglen, job->pool);
	if (j->workers && j->workers != saina_job_weight(job)) {
		err = -EINVAL;
		snprintf(text, sizeof(text),
			 "job %u has %u workers%s, there are %u here: start as many as the job has, or "
			 "create the job with `workers %u'",
			 job->id, saina_job_weight(job), job->tree ? " on all hosts" : "", j->workers,
			 j->workers);
	} else if (j->wanted_rank && saina_job_rank(job) + 1 != j->wanted_rank) {
		err = -EPROTONOSUPPORT;
		snprintf(text, sizeof(text),
			 "this is rank %u, and the agent at %s admitted it as rank %u: it is of an "
			 "earlier version, update it",
			 j->wanted_rank - 1, j->address, saina_job_rank(job));
	} else if (!SAINA_ELEM_IS_INT(w->elem) && w->elem != SAINA_ELEM_FLOAT32 &&
		   w->elem != SAINA_ELEM_BFLOAT16) {
		err = -EOPNOTSUPP;
		snprintf(text, sizeof(text),
			 "job %u has elements of type %u, which this version of libsaina does not know: update it",
			 job->id, w->elem);
	} else if (w->elem == SAINA_ELEM_INT16 && saina_job_weight(job) > SAINA_WORKERS_MAX) {
		err = -EOPNOTSUPP;
		snprintf(text, sizeof(text),
			 "job %u is of int16, and a sum of the %u workers of its tree does not fit: "
			 "create the jobs with type int32",
			 job->id, job->weight);
	} else if (le64toh(j->body.elements) > job->elements) {
		err = -EMSGSIZE;
		snprintf(text, sizeof(text), "job %u has %llu elements, this worker asks for %llu",
			 job->id,
			 (unsigned long long)job->elements,
			 (unsigned long long)le64toh(j->body.elements));
	} else if (job->by_reference != SAINA_REFERENCE_ONLY &&
		   j->mtu < job->msglen + SAINA_IP_UDP_LEN) {
		err = -EMSGSIZE;
		saina_session_explain_mtu(j, text, sizeof(text));
	} else {
		job->segments = le32toh(w->segments);
		return true;
	}
	saina_session_abort(j, err, text);
	return false;
}

static bool job_unchanged(const struct saina_job *job, const struct saina_hdr *h,
			  const struct saina_welcome *w)
{
	return h->worker == job->worker && le64toh(w->elements) == job->elements &&
	       le16toh(w->payload) == saina_job_count(job) && le16toh(w->pool) == job->pool &&
	       le16toh(w->ring) == job->ring && w->workers == job->workers && w->elem == job->elem;
}

/* The place of the job in a tree.  False: it is another one than before. */
static bool adopt_tree(struct saina_job *job, const struct saina_hdr *h, const struct saina_welcome *w)
{
	const struct saina_welcome_tree *t = (const void *)w;
	bool tree = h->flags & SAINA_F_TREE, first = !job->segments;

	if (!first && (tree != job->tree ||
		       (tree && (le32toh(t->weight) != job->weight || le32toh(t->rank0) != job->rank))))
		return false;
	job->tree = tree;
	if (!tree)
		return true;
	job->weight = le32toh(t->weight);
	job->rank = le32toh(t->rank0);
	job->depth = t->depth;
	job->quorum = le32toh(t->quorum);
	return true;
}

static enum saina_session_event start_running(struct saina_session *j, uint64_t now)
{
	bool again = j->again;

	j->again = true;
	set_phase(j, PHASE_RUNNING, now);
	return again ? SAINA_SESSION_RESUMES : SAINA_SESSION_BEGINS;
}

static enum saina_session_event welcome_rx(struct saina_session *j, const struct saina_hdr *h,
					   const struct saina_welcome *w, uint64_t now)
{
	struct saina_job *job = &j->job;
	bool first = !job->segments;

	if (j->phase == PHASE_CONFIRMING) {
		if (w->state == SAINA_JOB_FORMING)
			return SAINA_SESSION_NONE; /* sent before the job ran */
		job->first_round = le32toh(w->round);
		job->session = le64toh(h->session);
		return start_running(j, now);
	}
	if (j->phase != PHASE_JOINING && j->phase != PHASE_REJOINING)
		return SAINA_SESSION_NONE; /* a duplicate */
	if (!adopt_tree(job, h, w) || (!first && !job_unchanged(job, h, w))) {
		saina_session_fail(j, -ECONNRESET,
				   "job %u was replaced by another one: join it again", job->id);
		return SAINA_SESSION_NONE;
	}
	job->id = le16toh(h->job);
	job->worker = h->worker;
	job->part = w->part;
	job->parts = w->parts;
	job->session = le64toh(h->session);
	job->first_round = le32toh(w->round);
	job->formed = w->formed || w->state == SAINA_JOB_FORMING;
	job->reports = w->reports;
	job->by_reference = w->by_reference;
	if (first && !adopt_job(j, h, w))
		return SAINA_SESSION_NONE;
	j->admitted_ns = now;
	j->heartbeat_ns = 0;
	if (j->phase == PHASE_JOINING)
		j->fast = false;
	j->probe = j->proved = 0;
	set_phase(j, j->phase == PHASE_REJOINING ? PHASE_REREADYING
		   : j->no_results		 ? PHASE_READYING
						 : PHASE_PROBING, now);
	return first ? SAINA_SESSION_ADMITTED : SAINA_SESSION_NONE;
}

/* A sentence of the agent's: people will see it, and it must not control a terminal. */
static void copy_text(char *to, const char *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to[i] = !from[i] || (from[i] >= 0x20 && from[i] <= 0x7e) ? from[i] : '?';
}

static void refuse_rx(struct saina_session *j, const struct saina_refuse *r, uint64_t now)
{
	static const int err[] = {
		[SAINA_REFUSE_MALFORMED] = -EPROTO,  [SAINA_REFUSE_NO_JOB] = -ENOENT,
		[SAINA_REFUSE_TOKEN] = -EACCES,	     [SAINA_REFUSE_FULL] = -EUSERS,
		[SAINA_REFUSE_TAKEN] = -EBUSY,	     [SAINA_REFUSE_ELEMENTS] = -EMSGSIZE,
		[SAINA_REFUSE_STOPPED] = -ESHUTDOWN, [SAINA_REFUSE_PORT] = -ENETUNREACH,
		[SAINA_REFUSE_SESSION] = -ESTALE,    [SAINA_REFUSE_VERSION] = -EPROTONOSUPPORT,
		[SAINA_REFUSE_TREE] = -EPROTONOSUPPORT, [SAINA_REFUSE_NO_ROOT] = -ENETUNREACH,
		[SAINA_REFUSE_MISMATCH] = -EINVAL,   [SAINA_REFUSE_WEIGHT] = -EINVAL,
	};
	uint32_t reason = le32toh(r->reason);
	int e = reason < sizeof(err) / sizeof(err[0]) && err[reason] ? err[reason] : -EPROTO;
	char text[SAINA_TEXT_LEN];

	copy_text(text, r->text, sizeof(text));
	switch (j->phase) {
	case PHASE_JOINING:
	case PHASE_REJOINING:
		/* An agent of another version does not know where the nonce is. */
		if (r->nonce != j->body.nonce && reason != SAINA_REFUSE_VERSION)
			return;
		if (reason == SAINA_REFUSE_TREE) {
			/* Agents of an earlier version do not know the flag, so it is not in the first JOIN. */
			if (!j->tree)
				j->next_ns = now;
			j->tree = true;
			return;
		}
		/* The job waits for its parent as one that is forming waits for its workers. */
		if (reason == SAINA_REFUSE_NO_ROOT &&
		    (j->start_ms <= 0 || now <= j->since_ns + j->start_ms * MSEC))
			j->opened_ns = now;
		if (reason == SAINA_REFUSE_TAKEN || reason == SAINA_REFUSE_PORT ||
		    reason == SAINA_REFUSE_NO_ROOT) {
			/* Perhaps a predecessor has the identifier and is about to be declared
			 * dead, or a flood of JOINs has pushed ours out of the switch's table.
			 */
			if (!j->refused)
				saina_note(&j->notes, "%s; trying again", text);
			j->refused = e;
			memcpy(j->refusal, text, sizeof(j->refusal));
			return;
		}
		if (j->phase == PHASE_REJOINING)
			e = -ECONNRESET;
		if (reason == SAINA_REFUSE_MALFORMED && j->tree) {
			saina_session_fail(j, e,
					   "the agent at %s knows no trees of jobs (it is of an earlier "
					   "version): update it",
					   j->address);
			return;
		}
		break;
	case PHASE_LEAVING:
		j->gone = j->changed = true;
		return;
	case PHASE_FAILED:
	case PHASE_PROBING:
		return;
	default:
		if (reason == SAINA_REFUSE_SESSION) {
			join_again(j, now);
			return;
		}
		if (r->nonce && j->phase != PHASE_CONFIRMING)
			return; /* refuses a JOIN that was answered before */
		e = -ECONNRESET;
		break;
	}
	saina_session_fail(j, e, "%s", text);
}

static enum saina_session_event status_rx(struct saina_session *j, const struct saina_status *st,
					  const struct saina_hdr *h, uint64_t now)
{
	/* Stale STATUS, sent before our READY: ignore it, as it would settle whether results are
	 * relayed.
	 */
	if ((j->phase == PHASE_READYING || j->phase == PHASE_REREADYING) &&
	    st->path != (j->fast ? SAINA_PATH_FAST : SAINA_PATH_RELAYED) &&
	    st->state != SAINA_JOB_STOPPED)
		return SAINA_SESSION_NONE;
	j->active = le64toh(st->active);
	j->active_ns = now;
	j->missing = le64toh(h->mask) & j->active;
	j->missing_round = le32toh(st->round) - 1;
	copy_text(j->reason, st->text, sizeof(j->reason));
	j->relayed = st->path == SAINA_PATH_RELAYED;
	j->probe = j->no_results ? 0 : le32toh(h->segment);
	j->timeout_ms = le16toh(st->timeout_ms);
	j->output_id = le32toh(h->aux);
	if (h->k) {
		j->job.parts = h->k - 1;
		j->job.part = j->job.parts ? h->contributors : 0;
	}
	j->next_round = 0;
	if (j->phase == PHASE_LEAVING) {
		/* A STATUS in which this worker is alive was sent before our LEAVE. */
		if (!(j->active >> j->job.worker & 1))
			j->gone = j->changed = true;
		return SAINA_SESSION_NONE;
	}
	if (st->state == SAINA_JOB_STOPPED) {
		saina_session_fail(j, -ECONNRESET, "job %u was stopped by its operator", j->job.id);
		return SAINA_SESSION_NONE;
	}
	switch (j->phase) {
	case PHASE_READYING:
	case PHASE_REREADYING:
		if (!j->job.formed)
			return start_running(j, now);
		set_phase(j, st->state == SAINA_JOB_RUNNING ? PHASE_CONFIRMING : PHASE_FORMING,
			  now);
		break;
	case PHASE_FORMING:
		if (st->state == SAINA_JOB_RUNNING)
			set_phase(j, PHASE_CONFIRMING, now);
		break;
	case PHASE_RUNNING:
		if (st->state == SAINA_JOB_RUNNING)
			j->next_round = le32toh(st->round);
		break;
	default:
		break;
	}
	return SAINA_SESSION_STATUS;
}

/* A probe was answered after this worker had given up. */
static void note_late_probe_reply(struct saina_session *j)
{
	if (!j->fast)
		saina_note(&j->notes,
			   "a probe was answered after all: results can be redirected to %s",
			   j->ifname);
	j->fast = true;
}

static enum saina_session_event probe_reply_rx(struct saina_session *j, uint32_t i, uint64_t now)
{
	if (j->phase == PHASE_PROBING && i < j->tries) {
		j->fast = true;
		j->batches = i < BATCH_PROBES;
		if (j->batched && !j->batches)
			saina_note(
				&j->notes,
				"batches of messages are lost on %s (generic XDP at the other end does "
				"not split them), single messages are not: sending message by message, "
				"which is slower",
				j->ifname);
		j->rtt_ns = now - j->probe_ns[i];
		set_phase(j, PHASE_READYING, now);
		return SAINA_SESSION_PROBED;
	}
	if (!j->fast && i < SAINA_SESSION_PROBES && j->phase == PHASE_READYING) {
		note_late_probe_reply(j);
		j->next_ns = 0;
	}
	return SAINA_SESSION_NONE;
}

enum saina_session_event saina_session_input(struct saina_session *j, const struct saina_hdr *h,
					     uint64_t now)
{
	const void *body = h + 1;

	switch (h->type) {
	case SAINA_MSG_WELCOME:
		return welcome_rx(j, h, body, now);
	case SAINA_MSG_REFUSE:
		refuse_rx(j, body, now);
		break;
	case SAINA_MSG_STATUS:
		return status_rx(j, body, h, now);
	case SAINA_MSG_PROBE_REPLY:
		if (h->segment) {
			j->proved = le32toh(h->segment);
			note_late_probe_reply(j);
			return SAINA_SESSION_NONE;
		}
		return probe_reply_rx(j, le32toh(h->round), now);
	}
	return SAINA_SESSION_NONE;
}
