/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* The state of the session with the agent, and the messages that wait in it to be sent. */
#ifndef SAINA_SESSION_STATE_H
#define SAINA_SESSION_STATE_H

#include "wire/job.h"

/* Where this worker stands with the agent; session.c draws the transitions. */
enum saina_phase {
	PHASE_JOINING,		/* JOIN sent */
	PHASE_PROBING,		/* WELCOME came; do results reach us? */
	PHASE_READYING,		/* READY sent */
	PHASE_FORMING,		/* waits for the other workers */
	PHASE_CONFIRMING,	/* job runs; asks for the first round */
	PHASE_RUNNING,
	PHASE_REJOINING,	/* was RUNNING, the agent forgot us: JOIN sent */
	PHASE_REREADYING,
	PHASE_LEAVING,
	PHASE_FAILED,
};

/* Why a JOIN did not arrive, by ICMP; or by this host's kernel, if ARP fails. */
enum saina_unreached {
	SAINA_UNREACHED_NOT,
	SAINA_UNREACHED_CLOSED,		/* nobody has that port */
	SAINA_UNREACHED_FILTERED,	/* administratively prohibited */
	SAINA_UNREACHED_NOBODY,		/* there is no such host */
};

/* Does this host's firewall accept the multicast group?  A message from itself shows it. */
enum saina_loop {
	SAINA_LOOP_UNKNOWN,
	SAINA_LOOP_SENT,
	SAINA_LOOP_HEARD,
};

/* Prints a multicast group. */
#define SAINA_GROUP_FMT "%u.%u.%u.%u"
#define SAINA_GROUP_ARGS(g) (g) >> 24, (g) >> 16 & 0xff, (g) >> 8 & 0xff, (g) & 0xff

struct saina_session_msg {
	uint16_t len;
	bool	 probe;		/* to the data port; ... */
	bool	 twice;		/* ... as a batch of two, if that is possible */
	uint8_t	 buf[SAINA_CTRL_LEN];
};

#define SAINA_SESSION_PROBES 25

/**
 * struct saina_session
 * @job: as WELCOME gave it
 * @body: of JOIN
 * @named: name to join by while the job's number is unknown, or empty
 * @tree: JOIN says TREE: the agent has asked for that, or the caller knows
 * @no_results: this worker takes none, so their path is not probed
 * @is_node: JOIN says NODE, with what @node has beside @node.named; @tree must be set, too
 * @workers: how many the job, or its tree, must have, or 0
 * @wanted: identifier to ask for, or SAINA_WORKER_ANY
 * @wanted_rank: 1 + the rank to ask for, among @workers; 0: @wanted says all
 * @join_ms: as in struct saina_opts, defaults filled in
 * @start_ms: likewise
 * @silence_ms: likewise
 * @address: of the aggregator, for messages
 * @ifname: our interface, for messages
 * @port: of the aggregator, for messages
 * @mtu: of our interface
 * @gro: is GRO on at our interface?  Negative: unknown
 * @spare_nonce: random; the caller replaces a 0
 * @round: the next that this worker will send
 * @report: for the next heartbeat
 * @phase: of the session
 * @err: why it failed, a negative errno
 * @changed: @phase or @gone has changed
 * @error: why it failed
 * @refusal: why the agent refused it last
 * @notes: lines for the user
 * @active: mask of live workers, of the last STATUS
 * @missing, @missing_round: mask of the live workers that this open round has long waited for, of
 *	the last STATUS
 * @reason: what keeps those away that the round, or the job, waits for, of the last STATUS
 * @active_ns: when that came
 * @relayed: the agent relays results
 * @timeout_ms: of the policy, of the last STATUS
 * @next_round: of the last STATUS
 * @output_id: the job's output array, of the last STATUS; 0: use messages
 * @rtt_ns: of the probe that was answered
 * @rejoins: so far
 * @heard_ns: when any valid message came last
 * @unreached: ICMP error of the JOIN
 * @loop: of the multicast group, before READY
 * @unsent: errno with which the kernel refuses batches, or 0
 * @ctrl_unsent: likewise messages to the agent and probes
 * @sent_ns: since when @unsent holds
 * @opened_ns: when the session started
 * @admitted_ns: when WELCOME came
 * @since_ns: when @phase began
 * @next_ns: when to act again
 * @heartbeat_ns: when the last one was sent
 * @probe_ns: when each probe was sent
 * @tries: messages or probes of this phase
 * @fast: a probe was answered: results reach this worker by redirect
 * @probe: id of the path probe that the last STATUS asks for; 0: none
 * @proved: id of the path probe that was answered
 * @batched: probes were sent as batches
 * @batches: probes sent as batches were answered
 * @refused: errno of a refusal that may be temporary: JOIN is repeated
 * @again: this worker has been RUNNING before
 * @gone: LEAVE was answered
 * @waiting_ns: time of the next note that the job waits for workers; 0: not yet
 * @out_n: messages in @out
 * @out: messages to send, taken by saina_session_output()
 */
struct saina_session {
	struct saina_job job;
	struct saina_join body;
	char	 named[SAINA_NAME_LEN];
	bool	 tree, is_node, no_results;
	struct saina_join_node node;
	unsigned int workers;
	uint8_t	 wanted;
	uint32_t wanted_rank;
	int	 join_ms, start_ms, silence_ms;
	const char *address, *ifname;
	unsigned int port, mtu;
	int	 gro;
	uint64_t spare_nonce;
	uint32_t round;
	struct saina_report report;

	enum saina_phase phase;
	int	 err;
	bool	 changed;
	char	 error[256], refusal[SAINA_TEXT_LEN];
	struct saina_notes notes;

	uint64_t active, active_ns, missing;
	uint32_t missing_round;
	char	 reason[SAINA_STATUS_TEXT_LEN];
	bool	 relayed;
	uint16_t timeout_ms;
	uint32_t next_round;
	uint32_t output_id;
	uint64_t rtt_ns;
	uint64_t rejoins;

	uint64_t heard_ns;
	enum saina_unreached unreached;
	enum saina_loop loop;
	int	 unsent, ctrl_unsent;
	uint64_t sent_ns;
	uint64_t opened_ns, admitted_ns, since_ns;
	uint64_t next_ns;
	uint64_t heartbeat_ns;
	uint64_t probe_ns[SAINA_SESSION_PROBES];
	unsigned int tries;
	bool	 fast;
	uint32_t probe, proved;
	bool	 batched;
	bool	 batches;
	int	 refused;
	bool	 again;
	bool	 gone;
	uint64_t waiting_ns;

	unsigned int out_n;
	struct saina_session_msg out[4];
};

/* A new message in @out, all 0 but for its header; without room it replaces the last one. */
struct saina_session_msg *saina_session_message(struct saina_session *j, int type);
/* The session has failed for good. */
void saina_session_fail(struct saina_session *j, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Likewise, and a LEAVE tells the agent. */
void saina_session_abort(struct saina_session *j, int err, const char *text);

/* Takes the next message to send; false if there is none. */
bool saina_session_output(struct saina_session *j, struct saina_session_msg *m);

/* Does it join by name, and has not got the number of the job from WELCOME yet? */
static inline bool saina_session_by_name(const struct saina_session *j)
{
	return j->named[0] && !j->job.segments;
}

/* Are results taken?  They are while the job runs, and while a worker that ran joins again. */
static inline bool saina_session_listening(const struct saina_session *j)
{
	return j->phase == PHASE_RUNNING || (j->again && j->phase < PHASE_LEAVING);
}

#endif /* SAINA_SESSION_STATE_H */
