/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the benchmarks and their BPF programs. */
#ifndef SAINA_BENCH_H
#define SAINA_BENCH_H

#include <linux/types.h>

#define BENCH_SLOTS	4096
#define BENCH_HEAD	90	/* bytes of Ethernet, IPv4, UDP and SAINA headers */
#define BENCH_UDP_PORT	20000	/* of worker 0; each has its own */

/* Where bench_driver jumps to. */
enum bench_target {
	BENCH_EMPTY,
	BENCH_PARSE,
	BENCH_ADD_64,
	BENCH_ADD_128,
	BENCH_ADD_256,
	BENCH_ADD_352,
	BENCH_ADD_1024,
	BENCH_ADD_2048,
	BENCH_SAINA,
	BENCH_TARGETS
};

/**
 * struct bench_state - what bench_driver makes of the next frame
 * @target: where it goes
 * @segment: of the next frame; grows by 1 up to @segment_end, then
 *	begins at @segment_begin again, @worker grows by @worker_step and @exponent by
 *	@exponent_step
 * @head: first BENCH_HEAD bytes of every frame (segment, worker, its UDP port and the
 *	exponent apart)
 */
struct bench_state {
	__u32	target;
	__u32	segment;
	__u32	segment_begin;
	__u32	segment_end;
	__u32	worker;
	__u32	worker_step;
	__s32	exponent;
	__s32	exponent_step;
	__u64	head[12];
};

#endif /* SAINA_BENCH_H */
