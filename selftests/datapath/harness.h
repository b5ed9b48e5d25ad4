/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The harness: the real XDP program (through BPF_PROG_TEST_RUN, in a network
 * namespace of its own) and the oracle side by side.  Every frame goes to both
 * and must come out of both the same.
 */
#ifndef SAINA_HARNESS_H
#define SAINA_HARNESS_H

#include "dp/dp.h"
#include "lib/frame.h"
#include "oracle/oracle.h"

#define HARNESS_PORTS	3	/* lo and both ends of a veth */
#define HARNESS_RELAYS	32	/* answers for the relay, drained when so many are pending */

struct harness_relay {
	uint64_t workers;
	uint32_t len;
	uint32_t sum;		/* checksum of the message to relay */
	uint64_t packet;
};

struct harness_shm {
	uint8_t *input[SAINA_WORKERS_MAX], *output;
	size_t input_len, output_len;
};

struct harness;

/* Who keeps the jobs, if the harness does not write the maps itself. */
struct harness_backend {
	/*
	 * Creates or changes a job as @conf says; @conf becomes what the backend has made of it.
	 * @begins: the job is new, also where its number was in use.  0 or -errno, r->diff says why.
	 */
	int (*job)(struct harness *r, struct saina_job_conf *conf, uint32_t first_round, bool begins);
	void (*remove)(struct harness *r, unsigned int job);
};

struct harness {
	struct saina_dp *dp;
	const struct harness_backend *backend;	/* NULL: maps */
	uint32_t tick_us;		/* unit of time-outs of 1 to 4 units: longer than any test */
	int prog;
	int tc;				/* the tc program, if harness_use_tc() was called; else 0 */
	struct bpf_object *tc_object;	/* that it is in */
	int fanout_ifb;			/* its saina_fanout_ifb */
	int asked;			/* saina_asked */
	struct saina_global g;
	struct oracle o;
	unsigned int port[HARNESS_PORTS];	/* ifindexes; port[0] is lo */
	unsigned int linear;		/* bytes of a frame that are linear, 0: as many as fit */
	bool no_linear;			/* this kernel does not support that */

	/* of the last packet */
	struct oracle_out want;
	int verdict;			/* XDP_*, TC_ACT_* */
	unsigned int len;
	uint8_t got[FRAME_MAX];
	struct {
		uint64_t to;		/* workers */
		const uint8_t *message;
	} answer[64];			/* that leave with it, or through the agent */
	unsigned int answers;

	struct harness_relay relay[HARNESS_RELAYS];	/* expected since the last harness_drain() */
	unsigned int relays, relays_got;
	struct saina_event *event;	/* got since then */
	unsigned int events, events_room;
	struct saina_counters *base;	/* [job][worker]: when the job's generation began */
	uint64_t packets;		/* run so far */
	struct harness_shm *shm;	/* [job] */
	char diff[2048];		/* the differences, in words */
};

/*
 * Loads the program named by SAINA_BPF_OBJECT (default: the one built beside
 * this program).  Exits with TAP_SKIP_ALL where that cannot work: no root.
 */
void harness_open(struct harness *r);
void harness_close(struct harness *r);
/* From now on frames come in by the tc hook, on the same maps. */
void harness_use_tc(struct harness *r);

int harness_port(struct harness *r, unsigned int ifindex, const struct saina_port_conf *c);

/* Sets the ifb that results of a job go to from the tc hook; 0: none. */
void harness_set_fanout_ifb(struct harness *r, __u32 job, __u32 ifindex);

/* Appends to r->diff; returns false. */
bool harness_differs(struct harness *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* File descriptor of a map of the program by name; of the inner map of @job. */
int harness_map(struct harness *r, const char *name);
int harness_inner(struct harness *r, const char *name, unsigned int job);

/* Binds worker @w of the job to port[@port] of the harness. */
void harness_bind(const struct harness *r, struct saina_job_conf *c, unsigned int w,
		  unsigned int port, uint64_t session);
/* Binds workers 0 .. @workers - 1 to port[0], with sessions from @session on, as active ones. */
void harness_bind_all(const struct harness *r, struct saina_job_conf *c, unsigned int workers,
		      uint64_t session);
/*
 * A message of worker @h.worker through the XDP program alone, which several threads may do at
 * once.  @out has FRAME_MAX bytes.  The verdict, or -errno.
 */
int harness_exchange(const struct harness *r, const struct saina_job_conf *c, struct saina_hdr h,
		     const void *payload, unsigned int len, uint8_t *out);
/* The address a job's results go to. */
__be32 harness_group(unsigned int job);

#endif /* SAINA_HARNESS_H */
