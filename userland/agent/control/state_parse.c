// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>

#include "core/adopt.h"
#include "agent/control/decode.h"
#include "agent/control/state.h"
#include "core/show.h"

static int parse_limits(struct saved *s, const struct nlmsghdr *nlh)
{
	struct saina_core_err err;
	struct decoded d;

	if (decode_request(nlh, &saina_limits_class, ~0ull, &d, &err) ||
	    !SAINA_HAS(&d.attrs.limits, SAINA_A_LIMITS_JOBS) ||
	    !SAINA_HAS(&d.attrs.limits, SAINA_A_LIMITS_MEMORY_JOB) ||
	    !SAINA_HAS(&d.attrs.limits, SAINA_A_LIMITS_MEMORY))
		return -EBADMSG;
	saina_limits_merge(&s->limits, &d.attrs.limits);
	s->has_limits = true;
	return 0;
}

/* Return: copy of @nlh without the pending policy, NULL without memory. */
static struct nlmsghdr *copy_without_next(const struct nlmsghdr *nlh)
{
	const struct genlmsghdr *from = mnl_nlmsg_get_payload(nlh);
	struct nlmsghdr *copy = calloc(1, nlh->nlmsg_len + NLMSG_ALIGNTO);
	const struct nlattr *attr;
	struct genlmsghdr *to;

	if (!copy)
		return NULL;
	mnl_nlmsg_put_header(copy);
	copy->nlmsg_type = nlh->nlmsg_type;
	to = mnl_nlmsg_put_extra_header(copy, sizeof(*to));
	*to = *from;
	mnl_attr_for_each(attr, nlh, sizeof(*from))
		switch (mnl_attr_get_type(attr)) {
		case SAINA_A_JOB_POLICY_NEXT:
		case SAINA_A_JOB_POLICY_NEXT_SEQ:
		case SAINA_A_JOB_POLICY_FROM:
		case SAINA_A_JOB_POLICY_ON:
			break;
		default:
			memcpy(mnl_nlmsg_get_payload_tail(copy), attr, attr->nla_len);
			copy->nlmsg_len += NLA_ALIGN(attr->nla_len);
		}
	return copy;
}

/* Drops an invalid pending policy; v->refused is the reason. */
static int read_job(struct saved_job *v, const struct nlmsghdr *nlh)
{
	const struct saina_job_attrs *a;
	struct nlmsghdr *copy = NULL;
	struct saina_core_err err;
	struct decoded d;
	int ret = 0;

	memset(v, 0, sizeof(*v));
	if (decode_request(nlh, &saina_job_class, ~0ull, &d, &err)) {
		memcpy(v->refused, err.text, sizeof(v->refused));
		copy = copy_without_next(nlh);
		if (!copy)
			return -ENOMEM;
		ret = decode_request(copy, &saina_job_class, ~0ull, &d, &err);
	}
	a = &d.attrs.job;
	if (ret || !SAINA_HAS(a, SAINA_A_JOB_GENERATION) ||
	    !SAINA_HAS(a, SAINA_A_JOB_POLICY_SEQ) || !SAINA_HAS(a, SAINA_A_JOB_ROUND)) {
		ret = -EBADMSG;
	} else {
		saina_job_read(a, &v->job);
		v->job.first_round = a->round;
		if (copy)
			saina_job_leave_out(&v->job, SAINA_A_JOB_POLICY_NEXT);
	}
	free(copy);
	return ret;
}

static int parse_job(struct saved *s, const struct nlmsghdr *nlh)
{
	struct saved_job *v;
	int ret;

	if (s->n == SAINA_JOBS_MAX)
		return -EBADMSG;
	v = realloc(s->job, (s->n + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	s->job = v;
	ret = read_job(v + s->n, nlh);
	s->n += !ret;
	return ret;
}

static int parse_worker(struct saved *s, const struct nlmsghdr *nlh)
{
	struct saina_core_err err;
	struct saina_worker *wk;
	struct decoded d;

	if (!s->n || decode_request(nlh, &saina_worker_class, ~0ull, &d, &err) ||
	    d.attrs.worker.id >= SAINA_WORKERS_MAX)
		return -EBADMSG;
	wk = &s->job[s->n - 1].job.worker[d.attrs.worker.id];
	saina_worker_read(&d.attrs.worker, wk);
	wk->round = d.attrs.worker.round; /* 0 if missing */
	return 0;
}

static int parse_port(struct saved *s, const struct nlmsghdr *nlh)
{
	struct saina_core_err err;
	struct saved_port *p;
	struct decoded d;

	if (s->ports == SAINA_PORTS_MAX ||
	    decode_request(nlh, &saina_port_class, ~0ull, &d, &err) ||
	    !SAINA_HAS(&d.attrs.port, SAINA_A_PORT_IFNAME) ||
	    !SAINA_HAS(&d.attrs.port, SAINA_A_PORT_HOOK))
		return -EBADMSG;
	p = &s->port[s->ports++];
	memcpy(p->ifname, d.attrs.port.ifname, sizeof(p->ifname));
	p->hook = d.attrs.port.hook;
	return 0;
}

/* Return: payload of a message of the file's own, NULL if its size is not @size. */
static const void *own_payload(const struct nlmsghdr *nlh, size_t size)
{
	if (nlh->nlmsg_len != NLMSG_HDRLEN + sizeof(struct genlmsghdr) + size)
		return NULL;
	return mnl_nlmsg_get_payload_offset(nlh, sizeof(struct genlmsghdr));
}

static int parse_backend(struct saved *s, const struct nlmsghdr *nlh)
{
	const __u32 *owner = own_payload(nlh, sizeof(*owner));

	if (!owner)
		return -EBADMSG;
	s->backend = (int)*owner;
	return 0;
}

static int parse_worker_state(struct saved *s, const struct nlmsghdr *nlh)
{
	/* of this version and of earlier ones */
	static const size_t sizes[] = { sizeof(struct state_worker),
					offsetof(struct state_worker, incarnation),
					offsetof(struct state_worker, shm_session) };
	const struct state_worker *sw = NULL;
	size_t size = 0;

	for (int i = 0; !sw && i < (int)(sizeof(sizes) / sizeof(sizes[0])); i++) {
		size = sizes[i];
		sw = own_payload(nlh, size);
	}
	if (!s->n || !sw || sw->worker >= SAINA_WORKERS_MAX)
		return -EBADMSG;
	memcpy(&s->job[s->n - 1].worker[sw->worker], sw, size);
	return 0;
}

static int parse_message(struct saved *s, const struct nlmsghdr *nlh)
{
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(nlh);

	if (nlh->nlmsg_type != SAINA_NLMSG_TYPE || nlh->nlmsg_len < NLMSG_HDRLEN + sizeof(*g) ||
	    g->version != SAINA_FAMILY_VERSION)
		return -EBADMSG;
	switch (g->cmd) {
	case STATE_CMD_BACKEND:
		return parse_backend(s, nlh);
	case SAINA_CMD_LIMITS_SET:
		return parse_limits(s, nlh);
	case SAINA_CMD_PORT_SET:
		return parse_port(s, nlh);
	case SAINA_CMD_JOB_NEW:
		return parse_job(s, nlh);
	case SAINA_CMD_WORKER_SET:
		return parse_worker(s, nlh);
	case STATE_CMD_WORKER:
		return parse_worker_state(s, nlh);
	}
	return -EBADMSG;
}

int state_parse(struct saved *s, const void *buf, size_t len)
{
	const struct nlmsghdr *nlh = buf;
	size_t step;
	int ret;

	/* a complete file ends with NLMSG_DONE */
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
