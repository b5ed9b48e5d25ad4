/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The session with the agent: admission, heartbeats, leaving.  Like the flow machine it
 * knows no sockets and no clock: messages and the time go in, messages come out.
 */
#ifndef SAINA_JOIN_H
#define SAINA_JOIN_H

#include "wire/job.h"

/* Where this worker stands with the agent (join.c). */
enum saina_phase {
	PHASE_JOINING,		/* JOIN sent */
	PHASE_PROBING,		/* WELCOME heard, can results reach us? */
	PHASE_READYING,		/* READY sent */
	PHASE_FORMING,		/* waits for the other workers */
	PHASE_CONFIRMING,	/* job runs; asks for the first round */
	PHASE_RUNNING,
	PHASE_REJOINING,	/* was RUNNING, the agent forgot us: JOIN sent */
	PHASE_REREADYING,
	PHASE_LEAVING,
	PHASE_FAILED,
};

/* Who a message came from. */
enum saina_source { SAINA_FROM_CTRL, SAINA_FROM_DATA, SAINA_FROM_OTHERS, SAINA_FROM_SELF };

/* What a host or router on the way has said of our JOIN (ICMP), or nobody of its address (ARP). */
enum saina_unreached {
	SAINA_UNREACHED_NOT,
	SAINA_UNREACHED_CLOSED,		/* nobody has that port */
	SAINA_UNREACHED_FILTERED,	/* administratively prohibited */
	SAINA_UNREACHED_NOBODY,		/* there is no such host */
};

/* Does this host let what is sent to the group in?  It can say so itself, by a message to itself. */
enum saina_loop {
	SAINA_LOOP_UNKNOWN,
	SAINA_LOOP_SENT,
	SAINA_LOOP_HEARD,
};

/* A group, as people write it. */
#define SAINA_GROUP_FMT "%u.%u.%u.%u"
#define SAINA_GROUP_ARGS(g) (g) >> 24, (g) >> 16 & 0xff, (g) >> 8 & 0xff, (g) & 0xff

/* What a message changed that others have to act on. */
enum saina_join_event {
	SAINA_JOIN_NONE,
	SAINA_JOIN_ADMITTED,	/* job is valid now; before anything else is done */
	SAINA_JOIN_PROBED,	/* a probe was answered: rtt_ns, batches */
	SAINA_JOIN_BEGINS,	/* RUNNING, for the first time */
	SAINA_JOIN_BEGINS_AGAIN,
	SAINA_JOIN_STATUS,	/* next_round, relayed */
};

struct saina_join_msg {
	uint16_t len;
	bool	 probe;		/* to the data port; ... */
	bool	 twice;		/* ... as a batch of two, if that is possible */
	uint8_t	 buf[SAINA_CTRL_LEN];
};

#define SAINA_JOIN_PROBES 25

/**
 * struct saina_session
 * @named: the job's name, by which it is joined as long as its number is not known, or empty
 * @workers: how many the job must have, or 0
 * @wanted: identifier, or SAINA_WORKER_ANY; @join_ms, @start_ms, @silence_ms: as in
 *	struct saina_opts, defaults filled in
 * @address, @port, @ifname, @mtu, @gro: of the aggregator and our interface, to be talked
 *	about; @gro 0 is off, 1 on, negative unknown
 * @spare_nonce: random, not 0; whoever finds 0 there fills it
 * @round: the next this worker will send
 * @changed: phase or gone have
 * @error: why it failed; @refusal: why it was refused last
 * @out: messages to send, to be taken by saina_join_output()
 */
struct saina_session {
	struct saina_job job;
	struct saina_join body;
	char	 named[SAINA_NAME_LEN];
	unsigned int workers;
	uint8_t	 wanted;
	int	 join_ms, start_ms, silence_ms;
	const char *address, *ifname;
	unsigned int port, mtu;
	int	 gro;
	uint64_t spare_nonce;
	uint32_t round;
	struct saina_report report;	/* of the next heartbeat */

	enum saina_phase phase;
	int	 err;
	bool	 changed;
	char	 error[256], refusal[SAINA_TEXT_LEN];
	struct saina_notes notes;

	uint64_t active, active_ns;	/* as the last STATUS said, and when */
	bool	 relayed;
	uint16_t timeout_ms;		/* of the policy, as the last STATUS said */
	uint32_t next_round;
	uint32_t board;		/* STATUS: of the job, 0: messages */
	uint64_t rtt_ns;
	uint64_t rejoins;

	uint64_t heard_ns;	/* last valid message of any kind */
	enum saina_unreached unreached;	/* while JOINING */
	enum saina_loop loop;		/* before READY */
	int	 unsent, ctrl_unsent;	/* as in saina_join_refused() */
	uint64_t sent_ns;	/* @unsent since then */
	uint64_t opened_ns, admitted_ns, since_ns;	/* since: of this phase */
	uint64_t next_ns;	/* when to act again */
	uint64_t heartbeat_ns;	/* when the last one left */
	uint64_t probe_ns[SAINA_JOIN_PROBES];	/* when probe i left */
	unsigned int tries;
	bool	 fast;		/* a probe was answered */
	uint32_t probe, proved;	/* STATUS's number of a test to be made; of one that went well */
	bool	 batched;	/* probes went as batches */
	bool	 batches;	/* ... and they get through */
	int	 refused;	/* refused TAKEN or PORT, that errno; trying again */
	bool	 again;		/* has been RUNNING before */
	bool	 gone;		/* LEAVE was answered */
	bool	 waiting;	/* said that the job waits for workers */

	unsigned int out_n;
	struct saina_join_msg out[4];
};

void saina_join_start(struct saina_session *j, uint64_t now);
void saina_join_leave(struct saina_session *j, uint64_t now);
/* timeout.c: what the kernel refuses to send, by errno (0: nothing): trains; messages to the agent and probes. */
void saina_join_refused(struct saina_session *j, int err, int ctrl_err, uint64_t now);
/* For good. */
void saina_join_fail(struct saina_session *j, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Admitted, but without the means: fails and says LEAVE. */
void saina_join_abort(struct saina_session *j, int err, const char *text);

/* A control message or PROBE_REPLY that saina_check() has let through. */
enum saina_join_event saina_join_input(struct saina_session *j, const struct saina_hdr *h,
				       uint64_t now);
/* Time passes: returns when to come back at the latest. */
uint64_t saina_join_run(struct saina_session *j, uint64_t now);
/* Takes a message to send out of @out; false if there is none (any more). */
bool saina_join_output(struct saina_session *j, struct saina_join_msg *m);

/* Is the number of the job still to be told by WELCOME? */
static inline bool saina_join_numberless(const struct saina_session *j)
{
	return j->named[0] && !j->job.segments;
}

/* Results are taken while it runs, and while a worker that ran joins again. */
static inline bool saina_join_listening(const struct saina_session *j)
{
	return j->phase == PHASE_RUNNING || (j->again && j->phase < PHASE_LEAVING);
}

/* timeout.c: has it waited for too long?  Then it has failed.  And sentences: */
bool saina_join_timed_out(struct saina_session *j, uint64_t now);
void saina_join_explain_slow(struct saina_session *j);
void saina_join_explain_mtu(const struct saina_session *j, char *text, size_t size);

/* check.c: is this message well formed, from the aggregator and for us? */
bool saina_check(const struct saina_session *j, enum saina_source from, const void *msg,
		 size_t len);

#endif /* SAINA_JOIN_H */
