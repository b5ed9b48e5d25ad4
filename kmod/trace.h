/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints: what the module decided, and about whom (tracefs, events/saina/).
 * Requests refused by their policy do not get this far: netlink:netlink_extack
 * has those.  @net is the number of the network namespace that readlink
 * /proc/self/ns/net shows.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM saina

#if !defined(_SAINA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _SAINA_TRACE_H

#include <linux/tracepoint.h>

#include <net/net_namespace.h>

#include "core/core.h"

/* for those who read the raw format */
TRACE_DEFINE_ENUM(SAINA_JOB_FORMING);
TRACE_DEFINE_ENUM(SAINA_JOB_RUNNING);
TRACE_DEFINE_ENUM(SAINA_JOB_STOPPED);
TRACE_DEFINE_ENUM(SAINA_POLICY_BSP);
TRACE_DEFINE_ENUM(SAINA_POLICY_FASTEST);
TRACE_DEFINE_ENUM(SAINA_POLICY_SFCD);
TRACE_DEFINE_ENUM(SAINA_POLICY_TIMEOUT);
TRACE_DEFINE_ENUM(SAINA_POLICY_EXTERNAL);
TRACE_DEFINE_ENUM(SAINA_POLICY_CODED);
TRACE_DEFINE_ENUM(SAINA_POLICY_SSP);
TRACE_DEFINE_ENUM(SAINA_POLICY_ASP);
TRACE_DEFINE_ENUM(SAINA_POLICY_GROUPED);
TRACE_DEFINE_ENUM(SAINA_WORKER_STATE_ABSENT);
TRACE_DEFINE_ENUM(SAINA_WORKER_STATE_ALIVE);
TRACE_DEFINE_ENUM(SAINA_WORKER_STATE_SLOW);
TRACE_DEFINE_ENUM(SAINA_WORKER_STATE_DEAD);
TRACE_DEFINE_ENUM(SAINA_WORKER_STATE_LEFT);
TRACE_DEFINE_ENUM(SAINA_EV_ROUND);
TRACE_DEFINE_ENUM(SAINA_EV_K);
TRACE_DEFINE_ENUM(SAINA_EV_POLICY);
TRACE_DEFINE_ENUM(SAINA_EV_DEGRADED);
TRACE_DEFINE_ENUM(SAINA_EV_STALE);
TRACE_DEFINE_ENUM(SAINA_EV_JOB_STATE);
TRACE_DEFINE_ENUM(SAINA_EV_WORKER_JOINED);
TRACE_DEFINE_ENUM(SAINA_EV_WORKER_LEFT);
TRACE_DEFINE_ENUM(SAINA_EV_WORKER_DEAD);
TRACE_DEFINE_ENUM(SAINA_EV_WORKER_LATE);
TRACE_DEFINE_ENUM(SAINA_EV_PORT);
TRACE_DEFINE_ENUM(SAINA_EV_CONTROLLER);
TRACE_DEFINE_ENUM(SAINA_EV_WORKER_NONFINITE);
TRACE_DEFINE_ENUM(SAINA_EV_WORKER_COARSENED);
TRACE_DEFINE_ENUM(SAINA_EV_WORKER_BEHIND);
TRACE_DEFINE_ENUM(SAINA_EV_TYPES);

#define saina_show_job_state(state)		\
	__print_symbolic(state,			\
		{ SAINA_JOB_FORMING, "forming" },	\
		{ SAINA_JOB_RUNNING, "running" },	\
		{ SAINA_JOB_STOPPED, "stopped" })

#define saina_show_policy_mode(mode)		\
	__print_symbolic(mode,			\
		{ SAINA_POLICY_BSP, "bsp" },	\
		{ SAINA_POLICY_FASTEST, "fastest" },	\
		{ SAINA_POLICY_SFCD, "sfcd" },	\
		{ SAINA_POLICY_TIMEOUT, "timeout" },	\
		{ SAINA_POLICY_EXTERNAL, "external" },	\
		{ SAINA_POLICY_CODED, "coded" },	\
		{ SAINA_POLICY_SSP, "ssp" },	\
		{ SAINA_POLICY_ASP, "asp" },	\
		{ SAINA_POLICY_GROUPED, "grouped" })

#define saina_show_worker_state(state)		\
	__print_symbolic(state,			\
		{ SAINA_WORKER_STATE_ABSENT, "absent" },	\
		{ SAINA_WORKER_STATE_ALIVE, "alive" },	\
		{ SAINA_WORKER_STATE_SLOW, "slow" },	\
		{ SAINA_WORKER_STATE_DEAD, "dead" },	\
		{ SAINA_WORKER_STATE_LEFT, "left" })

#define saina_show_event(type)			\
	__print_symbolic(type,			\
		{ SAINA_EV_ROUND, "round" },	\
		{ SAINA_EV_K, "k" },		\
		{ SAINA_EV_POLICY, "policy" },	\
		{ SAINA_EV_DEGRADED, "degraded" },	\
		{ SAINA_EV_STALE, "stale" },	\
		{ SAINA_EV_JOB_STATE, "job-state" },	\
		{ SAINA_EV_WORKER_JOINED, "worker-joined" },	\
		{ SAINA_EV_WORKER_LEFT, "worker-left" },	\
		{ SAINA_EV_WORKER_DEAD, "worker-dead" },	\
		{ SAINA_EV_WORKER_LATE, "worker-late" },	\
		{ SAINA_EV_PORT, "port" },	\
		{ SAINA_EV_CONTROLLER, "controller" },	\
		{ SAINA_EV_WORKER_NONFINITE, "worker-nonfinite" },	\
		{ SAINA_EV_WORKER_COARSENED, "worker-coarsened" },	\
		{ SAINA_EV_WORKER_BEHIND, "worker-behind" },	\
		{ SAINA_EV_TYPES, "types" })

/* A request was refused, with this sentence. */
TRACE_EVENT(saina_refused,
	TP_PROTO(const struct net *net, u8 cmd, int error, u16 attr, const char *text),
	TP_ARGS(net, cmd, error, attr, text),
	TP_STRUCT__entry(
		__field(u32, net)
		__field(int, error)
		__field(u16, attr)
		__field(u8, cmd)
		__array(char, text, SAINA_TEXT_LEN)
	),
	TP_fast_assign(
		__entry->net = net->ns.inum;
		__entry->error = error;
		__entry->attr = attr;
		__entry->cmd = cmd;
		strscpy(__entry->text, text, SAINA_TEXT_LEN);
	),
	TP_printk("net=%u cmd=%u error=%d attr=%u %s", __entry->net, __entry->cmd,
		  __entry->error, __entry->attr, __entry->text)
);

/* A job came (new, and then set as for any change), changed, went. */
DECLARE_EVENT_CLASS(saina_job,
	TP_PROTO(const struct net *net, const struct saina_job *job),
	TP_ARGS(net, job),
	TP_STRUCT__entry(
		__field(u32, net)
		__field(u32, generation)
		__field(u64, active)
		__field(u16, id)
		__field(u8, state)
		__field(u8, workers)
		__array(char, name, SAINA_NAME_LEN)
		__field(u32, policy_seq)
		__field(u8, mode)
		__field(u8, k)
	),
	TP_fast_assign(
		__entry->net = net->ns.inum;
		__entry->generation = job->generation;
		__entry->active = job->active;
		__entry->id = job->id;
		__entry->state = job->state;
		__entry->workers = job->workers;
		memcpy(__entry->name, job->name, sizeof(job->name));
		__entry->policy_seq = job->policy.seq;
		__entry->mode = job->policy.mode;
		__entry->k = job->policy.k;
	),
	TP_printk("net=%u job=%u name=%s state=%s workers=%u active=%llx generation=%u policy=%s k=%u policy_seq=%u",
		  __entry->net, __entry->id, __entry->name, saina_show_job_state(__entry->state),
		  __entry->workers, __entry->active, __entry->generation,
		  saina_show_policy_mode(__entry->mode), __entry->k, __entry->policy_seq)
);

DEFINE_EVENT(saina_job, saina_job_new,
	TP_PROTO(const struct net *net, const struct saina_job *job), TP_ARGS(net, job));
DEFINE_EVENT(saina_job, saina_job_set,
	TP_PROTO(const struct net *net, const struct saina_job *job), TP_ARGS(net, job));
DEFINE_EVENT(saina_job, saina_job_del,
	TP_PROTO(const struct net *net, const struct saina_job *job), TP_ARGS(net, job));

/* The data path sees this from now on (or, withdrawn, no job any more). */
DECLARE_EVENT_CLASS(saina_snapshot,
	TP_PROTO(const struct net *net, const struct saina_job_conf *conf),
	TP_ARGS(net, conf),
	TP_STRUCT__entry(
		__field(u32, net)
		__field(u32, generation)
		__field(u64, active)
		__field(u64, relay)
		__field(u32, policy_seq)
		__field(u16, job)
		__field(u8, state)
		__field(u8, k)
	),
	TP_fast_assign(
		__entry->net = net->ns.inum;
		__entry->generation = conf->generation;
		__entry->active = conf->active;
		__entry->relay = conf->relay;
		__entry->policy_seq = conf->policy.seq;
		__entry->job = conf->job;
		__entry->state = conf->state;
		__entry->k = conf->policy.k;
	),
	TP_printk("net=%u job=%u generation=%u state=%s active=%llx relay=%llx policy_seq=%u k=%u",
		  __entry->net, __entry->job, __entry->generation,
		  saina_show_job_state(__entry->state), __entry->active, __entry->relay,
		  __entry->policy_seq, __entry->k)
);

DEFINE_EVENT(saina_snapshot, saina_snapshot_published,
	TP_PROTO(const struct net *net, const struct saina_job_conf *conf),
	TP_ARGS(net, conf));
DEFINE_EVENT(saina_snapshot, saina_snapshot_withdrawn,
	TP_PROTO(const struct net *net, const struct saina_job_conf *conf),
	TP_ARGS(net, conf));

/* Another policy is asked for; then, at the first round opened afterwards, in force. */
DECLARE_EVENT_CLASS(saina_policy,
	TP_PROTO(const struct net *net, u16 job, u32 round, u32 old, u32 seq),
	TP_ARGS(net, job, round, old, seq),
	TP_STRUCT__entry(
		__field(u32, net)
		__field(u32, round)
		__field(u32, old)
		__field(u32, seq)
		__field(u16, job)
	),
	TP_fast_assign(
		__entry->net = net->ns.inum;
		__entry->round = round;
		__entry->old = old;
		__entry->seq = seq;
		__entry->job = job;
	),
	TP_printk("net=%u job=%u round=%u policy_seq=%u old=%u", __entry->net, __entry->job,
		  __entry->round, __entry->seq, __entry->old)
);

DEFINE_EVENT(saina_policy, saina_policy_asked,
	TP_PROTO(const struct net *net, u16 job, u32 round, u32 old, u32 seq),
	TP_ARGS(net, job, round, old, seq));
DEFINE_EVENT(saina_policy, saina_policy_adopted,
	TP_PROTO(const struct net *net, u16 job, u32 round, u32 old, u32 seq),
	TP_ARGS(net, job, round, old, seq));

/* A worker is bound, or its state, relay or name changed; or its place is empty. */
DECLARE_EVENT_CLASS(saina_worker,
	TP_PROTO(const struct net *net, const struct saina_job *job, int w),
	TP_ARGS(net, job, w),
	TP_STRUCT__entry(
		__field(u32, net)
		__field(u32, ifindex)
		__array(u8, ip, 4)
		__field(u64, session)
		__field(u16, udp_port)
		__field(u16, job)
		__field(u8, worker)
		__field(u8, state)
		__field(u8, relay)
	),
	TP_fast_assign(
		__entry->net = net->ns.inum;
		__entry->ifindex = job->worker[w].bind.ifindex;
		memcpy(__entry->ip, &job->worker[w].bind.ip, 4);
		__entry->udp_port = be16_to_cpu(job->worker[w].bind.udp_port);
		__entry->session = job->worker[w].bind.session;
		__entry->job = job->id;
		__entry->worker = w;
		__entry->state = job->worker[w].state;
		__entry->relay = !!(job->worker[w].bind.flags & SAINA_BIND_RELAY);
	),
	TP_printk("net=%u job=%u worker=%u state=%s ifindex=%u ip=%pI4 port=%u session=%llu relay=%u",
		  __entry->net, __entry->job, __entry->worker,
		  saina_show_worker_state(__entry->state), __entry->ifindex, __entry->ip,
		  __entry->udp_port, __entry->session, __entry->relay)
);

DEFINE_EVENT(saina_worker, saina_worker_set,
	TP_PROTO(const struct net *net, const struct saina_job *job, int w),
	TP_ARGS(net, job, w));
DEFINE_EVENT(saina_worker, saina_worker_del,
	TP_PROTO(const struct net *net, const struct saina_job *job, int w),
	TP_ARGS(net, job, w));

/* An event; lost: it was not sent to subscribers, @why is an errno. */
DECLARE_EVENT_CLASS(saina_event,
	TP_PROTO(const struct net *net, const struct saina_event *ev, int why),
	TP_ARGS(net, ev, why),
	TP_STRUCT__entry(
		__field(u32, net)
		__field(u32, type)
		__field(u32, round)
		__field(int, why)
		__field(u64, a)
		__field(u64, b)
		__field(u16, job)
		__field(u8, worker)
		__field(u8, k)
	),
	TP_fast_assign(
		__entry->net = net->ns.inum;
		__entry->type = ev->type;
		__entry->round = ev->round;
		__entry->why = why;
		__entry->a = ev->a;
		__entry->b = ev->b;
		__entry->job = ev->job;
		__entry->worker = ev->worker;
		__entry->k = ev->k;
	),
	TP_printk("net=%u job=%u worker=%u type=%s round=%u k=%u a=%llu b=%llu%s", __entry->net,
		  __entry->job, __entry->worker, saina_show_event(__entry->type),
		  __entry->round, __entry->k, __entry->a, __entry->b,
		  __print_symbolic(__entry->why, { 0, "" }, { -EAGAIN, " over event_rate" },
				   { -ENOMEM, " no memory" }))
);

DEFINE_EVENT(saina_event, saina_event,
	TP_PROTO(const struct net *net, const struct saina_event *ev, int why),
	TP_ARGS(net, ev, why));
DEFINE_EVENT(saina_event, saina_event_lost,
	TP_PROTO(const struct net *net, const struct saina_event *ev, int why),
	TP_ARGS(net, ev, why));

/* A program asked for a job that is not there. */
TRACE_EVENT(saina_lookup_miss,
	TP_PROTO(const struct net *net, u32 job),
	TP_ARGS(net, job),
	TP_STRUCT__entry(
		__field(u32, net)
		__field(u32, job)
	),
	TP_fast_assign(
		__entry->net = net->ns.inum;
		__entry->job = job;
	),
	TP_printk("net=%u job=%u", __entry->net, __entry->job)
);

#endif /* _SAINA_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
