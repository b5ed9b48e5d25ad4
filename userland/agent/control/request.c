// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The commands of the family: one row each in `commands`, one function each.
 * A function answers with reply() as often as it likes and returns 0 or an
 * errno with the sentence in rq->err.
 */
#include <errno.h>
#include <string.h>

#include "agent/control/request.h"
#include "core/refuse.h"

#define BIT_OF(attr) (1ull << (attr))

static void reply_start(const struct request *rq, struct msg *m, int cmd)
{
	msg_start(m, cmd, rq->dump ? NLM_F_MULTI : 0, rq->nlh->nlmsg_seq);
}

static int reply(struct request *rq, const struct msg *m)
{
	if (client_send(rq->client, m->nlh))
		return saina_refuse(&rq->err, -ENOBUFS, 0,
				    "the answer is too long for this connection");
	return 0;
}

/* Jobs */

static int reply_job(struct request *rq, const struct saina_job *job)
{
	struct msg m;

	reply_start(rq, &m, SAINA_CMD_JOB_NEW);
	encode_job(&m, rq->a, job, rq->admin);
	return reply(rq, &m);
}

static int job_new(struct request *rq)
{
	const struct saina_job *job;
	struct saina_job_req req;
	int ret;

	ret = decode_job(&rq->d, &req, &rq->err);
	if (!ret)
		ret = plane_job_new(rq->a, &req, &job, &rq->err);
	if (ret)
		return ret;
	control_settle(rq->a);
	return reply_job(rq, job);
}

static int job_set(struct request *rq)
{
	struct saina_job_req req;
	int ret;

	ret = decode_job(&rq->d, &req, &rq->err);
	if (!ret)
		ret = plane_job_set(rq->a, &req, &rq->err);
	control_settle(rq->a);
	return ret;
}

static int job_del(struct request *rq)
{
	struct saina_job_req req;
	int ret;

	ret = decode_job(&rq->d, &req, &rq->err);
	if (!ret)
		ret = plane_job_del(rq->a, &req, &rq->err);
	control_settle(rq->a);
	return ret;
}

/* The job named by attributes @id and @name of the request; @must: it has to
 * be.  *job is NULL if none is named. */
static int named_job(struct request *rq, int id, int name, bool must, const struct saina_job **job)
{
	const struct nlattr *tb = rq->d.tb[id];
	bool any = tb || rq->d.tb[name];

	*job = NULL;
	if (!any && !must)
		return 0;
	*job = saina_core_job_find(rq->a->jobs->core, !!tb, tb ? mnl_attr_get_u16(tb) : 0,
				   decode_string(&rq->d, name), &rq->err);
	if (*job)
		return 0;
	rq->err.attr = rq->err.attr == SAINA_A_JOB_ID ? id : name;
	return any ? -ENOENT : -EINVAL;
}

/* A job of the kernel without a data path is none of the core's. */
static const struct saina_job *stuck_job(const struct request *rq)
{
	const struct nlattr *id = rq->d.tb[SAINA_A_JOB_ID];
	const char *name = decode_string(&rq->d, SAINA_A_JOB_NAME);
	const struct plane_stuck *s;
	unsigned int from;

	for (from = 0; (s = plane_stuck_next(rq->a, from)); from = s->job.id + 1)
		if (id ? s->job.id == mnl_attr_get_u16(id) : name && !strcmp(s->job.name, name))
			return &s->job;
	return NULL;
}

static int job_get(struct request *rq)
{
	const struct plane_stuck *stuck;
	const struct saina_job *job;
	unsigned int from;
	int ret, id;

	if (!rq->dump) {
		job = stuck_job(rq);
		if (job)
			return reply_job(rq, job);
		ret = named_job(rq, SAINA_A_JOB_ID, SAINA_A_JOB_NAME, true, &job);
		return ret ? ret : reply_job(rq, job);
	}
	for (from = 0; (stuck = plane_stuck_next(rq->a, from)); from = stuck->job.id + 1) {
		ret = reply_job(rq, &stuck->job);
		if (ret)
			return ret;
	}
	for (id = 0; (job = saina_core_job_next(rq->a->jobs->core, id)); id = job->id + 1) {
		ret = reply_job(rq, job);
		if (ret)
			return ret;
	}
	return 0;
}

/* Workers */

static int reply_worker(struct request *rq, const struct saina_job *job, int w)
{
	struct msg m;

	reply_start(rq, &m, SAINA_CMD_WORKER_SET);
	encode_worker(&m, rq->a, job, w);
	return reply(rq, &m);
}

static int worker_set(struct request *rq)
{
	const struct saina_job *job;
	struct saina_worker_req req;
	int ret;

	decode_worker(&rq->d, &req);
	ret = plane_worker_set(rq->a, &req, &job, &rq->err);
	if (ret)
		return ret;
	if (rq->d.tb[SAINA_A_WORKER_IFINDEX])
		health_heard(rq->a, job, req.id);
	control_settle(rq->a);
	return 0;
}

static int worker_del(struct request *rq)
{
	struct saina_worker_req req;
	int ret;

	decode_worker(&rq->d, &req);
	ret = plane_worker_del(rq->a, &req, &rq->err);
	control_settle(rq->a);
	return ret;
}

static int worker_get(struct request *rq)
{
	const struct saina_job *job, *only;
	const struct nlattr *tb = rq->d.tb[SAINA_A_WORKER_ID];
	int ret, id, w;

	ret = named_job(rq, SAINA_A_WORKER_JOB_ID, SAINA_A_WORKER_JOB_NAME, !rq->dump, &only);
	if (ret)
		return ret;
	if (!rq->dump) {
		if (!tb)
			return saina_refuse(&rq->err, -EINVAL, SAINA_A_WORKER_ID,
					    "say which worker: 0..%u", only->workers - 1);
		w = mnl_attr_get_u8(tb);
		if (w >= only->workers || only->worker[w].state == SAINA_WORKER_STATE_ABSENT)
			return saina_refuse(&rq->err, -ENOENT, SAINA_A_WORKER_ID,
					    "worker %d of job %s is not there", w, only->name);
		return reply_worker(rq, only, w);
	}
	if (tb)
		return saina_refuse(&rq->err, -EINVAL, SAINA_A_WORKER_ID,
				    "a dump is of all workers of a job, not of one");
	id = only ? only->id : 0;
	for (; (job = saina_core_job_next(rq->a->jobs->core, id)); id = job->id + 1) {
		for (w = 0; w < job->workers; w++) {
			if (job->worker[w].state == SAINA_WORKER_STATE_ABSENT)
				continue;
			ret = reply_worker(rq, job, w);
			if (ret)
				return ret;
		}
		if (only)
			break;
	}
	return 0;
}

/* Ports */

static int port_get(struct request *rq)
{
	struct msg m;
	int i, ret;

	for (i = 0; i < rq->a->bridge->n; i++) {
		reply_start(rq, &m, SAINA_CMD_PORT_SET);
		encode_port(&m, rq->a, &rq->a->bridge->port[i]);
		ret = reply(rq, &m);
		if (ret)
			return ret;
	}
	return 0;
}

static void port_fault(const struct request *rq, int attr, __u32 *to)
{
	if (rq->d.tb[attr])
		*to = mnl_attr_get_u32(rq->d.tb[attr]);
}

static int port_set(struct request *rq)
{
	const struct nlattr *tb = rq->d.tb[SAINA_A_PORT_IFINDEX];
	const char *name = decode_string(&rq->d, SAINA_A_PORT_IFNAME);
	struct saina_port_conf conf = { 0 };
	struct agent *a = rq->a;
	struct port *p;
	int ret;

	if (!tb && !name)
		return saina_refuse(&rq->err, -EINVAL, SAINA_A_PORT_IFNAME, "say which port");
	p = ports_find(a, tb ? (int)mnl_attr_get_u32(tb) : 0, name);
	if (!p)
		return saina_refuse(&rq->err, -ENODEV,
				    name ? SAINA_A_PORT_IFNAME : SAINA_A_PORT_IFINDEX,
				    "bridge %s has no such port", a->cfg.bridge);
	if (p->mode == SAINA_PORT_MODE_NONE)
		return saina_refuse(&rq->err, -EOPNOTSUPP,
				    name ? SAINA_A_PORT_IFNAME : SAINA_A_PORT_IFINDEX,
				    "port %s is not attached: %.100s", p->name, p->text);
	saina_dp_port_get(a->dp, p->ifindex, &conf);
	port_fault(rq, SAINA_A_PORT_LOSS_IN, &conf.loss_in);
	port_fault(rq, SAINA_A_PORT_LOSS_OUT, &conf.loss_out);
	port_fault(rq, SAINA_A_PORT_DELAY_IN, &conf.delay_in_us);
	port_fault(rq, SAINA_A_PORT_DELAY_OUT, &conf.delay_out_us);
	if (rq->d.tb[SAINA_A_PORT_SEED]) {
		conf.seed = mnl_attr_get_u64(rq->d.tb[SAINA_A_PORT_SEED]);
		conf.drawn_in = conf.drawn_out = 0; /* the sequence from its beginning */
	}
	ret = ports_faults_set(a, p, &conf);
	if (ret)
		return saina_refuse(&rq->err, ret, 0, "port %s: %s", p->name,
				    saina_dp_error(a->dp));
	return 0;
}

/* Slots and counters */

struct slot_walk {
	struct request *rq;
	const struct saina_job *job;
	int ret;
};

static int slot_found(void *arg, __u32 index, const struct saina_slot_meta *meta)
{
	struct slot_walk *walk = arg;
	struct msg m;

	reply_start(walk->rq, &m, SAINA_CMD_SLOT_GET);
	encode_slot(&m, walk->job, index, meta);
	walk->ret = reply(walk->rq, &m);
	return walk->ret;
}

static int slot_get(struct request *rq)
{
	struct slot_walk walk = { .rq = rq };
	int ret;

	ret = named_job(rq, SAINA_A_SLOT_JOB_ID, SAINA_A_SLOT_JOB_NAME, true, &walk.job);
	if (ret)
		return ret;
	ret = saina_dp_slots(rq->a->dp, walk.job->id, slot_found, &walk);
	if (ret && !walk.ret)
		return saina_refuse(&rq->err, ret < 0 ? ret : -EIO, 0, "job %s: %s", walk.job->name,
				    saina_dp_error(rq->a->dp));
	return walk.ret;
}

static int reply_stats(struct request *rq, const struct saina_job *job, int w)
{
	struct saina_counters c;
	struct msg m;
	int ret;

	ret = saina_dp_counters(rq->a->dp, job ? job->id : -1, job ? w : -1, &c);
	if (ret)
		return saina_refuse(&rq->err, ret, 0, "counters: %s", saina_dp_error(rq->a->dp));
	reply_start(rq, &m, SAINA_CMD_STATS_GET);
	encode_stats(&m, job, w, &c);
	return reply(rq, &m);
}

static int stats_get(struct request *rq)
{
	const struct saina_job *job, *only;
	int ret, id, w;

	ret = named_job(rq, SAINA_A_STATS_JOB_ID, SAINA_A_STATS_JOB_NAME, false, &only);
	if (!ret && !only)
		ret = reply_stats(rq, NULL, -1);
	if (ret)
		return ret;
	id = only ? only->id : 0;
	for (; (job = saina_core_job_next(rq->a->jobs->core, id)); id = job->id + 1) {
		for (w = 0; w < job->workers; w++) {
			ret = reply_stats(rq, job, w);
			if (ret)
				return ret;
		}
		if (only)
			break;
	}
	return 0;
}

/* Limits and subscriptions */

static int limits_get(struct request *rq)
{
	struct msg m;

	reply_start(rq, &m, SAINA_CMD_LIMITS_GET);
	encode_limits(&m, rq->a);
	return reply(rq, &m);
}

static int limits_set(struct request *rq)
{
	struct saina_limits limits;
	const struct nlattr *const *tb = rq->d.tb;
	int ret;

	saina_core_limits_get(rq->a->jobs->core, &limits, NULL, NULL);
	if (tb[SAINA_A_LIMITS_JOBS])
		limits.jobs = mnl_attr_get_u32(tb[SAINA_A_LIMITS_JOBS]);
	if (tb[SAINA_A_LIMITS_MEMORY_JOB])
		limits.memory_job = mnl_attr_get_u64(tb[SAINA_A_LIMITS_MEMORY_JOB]);
	if (tb[SAINA_A_LIMITS_MEMORY])
		limits.memory = mnl_attr_get_u64(tb[SAINA_A_LIMITS_MEMORY]);
	ret = plane_limits_set(rq->a, &limits, &rq->err);
	control_settle(rq->a);
	return ret;
}

static int subscribe(struct request *rq)
{
	unsigned int groups;

	if (!rq->d.groups)
		return saina_refuse(&rq->err, -EINVAL, 0, "subscribe: say which groups");
	groups = mnl_attr_get_u32(rq->d.groups);
	rq->d.bad = rq->d.groups;
	if (groups & ~(SAINA_GROUPS_CONFIG | SAINA_GROUPS_EVENTS))
		return saina_refuse(
			&rq->err, -EINVAL, 0,
			"subscribe: groups 0x%x: 0x1 (config) and 0x2 (events) are known", groups);
	rq->d.bad = NULL;
	client_subscribe(rq->a, rq->client, groups);
	return 0;
}

#define DO	  0x1 /* can be asked for without NLM_F_DUMP */
#define DUMP	  0x2 /* ... and with */
#define ADMIN	  0x4

#define JOB_WHICH (BIT_OF(SAINA_A_JOB_ID) | BIT_OF(SAINA_A_JOB_NAME))
#define JOB_CHANGE                                                \
	(BIT_OF(SAINA_A_JOB_POLICY) | BIT_OF(SAINA_A_JOB_TOKEN) | \
	 BIT_OF(SAINA_A_JOB_HEARTBEAT_MS) | BIT_OF(SAINA_A_JOB_DEAD_MS))
#define JOB_SHAPE                                                                            \
	(BIT_OF(SAINA_A_JOB_ELEMENTS) | BIT_OF(SAINA_A_JOB_WORKERS) |                        \
	 BIT_OF(SAINA_A_JOB_PAYLOAD) | BIT_OF(SAINA_A_JOB_POOL) | BIT_OF(SAINA_A_JOB_RING) | \
	 BIT_OF(SAINA_A_JOB_ELEM_TYPE) | BIT_OF(SAINA_A_JOB_EXPONENT))
#define WORKER_WHICH                                                       \
	(BIT_OF(SAINA_A_WORKER_JOB_ID) | BIT_OF(SAINA_A_WORKER_JOB_NAME) | \
	 BIT_OF(SAINA_A_WORKER_ID))
#define WORKER_FIELDS                                                                              \
	(BIT_OF(SAINA_A_WORKER_NAME) | BIT_OF(SAINA_A_WORKER_STATE) |                              \
	 BIT_OF(SAINA_A_WORKER_IFINDEX) | BIT_OF(SAINA_A_WORKER_IP) | BIT_OF(SAINA_A_WORKER_MAC) | \
	 BIT_OF(SAINA_A_WORKER_UDP_PORT) | BIT_OF(SAINA_A_WORKER_SESSION) |                        \
	 BIT_OF(SAINA_A_WORKER_RELAY) | BIT_OF(SAINA_A_WORKER_ROUND) |                             \
	 BIT_OF(SAINA_A_WORKER_LATE))
#define SLOT_WHICH  (BIT_OF(SAINA_A_SLOT_JOB_ID) | BIT_OF(SAINA_A_SLOT_JOB_NAME))
#define STATS_WHICH (BIT_OF(SAINA_A_STATS_JOB_ID) | BIT_OF(SAINA_A_STATS_JOB_NAME))
#define ALL_OF	    (~0ull)

static const struct {
	int top;
	unsigned int flags;
	__u64 allowed;
	int (*serve)(struct request *rq);
} commands[SAINA_CMD_MAX + 1] = {
	[SAINA_CMD_JOB_NEW] = { SAINA_A_JOB, DO | ADMIN, JOB_WHICH | JOB_CHANGE | JOB_SHAPE,
				job_new },
	/* what cannot change is refused by the core, with a better sentence */
	[SAINA_CMD_JOB_SET] = { SAINA_A_JOB, DO | ADMIN,
				JOB_WHICH | JOB_CHANGE | JOB_SHAPE | BIT_OF(SAINA_A_JOB_STATE),
				job_set },
	[SAINA_CMD_JOB_DEL] = { SAINA_A_JOB, DO | ADMIN, JOB_WHICH, job_del },
	[SAINA_CMD_JOB_GET] = { SAINA_A_JOB, DO | DUMP, JOB_WHICH, job_get },
	[SAINA_CMD_WORKER_SET] = { SAINA_A_WORKER, DO | ADMIN, WORKER_WHICH | WORKER_FIELDS,
				   worker_set },
	[SAINA_CMD_WORKER_DEL] = { SAINA_A_WORKER, DO | ADMIN, WORKER_WHICH, worker_del },
	[SAINA_CMD_WORKER_GET] = { SAINA_A_WORKER, DO | DUMP, WORKER_WHICH, worker_get },
	[SAINA_CMD_PORT_GET] = { 0, DUMP, 0, port_get },
	[SAINA_CMD_PORT_SET] = { SAINA_A_PORT, DO | ADMIN, ALL_OF, port_set },
	[SAINA_CMD_SLOT_GET] = { SAINA_A_SLOT, DUMP, SLOT_WHICH, slot_get },
	[SAINA_CMD_STATS_GET] = { SAINA_A_STATS, DUMP, STATS_WHICH, stats_get },
	[SAINA_CMD_LIMITS_GET] = { 0, DO, 0, limits_get },
	[SAINA_CMD_LIMITS_SET] = { SAINA_A_LIMITS, DO | ADMIN, ALL_OF, limits_set },
	[SAINA_CMD_SUBSCRIBE] = { SAINA_A_GROUPS, DO, 0, subscribe },
};

static int serve(struct request *rq)
{
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(rq->nlh);
	int ret;

	if (rq->nlh->nlmsg_type != SAINA_NLMSG_TYPE)
		return saina_refuse(&rq->err, -EINVAL, 0,
				    "netlink message type %u is not SAINA's (%u)",
				    rq->nlh->nlmsg_type, SAINA_NLMSG_TYPE);
	if (g->version != SAINA_FAMILY_VERSION)
		return saina_refuse(&rq->err, -EPROTO, 0,
				    "version %u of the interface is not spoken here, only %u",
				    g->version, SAINA_FAMILY_VERSION);
	if (g->cmd > SAINA_CMD_MAX || !commands[g->cmd].serve)
		return saina_refuse(&rq->err, -EOPNOTSUPP, 0, "command %u is unknown", g->cmd);
	if (!(commands[g->cmd].flags & (rq->dump ? DUMP : DO)))
		return saina_refuse(&rq->err, -EOPNOTSUPP, 0,
				    rq->dump ? "command %u cannot be dumped"
					     : "command %u needs NLM_F_DUMP",
				    g->cmd);
	if (commands[g->cmd].flags & ADMIN && !rq->admin)
		return saina_refuse(&rq->err, -EPERM, 0,
				    "changing anything is for root%s%s: use sudo",
				    rq->a->control->has_admin_gid ? " and the group " : "",
				    rq->a->control->has_admin_gid ? rq->a->cfg.admin_group : "");
	ret = decode_request(rq->nlh, commands[g->cmd].top, commands[g->cmd].allowed, &rq->d,
			     &rq->err);
	if (ret)
		return ret;
	return commands[g->cmd].serve(rq);
}

static __u32 offset_in(const struct nlmsghdr *nlh, const struct nlattr *a)
{
	return (const char *)a - (const char *)nlh;
}

/* The sentence and the guilty attribute, or the one that is missing. */
static void put_extack(struct request *rq, struct nlmsghdr *nlh)
{
	const struct nlattr *bad = rq->d.bad;
	int attr = rq->err.attr;

	nlh->nlmsg_flags |= NLM_F_ACK_TLVS;
	if (rq->err.text[0])
		mnl_attr_put_strz(nlh, NLMSGERR_ATTR_MSG, rq->err.text);
	if (!bad && attr && attr < DECODE_ATTRS)
		bad = rq->d.tb[attr];
	if (bad) {
		mnl_attr_put_u32(nlh, NLMSGERR_ATTR_OFFS, offset_in(rq->nlh, bad));
	} else if (attr) {
		mnl_attr_put_u32(nlh, NLMSGERR_ATTR_MISS_TYPE, attr);
		if (rq->d.nest)
			mnl_attr_put_u32(nlh, NLMSGERR_ATTR_MISS_NEST,
					 offset_in(rq->nlh, rq->d.nest));
	}
}

void request_serve(struct agent *a, struct client *c, const struct nlmsghdr *nlh, bool admin)
{
	struct request rq = { .a = a, .client = c, .nlh = nlh, .admin = admin };
	struct nlmsgerr *e;
	struct msg m;
	int ret, *done;

	plane_drain(a);
	rq.dump = (nlh->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
	ret = serve(&rq);
	if (ret)
		log_debug("request %u refused: %s", nlh->nlmsg_seq, rq.err.text);
	else if (!rq.dump && !(nlh->nlmsg_flags & NLM_F_ACK))
		return;
	m.nlh = mnl_nlmsg_put_header(m.buf);
	m.nlh->nlmsg_seq = nlh->nlmsg_seq;
	m.nlh->nlmsg_pid = nlh->nlmsg_pid;
	if (rq.dump) {
		m.nlh->nlmsg_type = NLMSG_DONE;
		m.nlh->nlmsg_flags = NLM_F_MULTI;
		done = mnl_nlmsg_put_extra_header(m.nlh, sizeof(*done));
		*done = ret;
	} else {
		m.nlh->nlmsg_type = NLMSG_ERROR;
		m.nlh->nlmsg_flags = NLM_F_CAPPED;
		e = mnl_nlmsg_put_extra_header(m.nlh, sizeof(*e));
		e->error = ret;
		e->msg = *nlh;
	}
	if (ret)
		put_extack(&rq, m.nlh);
	client_send(c, m.nlh);
}
