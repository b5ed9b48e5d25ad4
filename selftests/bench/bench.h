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

#endif /* SAINA_BENCH_H */
