// SPDX-License-Identifier: GPL-2.0-or-later
/* Jobs in saina.ko to measure with: created by netlink, their snapshots read by kfunc. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>
#include "bench.h"
#include "die.h"
#include "kernel_job.h"
#include "ctl/obj.h"

static struct saina_ctl *kernel_open(void)
{
	struct saina_ctl *ctl;
	const char *error;

	if (saina_ctl_open(&ctl, "kernel", &error))
		bench_die("%s", error);
	return ctl;
}

static void kernel_request(struct saina_ctl *ctl, int cmd, const struct saina_attr_class *c,
			   const void *obj)
{
	struct nlmsghdr *nlh = saina_ctl_msg(ctl, cmd, 0);

	saina_ctl_encode(nlh, c, obj);
	if (saina_ctl_call(ctl, nlh, NULL, NULL))
		bench_die("%s", saina_ctl_error(ctl));
}

static void job_create(struct saina_ctl *ctl, unsigned int id, unsigned int payload,
		       unsigned int workers, unsigned int k, unsigned int pool)
{
	struct saina_job_attrs job = {
		.id = id, .workers = workers, .elements = (__u64)payload * pool,
		.payload = payload, .pool = pool, .ring = 2,
	};

	SAINA_SET(&job, SAINA_A_JOB_ID);
	SAINA_SET(&job, SAINA_A_JOB_NAME);
	SAINA_SET(&job, SAINA_A_JOB_WORKERS);
	SAINA_SET(&job, SAINA_A_JOB_ELEMENTS);
	SAINA_SET(&job, SAINA_A_JOB_PAYLOAD);
	SAINA_SET(&job, SAINA_A_JOB_POOL);
	SAINA_SET(&job, SAINA_A_JOB_RING);
	SAINA_SET(&job, SAINA_A_JOB_POLICY);
	snprintf(job.name, sizeof(job.name), "bench%u", id);
	SAINA_PUT(&job.policy, SAINA_A_POLICY_MODE, mode,
		  k == workers ? SAINA_POLICY_BSP : SAINA_POLICY_FASTEST);
	if (k != workers)
		SAINA_PUT(&job.policy, SAINA_A_POLICY_K, k, k);
	kernel_request(ctl, SAINA_CMD_JOB_NEW, &saina_job_class, &job);
}

static void worker_bind(struct saina_ctl *ctl, unsigned int job, unsigned int id)
{
	struct saina_worker_attrs w = {
		.job_id = job, .id = id, .ifindex = SENDER_IFINDEX, .ip = htonl(SENDER_IP),
		.udp_port = htons(BENCH_UDP_PORT + id), .session = SENDER_SESSION,
	};

	memcpy(w.mac, SENDER_MAC, sizeof(w.mac));
	SAINA_SET(&w, SAINA_A_WORKER_JOB_ID);
	SAINA_SET(&w, SAINA_A_WORKER_ID);
	SAINA_SET(&w, SAINA_A_WORKER_IFINDEX);
	SAINA_SET(&w, SAINA_A_WORKER_IP);
	SAINA_SET(&w, SAINA_A_WORKER_UDP_PORT);
	SAINA_SET(&w, SAINA_A_WORKER_SESSION);
	SAINA_SET(&w, SAINA_A_WORKER_MAC);
	kernel_request(ctl, SAINA_CMD_WORKER_SET, &saina_worker_class, &w);
}

static void snapshot_read(struct saina_job_conf *c, __u32 id)
{
	char self[PATH_MAX / 2], path[PATH_MAX], frame[64] = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, t, .data_in = frame, .data_size_in = sizeof(frame));
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct bpf_program *prog;
	struct bpf_object *obj;
	__u32 zero = 0;

	self[n > 0 ? n : 0] = 0;
	snprintf(path, sizeof(path), "%s/bench_kernel.bpf.o", dirname(self));
	obj = bpf_object__open_file(path, NULL);
	if (!obj || bpf_object__load(obj))
		bench_die("cannot load %s: %s", path, strerror(errno));
	prog = bpf_object__find_program_by_name(obj, "bench_snapshot");
	if (bpf_map_update_elem(bpf_object__find_map_fd_by_name(obj, "bench_job"), &zero, &id, 0) ||
	    bpf_prog_test_run_opts(bpf_program__fd(prog), &t) || t.retval != 2 ||
	    bpf_map_lookup_elem(bpf_object__find_map_fd_by_name(obj, "bench_conf"), &zero, c))
		bench_die("saina.ko publishes no job %u", id);
	bpf_object__close(obj);
}

void kernel_job_create(struct saina_job_conf *c, unsigned int id, unsigned int payload,
		       unsigned int workers, unsigned int k, unsigned int pool)
{
	struct saina_ctl *ctl = kernel_open();

	job_create(ctl, id, payload, workers, k, pool);
	for (unsigned int w = 0; w < workers; w++)
		worker_bind(ctl, id, w);
	saina_ctl_close(ctl);
	snapshot_read(c, id);
	if (c->state != SAINA_JOB_RUNNING || c->payload != payload || c->pool != pool)
		bench_die("job %u in saina.ko differs from the request", id);
}

void kernel_job_delete(unsigned int id)
{
	struct saina_ctl *ctl = kernel_open();
	struct saina_job_attrs job = { .id = id };

	SAINA_SET(&job, SAINA_A_JOB_ID);
	kernel_request(ctl, SAINA_CMD_JOB_DEL, &saina_job_class, &job);
	saina_ctl_close(ctl);
}
