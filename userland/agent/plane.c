// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>

#include "agent/agent.h"
#include "ctl/obj.h"

#define READ_TRIES 20 /* a job that changes all the time is looked at later */

static void mark(struct plane *p, unsigned int id)
{
	p->dirty[id / 64] |= 1ull << id % 64;
}

/* Asking the kernel */

static int attr_of(const struct saina_ctl_class *c, const char *name)
{
	unsigned int i;

	for (i = 0; name && i < c->n; i++)
		if (!strcmp(c->fields[i].name, name))
			return c->fields[i].attr;
	return 0;
}

/* One request with one object; the refusal is the kernel's own. */
static int ask(struct agent *a, int cmd, const struct saina_ctl_class *c, const void *obj,
	       int (*cb)(const struct nlmsghdr *nlh, void *arg), void *arg,
	       struct saina_core_err *err)
{
	struct saina_ctl *ctl = a->plane.call;
	struct nlmsghdr *nlh;
	int ret;

	if (a->plane.down)
		return saina_refuse(err, -ENOTCONN, 0,
				    "saina.ko, which has the jobs, is gone: load it again");
	nlh = saina_ctl_msg(ctl, cmd, 0);
	if (obj)
		saina_ctl_encode(nlh, c, obj);
	ret = saina_ctl_call(ctl, nlh, cb, arg);
	if (!ret)
		return 0;
	return saina_refuse(err, ret, attr_of(c, saina_ctl_error_attr(ctl)), "%s",
			    saina_ctl_error(ctl));
}

static int job_cb(const struct nlmsghdr *nlh, void *arg)
{
	return saina_ctl_decode(nlh, &saina_ctl_job_class, arg);
}

static int limits_cb(const struct nlmsghdr *nlh, void *arg)
{
	return saina_ctl_decode(nlh, &saina_ctl_limits_class, arg);
}

static int job_ask(struct agent *a, unsigned int id, struct saina_ctl_job *job)
{
	struct saina_ctl_job which = { .id = id };

	SAINA_CTL_SET(&which, SAINA_A_JOB_ID);
	memset(job, 0, sizeof(*job));
	return ask(a, SAINA_CMD_JOB_GET, &saina_ctl_job_class, &which, job_cb, job, NULL);
}

static int worker_cb(const struct nlmsghdr *nlh, void *arg)
{
	struct saina_job *job = arg;
	struct saina_ctl_worker w;
	struct saina_worker *wk;
	int ret = saina_ctl_decode(nlh, &saina_ctl_worker_class, &w);

	if (ret || w.id >= SAINA_WORKERS_MAX)
		return ret ? ret : -EBADMSG;
	wk = &job->worker[w.id];
	snprintf(wk->name, sizeof(wk->name), "%s", w.name);
	wk->state = w.state;
	if (!SAINA_CTL_HAS(&w, SAINA_A_WORKER_SESSION))
		return 0;
	wk->bind.ifindex = w.ifindex;
	wk->bind.ip = w.ip;
	wk->bind.udp_port = w.udp_port;
	wk->bind.session = w.session;
	memcpy(wk->bind.mac, w.mac, sizeof(wk->bind.mac));
	wk->bind.flags = SAINA_BIND_BOUND | (w.relay ? SAINA_BIND_RELAY : 0);
	return 0;
}

static int workers_ask(struct agent *a, struct saina_job *job)
{
	struct saina_ctl_worker which = { .job_id = job->id };
	struct nlmsghdr *nlh = saina_ctl_msg(a->plane.call, SAINA_CMD_WORKER_GET, 1);

	SAINA_CTL_SET(&which, SAINA_A_WORKER_JOB_ID);
	saina_ctl_encode(nlh, &saina_ctl_worker_class, &which);
	memset(job->worker, 0, sizeof(job->worker));
	return saina_ctl_call(a->plane.call, nlh, worker_cb, job);
}

static void job_decode(const struct saina_ctl_job *from, struct saina_job *job)
{
	memset(job, 0, sizeof(*job));
	job->id = from->id;
	job->state = from->state;
	job->workers = from->workers;
	job->elem = from->elem_type;
	job->exponent = from->exponent;
	job->payload = from->payload;
	job->heartbeat_ms = from->heartbeat_ms;
	job->dead_ms = from->dead_ms;
	job->pool = from->pool;
	job->ring = from->ring;
	job->elements = from->elements;
	job->generation = from->generation;
	job->policy.seq = from->policy_seq;
	snprintf(job->name, sizeof(job->name), "%s", from->name);
	snprintf(job->policy_text, sizeof(job->policy_text), "%.*s",
		 (int)sizeof(job->policy_text) - 1, from->policy);
	memcpy(job->token, from->token, sizeof(job->token));
}

static uint64_t active_of(const struct saina_job *job)
{
	uint64_t active = 0;
	int w;

	for (w = 0; w < job->workers; w++)
		if (job->worker[w].state == SAINA_WORKER_ALIVE ||
		    job->worker[w].state == SAINA_WORKER_SLOW)
			active |= 1ull << w;
	return active;
}

/* A job and its workers are two answers: read until they are of one state. */
static int job_read(struct agent *a, unsigned int id, struct saina_job *job)
{
	struct saina_ctl_job before, after;
	int i, ret;

	ret = job_ask(a, id, &before);
	for (i = 0; !ret && i < READ_TRIES; i++) {
		job_decode(&before, job);
		ret = workers_ask(a, job);
		if (ret == -EINTR)
			ret = 0;
		if (!ret)
			ret = job_ask(a, id, &after);
		if (ret)
			break;
		if (before.generation == after.generation && before.state == after.state &&
		    before.active == after.active && before.policy_seq == after.policy_seq &&
		    active_of(job) == after.active)
			return 0;
		before = after;
	}
	return ret ? ret : -EAGAIN;
}

/* The mirror */

static void mirror_del(struct agent *a, unsigned int id)
{
	struct saina_job_req req = { .has = 1ull << SAINA_A_JOB_ID, .id = id };
	struct saina_core_err err;

	if (!saina_core_job_find(a->jobs.core, 1, id, NULL, NULL))
		return;
	if (saina_core_job_del(a->jobs.core, &req, &err))
		log_error("job %u: %s", id, err.text);
}

static bool same_shape(const struct saina_job *x, const struct saina_job *y)
{
	return !strcmp(x->name, y->name) && x->elements == y->elements &&
	       x->workers == y->workers && x->payload == y->payload && x->ring == y->ring &&
	       x->pool == y->pool;
}

/*
 * Job @id is read and put in the mirror.  @asked: the first round that the
 * change just made asked for.  @may_go: it may go, or be replaced by another
 * of that number; else that is left for plane_drain().
 */
static int mirror_job(struct agent *a, unsigned int id, uint32_t asked, bool may_go,
		      const struct saina_job **out, struct saina_core_err *err)
{
	const struct saina_job *have = saina_core_job_find(a->jobs.core, 1, id, NULL, NULL);
	struct saina_job job;
	int ret;

	ret = job_read(a, id, &job);
	if (ret == -ENOENT && may_go) {
		mirror_del(a, id);
		return 0;
	}
	if (ret)
		goto later;
	if (have && !same_shape(have, &job)) {
		ret = -EAGAIN;
		if (!may_go)
			goto later;
		mirror_del(a, id);
		have = NULL;
	}
	/* the kernel keeps the first round to itself; it comes from our JOINs */
	if (have && have->generation == job.generation)
		job.first_round = have->first_round;
	else if (have)
		job.first_round = asked > have->first_round ? asked : 0;
	ret = saina_core_job_adopt(a->jobs.core, &job, out, err);
	if (ret)
		log_error("job %s of the kernel: no data path for it: %s", job.name, err->text);
	return ret;

later:
	mark(&a->plane, id);
	return saina_refuse(err, ret, 0, "job %u is being changed by somebody else: try again", id);
}

static int id_cb(const struct nlmsghdr *nlh, void *arg)
{
	uint64_t *there = arg;
	struct saina_ctl_job job;
	int ret = saina_ctl_decode(nlh, &saina_ctl_job_class, &job);

	if (!ret && job.id < SAINA_JOBS_MAX)
		there[job.id / 64] |= 1ull << job.id % 64;
	return ret;
}

/* Everything anew. */
static int mirror_all(struct agent *a)
{
	uint64_t there[SAINA_JOBS_MAX / 64];
	struct saina_ctl_limits limits = { 0 };
	struct saina_core_err err;
	unsigned int id;
	int ret, i;

	for (i = 0, ret = -EINTR; ret == -EINTR && i < READ_TRIES; i++) {
		memset(there, 0, sizeof(there));
		ret = saina_ctl_call(a->plane.call,
				     saina_ctl_msg(a->plane.call, SAINA_CMD_JOB_GET, 1), id_cb,
				     there);
	}
	if (ret) {
		log_error("saina.ko: %s", saina_ctl_error(a->plane.call));
		return ret;
	}
	a->plane.resync = false;
	memset(a->plane.dirty, 0, sizeof(a->plane.dirty));
	/* first what went: its name may be another's now */
	for (id = 0; id < SAINA_JOBS_MAX; id++)
		if (!(there[id / 64] & 1ull << id % 64))
			mirror_del(a, id);
	for (id = 0; id < SAINA_JOBS_MAX; id++)
		if (there[id / 64] & 1ull << id % 64)
			mirror_job(a, id, 0, true, NULL, &err);
	if (!ask(a, SAINA_CMD_LIMITS_GET, &saina_ctl_limits_class, NULL, limits_cb, &limits, &err)) {
		struct saina_limits l = { limits.jobs, limits.memory_job, limits.memory };

		saina_core_limits_set(a->jobs.core, &l, NULL);
	}
	return 0;
}

/* Notifications */

static int note_cb(const struct nlmsghdr *nlh, void *arg)
{
	struct plane *p = arg;
	struct saina_ctl_worker w;
	struct saina_ctl_job job;

	if (!saina_ctl_decode(nlh, &saina_ctl_job_class, &job) && job.id < SAINA_JOBS_MAX)
		mark(p, job.id);
	else if (!saina_ctl_decode(nlh, &saina_ctl_worker_class, &w) && w.job_id < SAINA_JOBS_MAX)
		mark(p, w.job_id);
	return 0;
}

void plane_drain(struct agent *a)
{
	struct plane *p = &a->plane;
	uint64_t todo[SAINA_JOBS_MAX / 64];
	struct saina_core_err err;
	unsigned int id;
	int ret, pass;

	if (!p->kernel || p->down)
		return;
	do {
		ret = saina_ctl_next(p->sub, 0, note_cb, p);
		if (ret == -ENOBUFS)
			p->resync = true;
	} while (!ret || ret == -ENOBUFS);
	if (p->resync) {
		mirror_all(a);
		return;
	}
	memcpy(todo, p->dirty, sizeof(todo));
	memset(p->dirty, 0, sizeof(p->dirty));
	/* what went before what came: a name may have moved to another number */
	for (pass = 0; pass < 2; pass++)
		for (id = 0; id < SAINA_JOBS_MAX; id++) {
			struct saina_ctl_job job;

			if (!(todo[id / 64] & 1ull << id % 64))
				continue;
			if (pass)
				mirror_job(a, id, 0, true, NULL, &err);
			else if (job_ask(a, id, &job) == -ENOENT)
				mirror_del(a, id);
		}
}

static void notes_ready(struct source *s, uint32_t events)
{
	plane_drain(s->arg);
}

static int connect_kernel(struct agent *a)
{
	struct plane *p = &a->plane;
	const char *error;
	int ret;

	ret = saina_ctl_open(&p->call, "kernel", &error);
	if (!ret)
		ret = saina_ctl_open(&p->sub, "kernel", &error);
	if (!ret && saina_ctl_subscribe(p->sub, SAINA_GROUP_F_CONFIG)) {
		error = saina_ctl_error(p->sub);
		ret = -EIO;
	}
	if (ret)
		log_error("saina.ko: %s", error);
	return ret;
}

static void disconnect_kernel(struct agent *a)
{
	struct plane *p = &a->plane;

	if (p->notes.fd >= 0)
		loop_del(&a->loop, &p->notes);
	p->notes.fd = -1;
	saina_ctl_close(p->call);
	saina_ctl_close(p->sub);
	p->call = p->sub = NULL;
}

static int listen_kernel(struct agent *a)
{
	struct plane *p = &a->plane;
	int ret;

	p->notes = (struct source){ .ready = notes_ready, .arg = a };
	p->notes.fd = saina_ctl_fd(p->sub);
	ret = loop_add(&a->loop, &p->notes, EPOLLIN);
	if (ret)
		p->notes.fd = -1;
	return ret;
}

/* The module comes and goes */

static void family_gone(struct agent *a)
{
	if (!a->plane.kernel || a->plane.down)
		return;
	log_error("saina.ko is gone, and the configuration with it: jobs stand still until it is loaded again");
	a->plane.down = true;
	disconnect_kernel(a);
}

static void family_came(struct agent *a)
{
	if (!a->plane.kernel) {
		log_warn("saina.ko was loaded, but this sainad is its own control plane: restart it to have the jobs in the kernel; until then use saina -s %s",
			 a->cfg.control);
		return;
	}
	if (!a->plane.down)
		return;
	if (connect_kernel(a) || listen_kernel(a)) {
		disconnect_kernel(a);
		return;
	}
	a->plane.down = false;
	if (!mirror_all(a))
		log_warn("saina.ko is back: its jobs are served again, those it does not have are gone");
}

static void family_ready(struct source *s, uint32_t events)
{
	char buf[8192] __attribute__((aligned(8)));
	const struct nlmsghdr *nlh = (const void *)buf;
	const struct genlmsghdr *g;
	const struct nlattr *at;
	bool came = false, gone = false;
	int len = recv(s->fd, buf, sizeof(buf), MSG_DONTWAIT);

	for (; len > 0 && mnl_nlmsg_ok(nlh, len); nlh = mnl_nlmsg_next(nlh, &len)) {
		if (nlh->nlmsg_type != GENL_ID_CTRL || nlh->nlmsg_len < NLMSG_HDRLEN + sizeof(*g))
			continue;
		g = mnl_nlmsg_get_payload(nlh);
		mnl_attr_for_each(at, nlh, sizeof(*g)) {
			if (mnl_attr_get_type(at) != CTRL_ATTR_FAMILY_NAME ||
			    mnl_attr_validate(at, MNL_TYPE_NUL_STRING) < 0 ||
			    strcmp(mnl_attr_get_str(at), SAINA_GENL_NAME))
				continue;
			came |= g->cmd == CTRL_CMD_NEWFAMILY;
			gone |= g->cmd == CTRL_CMD_DELFAMILY;
		}
	}
	if (gone)
		family_gone(s->arg);
	if (came)
		family_came(s->arg);
}

/* The group "notify" of nlctrl has the number of the family. */
static void family_init(struct agent *a)
{
	struct sockaddr_nl me = { .nl_family = AF_NETLINK, .nl_groups = 1u << (GENL_ID_CTRL - 1) };
	struct source *s = &a->plane.family;
	int ret;

	*s = (struct source){ .ready = family_ready, .arg = a };
	s->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (s->fd < 0)
		return; /* then no module either */
	ret = bind(s->fd, (void *)&me, sizeof(me)) ? -errno : loop_add(&a->loop, s, EPOLLIN);
	if (ret) {
		log_warn("whether saina.ko comes or goes cannot be seen: %s", strerror(-ret));
		close(s->fd);
		s->fd = -1;
	}
}

int plane_init(struct agent *a)
{
	struct plane *p = &a->plane;
	const char *error;
	int ret;

	p->notes.fd = p->family.fd = -1;
	family_init(a);
	if (a->cfg.plane == PLANE_AGENT)
		return 0;
	ret = saina_ctl_open(&p->call, "kernel", &error);
	saina_ctl_close(p->call);
	p->call = NULL;
	if (ret && a->cfg.plane == PLANE_AUTO)
		return 0;
	if (ret) {
		log_error("%s", error);
		goto err;
	}
	p->kernel = true;
	ret = connect_kernel(a);
	if (!ret)
		return 0;
	disconnect_kernel(a);
err:
	plane_uninit(a);
	return ret;
}

/* Workers whose rounds are gone with the data path. */
static void bury_all(struct agent *a, int state, const char *why)
{
	const struct saina_job *job;
	int id, w;

	for (id = 0; (job = saina_core_job_next(a->jobs.core, id)); id = job->id + 1)
		for (w = 0; w < job->workers; w++)
			if (jobs_alive(job, w))
				jobs_worker_end(a, job, w, state, why);
}

/* Numbers of generations mean something only to the plane that gave them. */
static void forget_other_plane(struct agent *a)
{
	char path[CONFIG_PATH_MAX + 16];
	int id, fd;

	runtime_path(a, "kernel", path, sizeof(path));
	if (!a->plane.kernel) {
		unlink(path);
		return;
	}
	if (saina_dp_taken_over(a->dp) && access(path, F_OK)) {
		log_warn("the data path found was under the agent's control, now it is under the kernel's: its jobs end");
		for (id = 0; id < SAINA_JOBS_MAX; id++)
			saina_dp_job_remove(a->dp, id);
	}
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		log_warn("%s: %s: a later start could not take over", path, strerror(errno));
	else
		close(fd);
}

int plane_start(struct agent *a)
{
	int ret;

	forget_other_plane(a);
	if (!a->plane.kernel) {
		log_info("control plane: this agent (saina.ko is not %s)",
			 a->cfg.plane == PLANE_AGENT ? "to be used" : "loaded");
		return 0;
	}
	ret = listen_kernel(a);
	if (!ret)
		ret = mirror_all(a);
	if (ret)
		return ret;
	log_info("control plane: saina.ko in the kernel");
	if (!saina_dp_taken_over(a->dp))
		bury_all(a, SAINA_WORKER_DEAD, "its rounds went with the data path");
	return 0;
}

void plane_dismiss(struct agent *a)
{
	if (a->plane.kernel && !a->plane.down)
		bury_all(a, SAINA_WORKER_LEFT, "is let go: the agent stops");
}

void plane_uninit(struct agent *a)
{
	disconnect_kernel(a);
	if (a->plane.family.fd < 0)
		return;
	loop_del(&a->loop, &a->plane.family);
	close(a->plane.family.fd);
	a->plane.family.fd = -1;
}

/* Changes */

static void job_encode(const struct saina_job_req *req, struct saina_ctl_job *job)
{
	memset(job, 0, sizeof(*job));
	job->has = req->has;
	job->id = req->id;
	job->state = req->state;
	job->workers = req->workers;
	job->elem_type = req->elem;
	job->exponent = req->exponent;
	job->payload = req->payload;
	job->heartbeat_ms = req->heartbeat_ms;
	job->dead_ms = req->dead_ms;
	job->pool = req->pool;
	job->ring = req->ring;
	job->elements = req->elements;
	snprintf(job->name, sizeof(job->name), "%s", req->name);
	snprintf(job->policy, sizeof(job->policy), "%s", req->policy);
	memcpy(job->token, req->token, sizeof(req->token));
}

/* The number of the job a request names, in the mirror; < 0 and refused. */
static int number_of(struct agent *a, int has_id, __u16 id, const char *name, struct saina_core_err *err)
{
	const struct saina_job *job;

	job = saina_core_job_find(a->jobs.core, has_id, id, name, err);
	return job ? job->id : -ENOENT;
}

int plane_job_new(struct agent *a, const struct saina_job_req *req, const struct saina_job **out,
		  struct saina_core_err *err)
{
	struct saina_ctl_job job, made = { 0 };
	struct saina_core_err ignored;
	int ret;

	if (!a->plane.kernel)
		return saina_core_job_new(a->jobs.core, req, out, err);
	job_encode(req, &job);
	ret = ask(a, SAINA_CMD_JOB_NEW, &saina_ctl_job_class, &job, job_cb, &made, err);
	if (ret)
		return ret;
	ret = mirror_job(a, made.id, 0, true, out, err);
	if (!ret && !saina_core_job_find(a->jobs.core, 1, made.id, NULL, err))
		ret = -ENOENT; /* somebody was quick */
	if (!ret)
		return 0;
	memset(&job, 0, sizeof(job));
	job.id = made.id;
	SAINA_CTL_SET(&job, SAINA_A_JOB_ID);
	ask(a, SAINA_CMD_JOB_DEL, &saina_ctl_job_class, &job, NULL, NULL, &ignored);
	return ret;
}

int plane_job_set(struct agent *a, const struct saina_job_req *req, struct saina_core_err *err)
{
	struct saina_core_err ignored;
	struct saina_ctl_job job;
	int ret;

	if (!a->plane.kernel)
		return saina_core_job_set(a->jobs.core, req, NULL, err);
	job_encode(req, &job);
	ret = ask(a, SAINA_CMD_JOB_SET, &saina_ctl_job_class, &job, NULL, NULL, err);
	if (ret)
		return ret;
	ret = number_of(a, SAINA_HAS(req, SAINA_A_JOB_ID) != 0, req->id, req->name, NULL);
	if (ret >= 0)
		mirror_job(a, ret, 0, false, NULL, &ignored);
	return 0;
}

int plane_job_del(struct agent *a, const struct saina_job_req *req, struct saina_core_err *err)
{
	struct saina_ctl_job job;
	int ret;

	if (!a->plane.kernel)
		return saina_core_job_del(a->jobs.core, req, err);
	job_encode(req, &job);
	ret = ask(a, SAINA_CMD_JOB_DEL, &saina_ctl_job_class, &job, NULL, NULL, err);
	if (!ret)
		plane_drain(a);
	return ret;
}

static void worker_encode(const struct saina_worker_req *req, struct saina_ctl_worker *w)
{
	memset(w, 0, sizeof(*w));
	w->has = req->has;
	w->job_id = req->job_id;
	w->id = req->id;
	w->state = req->state;
	w->relay = req->relay;
	w->session = req->session;
	w->ifindex = req->ifindex;
	w->round = req->round;
	w->ip = req->ip;
	w->udp_port = req->udp_port;
	memcpy(w->mac, req->mac, sizeof(w->mac));
	snprintf(w->job_name, sizeof(w->job_name), "%s", req->job_name);
	snprintf(w->name, sizeof(w->name), "%s", req->name);
}

static int worker_ask(struct agent *a, int cmd, const struct saina_worker_req *req,
		      const struct saina_job **out, struct saina_core_err *err)
{
	struct saina_ctl_worker w;
	int ret;

	worker_encode(req, &w);
	ret = ask(a, cmd, &saina_ctl_worker_class, &w, NULL, NULL, err);
	if (ret)
		return ret;
	ret = number_of(a, SAINA_HAS(req, SAINA_A_WORKER_JOB_ID) != 0, req->job_id, req->job_name,
			err);
	if (ret < 0)
		return ret;
	return mirror_job(a, ret, req->round, false, out, err);
}

int plane_worker_set(struct agent *a, const struct saina_worker_req *req,
		     const struct saina_job **out, struct saina_core_err *err)
{
	struct saina_core_err ours;

	if (!a->plane.kernel)
		return saina_core_worker_set(a->jobs.core, req, out, err);
	return worker_ask(a, SAINA_CMD_WORKER_SET, req, out, err ? err : &ours);
}

int plane_worker_del(struct agent *a, const struct saina_worker_req *req,
		     struct saina_core_err *err)
{
	if (!a->plane.kernel)
		return saina_core_worker_del(a->jobs.core, req, err);
	return worker_ask(a, SAINA_CMD_WORKER_DEL, req, NULL, err);
}

int plane_limits_set(struct agent *a, const struct saina_limits *limits,
		     struct saina_core_err *err)
{
	struct saina_ctl_limits l = {
		.jobs = limits->jobs,
		.memory_job = limits->memory_job,
		.memory = limits->memory,
	};
	int ret;

	if (!a->plane.kernel)
		return saina_core_limits_set(a->jobs.core, limits, err);
	SAINA_CTL_SET(&l, SAINA_A_LIMITS_JOBS);
	SAINA_CTL_SET(&l, SAINA_A_LIMITS_MEMORY_JOB);
	SAINA_CTL_SET(&l, SAINA_A_LIMITS_MEMORY);
	ret = ask(a, SAINA_CMD_LIMITS_SET, &saina_ctl_limits_class, &l, NULL, NULL, err);
	return ret ? ret : saina_core_limits_set(a->jobs.core, limits, err);
}
