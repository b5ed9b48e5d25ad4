// SPDX-License-Identifier: GPL-2.0-or-later
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include "harness_events.h"
#include "harness_jobs.h"
#include "harness_shm.h"

int harness_counters(struct harness *r, unsigned int job, unsigned int worker,
		     struct saina_counters *out)
{
	const struct saina_counters *base = &r->base[job * SAINA_WORKERS_MAX + worker];
	int err = saina_dp_counters(r->dp, job, worker, out);

	for (int i = 0; !err && i < SAINA_C_N; i++)
		out->c[i] -= base->c[i];
	return err;
}

/* Do results go to the ports of the live workers, and to no others? */
static bool same_fanout(struct harness *r, unsigned int job)
{
	const struct saina_job_conf *c = &r->o.job[job].conf;
	uint64_t want = 0, got = 0;	/* masks of ifindexes, which are small here */
	uint32_t key, next, *prev = NULL;
	int fd;

	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++)
		if (c->active & ~c->relay & 1ull << w)
			want |= 1ull << c->worker[w].ifindex;
	fd = harness_inner(r, "saina_fanout", job);
	if (fd < 0)
		return harness_differs(r, "no fan-out set of job %u\n", job);
	for (; !bpf_map_get_next_key(fd, prev, &next); prev = &key) {
		struct bpf_devmap_val v;

		key = next;
		if (!bpf_map_lookup_elem(fd, &key, &v))
			got |= 1ull << (v.ifindex & 63);
	}
	close(fd);
	if (got != want)
		return harness_differs(r, "fan-out of job %u: want ports %llx, got %llx (bits: ifindexes)\n",
				       job, (unsigned long long)want, (unsigned long long)got);
	return true;
}

int harness_job(struct harness *r, struct saina_job_conf *conf, uint32_t first_round)
{
	const struct oracle_job *j = &r->o.job[conf->job];
	bool begins;
	int err = 0;

	if (r->backend)
		err = r->backend->job(r, conf, first_round, !j->present);
	if (err)
		return err;
	/* a job that gets or loses its uplink has another ring */
	if (j->present && j->conf.uplink != conf->uplink && !harness_drain(r))
		return -EINVAL;
	begins = !j->present || j->conf.generation != conf->generation;
	if (begins)
		harness_shm_unmap(r, conf->job);
	err = saina_dp_job_publish(r->dp, conf, first_round);
	if (err) {
		harness_differs(r, "publish: %s\n", saina_dp_error(r->dp));
		return err;
	}
	oracle_job_publish(&r->o, conf, first_round);
	for (unsigned int w = 0; begins && !err && w < SAINA_WORKERS_MAX; w++)
		err = saina_dp_counters(r->dp, conf->job, w,
					&r->base[conf->job * SAINA_WORKERS_MAX + w]);
	if (err)
		harness_differs(r, "counters: %s\n", saina_dp_error(r->dp));
	else if (!same_fanout(r, conf->job))
		err = -EINVAL;
	return err;
}

int harness_job_overwrite(struct harness *r, struct saina_job_conf *conf)
{
	__u32 zero = 0;
	int fd, err;

	if (r->backend) {
		err = r->backend->job(r, conf, 0, false);
		if (!err)
			r->o.job[conf->job].conf = *conf;
		return err;
	}
	fd = harness_inner(r, "saina_jobs", conf->job);
	if (fd < 0)
		return fd;
	err = bpf_map_update_elem(fd, &zero, conf, BPF_ANY);
	close(fd);
	if (err)
		return harness_job(r, conf, 0);
	r->o.job[conf->job].conf = *conf;
	return 0;
}

#define COARSE_NS 20000000	/* the coarse clock is never behind by so much */

/* Sets a deadline back.  Just after boot that may be before time 0; 0 means none. */
static uint64_t earlier(uint64_t deadline, uint64_t ns)
{
	return deadline > ns ? deadline - ns : 1;
}

int harness_advance_time(struct harness *r, uint64_t ns)
{
	static const unsigned int sizes[] = {
#define SIZE(E) E,
		SAINA_ELEMS_LIST(SIZE)
#undef SIZE
	};
	static struct {
		struct saina_slot_meta meta;
		int32_t sum[SAINA_ELEMS_MAX];
	} slot;
	char name[16];
	int err = 0;

	r->o.now += ns;
	for (unsigned int job = 0; job < SAINA_JOBS_MAX; job++) {
		const struct oracle_job *j = &r->o.job[job];
		int fd = -1;

		for (__u32 i = 0; j->present && i < j->conf.pool; i++) {
			if (j->hot[i].meta.state != SAINA_SLOT_OPEN || !j->hot[i].meta.deadline)
				continue;
			for (unsigned int s = 0; fd < 0 && s < sizeof(sizes) / sizeof(sizes[0]); s++) {
				if (sizes[s] != j->conf.payload)
					continue;
				snprintf(name, sizeof(name), "saina_hot_%u", sizes[s]);
				fd = harness_inner(r, name, job);
			}
			if (fd < 0 || bpf_map_lookup_elem(fd, &i, &slot))
				err = -ENOENT;
			slot.meta.deadline = earlier(slot.meta.deadline, ns + COARSE_NS);
			slot.meta.opened_at -= ns;
			if (!err && bpf_map_update_elem(fd, &i, &slot, BPF_ANY))
				err = -errno;
		}
		if (fd >= 0)
			close(fd);
	}
	if (err)
		harness_differs(r, "time of open slots: %s\n", strerror(-err));
	return err;
}

int harness_job_remove(struct harness *r, unsigned int job)
{
	harness_shm_unmap(r, job);
	oracle_job_remove(&r->o, job);
	if (r->backend)
		r->backend->remove(r, job);
	return saina_dp_job_remove(r->dp, job);
}
