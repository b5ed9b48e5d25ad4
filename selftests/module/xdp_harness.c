// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "../lib/tap.h"
#include "xdp_harness.h"
#include "kfunc_test.h"

#define IFINDEX	1	/* lo */
#define READER	"xdp_conf"

int xdp_harness_helpers(struct xdp_harness *r, const char *object)
{
	struct bpf_program *p;

	r->helpers = bpf_object__open_file(object, NULL);
	if (!r->helpers)
		return -errno;
	bpf_object__for_each_program(p, r->helpers)
		bpf_program__set_autoload(p, !strcmp(bpf_program__name(p), READER));
	return bpf_object__load(r->helpers);
}

static void log_line(void *arg, int level, const char *line)
{
	if (level <= 1)
		tap_note("%.300s", line);
}

int xdp_harness_load(struct xdp_harness *r, const char *object)
{
	struct saina_dp_opts opts = { .object = object, .log = log_line, .any_port = true };
	int err = saina_dp_open(&r->dp, &opts);

	if (err) {
		tap_note("%s does not load: %s", object, r->dp ? saina_dp_error(r->dp) : strerror(-err));
		return err;
	}
	r->global = (struct saina_global){ .ip = 0x0100be0a, .mac = { 2, 90, 0, 0, 0, 1 } };
	return saina_dp_global_set(r->dp, &r->global);
}

void xdp_harness_close(struct xdp_harness *r)
{
	saina_dp_close(r->dp, true);
	bpf_object__close(r->helpers);
}

int xdp_harness_check(int ret)
{
	if (ret)
		tap_note("refused: %s", saina_ctl_error(requests_ctl));
	return ret;
}

int xdp_harness_bind(int n)
{
	int ret = 0;

	for (int w = 0; w < n && !ret; w++)
		ret = xdp_harness_check(request_worker_bind(0, w, IFINDEX));
	return ret;
}

int xdp_harness_snapshot(struct xdp_harness *r)
{
	return xdp_harness_snapshot_of(r, 0);
}

int xdp_harness_snapshot_of(struct xdp_harness *r, unsigned int job)
{
	struct bpf_program *p = bpf_object__find_program_by_name(r->helpers, READER);
	const struct io io = { .job = job };
	char packet[64] = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet));
	__u32 zero = 0;

	if (!p || bpf_map_update_elem(bpf_object__find_map_fd_by_name(r->helpers, "io"), &zero, &io,
				      BPF_ANY) ||
	    bpf_prog_test_run_opts(bpf_program__fd(p), &opts) || opts.retval != XDP_PASS) {
		tap_note("no snapshot of job %u", job);
		return -ENOENT;
	}
	return bpf_map_lookup_elem(bpf_object__find_map_fd_by_name(r->helpers, "conf"), &zero,
				   &r->conf);
}

void xdp_harness_send(const struct xdp_harness *r, struct saina_hdr hdr, const void *payload,
		      unsigned int len, struct xdp_sent *sent)
{
	const struct saina_binding *b = &r->conf.worker[hdr.worker];
	uint8_t frame[FRAME_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_out = sent->frame,
		    .data_size_out = sizeof(sent->frame));

	hdr.version = SAINA_PROTO_VERSION;
	hdr.session = b->session;
	opts.data_size_in = frame_make(frame, &r->global, b, &hdr, payload, len);
	if (bpf_prog_test_run_opts(saina_dp_prog_fd(r->dp), &opts)) {
		tap_note("BPF_PROG_TEST_RUN: %s", strerror(errno));
		sent->action = -1;
		return;
	}
	sent->action = opts.retval;
	sent->len = opts.data_size_out;
}

__u64 xdp_harness_counted(const struct xdp_harness *r, int job, int worker, int counter)
{
	struct saina_counters c;

	return saina_dp_counters(r->dp, job, worker, &c) ? ~0ull : c.c[counter];
}
