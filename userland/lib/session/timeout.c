// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * How long a worker waits for the agent, for results and for its own kernel, and what it says when
 * it gives up.
 */
#include <errno.h>
#include "timeout.h"

void saina_session_explain_slow(struct saina_session *j)
{
	if (j->loop == SAINA_LOOP_SENT)
		saina_note(&j->notes,
			   "results by multicast do not reach this worker, the agent relays them "
			   "(slower): a firewall here drops what comes to %s for UDP port %u "
			   "(group " SAINA_GROUP_FMT
			   "). Allow it (`nft insert rule inet TABLE CHAIN udp dport %u "
			   "accept`, or `iptables -I INPUT -p udp --dport %u -j ACCEPT`) and join "
			   "again",
			   j->ifname, SAINA_PORT_RESULT, SAINA_GROUP_ARGS(j->job.group),
			   SAINA_PORT_RESULT, SAINA_PORT_RESULT);
	else if (!j->gro)
		saina_note(
			&j->notes,
			"results cannot be redirected to %s, the agent relays them "
			"(slower): generic receive offload is off here, and without it a veth "
			"drops redirected frames. Turn it on with `ethtool -K %s gro on` in this "
			"container and join again",
			j->ifname, j->ifname);
	else
		saina_note(&j->notes,
			   "results cannot be redirected to %s, the agent relays them "
			   "(slower): none of %u probes was answered. If %s is a veth, `ethtool -K %s "
			   "gro on` in this container gives it the NAPI it needs; see `saina "
			   "doctor` on the host",
			   j->ifname, SAINA_SESSION_PROBES, j->ifname, j->ifname);
}

void saina_session_explain_mtu(const struct saina_session *j, char *text, size_t size)
{
	size_t len = j->job.msglen + SAINA_IP_UDP_LEN;

	snprintf(text, size,
		 "interface %s has MTU %u, job %u sends packets of %zu bytes: raise the "
		 "MTU (here and on the host's side) or give the job a smaller payload",
		 j->ifname, j->mtu, j->job.id, len);
}

void saina_session_send_errors(struct saina_session *j, int err, int ctrl_err, uint64_t now)
{
	if (!err || !j->unsent)
		j->sent_ns = now;
	j->unsent = err;
	j->ctrl_unsent = ctrl_err;
}

/* Writes why the kernel refuses to send. */
static void explain_refusal(const struct saina_session *j, int err, int ms, char *text, size_t size)
{
	char firewall[96];

	snprintf(firewall, sizeof(firewall),
		 ": a firewall here rejects or drops it: let UDP to ports %u and %u out",
		 SAINA_PORT_DATA, j->port);
	snprintf(text, size, "nothing could be sent to %s by %s for %d ms: %s%s", j->address,
		 j->ifname, ms, strerror(err),
		 err == EPERM ? firewall
		 : err == ENETUNREACH || err == EHOSTUNREACH
			 ? ": give this host a route to that address (`ip route get' shows the present "
			   "one; an interface that is down has none)"
		 : err == ENETDOWN || err == ENODEV || err == ENXIO
			 ? ": is the interface up, and does it have an address?"
			 : "");
}

/* Writes why nobody answers a JOIN. */
static const char *explain_silence(const struct saina_session *j, char *text, size_t size)
{
	char number[8];
	const char *job = j->named[0] ? j->named : number;

	snprintf(number, sizeof(number), "%u", j->job.id);
	if (j->ctrl_unsent)
		explain_refusal(j, j->ctrl_unsent, j->join_ms, text, size);
	else if (j->unreached == SAINA_UNREACHED_CLOSED)
		snprintf(text, size,
			 "%s answers that its UDP port %u is closed: is sainad running there with "
			 "job %s? "
			 "If it is, a firewall there rejects the port (`saina doctor` there): "
			 "allow it",
			 j->address, j->port, job);
	else if (j->unreached == SAINA_UNREACHED_FILTERED)
		snprintf(text, size,
			 "a firewall at %s rejects UDP port %u: allow it there (`saina doctor` "
			 "there says how)",
			 j->address, j->port);
	else if (j->unreached == SAINA_UNREACHED_NOBODY)
		snprintf(text, size,
			 "no host answers at %s: is that the address of sainad's bridge, and is "
			 "this interface (%s) on that bridge, by a port that forwards (`saina doctor` there)?",
			 j->address, j->ifname);
	else
		snprintf(text, size,
			 "no answer from %s:%u within %d ms, and nothing says that the port is "
			 "closed: does a "
			 "firewall there drop it (`saina doctor` there), is sainad running there "
			 "with job %s, is "
			 "this interface (%s) on its bridge?",
			 j->address, j->port, j->join_ms, job, j->ifname);
	return text;
}

void saina_session_missing(const struct saina_session *j, char *text, size_t size)
{
	uint64_t missing =
		(j->job.workers < 64 ? (1ull << j->job.workers) - 1 : ~0ull) & ~j->active;
	bool one = !(missing & (missing - 1));
	/* of a root's workers some may stand for several ranks */
	unsigned int first = j->job.depth ? j->job.rank - j->job.worker : 0;
	char ranks[200];
	size_t len = 0;

	*text = 0;
	for (int w = 0; missing >> w && len < sizeof(ranks); w++) {
		if (missing >> w & 1)
			len += snprintf(ranks + len, sizeof(ranks) - len, "%s%d", len ? ", " : "",
					first + w);
		if (w == 63)
			break;
	}
	if (missing)
		snprintf(text, size, "%d of %u are here; rank%s %s %s missing",
			 __builtin_popcountll(j->active), j->job.workers, one ? "" : "s", ranks,
			 one ? "is" : "are");
}

void saina_session_awaited(const struct saina_session *j, char *text, size_t size)
{
	size_t len;

	saina_session_missing(j, text, size);
	len = strlen(text);
	if (len && j->reason[0])
		snprintf(text + len, size - len, ": %s", j->reason);
}

/* Fails if the kernel has refused to send for too long. */
static bool cannot_send(struct saina_session *j, uint64_t now)
{
	bool size = j->unsent == EMSGSIZE && j->mtu < j->job.msglen + SAINA_IP_UDP_LEN;
	int64_t ms = size ? j->job.dead_ms : j->silence_ms;
	char text[sizeof(j->error)];

	if (!j->unsent || j->phase < PHASE_FORMING || j->phase > PHASE_REREADYING || ms <= 0 ||
	    now < j->sent_ns + ms * MSEC)
		return false;
	if (size)
		saina_session_explain_mtu(j, text, sizeof(text));
	else
		explain_refusal(j, j->unsent, ms, text, sizeof(text));
	/* LEAVE, so that other workers do not wait for this one */
	saina_session_abort(j, -j->unsent, text);
	return true;
}

bool saina_session_timed_out(struct saina_session *j, uint64_t now)
{
	char text[sizeof(j->error)];

	/* PHASE_PROBING has a limit of its own. */
	if (j->join_ms > 0 &&
	    ((j->phase == PHASE_JOINING && now > j->opened_ns + j->join_ms * MSEC) ||
	     (j->phase == PHASE_READYING && now > j->since_ns + j->join_ms * MSEC))) {
		if (j->refused)
			saina_session_fail(j, j->refused, "%s", j->refusal);
		else
			saina_session_fail(j, -ETIMEDOUT, "%s",
					   explain_silence(j, text, sizeof(text)));
		return true;
	}
	if (j->join_ms > 0 && j->phase == PHASE_REJOINING && j->refused &&
	    now > j->since_ns + j->join_ms * MSEC) {
		saina_session_fail(j, -ECONNRESET, "%s", j->refusal);
		return true;
	}
	if ((j->phase == PHASE_FORMING || j->phase == PHASE_CONFIRMING) && !j->again &&
	    j->start_ms > 0 && now > j->admitted_ns + j->start_ms * MSEC) {
		char missing[sizeof(text) - 80];

		saina_session_awaited(j, missing, sizeof(missing));
		snprintf(text, sizeof(text), "job %u still waits for its workers after %d ms: %s",
			 j->job.id, j->start_ms, missing);
		/* LEAVE, so that the place in the job is free at once */
		saina_session_abort(j, -ETIMEDOUT, text);
		return true;
	}
	if (j->phase >= PHASE_FORMING && j->phase <= PHASE_REREADYING && j->silence_ms > 0 &&
	    now > j->heard_ns + j->silence_ms * MSEC) {
		if (j->ctrl_unsent)
			explain_refusal(j, j->ctrl_unsent, j->silence_ms, text, sizeof(text));
		else
			snprintf(text, sizeof(text),
				 "nothing heard from %s for %d ms: is the host up, and is sainad "
				 "running there?",
				 j->address, j->silence_ms);
		saina_session_fail(j, -ETIMEDOUT, "%s", text);
		return true;
	}
	return cannot_send(j, now);
}
