/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the benchmarks and their BPF programs. */
#ifndef SAINA_BENCH_H
#define SAINA_BENCH_H

#include <linux/types.h>

#define BENCH_SLOTS	4096
#define BENCH_HEAD	90	/* bytes of Ethernet, IPv4, UDP and SAINA headers */
#define BENCH_UDP_PORT	20000	/* of worker 0; each has its own */

/* All workers are on the port that BPF_PROG_TEST_RUN uses, and have the same address. */
#define SENDER_IFINDEX	1
#define SENDER_IP	0x0abe0002
#define SENDER_SESSION	7
#define SENDER_MAC	"\x02\x5a\x00\x00\x00\x02"

/* The program that bench_driver tail-calls. */
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
 * struct bench_state - the next frame of bench_driver
 * @target: the program to call
 * @segment: of the next frame; incremented up to @segment_end, then reset to @segment_begin,
 *	while @worker grows by @worker_step and @exponent by @exponent_step
 * @head: first BENCH_HEAD bytes of every frame; segment, worker, UDP port and exponent are
 *	filled in
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

#define SCALE_CPUS	1024
#define SCALE_FRAME	2	/* most messages in a frame of the tc hook: TEST_RUN takes a page */
#define SCALE_COPY	64	/* bytes of a message that the driver writes */

enum scale_target { SCALE_EMPTY, SCALE_SAINA, SCALE_TARGETS };

/**
 * struct scale_state - the next frame of the drivers of bench-scale, one for each CPU
 * @target: enum scale_target
 * @segment: of the first message in the next frame
 * @window, @window_size: all workers in turn send @window_size segments, from @window on; then the
 *	next window begins.  So many segments use slots at once
 * @segments, @workers: of the job; after the last segment the next @round begins
 * @step: segments of a frame
 * @messages: of a frame, each of @bytes
 * @head: of every frame, up to the end of the first SCALE_COPY bytes of its message; segment, round,
 *	worker and UDP port are filled in
 */
struct scale_state {
	__u32	target;
	__u32	segment;
	__u32	window;
	__u32	window_size;
	__u32	segments;
	__u32	worker;
	__u32	workers;
	__u32	round;
	__u32	step;
	__u32	messages;
	__u32	bytes;
	__u16	pad;		/* for alignment of what is in @head */
	__u8	head[BENCH_HEAD + SCALE_COPY - 48];
} __attribute__((aligned(64)));	/* no two CPUs share a cache line */

#endif /* SAINA_BENCH_H */
