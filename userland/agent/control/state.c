// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the next start needs to take over: limits, jobs with their tokens,
 * workers with their sessions.  Written whole on every change, before the
 * change is promised to anybody, and moved into place.  A crash in between
 * leaves the state before the change, which the data path then gets again.
 *
 * The file is a stream of netlink messages as on the control socket: a JOB_NEW
 * per job (GENERATION, POLICY_SEQ and, as ROUND, its first round with it),
 * after it a WORKER_SET per worker, followed by what the family has no
 * attributes for (STATE_CMD_WORKER).  NLMSG_DONE ends it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "agent/agent.h"
#include "agent/control/decode.h"
#include "agent/control/encode.h"

#define STATE_CMD_WORKER 0x80
#define STATE_MAX	 (64l << 20)

/* Follows the WORKER_SET of the same worker. */
struct state_worker {
	__u64 nonce;
	__u32 first_round;
	__u8 worker;
	__u8 formed;
	__u8 pad[2];
} __attribute__((packed, aligned(4)));

static int put(FILE *f, const struct nlmsghdr *nlh)
{
	static const char zero[NLMSG_ALIGNTO];
	size_t pad = NLMSG_ALIGN(nlh->nlmsg_len) - nlh->nlmsg_len;

	return fwrite(nlh, nlh->nlmsg_len, 1, f) == 1 && (!pad || fwrite(zero, pad, 1, f) == 1)
		       ? 0
		       : -EIO;
}

static int put_limits(FILE *f, struct agent *a)
{
	struct saina_limits limits;
	struct nlattr *nest;
	struct msg m;

	saina_core_limits_get(a->jobs.core, &limits, NULL, NULL);
	msg_start(&m, SAINA_CMD_LIMITS_SET, 0, 0);
	nest = mnl_attr_nest_start(m.nlh, SAINA_A_LIMITS);
	mnl_attr_put_u32(m.nlh, SAINA_A_LIMITS_JOBS, limits.jobs);
	mnl_attr_put_u64(m.nlh, SAINA_A_LIMITS_MEMORY_JOB, limits.memory_job);
	mnl_attr_put_u64(m.nlh, SAINA_A_LIMITS_MEMORY, limits.memory);
	mnl_attr_nest_end(m.nlh, nest);
	return put(f, m.nlh);
}

static int put_worker(FILE *f, struct agent *a, const struct saina_job *job, int w)
{
	const struct worker_aux *aux = jobs_worker(a, job, w);
	struct nlattr *nest;
	struct state_worker *sw;
	struct msg m;
	int ret;

	msg_start(&m, SAINA_CMD_WORKER_SET, 0, 0);
	nest = mnl_attr_nest_start(m.nlh, SAINA_A_WORKER);
	encode_worker_binding(m.nlh, job, w);
	mnl_attr_nest_end(m.nlh, nest);
	ret = put(f, m.nlh);
	if (ret)
		return ret;
	msg_start(&m, STATE_CMD_WORKER, 0, 0);
	sw = mnl_nlmsg_put_extra_header(m.nlh, sizeof(*sw));
	sw->nonce = aux->nonce;
	sw->first_round = aux->first_round;
	sw->worker = w;
	sw->formed = aux->formed;
	return put(f, m.nlh);
}

static int put_job(FILE *f, struct agent *a, const struct saina_job *job)
{
	struct nlattr *nest;
	struct msg m;
	int w, ret;

	msg_start(&m, SAINA_CMD_JOB_NEW, 0, 0);
	nest = mnl_attr_nest_start(m.nlh, SAINA_A_JOB);
	encode_job_config(m.nlh, job, true);
	mnl_attr_put_u32(m.nlh, SAINA_A_JOB_ROUND, job->first_round);
	mnl_attr_nest_end(m.nlh, nest);
	ret = put(f, m.nlh);
	for (w = 0; !ret && w < job->workers; w++)
		if (job->worker[w].state != SAINA_WORKER_STATE_ABSENT)
			ret = put_worker(f, a, job, w);
	return ret;
}

static int put_all(FILE *f, struct agent *a)
{
	const struct saina_job *job;
	struct msg m;
	int id, ret;

	ret = put_limits(f, a);
	for (id = 0; !ret && (job = saina_core_job_next(a->jobs.core, id)); id = job->id + 1)
		ret = put_job(f, a, job);
	if (ret)
		return ret;
	m.nlh = mnl_nlmsg_put_header(m.buf);
	m.nlh->nlmsg_type = NLMSG_DONE;
	return put(f, m.nlh);
}

int state_save(struct agent *a)
{
	char tmp[CONFIG_PATH_MAX + 16], path[CONFIG_PATH_MAX + 16];
	FILE *f = NULL;
	int fd, ret;

	a->jobs.unsaved = false;
	runtime_path(a, "state.new", tmp, sizeof(tmp));
	runtime_path(a, "state", path, sizeof(path));
	fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd >= 0)
		f = fdopen(fd, "w");
	if (!f) {
		ret = -errno;
		goto err;
	}
	ret = put_all(f, a);
	if (fclose(f) && !ret)
		ret = -errno;
	if (!ret && rename(tmp, path))
		ret = -errno;
	if (!ret)
		return 0;
	unlink(tmp);
err:
	log_error("state: %s: %s: a later start could not take over", tmp, strerror(-ret));
	return ret;
}

void state_remove(struct agent *a)
{
	char path[CONFIG_PATH_MAX + 16];

	unlink(runtime_path(a, "state", path, sizeof(path)));
	unlink(runtime_path(a, "kernel", path, sizeof(path))); /* plane.c's mark */
}

/* Reading */

struct restore {
	struct agent *a;
	bool data_path; /* it is still there, with all its rounds */
	bool any;	/* job holds one */
	struct saina_job job;
	struct state_worker worker[SAINA_WORKERS_MAX];
	int jobs, workers;
	char text[SAINA_TEXT_LEN];
};

static void restore_worker(struct restore *r, const struct saina_job *job, int w)
{
	*jobs_worker(r->a, job, w) = (struct worker_aux){
		.nonce = r->worker[w].nonce,
		.first_round = r->worker[w].first_round,
		.formed = r->worker[w].formed,
		.heard = loop_now(), /* nobody dies of our absence */
	};
	r->workers += jobs_alive(job, w);
}

/* The kernel has kept the job; of it, only what the kernel does not know. */
static int restore_aux(struct restore *r)
{
	const struct saina_job *job;
	struct saina_core_err err;
	struct saina_job copy;
	int w;

	job = saina_core_job_find(r->a->jobs.core, 1, r->job.id, NULL, NULL);
	if (!saina_core_job_find(r->a->jobs.core, 0, 0, r->job.name, NULL)) {
		if (r->a->plane.moved && !plane_give(r->a, &r->job))
			log_info("job %s of this agent is the kernel's from now on", r->job.name);
		else if (!r->a->plane.moved)
			log_warn("job %s is known from before, but the kernel does not have it: add it again, or it was deleted",
				 r->job.name);
	}
	if (!r->data_path || !job || strcmp(job->name, r->job.name) ||
	    job->generation != r->job.generation)
		return 0;
	copy = *job;
	copy.first_round = r->job.first_round;
	if (saina_core_job_adopt(r->a->jobs.core, &copy, &job, &err))
		log_error("job %s: %s", copy.name, err.text);
	r->jobs++;
	for (w = 0; w < job->workers; w++)
		if (jobs_alive(job, w) &&
		    job->worker[w].bind.session == r->job.worker[w].bind.session)
			restore_worker(r, job, w);
	return 0;
}

/* Hands the job collected so far to the core. */
static int restore_job(struct restore *r)
{
	const struct saina_job *job;
	struct saina_core_err err;
	int ret, w;

	if (!r->any)
		return 0;
	r->any = false;
	if (!r->data_path) {
		/* the rounds are gone: only what the job was asked to be is left */
		memset(r->job.worker, 0, sizeof(r->job.worker));
		r->job.first_round = 0;
		if (r->job.state == SAINA_JOB_RUNNING)
			r->job.state = SAINA_JOB_FORMING;
	}
	if (r->a->plane.kernel)
		return restore_aux(r);
	ret = saina_core_job_restore(r->a->jobs.core, &r->job, &job, &err);
	if (ret) {
		log_error("job %s: cannot be taken over: %s", r->job.name, err.text);
		return 0; /* the others can */
	}
	r->jobs++;
	for (w = 0; w < job->workers; w++) {
		if (job->worker[w].state != SAINA_WORKER_STATE_ABSENT)
			restore_worker(r, job, w);
	}
	return 0;
}

static int restore_limits(struct restore *r, const struct nlmsghdr *nlh)
{
	struct saina_core_err err;
	struct saina_limits limits;
	struct decoded d;

	if (decode_request(nlh, SAINA_A_LIMITS, ~0ull, &d, &err) || !d.tb[SAINA_A_LIMITS_JOBS] ||
	    !d.tb[SAINA_A_LIMITS_MEMORY_JOB] || !d.tb[SAINA_A_LIMITS_MEMORY])
		return -EBADMSG;
	limits.jobs = mnl_attr_get_u32(d.tb[SAINA_A_LIMITS_JOBS]);
	limits.memory_job = mnl_attr_get_u64(d.tb[SAINA_A_LIMITS_MEMORY_JOB]);
	limits.memory = mnl_attr_get_u64(d.tb[SAINA_A_LIMITS_MEMORY]);
	if (r->a->plane.kernel)
		return 0;
	return saina_core_limits_set(r->a->jobs.core, &limits, &err);
}

static int read_job(struct restore *r, const struct nlmsghdr *nlh)
{
	struct saina_job *job = &r->job;
	struct saina_core_err err;
	struct saina_job_req req;
	struct decoded d;

	if (decode_request(nlh, SAINA_A_JOB, ~0ull, &d, &err) || !d.tb[SAINA_A_JOB_GENERATION] ||
	    !d.tb[SAINA_A_JOB_POLICY_SEQ] || !d.tb[SAINA_A_JOB_ROUND])
		return -EBADMSG;
	if (decode_job(&d, &req, &err))
		return -EBADMSG;
	memset(job, 0, sizeof(*job));
	memset(r->worker, 0, sizeof(r->worker));
	r->any = true;
	job->id = req.id;
	job->state = req.state;
	job->workers = req.workers;
	job->elem = req.elem;
	job->exponent = req.exponent;
	job->payload = req.payload;
	job->heartbeat_ms = req.heartbeat_ms;
	job->dead_ms = req.dead_ms;
	job->pool = req.pool;
	job->ring = req.ring;
	job->elements = req.elements;
	memcpy(job->name, req.name, sizeof(job->name));
	job->policy = req.policy;
	memcpy(job->token, req.token, sizeof(job->token));
	job->generation = mnl_attr_get_u32(d.tb[SAINA_A_JOB_GENERATION]);
	job->first_round = mnl_attr_get_u32(d.tb[SAINA_A_JOB_ROUND]);
	job->policy.seq = mnl_attr_get_u32(d.tb[SAINA_A_JOB_POLICY_SEQ]);
	return 0;
}

static int read_worker(struct restore *r, const struct nlmsghdr *nlh)
{
	struct saina_core_err err;
	struct saina_worker_req req;
	struct saina_worker *wk;
	struct decoded d;

	if (decode_request(nlh, SAINA_A_WORKER, ~0ull, &d, &err))
		return -EBADMSG;
	decode_worker(&d, &req);
	if (!r->any || req.id >= SAINA_WORKERS_MAX)
		return -EBADMSG;
	wk = &r->job.worker[req.id];
	memcpy(wk->name, req.name, sizeof(wk->name));
	wk->state = req.state;
	if (!d.tb[SAINA_A_WORKER_SESSION])
		return 0;
	wk->bind.ifindex = req.ifindex;
	wk->bind.ip = req.ip;
	wk->bind.udp_port = req.udp_port;
	wk->bind.session = req.session;
	memcpy(wk->bind.mac, req.mac, sizeof(wk->bind.mac));
	wk->bind.flags = SAINA_BIND_BOUND | (req.relay ? SAINA_BIND_RELAY : 0);
	return 0;
}

static int read_worker_rest(struct restore *r, const struct nlmsghdr *nlh)
{
	const struct state_worker *sw =
		mnl_nlmsg_get_payload_offset(nlh, sizeof(struct genlmsghdr));

	if (nlh->nlmsg_len != NLMSG_HDRLEN + sizeof(struct genlmsghdr) + sizeof(*sw) ||
	    sw->worker >= SAINA_WORKERS_MAX)
		return -EBADMSG;
	r->worker[sw->worker] = *sw;
	return 0;
}

static int read_message(struct restore *r, const struct nlmsghdr *nlh)
{
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(nlh);
	int ret;

	if (nlh->nlmsg_type != SAINA_NLMSG_TYPE || nlh->nlmsg_len < NLMSG_HDRLEN + sizeof(*g) ||
	    g->version != SAINA_FAMILY_VERSION)
		return -EBADMSG;
	switch (g->cmd) {
	case SAINA_CMD_LIMITS_SET:
		return restore_limits(r, nlh);
	case SAINA_CMD_JOB_NEW:
		ret = restore_job(r);
		return ret ? ret : read_job(r, nlh);
	case SAINA_CMD_WORKER_SET:
		return read_worker(r, nlh);
	case STATE_CMD_WORKER:
		return read_worker_rest(r, nlh);
	}
	return -EBADMSG;
}

static int read_all(struct restore *r, const char *buf, size_t len)
{
	const struct nlmsghdr *nlh = (const void *)buf;
	size_t step;
	int ret;

	/* a file without its end was not moved into place by us */
	for (;; nlh = (const void *)((const char *)nlh + step), len -= step) {
		if (len < NLMSG_HDRLEN || nlh->nlmsg_len < NLMSG_HDRLEN || nlh->nlmsg_len > len)
			return -EBADMSG;
		if (nlh->nlmsg_type == NLMSG_DONE)
			return restore_job(r);
		step = NLMSG_ALIGN(nlh->nlmsg_len);
		if (step > len)
			return -EBADMSG;
		ret = read_message(r, nlh);
		if (ret)
			return ret;
	}
}

static char *slurp(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), error;
	struct stat st;
	char *buf = NULL;

	if (fd < 0)
		return NULL;
	errno = EFBIG;
	if (!fstat(fd, &st) && st.st_size <= STATE_MAX)
		buf = malloc(st.st_size + 8);
	if (buf && read(fd, buf, st.st_size) != st.st_size) {
		free(buf);
		buf = NULL;
		errno = EIO;
	}
	error = errno;
	close(fd);
	errno = error;
	if (buf) {
		memset(buf + st.st_size, 0, 8);
		*len = st.st_size;
	}
	return buf;
}

/* Jobs the data path has and nobody knows: of a start that had no state. */
static void remove_strangers(struct agent *a)
{
	struct saina_job_conf conf;
	int id;

	for (id = 0; id < SAINA_JOBS_MAX; id++) {
		if (saina_core_job_find(a->jobs.core, 1, id, NULL, NULL) ||
		    saina_dp_job_get(a->dp, id, &conf))
			continue;
		log_warn("job %d is in the data path, but nothing is known about it: it is removed",
			 id);
		saina_dp_job_remove(a->dp, id);
	}
}

/* Workers whose port went while nobody looked. */
static void bury_unreachable(struct agent *a)
{
	const struct saina_job *job;
	const struct port *p;
	int id, w;

	for (id = 0; (job = saina_core_job_next(a->jobs.core, id)); id = job->id + 1)
		for (w = 0; w < job->workers; w++) {
			if (!jobs_alive(job, w))
				continue;
			p = ports_find(a, job->worker[w].bind.ifindex, NULL);
			if (!p || p->mode == SAINA_PORT_MODE_NONE)
				jobs_worker_end(a, job, w, SAINA_WORKER_STATE_DEAD,
						"its port went while sainad was away");
		}
}

int state_restore(struct agent *a)
{
	struct restore *r;
	char path[CONFIG_PATH_MAX + 16], *buf;
	size_t len;
	int ret = -ENOENT;

	buf = slurp(runtime_path(a, "state", path, sizeof(path)), &len);
	if (!buf) {
		if (errno != ENOENT)
			log_error("state: %s: %s", path, strerror(errno));
		goto out;
	}
	r = calloc(1, sizeof(*r));
	if (!r) {
		free(buf);
		return -ENOMEM;
	}
	r->a = a;
	r->data_path = saina_dp_taken_over(a->dp);
	ret = read_all(r, buf, len);
	if (ret)
		log_error("state: %s makes no sense: what it says beyond %d jobs is lost", path,
			  r->jobs);
	else if (r->data_path)
		log_info("took over %d jobs with %d live workers", r->jobs, r->workers);
	else if (r->jobs)
		log_warn(
			"%d jobs are known from before, but the data path is gone: workers have to join again",
			r->jobs);
	free(r);
	free(buf);
	plane_drain(a); /* what was given to the kernel is mirrored */
out:
	if (saina_dp_taken_over(a->dp))
		remove_strangers(a);
	bury_unreachable(a);
	health_replan(a);
	return ret;
}
