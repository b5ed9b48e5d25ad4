/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The data path as seen from a process: load the BPF object, give jobs their
 * maps, publish snapshots, read state.  Used by sainad, tests and benchmarks.
 * Knows libbpf and uapi/saina/bpf.h; knows nothing of sockets, netlink or
 * configuration files.
 */
#ifndef SAINA_DP_H
#define SAINA_DP_H

#include <stdbool.h>
#include <stddef.h>
#include "saina/bpf.h"

struct saina_dp;

/**
 * struct saina_dp_opts
 * @object: path of saina_xdp.bpf.o; NULL = the built-in search.  The tc hook's,
 *	saina_tc.bpf.o, lies beside it; without it the hook is not to be had
 * @pin_dir: directory on bpffs to pin maps (and links) in, NULL = no pins.
 *	(it must exist).  Objects already pinned there are reused (take-over)
 * @fresh: what is pinned there is stopped and removed instead
 * @kernel: the variant of the object that asks saina.ko for the jobs
 *	(saina_xdp_kmod.bpf.o beside @object)
 * @log: libbpf and own messages, one line each; @level 0 error .. 3 debug
 */
struct saina_dp_opts {
	const char *object;
	const char *pin_dir;
	bool fresh;
	bool kernel;
	void (*log)(void *arg, int level, const char *line);
	void *log_arg;
};

int saina_dp_open(struct saina_dp **dp, const struct saina_dp_opts *opts);
/* @unpin: also remove pins and detach; false leaves the data path running */
void saina_dp_close(struct saina_dp *dp, bool unpin);
bool saina_dp_taken_over(const struct saina_dp *dp);	/* pins were there */
const char *saina_dp_error(const struct saina_dp *dp);	/* sentence of the last failure */

int saina_dp_global_set(struct saina_dp *dp, const struct saina_global *g);
int saina_dp_global_get(struct saina_dp *dp, struct saina_global *g);

/* Jobs.  The first publish of a (job, generation) makes its maps and resets
 * saina_rt so that @first_round is the next round to open; counters go on until
 * the job is removed.  Later ones replace
 * the snapshot and bring the fan-out set in line with the bindings of active,
 * not relayed workers.  After a return of 0 the snapshot is in force. */
int saina_dp_job_publish(struct saina_dp *dp, const struct saina_job_conf *conf,
			 __u32 first_round);
int saina_dp_job_remove(struct saina_dp *dp, __u16 job);
int saina_dp_job_get(struct saina_dp *dp, __u16 job, struct saina_job_conf *conf);
int saina_dp_job_rt(struct saina_dp *dp, __u16 job, struct saina_job_rt *rt);
int saina_dp_job_clock(struct saina_dp *dp, __u16 job, struct saina_clock *clock);

/* When the gradients of a worker came; all 0 if none has in this generation of its job. */
int saina_dp_arrival(struct saina_dp *dp, __u16 job, __u32 worker, struct saina_arrival *a);

/* Hot slot @index of a job, from 0 on.  -ENOENT: there is no such job or slot */
int saina_dp_slot(struct saina_dp *dp, __u16 job, __u32 index, struct saina_slot_meta *m);
/* Result of a finished round; sums: payload elements.  -ENOENT if not there */
int saina_dp_result(struct saina_dp *dp, __u16 job, __u32 segment, __u32 round,
		    struct saina_slot_meta *m, __s32 *sums);

/* By reference (saina/shm.h).  What worker @w may have, made if need be: fd[0] its input
 * array, fd[1] the job's board, for the caller to close; @board: number of that.  A second
 * call gets the same until saina_dp_shm_revoke(). */
int saina_dp_shm_grant(struct saina_dp *dp, __u16 job, unsigned int w, int fd[2], __u32 *board);
/* Takes worker @w its array; the job gets a new board, which it has not. */
int saina_dp_shm_revoke(struct saina_dp *dp, __u16 job, unsigned int w);
bool saina_dp_shm_is_granted(struct saina_dp *dp, __u16 job, unsigned int w);
__u32 saina_dp_shm_results_id(struct saina_dp *dp, __u16 job);	/* its number, 0: there is none */

/* Counters summed over the CPUs; @worker < 0 or @job < 0: what belongs to none. */
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

int saina_dp_join_src_pop(struct saina_dp *dp, __be32 ip, __be16 udp_port, __u64 nonce,
			  struct saina_place *p);

/* Events, relays and delayed frames: one epoll fd; dispatch calls back. */
struct saina_dp_cb {
	unsigned int max;	/* records of each kind in one dispatch, 0: no limit */
	void (*event)(void *arg, const struct saina_event *ev);
	void (*relay)(void *arg, const struct saina_relay_msg *m);
	void *arg;
};
int saina_dp_event_fd(struct saina_dp *dp);
int saina_dp_event_dispatch(struct saina_dp *dp, const struct saina_dp_cb *cb);
/* Held frames (injected delay) are re-injected by a thread of saina_dp, live,
 * from saina_dp_delay_start() to saina_dp_close(). */
int saina_dp_delay_start(struct saina_dp *dp);

/* For BPF_PROG_TEST_RUN: the program on the ports. */
int saina_dp_prog_fd(const struct saina_dp *dp);

#endif /* SAINA_DP_H */
