// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdio.h>
#include <string.h>

#include "agent/control/encode.h"
#include "agent/ports/ports.h"
#include "agent/uplink/uplink.h"
#include "core/show.h"
#include "ctl/obj.h"

void msg_start(struct msg *m, int cmd, int flags, unsigned int seq)
{
	struct genlmsghdr *g;

	m->nlh = mnl_nlmsg_put_header(m->buf);
	m->nlh->nlmsg_type = SAINA_NLMSG_TYPE;
	m->nlh->nlmsg_flags = flags;
	m->nlh->nlmsg_seq = seq;
	g = mnl_nlmsg_put_extra_header(m->nlh, sizeof(*g));
	g->cmd = cmd;
	g->version = SAINA_FAMILY_VERSION;
}

/* Adds the data path's view of the job, if it has this generation. */
static void put_job_rt(struct agent *a, const struct saina_job *job, struct saina_job_attrs *o)
{
	struct saina_job_rt rt;

	if (!jobs_rt(a, job, &rt))
		return;
	SAINA_PUT(o, SAINA_A_JOB_ROUND, round, rt.next_round);
	SAINA_PUT(o, SAINA_A_JOB_K, k, rt.k);
	saina_job_show_in_force(rt.policy.seq, o);
	if (rt.policy.seq) {
		saina_policy_show(&rt.policy, &o->policy_active);
		SAINA_SET(o, SAINA_A_JOB_POLICY_ACTIVE);
	}
	SAINA_PUT(o, SAINA_A_JOB_SFCD_CONVERGED, sfcd_converged, rt.converged);
	SAINA_PUT(o, SAINA_A_JOB_SFCD_FLIPS, sfcd_flips, rt.last_flips);
	SAINA_PUT(o, SAINA_A_JOB_SFCD_OBSERVED, sfcd_observed, rt.last_observed);
	memcpy(o->count, rt.count, sizeof(o->count));
	SAINA_SET(o, SAINA_A_JOB_COUNT);
	SAINA_PUT(o, SAINA_A_JOB_OPEN_SLOTS, open_slots, rt.open_slots);
}

/* Both, if there is room: a worker's trouble, and that the state is not saved. */
static bool job_trouble(struct agent *a, const struct saina_job *job, char *why, size_t size)
{
	bool found = a->jobs->aux[job->id] && diagnose_job(a, job, why, size);
	size_t n = found ? strlen(why) : 0;

	if (a->jobs->unsaved_why[0])
		snprintf(why + n, size - n, "%s%.150s", n ? "; " : "", a->jobs->unsaved_why);
	return found || a->jobs->unsaved_why[0];
}

void encode_job(struct msg *m, struct agent *a, const struct saina_job *job, bool tokens)
{
	const struct detached_job *detached = backend_detached(a, job->id);
	struct saina_job_attrs o;
	char why[SAINA_TEXT_LEN];

	saina_job_show(job, tokens, &o);
	put_job_rt(a, job, &o);
	if (job->by_reference && a->jobs->aux[job->id]) {
		shm_output_id(a, job, why, sizeof(why));
		SAINA_PUT_TEXT(&o, SAINA_A_JOB_REFERENCE, reference, why);
	}
	if (saina_job_has_uplink(job))
		uplink_show(a, job, &o.uplink);
	if (detached)
		SAINA_PUT_TEXT(&o, SAINA_A_JOB_TEXT, text, detached->text);
	if (job_trouble(a, job, why, sizeof(why)))
		SAINA_PUT_TEXT(&o, SAINA_A_JOB_TROUBLE, trouble, why);
	saina_ctl_encode(m->nlh, &saina_job_class, &o);
}

static void worker_arrivals(struct agent *a, const struct saina_job *job, int w,
			    struct saina_worker_attrs *o)
{
	struct saina_arrival at;

	if (saina_dp_arrival(a->dp, job->id, w, &at) || !at.n)
		return;
	SAINA_PUT(o, SAINA_A_WORKER_ARRIVALS, arrivals, at.n);
	SAINA_PUT(o, SAINA_A_WORKER_ARRIVAL_US, arrival_us, at.sum_us);
	SAINA_PUT(o, SAINA_A_WORKER_ARRIVAL_LAST_US, arrival_last_us, at.last_us);
	memcpy(o->arrival_hist, at.hist, sizeof(o->arrival_hist));
	SAINA_SET(o, SAINA_A_WORKER_ARRIVAL_HIST);
}

void encode_worker(struct msg *m, struct agent *a, const struct saina_job *job, int w,
		   bool secret)
{
	const struct link *link = links_by_index(&a->bridge->links, job->worker[w].bind.ifindex);
	const struct worker_aux *aux;
	struct saina_worker_attrs o;
	char why[SAINA_TEXT_LEN];

	saina_worker_show(job, w, secret, &o);
	if (link)
		SAINA_PUT_TEXT(&o, SAINA_A_WORKER_IFNAME, ifname, link->name);
	if (a->jobs->aux[job->id] && job->worker[w].state != SAINA_WORKER_STATE_ABSENT) {
		aux = jobs_worker(a, job, w);
		if (aux->last_heard)
			SAINA_PUT(&o, SAINA_A_WORKER_SEEN_MS, seen_ms,
				  (loop_now() - aux->last_heard) / NSEC_PER_MSEC);
		SAINA_PUT(&o, SAINA_A_WORKER_ROUND, round, aux->round);
		if (aux->reported) {
			SAINA_PUT(&o, SAINA_A_WORKER_SENT, sent, aux->sent);
			SAINA_PUT(&o, SAINA_A_WORKER_RESENT, resent, aux->resent);
			SAINA_PUT(&o, SAINA_A_WORKER_RTT_US, rtt_us, aux->rtt_us);
			SAINA_PUT(&o, SAINA_A_WORKER_WINDOW, window, aux->window);
		}
		if (diagnose_worker(a, job, w, why, sizeof(why)))
			SAINA_PUT_TEXT(&o, SAINA_A_WORKER_TROUBLE, trouble, why);
	}
	worker_arrivals(a, job, w, &o);
	saina_ctl_encode(m->nlh, &saina_worker_class, &o);
}

/* The state of the port, and the workers behind it whose results take the slow path. */
static void port_text(const struct port *p, uint32_t relayed, char *text, size_t size)
{
	const char *why = p->mode == SAINA_PORT_MODE_TC ?
		"other ports of the job have XDP" :
		"redirected frames do not reach them (`saina doctor`)";
	int n = snprintf(text, size, "%s", p->text);

	if (relayed && n >= 0 && n < (int)size)
		snprintf(text + n, size - n, "%sresults take the slow path to %u workers: %s",
			 n ? "; " : "", relayed, why);
}

void encode_port(struct msg *m, struct agent *a, const struct port *p)
{
	struct saina_port_conf conf = { 0 };
	struct saina_port_attrs o = { 0 };
	char text[SAINA_TEXT_LEN];

	members_on_port(a, p->ifindex, &o.workers, &o.relayed);
	SAINA_SET(&o, SAINA_A_PORT_WORKERS);
	SAINA_SET(&o, SAINA_A_PORT_RELAYED);
	SAINA_PUT(&o, SAINA_A_PORT_IFINDEX, ifindex, p->ifindex);
	SAINA_PUT_TEXT(&o, SAINA_A_PORT_IFNAME, ifname, p->name);
	SAINA_PUT(&o, SAINA_A_PORT_MODE, mode, p->mode);
	SAINA_PUT(&o, SAINA_A_PORT_HOOK, hook, p->hook_requested);
	SAINA_PUT_TEXT(&o, SAINA_A_PORT_DRIVER, driver, p->driver);
	SAINA_PUT(&o, SAINA_A_PORT_MTU, mtu, p->mtu);
	SAINA_PUT(&o, SAINA_A_PORT_JUMBO, jumbo, a->jumbo);
	if (p->mode != SAINA_PORT_MODE_NONE && !saina_dp_port_get(a->dp, p->ifindex, &conf)) {
		SAINA_PUT(&o, SAINA_A_PORT_LOSS_IN, loss_in, conf.loss_in);
		SAINA_PUT(&o, SAINA_A_PORT_LOSS_OUT, loss_out, conf.loss_out);
		SAINA_PUT(&o, SAINA_A_PORT_SEED, seed, conf.seed);
	}
	port_text(p, o.relayed, text, sizeof(text));
	if (text[0])
		SAINA_PUT_TEXT(&o, SAINA_A_PORT_TEXT, text, text);
	saina_ctl_encode(m->nlh, &saina_port_class, &o);
}

void encode_slot(struct msg *m, const struct saina_job *job, uint32_t index,
		 const struct saina_slot_meta *meta)
{
	struct saina_slot_attrs o = { 0 };
	uint64_t now = loop_now();

	SAINA_PUT(&o, SAINA_A_SLOT_JOB_ID, job_id, job->id);
	SAINA_PUT_TEXT(&o, SAINA_A_SLOT_JOB_NAME, job_name, job->name);
	SAINA_PUT(&o, SAINA_A_SLOT_INDEX, index, index);
	SAINA_PUT(&o, SAINA_A_SLOT_ROUND, round, meta->round);
	SAINA_PUT(&o, SAINA_A_SLOT_SEGMENT, segment, meta->segment);
	SAINA_PUT(&o, SAINA_A_SLOT_COUNT, count, meta->count);
	SAINA_PUT(&o, SAINA_A_SLOT_K, k, meta->k);
	SAINA_PUT(&o, SAINA_A_SLOT_SEEN, seen, meta->seen);
	SAINA_PUT(&o, SAINA_A_SLOT_MISSING, missing, diagnose_slot(job, meta));
	SAINA_PUT(&o, SAINA_A_SLOT_AGE_US, age_us,
	    now > meta->opened_at ? (now - meta->opened_at) / 1000 : 0);
	SAINA_PUT(&o, SAINA_A_SLOT_POLICY, policy, meta->policy);
	saina_ctl_encode(m->nlh, &saina_slot_class, &o);
}

void encode_stats(struct msg *m, const struct saina_job *job, int w, const struct saina_counters *c)
{
	struct saina_stats_attrs o = { 0 };

	if (job) {
		SAINA_PUT(&o, SAINA_A_STATS_JOB_ID, job_id, job->id);
		SAINA_PUT_TEXT(&o, SAINA_A_STATS_JOB_NAME, job_name, job->name);
		SAINA_PUT(&o, SAINA_A_STATS_WORKER, worker, w);
	}
	memcpy(o.counters, c->c, sizeof(c->c));
	SAINA_SET(&o, SAINA_A_STATS_COUNTERS);
	saina_ctl_encode(m->nlh, &saina_stats_class, &o);
}

void encode_limits(struct msg *m, struct agent *a)
{
	struct saina_limits_attrs o;

	saina_limits_show(a->jobs->core, a->backend->ops->owner, &o);
	SAINA_PUT_TEXT(&o, SAINA_A_LIMITS_BRIDGE, bridge, a->cfg.bridge);
	if (a->bridge->ovs)
		SAINA_PUT_TEXT(&o, SAINA_A_LIMITS_OVSDB, ovsdb, a->cfg.ovsdb);
	saina_ctl_encode(m->nlh, &saina_limits_class, &o);
}

void encode_event(struct msg *m, const struct saina_event *ev, const char *job, const char *text)
{
	struct saina_event_attrs o;

	saina_event_show(ev, job, &o);
	if (text)
		SAINA_PUT_TEXT(&o, SAINA_A_EVENT_TEXT, text, text);
	saina_ctl_encode(m->nlh, &saina_event_class, &o);
}
