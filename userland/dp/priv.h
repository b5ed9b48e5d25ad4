/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the data path library share. */
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
	DP_DELAY,
	DP_FANOUT_IFB,
	DP_ARRIVAL,
	DP_TC_HANDOFF,
	DP_ASKED,
	DP_EVENT_SEEN,
	DP_HOT,
	DP_RING = DP_HOT + DP_SIZES,
	DP_VIEW = DP_RING + DP_SIZES,
	DP_INPUT = DP_VIEW + DP_SIZES,
	DP_OUTPUT = DP_INPUT + DP_SIZES,
	DP_MAPS = DP_OUTPUT + DP_SIZES
};

/* The first two are of one object, the others of the next. */
enum dp_prog { DP_PROG_XDP, DP_PROG_EGRESS, DP_PROG_TC, DP_PROG_TC_OUT, DP_PROGS };

enum dp_ring { DP_RING_EVENTS, DP_RING_RELAY, DP_RINGS };

/* A job's inner maps, -1 where there is none. */
struct dp_inner {
	int	hot, ring, counted, signs, fanout, wcount;
};

/**
 * struct dp_outlet - interface that copies a job's results to its ports (dp_outlet.c)
 * @ifindex: 0: there is none
 * @known: @port says what its filters are
 * @port: by the filter's number
 */
struct dp_outlet {
	int	ifindex;
	bool	known;
	__u32	port[SAINA_WORKERS_MAX];
};

struct dp_job {
	bool	known;		/* the kernel has been asked what it has */
	bool	live;		/* a snapshot is published: the rest is valid */
	struct saina_job_conf conf;
	struct dp_inner maps;
	struct dp_outlet outlet;
};

enum dp_tc_side { DP_TC_IN, DP_TC_OUT, DP_TC_SIDES };

#define DP_TC_NONE	(-1)
#define DP_TC_CLSACT	(-2)

/**
 * struct dp_port - a port that has a program
 * @xdp: link of the XDP program, -1: it is not there
 * @generic: how it is there
 * @tc: tcx link of the tc program, DP_TC_CLSACT: a filter, or DP_TC_NONE
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
	int	prog[DP_PROGS];		/* those of tc: -1 where the kernel does not take them */
	char	tc_error[256];		/* why */
	bool	outlets;		/* the kernel can make them */
	int	cpus;
	struct saina_global global;	/* flags: as asked for, without INJECT */
	struct dp_job *job[SAINA_JOBS_MAX];
	struct dp_port port[DP_PORTS_MAX];
	int	ports;
	struct ring_buffer *rings[DP_RINGS];
	int	rings_epoll;		/* both */
	unsigned int left;		/* of the dispatch at hand */
	const struct saina_dp_cb *cb;
	struct dp_delay *delay;
};

extern const char *const dp_map_name[DP_MAPS];
extern const __u32 dp_elems[DP_SIZES];

/* Index of a payload size in dp_elems, -1 if there is no such size. */
int dp_size_index(__u32 elems);

void dp_log(const struct saina_dp *dp, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Keeps the sentence for saina_dp_error() and returns @err. */
int dp_fail(struct saina_dp *dp, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* dp_load.c */
const char *dp_pin_path(const struct saina_dp *dp, char *path, const char *name);

/* dp_prog.c */
#define DP_PIN_PROG	"prog-"		/* and the layout of the maps, and a program's name */

/* Loads the XDP programs, and with them the maps: those that we have with @reuse,
 * else they are put in dp->map. */
int dp_progs_load(struct saina_dp *dp, bool reuse, int *prog);
/* The tc programs onto the maps we have; why not is in tc_error. */
void dp_progs_load_tc(struct saina_dp *dp, int *prog);
int dp_progs_pin(struct saina_dp *dp);
bool dp_progs_pinned(const struct saina_dp *dp);	/* and all else, on maps of our layout */
int dp_progs_take_over(struct saina_dp *dp);
void dp_progs_close(struct saina_dp *dp);
void dp_progs_upgrade(struct saina_dp *dp);

/* dp_share.c */
/* Nobody shares memory with this job any more. */
void dp_share_clear(struct saina_dp *dp, const struct saina_job_conf *c);

/* dp_view.c */
/* The views that the groups of @c need are there; before its snapshot is in force. */
int dp_view_grow(struct saina_dp *dp, const struct saina_job_conf *c);
/* ... and no others; after. */
void dp_view_shrink(struct saina_dp *dp, const struct saina_job_conf *c);
void dp_view_clear(struct saina_dp *dp, const struct saina_job_conf *c);

/* dp_job.c */
int dp_inner_open(const struct saina_dp *dp, int outer, __u32 key);
int dp_map_new(struct saina_dp *dp, enum bpf_map_type type, const char *what, __u32 job,
	       __u32 value, __u32 entries, __u32 flags);
int dp_outer_set(struct saina_dp *dp, int outer, __u32 key, __u32 job, int inner);
struct dp_job *dp_job_find(struct saina_dp *dp, __u16 job);	/* NULL: not published */
void dp_jobs_free(struct saina_dp *dp);
/* A port got the tc hook (@there) or lost it: outlets come or go. */
int dp_jobs_port_tc(struct saina_dp *dp, bool there);
void dp_jobs_repair(struct saina_dp *dp);
void dp_jobs_remove_outlets(struct saina_dp *dp);
/* Bring the devmap entries of a port in line with its injected faults. */
void dp_job_port_changed(struct saina_dp *dp, int ifindex);

/* dp_port.c */
struct dp_port *dp_port_find(struct saina_dp *dp, int ifindex);
const char *dp_ifname(int ifindex, char *name);
int dp_ports_find_pinned(struct saina_dp *dp);
void dp_ports_upgrade(struct saina_dp *dp);	/* put dp->prog on them */
void dp_ports_close(struct saina_dp *dp, bool unpin);
/* Egress program's descriptor if frames that leave by it are injected, or -1. */
int dp_port_egress(struct saina_dp *dp, int ifindex);
int dp_global_write(struct saina_dp *dp);

/* dp_tc.c */
int dp_tc_attach(struct saina_dp *dp, struct dp_port *p, enum dp_tc_side s);
void dp_tc_detach(struct saina_dp *dp, struct dp_port *p, enum dp_tc_side s, bool unpin);
bool dp_tc_find_pinned(struct saina_dp *dp, const char *name, int *ifindex, int tc[DP_TC_SIDES]);
int dp_tc_upgrade(struct saina_dp *dp, const struct dp_port *p, enum dp_tc_side s);
int dp_tc_repair(struct saina_dp *dp, const struct dp_port *p);

/* dp_outlet.c: as the fan-out set of a job, grown before the snapshot, shrunk after */
int dp_outlet_try(struct saina_dp *dp);
int dp_outlet_grow(struct saina_dp *dp, struct dp_job *j, const struct saina_job_conf *c);
void dp_outlet_shrink(struct saina_dp *dp, struct dp_job *j, const struct saina_job_conf *c);
void dp_outlet_remove(struct saina_dp *dp, struct dp_job *j, __u32 job);
void dp_outlet_reopen(struct saina_dp *dp, struct dp_job *j, __u32 job);
void dp_outlet_repair(struct saina_dp *dp, struct dp_job *j);
void dp_outlets_remove_strays(struct saina_dp *dp);

/* dp_event.c */
void dp_rings_close(struct saina_dp *dp);

/* dp_delay.c */
void dp_delay_stop(struct saina_dp *dp);

#endif /* SAINA_DP_PRIV_H */
