/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of the data path library. */
#ifndef SAINA_DP_PRIV_H
#define SAINA_DP_PRIV_H

#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "dp/dp.h"

#define DP_SIZES	6	/* entries of SAINA_ELEMS_LIST */
#define DP_PORTS_MAX	SAINA_PORTS_MAX

enum dp_map {
	DP_GLOBAL,
	DP_JOBS,
	DP_RT,
	DP_CLOCK,
	DP_COUNTED,
	DP_SIGNS,
	DP_FANOUT,
	DP_WCOUNT,
	DP_GCOUNT,
	DP_LOCKS,
	DP_PORTS,
	DP_TX,
	DP_JOIN_SRC,
	DP_EVENTS,
	DP_RELAY,
	DP_FANOUT_IFB,
	DP_ARRIVAL,
	DP_TC_HANDOFF,
	DP_ASKED,
	DP_EVENT_SEEN,
	DP_AWAY,
	DP_HOT,
	DP_RING = DP_HOT + DP_SIZES,
	DP_VIEW = DP_RING + DP_SIZES,
	DP_INPUT = DP_VIEW + DP_SIZES,
	DP_MAPS = DP_INPUT + DP_SIZES
};

/* XDP and EGRESS are in saina_xdp.bpf.o, the others in saina_tc.bpf.o. */
enum dp_prog { DP_PROG_XDP, DP_PROG_EGRESS, DP_PROG_TC, DP_PROG_TC_OUT, DP_PROGS };

enum dp_ring { DP_RING_EVENTS, DP_RING_RELAY, DP_RINGS };

/* Inner maps of a job. */
enum dp_job_map {
	DP_JOB_HOT,
	DP_JOB_RING,
	DP_JOB_COUNTED,
	DP_JOB_SIGNS,
	DP_JOB_FANOUT,
	DP_JOB_WCOUNT,
	DP_JOB_MAPS
};

/**
 * struct dp_fanout_ifb - interface that copies a job's results to its ports (fanout.c)
 * @ifindex: 0: there is none
 * @known: @port says what its filters are
 * @port: by the filter's number
 */
struct dp_fanout_ifb {
	int	ifindex;
	bool	known;
	__u32	port[SAINA_WORKERS_MAX];
};

struct dp_job {
	bool	known;		/* pinned maps have been looked up */
	bool	live;		/* a snapshot is published: the rest is valid */
	struct saina_job_conf conf;
	int	maps[DP_JOB_MAPS];	/* -1: none */
	struct dp_fanout_ifb ifb;
	int	touched;	/* maps that saina_dp_touch() has read */
	__u32	touch_next;	/* entry of the next one that it reads next */
};

enum dp_tc_side { DP_TC_IN, DP_TC_OUT, DP_TC_SIDES };

#define DP_TC_NONE	(-1)
#define DP_TC_CLSACT	(-2)

/**
 * struct dp_port - a port with a program
 * @xdp: link of the XDP program, -1: not attached
 * @generic: attached in generic mode
 * @tc: tcx link of the tc program, DP_TC_CLSACT: a filter on clsact, or DP_TC_NONE
 */
struct dp_port {
	int	ifindex;
	int	xdp;
	bool	generic;
	int	tc[DP_TC_SIDES];
};

struct saina_dp {
	struct saina_dp_opts opts;
	char	pin_dir[PATH_MAX - 64];
	char	object[PATH_MAX];
	char	error[512];
	bool	pinned;			/* pin_dir is valid */
	bool	taken_over;
	int	map[DP_MAPS];
	int	prog[DP_PROGS];		/* of the tc hook: -1 if they could not be loaded */
	char	tc_error[256];		/* the reason */
	bool	can_ifb;		/* the kernel supports ifb and mirroring */
	int	cpus;
	struct saina_global global;	/* without the flag INJECT */
	struct dp_job *job[SAINA_JOBS_MAX];
	struct dp_port port[DP_PORTS_MAX];
	int	ports;
	struct ring_buffer *rings[DP_RINGS];
	int	rings_epoll;		/* both, and the timer */
	int	events_timer;		/* events rest until it expires */
	bool	events_rest;
	unsigned int budget;	/* records that this dispatch may still deliver */
	const struct saina_dp_cb *cb;
};

/*
 * A file calls only those above it here:
 *
 *	base, map	log, errors; names, sizes, inner maps
 *	prog, xdp, tc	the programs; a port's hooks
 *	port		the ports
 *	fanout, job	where results go; the jobs
 *	touch		first reading of their maps
 *	shm, group, uplink, read, publish, event
 *	attach, open	changes of a port; opening and closing
 */

/* base.c */
void dp_log(const struct saina_dp *dp, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Sets the sentence of saina_dp_error() and returns @err. */
int dp_fail(struct saina_dp *dp, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
const char *dp_pin_path(const struct saina_dp *dp, char *path, const char *name);
/* Name of an interface, "#IFINDEX" if it does not exist. */
const char *dp_ifname(int ifindex, char *name);

/* map.c */
extern const char *const dp_map_name[DP_MAPS];

/* Index of a payload size in SAINA_ELEMS_LIST, -1: no such size. */
int dp_size_index(__u32 elems);
/* Creates a map that is called "saina_", the first letters of @what, and the job's id. */
int dp_map_new(struct saina_dp *dp, enum bpf_map_type type, const char *what, __u32 job,
	       __u32 value, __u32 entries, __u32 flags);
/* Entries of outer maps: id of the inner map (0: none), its descriptor. */
__u32 dp_inner_id(const struct saina_dp *dp, int outer, __u32 key);
int dp_inner_open(const struct saina_dp *dp, int outer, __u32 key);
int dp_outer_set(struct saina_dp *dp, int outer, __u32 key, __u32 job, int inner);
void dp_outer_clear(struct saina_dp *dp, int outer, __u32 key);

/* prog.c */
#define DP_PIN_PROG	"prog-"		/* followed by LAYOUT-NAME */

/* Loads the XDP programs.  @reuse: onto the maps of @dp; else dp->map gets new ones. */
int dp_progs_load(struct saina_dp *dp, bool reuse, int *prog);
/* Loads the tc programs onto the maps of @dp; on failure tc_error has the reason. */
void dp_progs_load_tc(struct saina_dp *dp, int *prog);
int dp_progs_pin(struct saina_dp *dp);
bool dp_progs_are_pinned(const struct saina_dp *dp);	/* with maps of our layout */
int dp_progs_adopt(struct saina_dp *dp);
void dp_progs_close(struct saina_dp *dp);
/* Loads the installed programs onto the maps of @dp; true: they differ, and are in dp->prog. */
bool dp_progs_replace(struct saina_dp *dp);

/* xdp.c */
int dp_xdp_attach(struct saina_dp *dp, struct dp_port *p, bool generic);
void dp_xdp_detach(struct saina_dp *dp, struct dp_port *p, bool unpin);
/* The pinned link of a port that still has it, or a negative errno. */
int dp_xdp_adopt(struct saina_dp *dp, int ifindex, bool *generic);
/* Lets the XDP program hand frames of this port over to the tc program. */
int dp_xdp_handoff_enable(struct saina_dp *dp, __u32 ifindex);
void dp_xdp_handoff_disable(struct saina_dp *dp, __u32 ifindex);

/* tc.c */
int dp_tc_attach(struct saina_dp *dp, struct dp_port *p, enum dp_tc_side s);
void dp_tc_detach(struct saina_dp *dp, struct dp_port *p, enum dp_tc_side s, bool unpin);
bool dp_tc_adopt(struct saina_dp *dp, const char *name, int *ifindex, int tc[DP_TC_SIDES]);
int dp_tc_upgrade(struct saina_dp *dp, const struct dp_port *p, enum dp_tc_side s);
int dp_tc_repair(struct saina_dp *dp, const struct dp_port *p);
int dp_tc_out_update(struct saina_dp *dp, struct dp_port *p);

/* port.c */
struct dp_port *dp_port_find(struct saina_dp *dp, int ifindex);
struct dp_port *dp_port_add(struct saina_dp *dp, int ifindex);
void dp_port_remove(struct saina_dp *dp, struct dp_port *p);	/* detached before */
int dp_ports_adopt(struct saina_dp *dp);
void dp_ports_upgrade(struct saina_dp *dp);	/* attach dp->prog */
void dp_ports_close(struct saina_dp *dp, bool unpin);
/* Descriptor of the egress program if the port has faults on the way out, else -1. */
int dp_port_egress(struct saina_dp *dp, int ifindex);
int dp_global_write(struct saina_dp *dp);

/* fanout.c: ports are added before a snapshot is in force, and removed after */
int dp_fanout_grow(struct saina_dp *dp, struct dp_job *j, const struct saina_job_conf *c);
void dp_fanout_shrink(struct saina_dp *dp, struct dp_job *j, const struct saina_job_conf *c);
/* Updates the entry of a port in a devmap that has it. */
void dp_devmap_update(struct saina_dp *dp, int fd, int ifindex);
int dp_fanout_ifb_probe(struct saina_dp *dp);
void dp_fanout_ifb_remove(struct saina_dp *dp, struct dp_job *j, __u32 job);
void dp_fanout_ifb_adopt(struct saina_dp *dp, struct dp_job *j, __u32 job);
void dp_fanout_ifb_repair(struct saina_dp *dp, struct dp_job *j);
void dp_fanout_ifb_remove_strays(struct saina_dp *dp);

/* job.c */
#define dp_for_each_job(DP, I, J) \
	for (int I = 0; I < SAINA_JOBS_MAX; I++) \
		if (((J) = dp_job_find(DP, I)))

struct dp_job *dp_job_entry(struct saina_dp *dp, __u16 job);	/* NULL: no memory, or bad id */
struct dp_job *dp_job_find(struct saina_dp *dp, __u16 job);	/* NULL: not published */
void dp_jobs_free(struct saina_dp *dp);
/* Reads the memory of a new map once (touch.c). */
void dp_map_touch(int fd);
/* Map @first and those that saina_dp_touch() reads after it are new. */
void dp_touch_again(struct dp_job *j, enum dp_job_map first);
int dp_job_maps_create(struct saina_dp *dp, const struct saina_job_conf *c, int maps[DP_JOB_MAPS]);
void dp_job_maps_close(int maps[DP_JOB_MAPS]);
/* Then user space can neither write to it nor map it writable. */
int dp_ring_freeze(struct saina_dp *dp, const struct saina_job_conf *c, int fd);
/* Pins a job's ring, so that it outlives this process while no outer map has it; or unpins it. */
void dp_ring_keep(struct saina_dp *dp, __u32 job, bool keep);
int dp_job_map_create(struct saina_dp *dp, const struct saina_job_conf *c, enum dp_job_map m);
/* Put the maps in the outer maps of @c's payload size, and remove them.  @sized_only: those of
 * which there is an outer map for each size. */
int dp_job_maps_set(struct saina_dp *dp, const struct saina_job_conf *c,
		    const int maps[DP_JOB_MAPS]);
void dp_job_maps_clear(struct saina_dp *dp, const struct saina_job_conf *c, bool sized_only);
/* Results of jobs go to one more port or ifb (@there), or to fewer: the list of ports, or the hook
 * of one, has changed. */
int dp_jobs_ports_changed(struct saina_dp *dp, bool there);
void dp_jobs_repair(struct saina_dp *dp);
void dp_jobs_remove_ifbs(struct saina_dp *dp);
/* Updates the devmap entries of a port after its injected faults changed. */
void dp_jobs_port_changed(struct saina_dp *dp, int ifindex);

/* shm.c: removes the shared memory of a job. */
void dp_shm_clear(struct saina_dp *dp, const struct saina_job_conf *c);

/* group.c: creates the views that the groups of @c need, before its snapshot is in force ... */
int dp_group_grow(struct saina_dp *dp, const struct saina_job_conf *c);
/* ... and removes the others, after; or all. */
void dp_group_shrink(struct saina_dp *dp, const struct saina_job_conf *c);
void dp_group_clear(struct saina_dp *dp, const struct saina_job_conf *c);

/* uplink.c: creates the ring of a job with an uplink, before its snapshot is in force ... */
int dp_uplink_grow(struct saina_dp *dp, const struct saina_job_conf *c);
/* ... and removes that of a job without one, after; or of any. */
void dp_uplink_shrink(struct saina_dp *dp, const struct saina_job_conf *c);
void dp_uplink_clear(struct saina_dp *dp, const struct saina_job_conf *c);

/* event.c */
void dp_rings_close(struct saina_dp *dp);

#endif /* SAINA_DP_PRIV_H */
