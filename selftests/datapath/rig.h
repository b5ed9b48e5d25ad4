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
#define RIG_RELAYS	32	/* answers to relay, drained when so many are waiting */

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

struct rig;

/* Where jobs come from, if not from maps that the rig writes. */
struct rig_plane {
	/*
	 * Creates or changes a job as @conf says; @conf becomes what the plane has made of it.
	 * @begins: the job is new, also where its number was in use.  0 or -errno, r->diff says why.
	 */
	int (*job)(struct rig *r, struct saina_job_conf *conf, uint32_t first_round, bool begins);
	void (*remove)(struct rig *r, unsigned int job);
};

struct rig {
	struct saina_dp *dp;
	const struct rig_plane *plane;	/* NULL: maps */
	uint32_t tick_us;		/* unit of time-outs, 1 to 4 of them: longer than any test */
	int prog;
	int tc;				/* the tc program, if rig_use_tc() was called; else 0 */
	struct bpf_object *tc_object;	/* that it is in */
	int outlet;			/* its saina_fanout_ifb */
	int asked;			/* saina_asked */
	struct saina_global g;
	struct oracle o;
	unsigned int port[RIG_PORTS];	/* ifindexes; port[0] is lo */
	unsigned int linear;		/* bytes of a frame that lie in one piece, 0: as many as fit */
	bool no_linear;			/* this kernel does not support that */

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

	struct rig_relay relay[RIG_RELAYS];	/* expected since the last rig_drain() */
	unsigned int relays, relays_got;
	struct saina_event *event;	/* got since then */
	unsigned int events, events_room;
	struct saina_counters *base;	/* [job][worker]: when the job's generation began */
	uint64_t packets;		/* run so far */
	struct rig_shared *shared;	/* [job] */
	char diff[2048];		/* what differs, in words */
};

/*
 * Loads the program named by SAINA_BPF_OBJECT (default: the one built beside
 * this program).  Exits with TAP_SKIP_ALL where that cannot work: no root.
 */
void rig_open(struct rig *r);
void rig_close(struct rig *r);
/* From now on frames come in by the tc hook, on the same maps. */
void rig_use_tc(struct rig *r);

int rig_port(struct rig *r, unsigned int ifindex, const struct saina_port_conf *c);

/* Where results of a job go from the tc hook; 0: nowhere. */
void rig_set_outlet(struct rig *r, __u32 job, __u32 ifindex);

/* Appends to r->diff; returns false. */
bool rig_differs(struct rig *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* File descriptor of a map of the program by name; of the inner map of @job. */
int rig_map(struct rig *r, const char *name);
int rig_inner(struct rig *r, const char *name, unsigned int job);

/* Binds worker @w of the job to port[@port] of the rig. */
void rig_bind(const struct rig *r, struct saina_job_conf *c, unsigned int w,
	      unsigned int port, uint64_t session);
/* The address a job's results go to. */
__be32 rig_group(unsigned int job);

#endif /* SAINA_RIG_H */
