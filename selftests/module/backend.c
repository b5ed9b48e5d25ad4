// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A job that the harness wants is asked for in netlink messages, each for one difference from
 * what the module has, and the snapshot that its kfunc gives to programs is taken for what the
 * job is.  What the module refuses is not asked for in another way: the job stays as it was.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <unistd.h>
#include "lib/beside.h"
#include "lib/tap.h"
#include "backend.h"
#include "xdp_harness.h"

#define BIT_OF(a) (1ull << (a))
#define TIMEOUT_MAX_US 60000000u	/* policies.rst: 1ms..60s */

static struct xdp_harness module;	/* reads snapshots */
static struct backend_requests requests;

void backend_choose(void)
{
	char path[PATH_MAX];

	setenv("SAINA_BPF_OBJECT", path_beside(path, "../saina_xdp_kmod.bpf.o"), 0);
}

/* @ret, of a call */
static int count_request(int ret)
{
	requests.made++;
	if (!ret)
		return 0;
	requests.refused++;
	snprintf(requests.last, sizeof(requests.last), "%s", saina_ctl_error(requests_ctl));
	return ret;
}

/* The policy as somebody can ask for it: without settings that it does not have. */
static void policy_encode(const struct saina_policy *want, int workers,
			  struct saina_policy_attrs *a)
{
	const struct saina_policy_row *row = saina_policy_row(want->mode);
	struct saina_policy p;

	saina_policy_preset(row, &p);
	for (int i = 0; i < row->n_keys; i++)
		saina_policy_put(&p, &row->keys[i], saina_policy_get(want, &row->keys[i]));
	if (p.timeout_us > TIMEOUT_MAX_US)
		p.timeout_us = TIMEOUT_MAX_US;
	if (p.mode == SAINA_POLICY_TIMEOUT && !p.k_min)
		p.k_min = 1;
	if (p.mode == SAINA_POLICY_FASTEST && p.k_min > p.k)
		p.k_min = p.k;
	if (p.mode == SAINA_POLICY_FASTEST && !p.timeout_us)
		p.k_min = 0;
	memcpy(p.group, want->group, sizeof(p.group));
	/* a group of nobody, or none of some worker's */
	if (saina_policy_check(&p, workers, NULL))
		saina_policy_deal(&p);
	saina_policy_show(&p, a);
}

static int admit(const struct saina_job_conf *c, unsigned int w, uint32_t round)
{
	const struct saina_binding *b = &c->worker[w];
	struct saina_worker_attrs a = {
		.has = BIT_OF(SAINA_A_WORKER_IFINDEX) | BIT_OF(SAINA_A_WORKER_IP) |
		       BIT_OF(SAINA_A_WORKER_MAC) | BIT_OF(SAINA_A_WORKER_UDP_PORT) |
		       BIT_OF(SAINA_A_WORKER_SESSION) | BIT_OF(SAINA_A_WORKER_ROUND) |
		       BIT_OF(SAINA_A_WORKER_RELAY),
		.job_id = c->job,
		.id = w,
		.ifindex = b->ifindex,
		.ip = b->ip,
		.udp_port = b->udp_port,
		.session = b->session,
		.round = round,
		.relay = !!(b->flags & SAINA_BIND_RELAY),
	};

	memcpy(a.mac, b->mac, sizeof(a.mac));
	return count_request(request_worker(SAINA_CMD_WORKER_SET, &a));
}

/* Everybody is admitted, so that the job runs; who is not to be alive dies. */
static int job_new(const struct saina_job_conf *c, uint32_t first_round)
{
	struct saina_job_attrs a = {
		.has = BIT_OF(SAINA_A_JOB_ID) | BIT_OF(SAINA_A_JOB_NAME) |
		       BIT_OF(SAINA_A_JOB_ELEMENTS) | BIT_OF(SAINA_A_JOB_WORKERS) |
		       BIT_OF(SAINA_A_JOB_PAYLOAD) | BIT_OF(SAINA_A_JOB_POOL) |
		       BIT_OF(SAINA_A_JOB_RING) | BIT_OF(SAINA_A_JOB_ELEM_TYPE) |
		       BIT_OF(SAINA_A_JOB_POLICY),
		.id = c->job,
		.elements = (__u64)c->segments * c->payload,
		.workers = c->workers,
		.payload = c->payload,
		.pool = c->pool,
		.ring = c->ring,
		.elem_type = c->elem,
	};
	int err;

	request_job_del(c->job);
	snprintf(a.name, sizeof(a.name), "job-%u", c->job);
	policy_encode(&c->policy, c->workers, &a.policy);
	err = count_request(request_job(SAINA_CMD_JOB_NEW, &a));
	for (unsigned int w = 0; !err && w < c->workers; w++)
		err = admit(c, w, first_round);
	return err;
}

static void policy_change(const struct saina_job_conf *have, const struct saina_job_conf *want,
			  uint32_t adopted)
{
	struct saina_job_attrs a = { .has = BIT_OF(SAINA_A_JOB_ID), .id = want->job };
	bool come = have->next.seq && adopted == have->next.seq;

	if (want->next.seq && want->next.seq != have->next.seq) {
		a.has |= BIT_OF(SAINA_A_JOB_POLICY) | BIT_OF(SAINA_A_JOB_POLICY_FROM);
		policy_encode(&want->next, want->workers, &a.policy);
		a.policy_from = want->next_from;
		a.policy_on = want->next_on;
		if (a.policy_on)
			a.has |= BIT_OF(SAINA_A_JOB_POLICY_ON);
	} else if (want->policy.seq != have->policy.seq && want->policy.seq != have->next.seq) {
		a.has |= BIT_OF(SAINA_A_JOB_POLICY);
		policy_encode(&want->policy, want->workers, &a.policy);
	}
	if (have->next.seq && want->next.seq != have->next.seq && !come) {
		a.has |= BIT_OF(SAINA_A_JOB_POLICY_CANCEL);
		a.policy_cancel = 1;
	}
	if (a.has != BIT_OF(SAINA_A_JOB_ID))
		count_request(request_job(SAINA_CMD_JOB_SET, &a));
}

static void state_change(const struct saina_job_conf *have, const struct saina_job_conf *want)
{
	struct saina_job_attrs a = { .has = BIT_OF(SAINA_A_JOB_ID), .id = want->job };

	bool external = have->policy.mode == SAINA_POLICY_EXTERNAL ||
			have->next.mode == SAINA_POLICY_EXTERNAL;

	if (external && want->k_set && want->k_set != have->k_set) {
		a.has |= BIT_OF(SAINA_A_JOB_K_SET);
		a.k_set = want->k_set;
		count_request(request_job(SAINA_CMD_JOB_SET, &a));
	}
	if (want->state != have->state)
		count_request(request_job_state(want->job, want->state));
}

/* Deaths, births, and new incarnations of those who were not known to be dead. */
static void workers_change(const struct saina_job_conf *have, const struct saina_job_conf *want)
{
	for (unsigned int w = 0; w < want->workers; w++) {
		bool is = have->active >> w & 1, shall = want->active >> w & 1;
		bool other = want->worker[w].session != have->worker[w].session;

		/* without anybody alive it would be another job */
		if (is && (!shall || other) && have->active & ~(1ull << w))
			count_request(request_worker_state(want->job, w, SAINA_WORKER_STATE_DEAD));
		if (shall && (!is || (other && have->active & ~(1ull << w))))
			admit(want, w, 0);
	}
}

static int backend_job(struct harness *r, struct saina_job_conf *want, uint32_t first_round,
		       bool begins)
{
	uint32_t adopted = r->o.job[want->job].rt.policy.seq;

	if (begins && job_new(want, first_round)) {
		harness_differs(r, "job %u: %s\n", want->job, requests.last);
		return -EINVAL;
	}
	if (xdp_harness_snapshot_of(&module, want->job)) {
		harness_differs(r, "job %u: saina.ko has no snapshot of it\n", want->job);
		return -ENOENT;
	}
	workers_change(&module.conf, want);
	if (!begins) {
		policy_change(&module.conf, want, adopted);
		state_change(&module.conf, want);
	} else if (want->next.seq) {
		policy_change(&module.conf, want, 0);
	}
	if (xdp_harness_snapshot_of(&module, want->job))
		return -ENOENT;
	*want = module.conf;
	return 0;
}

static void backend_remove(struct harness *r, unsigned int job)
{
	request_job_del(job);
}

void backend_open(struct harness *r)
{
	static const struct harness_backend kernel = { .job = backend_job, .remove = backend_remove };
	char path[PATH_MAX];

	requests_open();
	if (xdp_harness_helpers(&module, path_beside(path, "kfunc_test.bpf.o")))
		tap_bail("%s does not load", path);
	r->backend = &kernel;
	r->tick_us = TIMEOUT_MAX_US / 4;
}

void backend_close(struct harness *r)
{
	bpf_object__close(module.helpers);
	saina_ctl_close(requests_ctl);
	r->backend = NULL;
}

const struct backend_requests *backend_requests(void)
{
	return &requests;
}
