/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between the two hooks.  The build chooses: tc with SAINA_HOOK_TC, else XDP.
 *
 *	HOOK_CTX	context of the program
 *	hook_load	helper that copies from the frame
 *	hook_job	saina.ko's kfunc for a snapshot
 *	hook_event	saina.ko's kfunc for an event
 *	HOOK_CSUM	what two elements of a SUM add to the checksum of its payload
 */
#ifndef SAINA_HOOK_BPF_H
#define SAINA_HOOK_BPF_H

#include "common.bpf.h"

#ifdef SAINA_HOOK_TC
#define HOOK_CTX	struct __sk_buff
#define hook_load	bpf_skb_load_bytes
#define hook_job	saina_tc_job
#define hook_event	saina_tc_event
#define HOOK_CSUM(v)	0ull	/* gso_write_headers() needs no checksum of the payload */
#else
#define HOOK_CTX	struct xdp_md
#define hook_load	bpf_xdp_load_bytes
#define hook_job	saina_xdp_job
#define hook_event	saina_xdp_event
#define HOOK_CSUM(v)	((__u32)(v) + ((v) >> 32))
#endif

#endif /* SAINA_HOOK_BPF_H */
