// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The commands of the family: a row in `commands` and a function each.  A function replies
 * with reply() and returns 0, or a negative errno with the message in rq->err.  In a dump it
 * sends at most one part and returns MORE.  It is called until it returns something else; after
 * DUMP_BUDGET parts the agent serves other sources first.
 */
#include <errno.h>
#include <string.h>

#include "agent/control/client.h"
#include "agent/control/request.h"
#include "core/os.h"
#include "core/show.h"

#define MORE 1
#define DUMP_BUDGET 128 /* parts of a dump in one turn of the loop */

/* NLM_F_DUMP_INTR reports a change during the dump, as in the kernel. */
static int dump_flags(const struct request *rq)
{
	return NLM_F_MULTI | (rq->changes != rq->a->control->changes ? NLM_F_DUMP_INTR : 0);
}

static void reply_start(const struct request *rq, struct msg *m)
{
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(rq->nlh);

	msg_start(m, g->cmd, rq->dump ? dump_flags(rq) : 0, rq->nlh->nlmsg_seq);
}

static int reply(struct request *rq, const struct msg *m)
{
	if (client_send(rq->client, m->nlh))
		return saina_refuse(&rq->err, -ENOMEM, 0, "out of memory");
	return rq->dump ? MORE : 0;
}

/* Jobs */

static int reply_job(struct request *rq, const struct saina_job *job)
{
	struct msg m;

	reply_start(rq, &m);
	encode_job(&m, rq->a, job, rq->admin);
	return reply(rq, &m);
}

static int job_new(struct request *rq)
{
	const struct saina_job *job;
	int ret;

	ret = backend_job_new(rq->a, &rq->d.attrs.job, &job, &rq->err);
	if (ret)
		return ret;
	control_flush(rq->a);
	return reply_job(rq, job);
}

static int job_set(struct request *rq)
{
	int ret;

	const struct saina_job_attrs *req = &rq->d.attrs.job;
	const struct saina_job *job;

	ret = backend_job_set(rq->a, req, &rq->err);
	if (!ret && SAINA_HAS(req, SAINA_A_JOB_CONTROLLER)) {
		job = saina_core_job_find(
			rq->a->jobs->core, SAINA_HAS(req, SAINA_A_JOB_ID), req->id,
			SAINA_HAS(req, SAINA_A_JOB_NAME) ? req->name : NULL, NULL);
		if (job)
			client_set_controller(rq->client, job->id, req->controller);
	}
	control_flush(rq->a);
	return ret;
}

static int job_del(struct request *rq)
{
	int ret;

	ret = backend_job_del(rq->a, &rq->d.attrs.job, &rq->err);
	control_flush(rq->a);
	return ret;
}

/* Finds the job by the attributes @id_attr and @name_attr; @must: one of them is required.
 * *@job is NULL if the request has neither. */
static int find_named_job(struct request *rq, int id_attr, __u16 id, int name_attr,
			  const char *name, bool must, const struct saina_job **job)
{
	const struct nlattr *const *tb = rq->d.tb;
	bool any = tb[id_attr] || tb[name_attr];
	const struct detached_job *detached;

	*job = NULL;
	if (!any && !must)
		return 0;
	detached = backend_detached_find(rq->a, tb[id_attr], id, tb[name_attr] ? name : NULL);
	if (detached) {
		saina_refuse(&rq->err, -ENODATA, tb[id_attr] ? id_attr : name_attr,
			     "job %s: %.100s", detached->job.name, detached->text);
		return -ENODATA;
	}
	*job = saina_core_job_find(rq->a->jobs->core, !!tb[id_attr], id,
				   tb[name_attr] ? name : NULL, &rq->err);
	if (*job)
		return 0;
	rq->err.attr = rq->err.attr == SAINA_A_JOB_ID ? id_attr : name_attr;
	return any ? -ENOENT : -EINVAL;
}

/* Sets the range of a dump: the job of @name or @id, or all jobs. */
static int dump_begin(struct request *rq, int id_attr, __u16 id, int name_attr, const char *name,
		      bool must)
{
	const struct saina_job *only;
	int ret;

	if (rq->end)
		return 0;
	ret = find_named_job(rq, id_attr, id, name_attr, name, must, &only);
	if (ret)
		return ret;
	rq->id = only ? only->id : 0;
	rq->end = only ? only->id + 1u : SAINA_JOBS_MAX;
	return 0;
}

/* Return: the job to continue the dump with, and its worker @w; NULL at the end. */
static const struct saina_job *dump_worker(struct request *rq, int *w)
{
	const struct saina_job *job;

	while ((job = saina_core_job_next(rq->a->jobs->core, rq->id)) && job->id < rq->end) {
		if (job->id != rq->id)
			rq->at = 0;
		rq->id = job->id;
		if (rq->at < job->workers) {
			*w = rq->at++;
			return job;
		}
		rq->id++;
		rq->at = 0;
	}
	return NULL;
}

static int job_get(struct request *rq)
{
	const struct detached_job *detached;
	const struct saina_job *job;
	int ret;

	if (!rq->dump) {
		detached = backend_detached_find(rq->a, SAINA_HAS(&rq->d.attrs.job, SAINA_A_JOB_ID),
						 rq->d.attrs.job.id, rq->d.attrs.job.name);
		if (detached)
			return reply_job(rq, &detached->job);
		ret = find_named_job(rq, SAINA_A_JOB_ID, rq->d.attrs.job.id, SAINA_A_JOB_NAME,
				     rq->d.attrs.job.name, true, &job);
		return ret ? ret : reply_job(rq, job);
	}
	job = saina_core_job_next(rq->a->jobs->core, rq->id);
	detached = backend_detached_next(rq->a, rq->id);
	if (detached && (!job || detached->job.id < job->id))
		job = &detached->job;
	if (!job)
		return 0;
	rq->id = job->id + 1;
	return reply_job(rq, job);
}

/* Workers */

static int reply_worker(struct request *rq, const struct saina_job *job, int w)
{
	struct msg m;

	reply_start(rq, &m);
	encode_worker(&m, rq->a, job, w, rq->admin);
	return reply(rq, &m);
}

static int worker_set(struct request *rq)
{
	const struct saina_job *job;
	const struct saina_worker_attrs *req = &rq->d.attrs.worker;
	int ret;

	ret = backend_worker_set(rq->a, req, &job, &rq->err);
	if (ret)
		return ret;
	if (SAINA_HAS(req, SAINA_A_WORKER_IFINDEX))
		liveness_heard(rq->a, job, req->id);
	control_flush(rq->a);
	return 0;
}

static int worker_del(struct request *rq)
{
	int ret;

	ret = backend_worker_del(rq->a, &rq->d.attrs.worker, &rq->err);
	control_flush(rq->a);
	return ret;
}

static int worker_get(struct request *rq)
{
	const struct saina_job *job, *only;
	const struct saina_worker_attrs *which = &rq->d.attrs.worker;
	int ret, w;

	if (!rq->dump) {
		ret = find_named_job(rq, SAINA_A_WORKER_JOB_ID, which->job_id,
				     SAINA_A_WORKER_JOB_NAME, which->job_name, true, &only);
		if (ret)
			return ret;
		if (!SAINA_HAS(which, SAINA_A_WORKER_ID))
			return saina_refuse(&rq->err, -EINVAL, SAINA_A_WORKER_ID,
					    "say which worker: 0..%u", only->workers - 1);
		w = which->id;
		if (w >= only->workers || only->worker[w].state == SAINA_WORKER_STATE_ABSENT)
			return saina_refuse(&rq->err, -ENOENT, SAINA_A_WORKER_ID,
					    "job %s has no worker %d", only->name, w);
		return reply_worker(rq, only, w);
	}
	ret = dump_begin(rq, SAINA_A_WORKER_JOB_ID, which->job_id, SAINA_A_WORKER_JOB_NAME,
			 which->job_name, false);
	if (ret)
		return ret;
	job = dump_worker(rq, &w);
	if (!job)
		return 0;
	return job->worker[w].state == SAINA_WORKER_STATE_ABSENT ? MORE : reply_worker(rq, job, w);
}

/* Ports */

static int port_get(struct request *rq)
{
	struct msg m;

	if (rq->at >= (unsigned int)rq->a->bridge->n)
		return 0;
	reply_start(rq, &m);
	encode_port(&m, rq->a, &rq->a->bridge->port[rq->at++]);
	return reply(rq, &m);
}

static int port_set(struct request *rq)
{
	const struct saina_port_attrs *req = &rq->d.attrs.port;
	bool has_name = SAINA_HAS(req, SAINA_A_PORT_IFNAME);
	int which = has_name ? SAINA_A_PORT_IFNAME : SAINA_A_PORT_IFINDEX;
	const __u64 faults = 1ull << SAINA_A_PORT_LOSS_IN | 1ull << SAINA_A_PORT_LOSS_OUT |
			     1ull << SAINA_A_PORT_SEED;
	struct saina_port_conf conf = { 0 };
	char text[SAINA_TEXT_LEN];
	struct agent *a = rq->a;
	struct port *p;
	int ret, hook;

	if (!has_name && !SAINA_HAS(req, SAINA_A_PORT_IFINDEX))
		return saina_refuse(&rq->err, -EINVAL, SAINA_A_PORT_IFNAME,
				    "say which port: by name or by ifindex");
	p = ports_find(a, req->ifindex, has_name ? req->ifname : NULL);
	if (!p)
		return has_name ?
			saina_refuse(&rq->err, -ENODEV, which, "bridge %s has no port %s",
				     a->cfg.bridge, req->ifname) :
			saina_refuse(&rq->err, -ENODEV, which, "bridge %s has no port with ifindex %d",
				     a->cfg.bridge, (int)req->ifindex);
	hook = SAINA_HAS(req, SAINA_A_PORT_HOOK) ? req->hook : p->hook_requested;
	if (p->mode == SAINA_PORT_MODE_NONE && hook == p->hook_requested)
		return saina_refuse(&rq->err, -EOPNOTSUPP, which,
				    "port %s is not attached: %.100s", p->name, p->text);
	saina_dp_port_get(a->dp, p->ifindex, &conf);
	if (SAINA_HAS(req, SAINA_A_PORT_LOSS_IN))
		conf.loss_in = req->loss_in;
	if (SAINA_HAS(req, SAINA_A_PORT_LOSS_OUT))
		conf.loss_out = req->loss_out;
	if (SAINA_HAS(req, SAINA_A_PORT_SEED)) {
		conf.seed = req->seed;
		conf.drawn_in = conf.drawn_out = 0; /* restart the sequence */
	}
	ret = ports_set(a, p, hook, req->has & faults ? &conf : NULL, text, sizeof(text));
	if (ret)
		return saina_refuse(&rq->err, ret,
				    SAINA_HAS(req, SAINA_A_PORT_HOOK) ? SAINA_A_PORT_HOOK : 0, "%s",
				    text);
	a->jobs->changed = a->jobs->unsaved = true;
	control_flush(a);
	return 0;
}

/* Slots and counters */

static int slot_get(struct request *rq)
{
	const struct saina_job *job;
	struct saina_slot_meta meta;
	struct msg m;
	int ret;

	ret = dump_begin(rq, SAINA_A_SLOT_JOB_ID, rq->d.attrs.slot.job_id, SAINA_A_SLOT_JOB_NAME,
			 rq->d.attrs.slot.job_name, true);
	if (ret)
		return ret;
	job = saina_core_job_next(rq->a->jobs->core, rq->id);
	/* without a size a job has no slots */
	if (!job || job->id != rq->id || !job->segments)
		return 0;
	ret = saina_dp_slot(rq->a->dp, job->id, rq->at, &meta);
	if (ret == -ENOENT && rq->at)
		return 0;
	if (ret)
		return saina_refuse(&rq->err, ret, 0, "job %s: %s", job->name,
				    saina_dp_error(rq->a->dp));
	rq->at++;
	if (meta.state != SAINA_SLOT_OPEN && meta.state != SAINA_SLOT_AWAY)
		return MORE;
	reply_start(rq, &m);
	encode_slot(&m, job, rq->at - 1, &meta);
	return reply(rq, &m);
}

static int reply_stats(struct request *rq, const struct saina_job *job, int w)
{
	struct saina_counters c;
	struct msg m;
	int ret;

	ret = saina_dp_counters(rq->a->dp, job ? job->id : -1, job ? w : -1, &c);
	if (ret)
		return saina_refuse(&rq->err, ret, 0, "counters: %s", saina_dp_error(rq->a->dp));
	reply_start(rq, &m);
	encode_stats(&m, job, w, &c);
	return reply(rq, &m);
}

static int stats_get(struct request *rq)
{
	bool begun = rq->end;
	const struct saina_job *job;
	int ret, w;

	ret = dump_begin(rq, SAINA_A_STATS_JOB_ID, rq->d.attrs.stats.job_id, SAINA_A_STATS_JOB_NAME,
			 rq->d.attrs.stats.job_name, false);
	if (ret)
		return ret;
	/* a dump of all jobs starts with the counters that belong to none */
	if (!begun && rq->end - rq->id > 1)
		return reply_stats(rq, NULL, -1);
	job = dump_worker(rq, &w);
	if (!job)
		return 0;
	/* without a size a job has no counters */
	return job->segments ? reply_stats(rq, job, w) : MORE;
}

/* Limits and subscriptions */

static int limits_get(struct request *rq)
{
	struct msg m;

	reply_start(rq, &m);
	encode_limits(&m, rq->a);
	return reply(rq, &m);
}

static int limits_set(struct request *rq)
{
	struct saina_limits limits;
	const struct saina_limits_attrs *req = &rq->d.attrs.limits;
	int ret;

	saina_core_limits_get(rq->a->jobs->core, &limits, NULL, NULL);
	saina_limits_merge(&limits, req);
	ret = backend_limits_set(rq->a, &limits, &rq->err);
	control_flush(rq->a);
	return ret;
}

static int subscribe(struct request *rq)
{
	if (!rq->d.attrs.has)
		return saina_refuse(&rq->err, -EINVAL, SAINA_A_SUBSCRIPTION_GROUPS,
				    "subscribe: say which groups");
	client_subscribe(rq->client, rq->d.attrs.subscription.groups);
	return 0;
}

static int (*const commands[SAINA_CMD_MAX + 1])(struct request *rq) = {
	[SAINA_CMD_JOB_NEW] = job_new,
	[SAINA_CMD_JOB_SET] = job_set,
	[SAINA_CMD_JOB_DEL] = job_del,
	[SAINA_CMD_JOB_GET] = job_get,
	[SAINA_CMD_WORKER_SET] = worker_set,
	[SAINA_CMD_WORKER_DEL] = worker_del,
	[SAINA_CMD_WORKER_GET] = worker_get,
	[SAINA_CMD_LIMITS_GET] = limits_get,
	[SAINA_CMD_LIMITS_SET] = limits_set,
	[SAINA_CMD_PORT_GET] = port_get,
	[SAINA_CMD_PORT_SET] = port_set,
	[SAINA_CMD_SLOT_GET] = slot_get,
	[SAINA_CMD_STATS_GET] = stats_get,
	[SAINA_CMD_SUBSCRIBE] = subscribe,
};

static int check_request(struct request *rq)
{
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(rq->nlh);
	const struct saina_op *op = saina_ctl_op(g->cmd);

	if (rq->nlh->nlmsg_type != SAINA_NLMSG_TYPE)
		return saina_refuse(&rq->err, -EINVAL, 0,
				    "netlink message type %u is not SAINA's (%u)",
				    rq->nlh->nlmsg_type, SAINA_NLMSG_TYPE);
	if (g->version != SAINA_FAMILY_VERSION)
		return saina_refuse(&rq->err, -EPROTO, 0,
				    "version %u of the interface is not supported, only %u",
				    g->version, SAINA_FAMILY_VERSION);
	if (!op || !commands[g->cmd])
		return saina_refuse(&rq->err, -EOPNOTSUPP, 0, "command %u is unknown", g->cmd);
	if (!(op->flags & (rq->dump ? SAINA_OP_DUMP : SAINA_OP_DO)))
		return saina_refuse(&rq->err, -EOPNOTSUPP, 0,
				    rq->dump ? "%s cannot be dumped" : "%s needs NLM_F_DUMP",
				    op->name);
	if (op->flags & SAINA_OP_ADMIN && !rq->admin)
		return saina_refuse(&rq->err, -EPERM, 0,
				    "only root%s%s may change anything: use sudo",
				    rq->a->control->has_admin_gid ? " and the group " : "",
				    rq->a->control->has_admin_gid ? rq->a->cfg.admin_group : "");
	return decode_request(rq->nlh, op->class, rq->dump ? op->dump_takes : op->do_takes, &rq->d,
			      &rq->err);
}

/* Adds the message, and the attribute that is to blame or missing. */
static void put_extack(struct request *rq, struct nlmsghdr *nlh)
{
	const struct nlattr *bad = rq->d.bad;
	int attr = rq->err.attr;

	nlh->nlmsg_flags |= NLM_F_ACK_TLVS;
	if (rq->err.text[0])
		mnl_attr_put_strz(nlh, NLMSGERR_ATTR_MSG, rq->err.text);
	if (!bad && attr && attr < DECODE_ATTRS)
		bad = rq->d.tb[attr];
	if (bad)
		mnl_attr_put_u32(nlh, NLMSGERR_ATTR_OFFS,
				 (const char *)bad - (const char *)rq->nlh);
	else if (attr)
		mnl_attr_put_u32(nlh, NLMSGERR_ATTR_MISS_TYPE, attr);
}

/* A warning, as of the kernel: no error, but a sentence. */
static void put_warning(struct request *rq, struct nlmsghdr *nlh)
{
	if (!rq->a->jobs->unsaved_why[0])
		return;
	nlh->nlmsg_flags |= NLM_F_ACK_TLVS;
	mnl_attr_put_strz(nlh, NLMSGERR_ATTR_MSG, rq->a->jobs->unsaved_why);
}

/* Sends the end of the reply: NLMSG_DONE, an acknowledgement, or an error. */
static void finish_request(struct request *rq, int ret)
{
	const struct nlmsghdr *nlh = rq->nlh;
	struct nlmsgerr *e;
	struct msg m;
	int *done;

	if (ret)
		log_debug("request %u refused: %s", nlh->nlmsg_seq, rq->err.text);
	else if (!rq->dump && !(nlh->nlmsg_flags & NLM_F_ACK))
		return;
	m.nlh = mnl_nlmsg_put_header(m.buf);
	m.nlh->nlmsg_seq = nlh->nlmsg_seq;
	m.nlh->nlmsg_pid = nlh->nlmsg_pid;
	if (rq->dump) {
		m.nlh->nlmsg_type = NLMSG_DONE;
		m.nlh->nlmsg_flags = dump_flags(rq);
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
		put_extack(rq, m.nlh);
	else if (!rq->dump)
		put_warning(rq, m.nlh);
	client_send(rq->client, m.nlh);
}

bool request_serve(struct request *rq)
{
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(rq->nlh);
	int ret = MORE, n;

	backend_drain(rq->a);
	if (!rq->started) {
		rq->started = true;
		rq->dump = (rq->nlh->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
		rq->changes = rq->a->control->changes;
		ret = check_request(rq) ?: MORE;
	}
	for (n = 0; ret == MORE; n++) {
		if (n == DUMP_BUDGET || client_is_blocked(rq->client))
			return false;
		ret = commands[g->cmd](rq);
	}
	finish_request(rq, ret);
	return true;
}
