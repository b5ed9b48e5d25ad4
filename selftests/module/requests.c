// SPDX-License-Identifier: GPL-2.0-or-later
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "../lib/tap.h"
#include "requests.h"

#define BIT_OF(a) (1ull << (a))

struct saina_ctl *requests_ctl;

void requests_open(void)
{
	const char *error;

	if (saina_ctl_open(&requests_ctl, "kernel", &error))
		tap_bail("%s", error);
}

void request_policy(const char *text, struct saina_policy_attrs *a)
{
	struct saina_core_err err;
	struct saina_policy p;

	if (saina_policy_parse(text, 0, &p, &err))
		tap_bail("%s", err.text);
	saina_policy_show(&p, a);
}

void request_policy_text(const struct saina_policy_attrs *a, char *text)
{
	struct saina_policy p;

	saina_policy_read(a, &p);
	saina_policy_format(&p, text, SAINA_POLICY_TEXT_LEN);
}

int request_job(int cmd, struct saina_job_attrs *job)
{
	struct nlmsghdr *nlh = saina_ctl_msg(requests_ctl, cmd, 0);

	saina_ctl_encode(nlh, &saina_job_class, job);
	return saina_ctl_call(requests_ctl, nlh, NULL, NULL);
}

int request_worker(int cmd, struct saina_worker_attrs *w)
{
	struct nlmsghdr *nlh = saina_ctl_msg(requests_ctl, cmd, 0);

	w->has |= BIT_OF(SAINA_A_WORKER_JOB_ID) | BIT_OF(SAINA_A_WORKER_ID);
	saina_ctl_encode(nlh, &saina_worker_class, w);
	return saina_ctl_call(requests_ctl, nlh, NULL, NULL);
}

int request_job_new_as(const char *name, int workers, unsigned int elements, unsigned int payload,
		       int type, const char *policy)
{
	struct saina_job_attrs job = {
		.has = BIT_OF(SAINA_A_JOB_NAME) | BIT_OF(SAINA_A_JOB_ELEMENTS) |
		       BIT_OF(SAINA_A_JOB_WORKERS),
		.elements = elements,
		.workers = workers,
		.payload = payload,
		.elem_type = type,
	};

	snprintf(job.name, sizeof(job.name), "%s", name);
	if (payload)
		job.has |= BIT_OF(SAINA_A_JOB_PAYLOAD);
	if (type)
		job.has |= BIT_OF(SAINA_A_JOB_ELEM_TYPE);
	if (policy) {
		job.has |= BIT_OF(SAINA_A_JOB_POLICY);
		request_policy(policy, &job.policy);
	}
	return request_job(SAINA_CMD_JOB_NEW, &job);
}

int request_job_new(const char *name, int workers, unsigned int elements)
{
	return request_job_new_as(name, workers, elements, 0, 0, NULL);
}

int request_job_policy(int id, const char *policy)
{
	struct saina_job_attrs job = {
		.has = BIT_OF(SAINA_A_JOB_ID) | BIT_OF(SAINA_A_JOB_POLICY),
		.id = id,
	};

	request_policy(policy, &job.policy);
	return request_job(SAINA_CMD_JOB_SET, &job);
}

int request_job_k(int id, int k)
{
	struct saina_job_attrs job = {
		.has = BIT_OF(SAINA_A_JOB_ID) | BIT_OF(SAINA_A_JOB_K_SET), .id = id, .k_set = k,
	};

	return request_job(SAINA_CMD_JOB_SET, &job);
}

int request_job_state(int id, int state)
{
	struct saina_job_attrs job = {
		.has = BIT_OF(SAINA_A_JOB_ID) | BIT_OF(SAINA_A_JOB_STATE),
		.id = id,
		.state = state,
	};

	return request_job(SAINA_CMD_JOB_SET, &job);
}

int request_job_del(int id)
{
	struct saina_job_attrs job = { .has = BIT_OF(SAINA_A_JOB_ID), .id = id };

	return request_job(SAINA_CMD_JOB_DEL, &job);
}

int request_worker_bind(int job, int id, unsigned int ifindex)
{
	struct saina_worker_attrs w = {
		.has = BIT_OF(SAINA_A_WORKER_IFINDEX) | BIT_OF(SAINA_A_WORKER_IP) |
		       BIT_OF(SAINA_A_WORKER_MAC) | BIT_OF(SAINA_A_WORKER_UDP_PORT) |
		       BIT_OF(SAINA_A_WORKER_SESSION),
		.job_id = job,
		.id = id,
		.ifindex = ifindex,
		.ip = htonl(0x7f000001 + id),
		.udp_port = htons(4000 + id),
		.session = 1 + id,
		.mac = { 2, 0, 0, 0, job, id },
	};

	return request_worker(SAINA_CMD_WORKER_SET, &w);
}

int request_worker_state(int job, int id, int state)
{
	struct saina_worker_attrs w = {
		.has = BIT_OF(SAINA_A_WORKER_STATE), .job_id = job, .id = id, .state = state,
	};

	return request_worker(SAINA_CMD_WORKER_SET, &w);
}

int request_worker_relay(int job, int id, int relay)
{
	struct saina_worker_attrs w = {
		.has = BIT_OF(SAINA_A_WORKER_RELAY), .job_id = job, .id = id, .relay = relay,
	};

	return request_worker(SAINA_CMD_WORKER_SET, &w);
}

int request_worker_name(int job, int id, const char *name)
{
	struct saina_worker_attrs w = {
		.has = BIT_OF(SAINA_A_WORKER_NAME), .job_id = job, .id = id,
	};

	snprintf(w.name, sizeof(w.name), "%s", name);
	return request_worker(SAINA_CMD_WORKER_SET, &w);
}

int request_worker_del(int job, int id)
{
	struct saina_worker_attrs w = { .job_id = job, .id = id };

	return request_worker(SAINA_CMD_WORKER_DEL, &w);
}

int request_get(int cmd, int job, int id, int (*cb)(const struct nlmsghdr *nlh, void *arg),
		void *arg)
{
	struct nlmsghdr *nlh = saina_ctl_msg(requests_ctl, cmd, 0);
	struct saina_worker_attrs w = {
		.has = BIT_OF(SAINA_A_WORKER_JOB_ID) | BIT_OF(SAINA_A_WORKER_ID),
		.job_id = job,
		.id = id,
	};
	struct saina_job_attrs j = { .has = BIT_OF(SAINA_A_JOB_ID), .id = job };

	if (cmd == SAINA_CMD_WORKER_GET)
		saina_ctl_encode(nlh, &saina_worker_class, &w);
	else if (cmd == SAINA_CMD_JOB_GET)
		saina_ctl_encode(nlh, &saina_job_class, &j);
	return saina_ctl_call(requests_ctl, nlh, cb, arg);
}

int request_dump(int cmd, int (*cb)(const struct nlmsghdr *nlh, void *arg), void *arg)
{
	return saina_ctl_call(requests_ctl, saina_ctl_msg(requests_ctl, cmd, 1), cb, arg);
}

static int limits_cb(const struct nlmsghdr *nlh, void *arg)
{
	return saina_ctl_decode(nlh, &saina_limits_class, arg);
}

int request_limits(struct saina_limits_attrs *l)
{
	return request_get(SAINA_CMD_LIMITS_GET, 0, 0, limits_cb, l);
}
