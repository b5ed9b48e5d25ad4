/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rig: the real XDP program (through BPF_PROG_TEST_RUN, in a network
 * namespace of its own) and the oracle side by side.  Every frame goes to both
 * and must come out of both the same.
 */
#ifndef SAINA_RIG_H
#define SAINA_RIG_H

#include "dp/dp.h"
#include "lib/frame.h"
#include "oracle/oracle.h"

#define RIG_PORTS	3	/* lo and both ends of a veth */

struct rig_relay {
	uint64_t workers;
	uint32_t len;
	uint32_t sum;		/* of what the relay must carry */
	uint64_t packet;
};

struct rig_shared {
	uint8_t *input[SAINA_WORKERS_MAX], *board;
	size_t input_len, board_len;
};

struct rig {
	struct saina_dp *dp;
	int prog;
	int tc;				/* the tc program, if rig_use_tc() was called; else 0 */
	struct bpf_object *tc_object;	/* that it is in */
	int outlet;			/* its saina_outlet */
	int asked;			/* saina_asked */
	struct saina_global g;
	struct oracle o;
	unsigned int port[RIG_PORTS];	/* ifindexes; port[0] is lo */
	unsigned int linear;		/* bytes of a frame that lie in one piece, 0: as many as fit */
	bool no_linear;			/* this kernel cannot be asked for that */

	/* of the packet last given to rig_packet() */
	struct oracle_out want;
	int verdict;			/* XDP_*, TC_ACT_* */
	unsigned int len;
	uint8_t got[FRAME_MAX];
	struct {
		uint64_t to;		/* workers */
		const uint8_t *message;
	} answer[64];			/* that leave with it, or by the agent */
	unsigned int answers;

	struct rig_relay *relay;	/* expected since the last rig_drain() */
	unsigned int relays, relays_got;
	struct saina_event *event;	/* got since then */
	unsigned int events, events_room;
	struct saina_counters *base;	/* [job][worker]: when the job's generation began */
	uint64_t packets;		/* run */
	struct rig_shared *shared;	/* [job] */
	char diff[2048];		/* what differs, for people */
};

/*
 * Loads the program named by SAINA_BPF_OBJECT (default: the one built beside
 * this program).  Exits with TAP_SKIP_ALL where that cannot work: no root.
 */
void rig_open(struct rig *r);
void rig_close(struct rig *r);
/* From now on frames come in by the tc hook, on the same maps. */
void rig_use_tc(struct rig *r);

/* A job made or changed in both.  0 or -errno */
int rig_job(struct rig *r, const struct saina_job_conf *conf, uint32_t first_round);
/*
 * As rig_job() for a job that exists, but by a write into the snapshot, which
 * saves the wait for a grace period; nothing runs meanwhile.
 */
int rig_job_poke(struct rig *r, const struct saina_job_conf *conf);
int rig_job_remove(struct rig *r, unsigned int job);
int rig_port(struct rig *r, unsigned int ifindex, const struct saina_port_conf *c);

/*
 * One frame through both.  False if verdict or answer differ (r->diff).
 * The frame may come in by any of r->port[].
 */
bool rig_packet(struct rig *r, const uint8_t *frame, unsigned int len, unsigned int ifindex);

#define RIG_SKB_MAX 3600	/* bytes of a frame that can come in by the tc hook here */

/* A frame of messages of @size bytes each, but perhaps the last; by the tc hook. */
bool rig_train(struct rig *r, const uint8_t *frame, unsigned int len, unsigned int size,
	       unsigned int ifindex);

/* Through the program alone. */
bool rig_train_alone(struct rig *r, const uint8_t *frame, unsigned int len, unsigned int size,
		     unsigned int ifindex);
/* Where results of a job go from the tc hook; 0: nowhere. */
void rig_set_outlet(struct rig *r, __u32 job, __u32 ifindex);

/* Through the program alone; for what the oracle does not model. */
bool rig_packet_alone(struct rig *r, const uint8_t *frame, unsigned int len,
		      unsigned int ifindex);

/* Events and relayed answers since the last call: the same in both? */
bool rig_drain(struct rig *r);
/* Counters, rt, open slots of a job.  @deep: ring, sign bits, counted[], too */
bool rig_check_job(struct rig *r, unsigned int job, bool deep);
/* Counters that belong to no job. */
bool rig_check_global(struct rig *r);
/* The program's counters of a worker since this generation of its job began. */
int rig_counters(struct rig *r, unsigned int job, unsigned int worker,
		 struct saina_counters *out);
/* After rig_job(): do results go to the ports of the live workers, and to no other? */
bool rig_check_fanout(struct rig *r, unsigned int job);

/* @ns go by, as far as open slots are concerned: their times are set back.  0 or -errno */
int rig_time_passes(struct rig *r, uint64_t ns);

/* By reference: worker @w of the job gets an input array; loses it (@there false), and the job
 * its board. */
int rig_share(struct rig *r, unsigned int job, unsigned int w, bool there);
void rig_unshare_all(struct rig *r, unsigned int job);
/* Where the worker writes segment @segment, its elements behind it; NULL: it has no array. */
struct saina_input_head *rig_input(struct rig *r, unsigned int job, unsigned int w,
				   uint32_t segment);
/* What all read, of the real board; NULL: there is none. */
const struct saina_board_head *rig_board(struct rig *r, unsigned int job, uint32_t round,
					 uint32_t segment);
/* Is an entry of the board what the oracle says? */
bool rig_check_board(struct rig *r, unsigned int job, uint32_t round, uint32_t segment);

/* Adds to r->diff; false. */
bool rig_differs(struct rig *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* File descriptor of a map of the program by name; of the inner map of @job. */
int rig_map(struct rig *r, const char *name);
int rig_inner(struct rig *r, const char *name, unsigned int job);

/* Worker @w of the job is to be behind port[@port] of the rig. */
void rig_bind(const struct rig *r, struct saina_job_conf *c, unsigned int w,
	      unsigned int port, uint64_t session);
/* The address a job's results go to. */
__be32 rig_group(unsigned int job);

#endif /* SAINA_RIG_H */
