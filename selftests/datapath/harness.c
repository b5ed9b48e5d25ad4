// SPDX-License-Identifier: GPL-2.0-or-later
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <unistd.h>
#include "lib/beside.h"
#include "lib/tap.h"
#include "harness.h"

static void log_line(void *arg, int level, const char *line)
{
	if (level == 0)
		tap_note("%s", line);
}

static const char *object_path(char *path)
{
	const char *env = getenv("SAINA_BPF_OBJECT");

	return env ? env : path_beside(path, "../saina_xdp.bpf.o");
}

void harness_open(struct harness *r)
{
	struct saina_dp_opts opts = { .log = log_line, .any_port = true };
	char path[PATH_MAX];

	memset(r, 0, sizeof(*r));
	r->tick_us = 250000000;
	if (geteuid())
		tap_skip_all("only root may load BPF programs");
	if (unshare(CLONE_NEWNET))
		tap_skip_all("cannot make a network namespace");
	if (system("ip link set lo up && ip link add rig1 type veth peer name rig2"))
		tap_bail("ip link: cannot make a veth pair");
	r->port[0] = if_nametoindex("lo");
	r->port[1] = if_nametoindex("rig1");
	r->port[2] = if_nametoindex("rig2");

	opts.object = object_path(path);
	if (saina_dp_open(&r->dp, &opts))
		tap_bail("cannot load the data path: %s", r->dp ? saina_dp_error(r->dp) : opts.object);
	r->prog = saina_dp_prog_fd(r->dp);
	r->g.ip = htonl(0x0abe0001);
	memcpy(r->g.mac, "\x02\x5a\x00\x00\x00\x01", 6);
	if (saina_dp_global_set(r->dp, &r->g))
		tap_bail("global_set: %s", saina_dp_error(r->dp));
	r->asked = harness_map(r, "saina_asked");
	if (r->asked < 0)
		tap_bail("saina_asked: %s", strerror(-r->asked));
	oracle_init(&r->o, &r->g);
	r->base = calloc(SAINA_JOBS_MAX * SAINA_WORKERS_MAX, sizeof(*r->base));
	r->shm = calloc(SAINA_JOBS_MAX, sizeof(*r->shm));
	if (!r->base || !r->shm)
		abort();
}

void harness_close(struct harness *r)
{
	close(r->asked);
	bpf_object__close(r->tc_object);
	saina_dp_close(r->dp, true);
	oracle_exit(&r->o);
	free(r->event);
	free(r->base);
	free(r->shm);
}

bool harness_differs(struct harness *r, const char *fmt, ...)
{
	size_t n = strlen(r->diff);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->diff + n, sizeof(r->diff) - n, fmt, ap);
	va_end(ap);
	return false;
}

__be32 harness_group(unsigned int job)
{
	return htonl(SAINA_GROUP_BASE | job);
}

void harness_bind(const struct harness *r, struct saina_job_conf *c, unsigned int w,
		  unsigned int port, uint64_t session)
{
	struct saina_binding *b = &c->worker[w];

	memset(b, 0, sizeof(*b));
	b->ifindex = r->port[port];
	b->ip = htonl(0x0abe0100 + (c->job << 8) + w);
	b->udp_port = htons(20000 + 64 * c->job + w);
	b->session = session;
	memcpy(b->mac, "\x02\x77", 2);
	b->mac[4] = c->job;
	b->mac[5] = w;
	b->flags = SAINA_BIND_BOUND;
}

void harness_bind_all(const struct harness *r, struct saina_job_conf *c, unsigned int workers,
		      uint64_t session)
{
	for (unsigned int w = 0; w < workers; w++) {
		harness_bind(r, c, w, 0, session + w);
		c->active |= 1ull << w;
	}
}

int harness_exchange(const struct harness *r, const struct saina_job_conf *c, struct saina_hdr h,
		     const void *payload, unsigned int len, uint8_t *out)
{
	const struct saina_binding *b = &c->worker[h.worker];
	uint8_t in[FRAME_MAX];
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, t, .data_in = in, .data_out = out,
			    .data_size_out = FRAME_MAX, .repeat = 1);

	h.version = SAINA_PROTO_VERSION;
	h.elem = SAINA_ELEM_INT32;
	h.job = c->job;
	h.session = b->session;
	t.data_size_in = frame_make(in, &r->g, b, &h, payload, len);
	return bpf_prog_test_run_opts(r->prog, &t) ? -errno : (int)t.retval;
}

int harness_map(struct harness *r, const char *name)
{
	struct bpf_prog_info info = {};
	__u32 ids[256], len = sizeof(info);

	info.nr_map_ids = 256;
	info.map_ids = (uintptr_t)ids;
	if (bpf_obj_get_info_by_fd(r->prog, &info, &len))
		return -errno;
	for (__u32 i = 0; i < info.nr_map_ids && i < 256; i++) {
		struct bpf_map_info m = {};
		int fd = bpf_map_get_fd_by_id(ids[i]);

		len = sizeof(m);
		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &m, &len) &&
		    !strncmp(m.name, name, BPF_OBJ_NAME_LEN - 1))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -ENOENT;
}

int harness_inner(struct harness *r, const char *name, unsigned int job)
{
	int outer = harness_map(r, name), fd;
	__u32 id;

	if (outer < 0)
		return outer;
	fd = bpf_map_lookup_elem(outer, &job, &id) ? -errno : bpf_map_get_fd_by_id(id);
	close(outer);
	return fd;
}

int harness_port(struct harness *r, unsigned int ifindex, const struct saina_port_conf *c)
{
	if (ifindex >= ORACLE_PORTS)
		return -EINVAL;
	r->o.port[ifindex] = *c;
	return saina_dp_port_set(r->dp, ifindex, c);
}

void harness_set_fanout_ifb(struct harness *r, __u32 job, __u32 ifindex)
{
	if (bpf_map_update_elem(r->fanout_ifb, &job, &ifindex, BPF_ANY))
		tap_bail("saina_fanout_ifb: %s", strerror(errno));
}

/* The tc object is in the folder of the XDP object; it shares that one's maps. */
void harness_use_tc(struct harness *r)
{
	char path[PATH_MAX], *at;
	struct bpf_object *o;
	struct bpf_map *m;
	const char *xdp = object_path(path);
	int fd;

	if (xdp != path)
		snprintf(path, sizeof(path), "%s", xdp);
	at = strstr(path, "saina_xdp");
	if (!at)
		tap_bail("%s: is not called saina_xdp...", path);
	memcpy(at, "saina_tc", 8);
	memmove(at + 8, at + 9, strlen(at + 9) + 1);
	o = bpf_object__open_file(path, NULL);
	if (!o)
		tap_bail("%s: %s", path, strerror(errno));
	bpf_object__for_each_map(m, o) {
		if (bpf_map__is_internal(m))
			continue;
		fd = harness_map(r, bpf_map__name(m));
		if (fd >= 0 && bpf_map__reuse_fd(m, fd))
			tap_bail("%s: %s", bpf_map__name(m), strerror(errno));
	}
	if (bpf_object__load(o))
		tap_bail("%s: %s", path, strerror(errno));
	r->tc = bpf_program__fd(bpf_object__find_program_by_name(o, "saina_tc"));
	r->fanout_ifb = bpf_object__find_map_fd_by_name(o, "saina_fanout_ifb");
	for (__u32 job = 0; job < SAINA_JOBS_MAX; job++)
		harness_set_fanout_ifb(r, job, r->port[0]);
	r->o.tc = true;
	r->tc_object = o;
}
