/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The XDP program that asks saina.ko (saina_xdp_kmod.bpf.o) and frames for it by
 * BPF_PROG_TEST_RUN, which come in by lo.  Job 0 is configured by netlink (requests.h).
 */
#ifndef SAINA_TEST_XDP_HARNESS_H
#define SAINA_TEST_XDP_HARNESS_H

#include "../lib/frame.h"
#include "requests.h"
#include "dp/dp.h"

struct bpf_object;

/**
 * struct xdp_harness
 * @conf: snapshot of a job, as xdp_harness_snapshot() found it
 */
struct xdp_harness {
	struct bpf_object *helpers;
	struct saina_dp *dp;
	struct saina_global global;
	struct saina_job_conf conf;
};

/* What the program made of a frame; @frame: what is sent if anything is. */
struct xdp_sent {
	int action;		/* XDP_*, negative: it did not run */
	unsigned int len;
	uint8_t frame[FRAME_MAX];
};

/* The program that reads snapshots, out of @object (kfunc_test.bpf.o). */
int xdp_harness_helpers(struct xdp_harness *r, const char *object);
/* The program itself, @object; says what is wrong with it. */
int xdp_harness_load(struct xdp_harness *r, const char *object);
void xdp_harness_close(struct xdp_harness *r);

/* @ret, of a call; what the module said is noted if that is a refusal. */
int xdp_harness_check(int ret);
/* Binds workers 0 .. @n - 1 of job 0 to lo. */
int xdp_harness_bind(int n);
/* A job as the module's kfunc gives it to programs; job 0. */
int xdp_harness_snapshot_of(struct xdp_harness *r, unsigned int job);
int xdp_harness_snapshot(struct xdp_harness *r);
/* @hdr with version and session put in, @len bytes behind it; from several threads at once. */
void xdp_harness_send(const struct xdp_harness *r, struct saina_hdr hdr, const void *payload,
		      unsigned int len, struct xdp_sent *sent);
/* As saina_dp_counters(), one of them; all bits set if there is none. */
__u64 xdp_harness_counted(const struct xdp_harness *r, int job, int worker, int counter);

#endif /* SAINA_TEST_XDP_HARNESS_H */
