// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "agent/control/encode.h"
#include "core/policy_text.h"

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

static void put_policy(struct nlmsghdr *nlh, int attr, const struct saina_policy *p)
{
	char text[SAINA_POLICY_TEXT_LEN];

	saina_policy_format(p, text, sizeof(text));
	mnl_attr_put_strz(nlh, attr, text);
}

void encode_job_config(struct nlmsghdr *nlh, const struct saina_job *job, bool tokens)
{
	char token[SAINA_TOKEN_LEN + 1] = "";

	mnl_attr_put_u16(nlh, SAINA_A_JOB_ID, job->id);
	mnl_attr_put_strz(nlh, SAINA_A_JOB_NAME, job->name);
	mnl_attr_put_u8(nlh, SAINA_A_JOB_STATE, job->state);
	mnl_attr_put_u64(nlh, SAINA_A_JOB_ELEMENTS, job->elements);
	mnl_attr_put_u8(nlh, SAINA_A_JOB_WORKERS, job->workers);
	mnl_attr_put_u16(nlh, SAINA_A_JOB_PAYLOAD, job->payload);
	mnl_attr_put_u32(nlh, SAINA_A_JOB_POOL, job->pool);
	mnl_attr_put_u32(nlh, SAINA_A_JOB_RING, job->ring);
	mnl_attr_put_u8(nlh, SAINA_A_JOB_ELEM_TYPE, job->elem);
	mnl_attr_put_u8(nlh, SAINA_A_JOB_EXPONENT, job->exponent);
	put_policy(nlh, SAINA_A_JOB_POLICY, &job->policy);
	if (tokens && job->token[0]) {
		memcpy(token, job->token, SAINA_TOKEN_LEN);
		mnl_attr_put_strz(nlh, SAINA_A_JOB_TOKEN, token);
	}
	mnl_attr_put_u16(nlh, SAINA_A_JOB_HEARTBEAT_MS, job->heartbeat_ms);
	mnl_attr_put_u16(nlh, SAINA_A_JOB_DEAD_MS, job->dead_ms);
	mnl_attr_put_u32(nlh, SAINA_A_JOB_GENERATION, job->generation);
	mnl_attr_put_u32(nlh, SAINA_A_JOB_POLICY_SEQ, job->policy.seq);
}

/* What the data path says; nothing if it has not seen this generation. */
static void encode_job_rt(struct nlmsghdr *nlh, struct agent *a, const struct saina_job *job)
{
	struct saina_job_rt rt;

	if (saina_dp_job_rt(a->dp, job->id, &rt) || rt.generation != job->generation)
		return;
	mnl_attr_put_u32(nlh, SAINA_A_JOB_ROUND, rt.next_round);
	mnl_attr_put_u8(nlh, SAINA_A_JOB_K, rt.k);
	mnl_attr_put_u32(nlh, SAINA_A_JOB_POLICY_SEQ_ACTIVE, rt.policy.seq);
	if (rt.policy.seq)
		put_policy(nlh, SAINA_A_JOB_POLICY_ACTIVE, &rt.policy);
	mnl_attr_put_u32(nlh, SAINA_A_JOB_SFCD_CONVERGED, rt.converged);
	mnl_attr_put_u64(nlh, SAINA_A_JOB_SFCD_FLIPS, rt.last_flips);
	mnl_attr_put_u64(nlh, SAINA_A_JOB_SFCD_OBSERVED, rt.last_observed);
	mnl_attr_put_u64(nlh, SAINA_A_JOB_POLICY_MIX, rt.policy_mix);
	mnl_attr_put_u32(nlh, SAINA_A_JOB_OPEN_SLOTS, rt.open_slots);
}

static void encode_job_text(struct nlmsghdr *nlh, struct agent *a, const struct saina_job *job)
{
	const struct plane_stuck *stuck = a->plane->stuck[job->id];

	if (stuck)
		mnl_attr_put_strz(nlh, SAINA_A_JOB_TEXT, stuck->text);
}

void encode_job(struct msg *m, struct agent *a, const struct saina_job *job, bool tokens)
{
	struct nlattr *nest = mnl_attr_nest_start(m->nlh, SAINA_A_JOB);

	encode_job_config(m->nlh, job, tokens);
	mnl_attr_put_u32(m->nlh, SAINA_A_JOB_SEGMENTS, job->segments);
	mnl_attr_put_u64(m->nlh, SAINA_A_JOB_MEMORY, job->memory);
	mnl_attr_put_u64(m->nlh, SAINA_A_JOB_ACTIVE, job->active);
	encode_job_rt(m->nlh, a, job);
	encode_job_text(m->nlh, a, job);
	mnl_attr_nest_end(m->nlh, nest);
}

void encode_worker_binding(struct nlmsghdr *nlh, const struct saina_job *job, int w)
{
	const struct saina_worker *wk = &job->worker[w];

	mnl_attr_put_u16(nlh, SAINA_A_WORKER_JOB_ID, job->id);
	mnl_attr_put_strz(nlh, SAINA_A_WORKER_JOB_NAME, job->name);
	mnl_attr_put_u8(nlh, SAINA_A_WORKER_ID, w);
	mnl_attr_put_strz(nlh, SAINA_A_WORKER_NAME, wk->name);
	mnl_attr_put_u8(nlh, SAINA_A_WORKER_STATE, wk->state);
	if (!(wk->bind.flags & SAINA_BIND_BOUND))
		return;
	mnl_attr_put_u32(nlh, SAINA_A_WORKER_IFINDEX, wk->bind.ifindex);
	mnl_attr_put_u32(nlh, SAINA_A_WORKER_IP, wk->bind.ip);
	mnl_attr_put(nlh, SAINA_A_WORKER_MAC, sizeof(wk->bind.mac), wk->bind.mac);
	mnl_attr_put_u16(nlh, SAINA_A_WORKER_UDP_PORT, wk->bind.udp_port);
	mnl_attr_put_u64(nlh, SAINA_A_WORKER_SESSION, wk->bind.session);
	mnl_attr_put_u8(nlh, SAINA_A_WORKER_RELAY, !!(wk->bind.flags & SAINA_BIND_RELAY));
}

void encode_worker(struct msg *m, struct agent *a, const struct saina_job *job, int w)
{
	struct nlattr *nest = mnl_attr_nest_start(m->nlh, SAINA_A_WORKER);
	const struct link *link = links_by_index(&a->bridge->links, job->worker[w].bind.ifindex);
	const struct worker_aux *aux;

	encode_worker_binding(m->nlh, job, w);
	if (link)
		mnl_attr_put_strz(m->nlh, SAINA_A_WORKER_IFNAME, link->name);
	if (a->jobs->aux[job->id] && job->worker[w].state != SAINA_WORKER_STATE_ABSENT) {
		aux = jobs_worker(a, job, w);
		if (aux->heard)
			mnl_attr_put_u32(m->nlh, SAINA_A_WORKER_SEEN_MS,
					 (loop_now() - aux->heard) / NSEC_PER_MSEC);
		mnl_attr_put_u32(m->nlh, SAINA_A_WORKER_ROUND, aux->round);
	}
	mnl_attr_nest_end(m->nlh, nest);
}

void encode_port(struct msg *m, struct agent *a, const struct port *p)
{
	struct nlattr *nest = mnl_attr_nest_start(m->nlh, SAINA_A_PORT);
	struct saina_port_conf conf = { 0 };
	uint32_t workers, relayed;

	workers_on_port(a, p->ifindex, &workers, &relayed);
	mnl_attr_put_u32(m->nlh, SAINA_A_PORT_IFINDEX, p->ifindex);
	mnl_attr_put_strz(m->nlh, SAINA_A_PORT_IFNAME, p->name);
	mnl_attr_put_u8(m->nlh, SAINA_A_PORT_MODE, p->mode);
	mnl_attr_put_strz(m->nlh, SAINA_A_PORT_DRIVER, p->driver);
	mnl_attr_put_u32(m->nlh, SAINA_A_PORT_MTU, p->mtu);
	mnl_attr_put_u32(m->nlh, SAINA_A_PORT_WORKERS, workers);
	mnl_attr_put_u32(m->nlh, SAINA_A_PORT_RELAYED, relayed);
	if (p->mode != SAINA_PORT_MODE_NONE && !saina_dp_port_get(a->dp, p->ifindex, &conf)) {
		mnl_attr_put_u32(m->nlh, SAINA_A_PORT_LOSS_IN, conf.loss_in);
		mnl_attr_put_u32(m->nlh, SAINA_A_PORT_LOSS_OUT, conf.loss_out);
		mnl_attr_put_u32(m->nlh, SAINA_A_PORT_DELAY_IN, conf.delay_in_us);
		mnl_attr_put_u32(m->nlh, SAINA_A_PORT_DELAY_OUT, conf.delay_out_us);
		mnl_attr_put_u64(m->nlh, SAINA_A_PORT_SEED, conf.seed);
	}
	if (p->text[0])
		mnl_attr_put_strz(m->nlh, SAINA_A_PORT_TEXT, p->text);
	mnl_attr_nest_end(m->nlh, nest);
}

void encode_slot(struct msg *m, const struct saina_job *job, uint32_t index,
		 const struct saina_slot_meta *meta)
{
	struct nlattr *nest = mnl_attr_nest_start(m->nlh, SAINA_A_SLOT);
	uint64_t now = loop_now();

	mnl_attr_put_u16(m->nlh, SAINA_A_SLOT_JOB_ID, job->id);
	mnl_attr_put_strz(m->nlh, SAINA_A_SLOT_JOB_NAME, job->name);
	mnl_attr_put_u32(m->nlh, SAINA_A_SLOT_INDEX, index);
	mnl_attr_put_u32(m->nlh, SAINA_A_SLOT_ROUND, meta->round);
	mnl_attr_put_u32(m->nlh, SAINA_A_SLOT_SEGMENT, meta->segment);
	mnl_attr_put_u8(m->nlh, SAINA_A_SLOT_COUNT, meta->count);
	mnl_attr_put_u8(m->nlh, SAINA_A_SLOT_K, meta->k);
	mnl_attr_put_u64(m->nlh, SAINA_A_SLOT_SEEN, meta->seen);
	mnl_attr_put_u64(m->nlh, SAINA_A_SLOT_MISSING, meta->members & job->active & ~meta->seen);
	mnl_attr_put_u64(m->nlh, SAINA_A_SLOT_AGE_US,
			 now > meta->opened_at ? (now - meta->opened_at) / 1000 : 0);
	mnl_attr_put_u32(m->nlh, SAINA_A_SLOT_POLICY, meta->policy);
	mnl_attr_nest_end(m->nlh, nest);
}

void encode_stats(struct msg *m, const struct saina_job *job, int w, const struct saina_counters *c)
{
	struct nlattr *nest = mnl_attr_nest_start(m->nlh, SAINA_A_STATS);

	if (job) {
		mnl_attr_put_u16(m->nlh, SAINA_A_STATS_JOB_ID, job->id);
		mnl_attr_put_strz(m->nlh, SAINA_A_STATS_JOB_NAME, job->name);
		mnl_attr_put_u8(m->nlh, SAINA_A_STATS_WORKER, w);
	}
	mnl_attr_put(m->nlh, SAINA_A_STATS_COUNTERS, sizeof(c->c), c->c);
	mnl_attr_nest_end(m->nlh, nest);
}

void encode_limits(struct msg *m, struct agent *a)
{
	struct nlattr *nest = mnl_attr_nest_start(m->nlh, SAINA_A_LIMITS);
	struct saina_limits limits;
	__u32 jobs;
	__u64 memory;

	saina_core_limits_get(a->jobs->core, &limits, &jobs, &memory);
	mnl_attr_put_u32(m->nlh, SAINA_A_LIMITS_JOBS, limits.jobs);
	mnl_attr_put_u64(m->nlh, SAINA_A_LIMITS_MEMORY_JOB, limits.memory_job);
	mnl_attr_put_u64(m->nlh, SAINA_A_LIMITS_MEMORY, limits.memory);
	mnl_attr_put_u32(m->nlh, SAINA_A_LIMITS_JOBS_USED, jobs);
	mnl_attr_put_u64(m->nlh, SAINA_A_LIMITS_MEMORY_USED, memory);
	mnl_attr_put_u8(m->nlh, SAINA_A_LIMITS_PLANE,
			a->plane->kernel ? SAINA_PLANE_KERNEL : SAINA_PLANE_AGENT);
	mnl_attr_nest_end(m->nlh, nest);
}

void encode_event(struct msg *m, const struct saina_event *ev, const char *job, const char *text)
{
	struct nlattr *nest = mnl_attr_nest_start(m->nlh, SAINA_A_EVENT);

	mnl_attr_put_u32(m->nlh, SAINA_A_EVENT_TYPE, ev->type);
	mnl_attr_put_u64(m->nlh, SAINA_A_EVENT_TIME, ev->time);
	if (ev->type != SAINA_EV_PORT) {
		mnl_attr_put_u16(m->nlh, SAINA_A_EVENT_JOB_ID, ev->job);
		if (job)
			mnl_attr_put_strz(m->nlh, SAINA_A_EVENT_JOB_NAME, job);
		mnl_attr_put_u32(m->nlh, SAINA_A_EVENT_ROUND, ev->round);
		mnl_attr_put_u8(m->nlh, SAINA_A_EVENT_K, ev->k);
	}
	if (ev->worker != 0xff)
		mnl_attr_put_u8(m->nlh, SAINA_A_EVENT_WORKER, ev->worker);
	mnl_attr_put_u64(m->nlh, SAINA_A_EVENT_A, ev->a);
	mnl_attr_put_u64(m->nlh, SAINA_A_EVENT_B, ev->b);
	if (text)
		mnl_attr_put_strz(m->nlh, SAINA_A_EVENT_TEXT, text);
	mnl_attr_nest_end(m->nlh, nest);
}
