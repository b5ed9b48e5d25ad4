/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The data path library: load the BPF objects, attach them to ports, create the
 * maps of jobs, publish snapshots, read state.  Used by sainad, tests and benchmarks.
 *
 * Functions that return int return 0 or a negative errno unless they say otherwise;
 * saina_dp_error() then has a sentence.  A handle is used by one thread at a time.
 */
#ifndef SAINA_DP_H
#define SAINA_DP_H

#include <stdbool.h>
#include <stddef.h>
#include "saina/bpf.h"

struct saina_dp;

/**
 * struct saina_dp_opts
 * @object: path of saina_xdp.bpf.o; NULL: $SAINA_BPF_OBJECT, the program's directory,
 *	../lib/saina from there.  The tc hook requires saina_tc.bpf.o in the same directory
 * @pin_dir: existing directory on bpffs in which maps, programs and links are pinned;
 *	NULL: nothing is pinned.  A data path that is pinned there is taken over
 * @fresh: stop and remove what is pinned there instead of taking it over
 * @kernel: load saina_xdp_kmod.bpf.o, the variant that reads jobs from saina.ko
 * @any_port: results also go to ports without the program, for tests that attach it to none
 * @log: called with messages of libbpf and of the library, one line each; @level 0 error
 *	.. 3 debug
 */
struct saina_dp_opts {
	const char *object;
	const char *pin_dir;
	bool fresh;
	bool kernel;
	bool any_port;
	void (*log)(void *arg, int level, const char *line);
	void *log_arg;
};

int saina_dp_open(struct saina_dp **dp, const struct saina_dp_opts *opts);
/* @unpin: also detach and remove the pins; false: a pinned data path keeps running */
void saina_dp_close(struct saina_dp *dp, bool unpin);
/* Did saina_dp_open() take over a pinned data path, so that jobs may be running? */
bool saina_dp_taken_over(const struct saina_dp *dp);
/* The sentence of the last failure. */
const char *saina_dp_error(const struct saina_dp *dp);

/* The aggregator's address; before the first set the programs pass every frame. */
int saina_dp_global_set(struct saina_dp *dp, const struct saina_global *g);
int saina_dp_global_get(struct saina_dp *dp, struct saina_global *g);

/*
 * Jobs.  The first publish of a generation creates the job's maps and resets its round
 * state, so that @first_round opens next; counters are kept until the job is removed.
 * A later publish replaces the snapshot and updates the ports that results are sent to:
 * those of active workers that are not relayed.
 */
int saina_dp_job_publish(struct saina_dp *dp, const struct saina_job_conf *conf,
			 __u32 first_round);
int saina_dp_job_remove(struct saina_dp *dp, __u16 job);
/*
 * Reads up to @entries entries of the maps of new generations, so that their first rounds do not
 * wait for memory.  Does not change anything.  Returns whether there are more to read.
 */
bool saina_dp_touch(struct saina_dp *dp, unsigned int entries);
int saina_dp_job_get(struct saina_dp *dp, __u16 job, struct saina_job_conf *conf);
int saina_dp_job_rt(struct saina_dp *dp, __u16 job, struct saina_job_rt *rt);
int saina_dp_job_clock(struct saina_dp *dp, __u16 job, struct saina_clock *clock);

/* Arrival times of a worker's gradients; all 0 if none has come in this generation. */
int saina_dp_arrival(struct saina_dp *dp, __u16 job, __u32 worker, struct saina_arrival *a);

/* Hot slot @index of a job.  -ENOENT: no such job or slot. */
int saina_dp_slot(struct saina_dp *dp, __u16 job, __u32 index, struct saina_slot_meta *m);
/* Result of a finished round.  @sums: payload elements.  -ENOENT: not (or no longer) there. */
int saina_dp_result(struct saina_dp *dp, __u16 job, __u32 segment, __u32 round,
		    struct saina_slot_meta *m, __s32 *sums);

/*
 * Shared memory (saina/shm.h).  Grants worker @w its input array, fd[0], and the job's ring
 * of results, fd[1], which user space can only read from then on; the caller closes both.
 * @output_id: BPF map id of the ring.
 * Another grant returns the same maps until saina_dp_shm_revoke().
 */
int saina_dp_shm_grant(struct saina_dp *dp, __u16 job, unsigned int w, int fd[2],
		       __u32 *output_id);
/* Removes the arrays of the workers in @workers, a mask, and replaces the ring by one that they
 * cannot read. */
int saina_dp_shm_revoke(struct saina_dp *dp, __u16 job, __u64 workers);
bool saina_dp_shm_is_granted(struct saina_dp *dp, __u16 job, unsigned int w);
__u32 saina_dp_shm_output_id(struct saina_dp *dp, __u16 job);	/* 0: none */

/*
 * Memory of the relay of a job with an uplink: fd[0] its hot slots, which can be mapped to read, fd[1]
 * the ring of struct saina_away.  Both are open until the caller closes them.  They are of this
 * generation.  -ENOENT: the job has no uplink.
 */
int saina_dp_uplink_grant(struct saina_dp *dp, __u16 job, int fd[2]);
/* A number that only these maps have, and have for as long as they live; 0: there are none. */
__u64 saina_dp_uplink_incarnation(struct saina_dp *dp, __u16 job);

/* Counters summed over the CPUs; @worker < 0 or @job < 0: those that belong to no job. */
int saina_dp_counters(struct saina_dp *dp, int job, int worker, struct saina_counters *out);
extern const struct saina_counter_info {
	const char *name;
	const char *text;
	bool drop;
} saina_counter_info[SAINA_C_N];

/* Ports. */
enum saina_dp_hook {
	SAINA_DP_NONE,
	SAINA_DP_NATIVE,	/* XDP in the driver */
	SAINA_DP_GENERIC,	/* XDP in the network stack */
	SAINA_DP_TC,
};
int saina_dp_attach(struct saina_dp *dp, int ifindex, enum saina_dp_hook hook, bool tc_handoff);
int saina_dp_detach(struct saina_dp *dp, int ifindex);
enum saina_dp_hook saina_dp_hook(struct saina_dp *dp, int ifindex);
void saina_dp_repair(struct saina_dp *dp);
/* Ports attached now (ifindexes), also those found pinned at take-over. */
int saina_dp_attached(struct saina_dp *dp, int *ifindexes, int max);
int saina_dp_port_set(struct saina_dp *dp, int ifindex, const struct saina_port_conf *c);
int saina_dp_port_get(struct saina_dp *dp, int ifindex, struct saina_port_conf *c);

/* Port and MAC that a JOIN came from; removes the entry. */
int saina_dp_join_src_pop(struct saina_dp *dp, __be32 ip, __be16 udp_port, __u64 nonce,
			  struct saina_place *p);

/* Events and messages to relay: the descriptor is readable when there are some, and
 * dispatch calls back for each, events first. */
struct saina_dp_cb {
	unsigned int max;	/* records of each kind in one dispatch, 0: no limit */
	/* Events that follow others wait so long, and do not make the descriptor readable before:
	 * a program wakes the reader only if it has read all.
	 */
	unsigned int rest_ms;	/* below 1000 */
	void (*event)(void *arg, const struct saina_event *ev);
	void (*relay)(void *arg, const struct saina_relay_msg *m);
	void *arg;
};
int saina_dp_event_fd(struct saina_dp *dp);
int saina_dp_event_dispatch(struct saina_dp *dp, const struct saina_dp_cb *cb);

/* The XDP program, for BPF_PROG_TEST_RUN. */
int saina_dp_prog_fd(const struct saina_dp *dp);

#endif /* SAINA_DP_H */
