// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>

#include "agent/control/decode.h"
#include "agent/control/state.h"

static int parse_limits(struct saved *s, const struct nlmsghdr *nlh)
{
	struct saina_core_err err;
	struct decoded d;

	if (decode_request(nlh, SAINA_A_LIMITS, ~0ull, &d, &err) || !d.tb[SAINA_A_LIMITS_JOBS] ||
	    !d.tb[SAINA_A_LIMITS_MEMORY_JOB] || !d.tb[SAINA_A_LIMITS_MEMORY])
		return -EBADMSG;
	s->limits.jobs = mnl_attr_get_u32(d.tb[SAINA_A_LIMITS_JOBS]);
	s->limits.memory_job = mnl_attr_get_u64(d.tb[SAINA_A_LIMITS_MEMORY_JOB]);
	s->limits.memory = mnl_attr_get_u64(d.tb[SAINA_A_LIMITS_MEMORY]);
	s->has_limits = true;
	return 0;
}

static int parse_job(struct saved *s, const struct nlmsghdr *nlh)
{
	struct saina_core_err err;
	struct saina_job_req req;
	struct saved_job *v;
	struct saina_job *job;
	struct decoded d;

	if (decode_request(nlh, SAINA_A_JOB, ~0ull, &d, &err) || !d.tb[SAINA_A_JOB_GENERATION] ||
	    !d.tb[SAINA_A_JOB_POLICY_SEQ] || !d.tb[SAINA_A_JOB_ROUND] || s->n == SAINA_JOBS_MAX)
		return -EBADMSG;
	v = realloc(s->job, (s->n + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	s->job = v;
	v += s->n++;
	memset(v, 0, sizeof(*v));
	if (decode_job(&d, &req, &err)) {
		s->n--;
		return -EBADMSG;
	}
	job = &v->job;
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

static int parse_worker(struct saved *s, const struct nlmsghdr *nlh)
{
	struct saina_core_err err;
	struct saina_worker_req req;
	struct saina_worker *wk;
	struct decoded d;

	if (!s->n || decode_request(nlh, SAINA_A_WORKER, ~0ull, &d, &err))
		return -EBADMSG;
	decode_worker(&d, &req);
	if (req.id >= SAINA_WORKERS_MAX)
		return -EBADMSG;
	wk = &s->job[s->n - 1].job.worker[req.id];
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

/* What follows the header of one of our own messages, NULL: not of that size. */
static const void *own_payload(const struct nlmsghdr *nlh, size_t size)
{
	if (nlh->nlmsg_len != NLMSG_HDRLEN + sizeof(struct genlmsghdr) + size)
		return NULL;
	return mnl_nlmsg_get_payload_offset(nlh, sizeof(struct genlmsghdr));
}

static int parse_plane(struct saved *s, const struct nlmsghdr *nlh)
{
	const __u32 *plane = own_payload(nlh, sizeof(*plane));

	if (!plane)
		return -EBADMSG;
	s->plane = (int)*plane;
	return 0;
}

static int parse_worker_rest(struct saved *s, const struct nlmsghdr *nlh)
{
	const struct state_worker *sw = own_payload(nlh, sizeof(*sw));

	if (!s->n || !sw || sw->worker >= SAINA_WORKERS_MAX)
		return -EBADMSG;
	s->job[s->n - 1].worker[sw->worker] = *sw;
	return 0;
}

static int parse_message(struct saved *s, const struct nlmsghdr *nlh)
{
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(nlh);

	if (nlh->nlmsg_type != SAINA_NLMSG_TYPE || nlh->nlmsg_len < NLMSG_HDRLEN + sizeof(*g) ||
	    g->version != SAINA_FAMILY_VERSION)
		return -EBADMSG;
	switch (g->cmd) {
	case STATE_CMD_PLANE:
		return parse_plane(s, nlh);
	case SAINA_CMD_LIMITS_SET:
		return parse_limits(s, nlh);
	case SAINA_CMD_JOB_NEW:
		return parse_job(s, nlh);
	case SAINA_CMD_WORKER_SET:
		return parse_worker(s, nlh);
	case STATE_CMD_WORKER:
		return parse_worker_rest(s, nlh);
	}
	return -EBADMSG;
}

int state_parse(struct saved *s, const void *buf, size_t len)
{
	const struct nlmsghdr *nlh = buf;
	size_t step;
	int ret;

	/* a file without its end was not moved into place by us */
	for (;; nlh = (const void *)((const char *)nlh + step), len -= step) {
		if (len < NLMSG_HDRLEN || nlh->nlmsg_len < NLMSG_HDRLEN || nlh->nlmsg_len > len)
			return -EBADMSG;
		if (nlh->nlmsg_type == NLMSG_DONE)
			return 0;
		step = NLMSG_ALIGN(nlh->nlmsg_len);
		if (step > len)
			return -EBADMSG;
		ret = parse_message(s, nlh);
		if (ret)
			return ret;
	}
}
