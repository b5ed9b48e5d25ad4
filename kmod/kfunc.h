/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What XDP and tc programs may call.  Documentation/netlink.rst, section
 * "From BPF programs", has the declarations for a program.
 */
#ifndef _SAINA_KFUNC_H
#define _SAINA_KFUNC_H

#include <linux/types.h>

#include "saina/bpf.h"

struct xdp_md;
struct __sk_buff;

const u8 *saina_xdp_job(struct xdp_md *ctx, u32 job, const u32 rdonly_buf_size);
const u8 *saina_tc_job(struct __sk_buff *ctx, u32 job, const u32 rdonly_buf_size);
int saina_xdp_event(struct xdp_md *ctx, const struct saina_event *ev, u32 ev__sz);
int saina_tc_event(struct __sk_buff *ctx, const struct saina_event *ev, u32 ev__sz);
int saina_f32_sum(void *slot, u32 slot__sz, const void *msg, u32 msg__sz, u64 tag);
int saina_bf16_sum(void *slot, u32 slot__sz, const void *msg, u32 msg__sz, u64 tag);

int saina_kfunc_init(void);

#endif /* _SAINA_KFUNC_H */
