/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sainad: the parts of the agent and what they may ask of each other.  One
 * noun, one file; main.c puts them together.
 *
 *	config    file and command line
 *	jobs      owner of the job core: data path, notifications, what the
 *	          agent knows of a worker beyond the core
 *	plane     who has the jobs: the core in here, or saina.ko
 *	kernel    the netlink session with that; family: it comes and goes;
 *	          mirror: its jobs in our core
 *	ports     which ports the bridge has (from ovsdb or rtnl), attach them
 *	admit     UDP control socket: JOIN, READY, HEARTBEAT, LEAVE
 *	health    alive, slow, dead
 *	relay     results for workers behind slow ports
 *	ctlserver unix socket; request (decode, encode) serves it
 *	state     what the next start needs to take over
 *	runtime   directory, lock, bpffs
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/core.h"
#include "core/policy_text.h"
#include "dp/dp.h"
#include "agent/config.h"
#include "agent/log.h"
#include "agent/loop.h"
#include "agent/kernel/plane.h"

struct agent;
struct nlmsghdr;

/* jobs.c */

/**
 * struct worker_aux - what the agent knows of a worker beyond the core
 * @nonce: of the JOIN that admitted it
 * @heard: when it was last heard, by control message or gradient
 * @round: of its last heartbeat
 * @formed: admitted while the job was forming
 * @first_round: else, the round it was told to begin with
 * @looked: its counters were looked at since it was last heard
 * @seen: sum of the counters that only it can have caused, at last look
 * @counted: @in_time and @late hold something
 * @in_time, @late: gradients, at last look of the slow check
 */
struct worker_aux {
	uint64_t nonce;
	uint64_t heard;
	uint32_t round;
	uint32_t first_round;
	bool formed;
	bool looked;
	bool counted;
	uint64_t seen;
	uint64_t in_time, late;
};

struct job_aux {
	bool status_due;	/* all live workers are to get a STATUS */
	uint32_t checked_generation, checked_round;	/* of health.c */
	struct worker_aux worker[SAINA_WORKERS_MAX];
};

struct jobs {
	struct saina_core *core;
	struct job_aux *aux[SAINA_JOBS_MAX];
	bool changed;		/* agent_settle() has something to do */
	bool unsaved;		/* ... saving the state among it */
};

int jobs_init(struct agent *a);
void jobs_uninit(struct agent *a);
int jobs_configure(struct agent *a);	/* add those of the configuration file */
/* Checks the jobs of a configuration without a data path. */
int jobs_check(const struct config *cfg, char *text, size_t size);
struct worker_aux *jobs_worker(struct agent *a, const struct saina_job *job, int w);
bool jobs_alive(const struct saina_job *job, int w);
uint32_t jobs_next_round(struct agent *a, const struct saina_job *job);
/* Ends a worker's life: @state DEAD or LEFT; @why for the log. */
int jobs_worker_end(struct agent *a, const struct saina_job *job, int w, int state,
		    const char *why);

/* runtime.c */
struct runtime {
	int lock;
	char mounted[256];	/* bpffs mounted here by us (or an earlier us) */
	char made[256];		/* so was this directory made */
};

int runtime_init(struct agent *a);
void runtime_uninit(struct agent *a, bool keep);
const char *runtime_path(const struct agent *a, const char *name, char *buf, size_t size);

/* rtnl.c */
struct link {
	int ifindex;
	int master;
	unsigned int mtu;
	unsigned int flags;
	unsigned char xdp;	/* XDP_ATTACHED_* */
	char name[IFNAMSIZ];
	char kind[16];
	unsigned char mac[6];
};

struct rtnl {
	struct source source;
	struct mnl_socket *nl;
	struct link *link;
	int n_links, room;
};

int rtnl_init(struct agent *a);
void rtnl_uninit(struct agent *a);
const struct link *rtnl_by_index(const struct rtnl *r, int ifindex);
const struct link *rtnl_by_name(const struct rtnl *r, const char *name);
void rtnl_driver(const char *ifname, char *driver, size_t size);
int rtnl_address(const char *ifname, struct in_addr *addr);	/* first IPv4 of it */

/* ovsdb.c */
struct ovsdb {
	struct source source;
	struct source retry;
	bool known;		/* the tables have been read */
	char *buf;
	size_t len, room;
	struct json_t *tables;	/* {table: {uuid: row}} */
};

int ovsdb_init(struct agent *a);	/* -ENOENT: no server at the path */
void ovsdb_uninit(struct agent *a);
bool ovsdb_has_bridge(const struct ovsdb *o, const char *bridge);
/* Calls @fn for each interface of the bridge. */
void ovsdb_interfaces(const struct ovsdb *o, const char *bridge,
		      void (*fn)(void *arg, const char *name, const char *type), void *arg);

/* ports.c */
struct port {
	int ifindex;
	char name[IFNAMSIZ];
	char driver[32];
	unsigned int mtu;
	int mode;			/* enum saina_port_mode */
	bool wanted;			/* scratch of ports_sync() */
	bool faults;			/* has injected delay or loss */
	char text[SAINA_TEXT_LEN];	/* why it is not attached */
};

struct ports {
	struct port *port;
	int n, room;
	int bridge_ifindex;
	unsigned char bridge_mac[6];
	bool ovs;
};

int ports_init(struct agent *a);
void ports_uninit(struct agent *a);
void ports_sync(struct agent *a);	/* something changed: look again */
void ports_retry(struct agent *a);	/* attach those that are not */
struct port *ports_find(struct agent *a, int ifindex, const char *name);
int ports_faults_set(struct agent *a, struct port *p, const struct saina_port_conf *conf);
void ports_workers(struct agent *a, int ifindex, uint32_t *workers, uint32_t *relayed);

/* attach.c */
int attach_port(struct agent *a, struct port *p);
void detach_port(struct agent *a, struct port *p);

/* admit.c */
struct admit {
	struct source source;
	uint64_t refusals_from;		/* second in which .. */
	unsigned int refusals;		/* .. so many were sent */
};

int admit_init(struct agent *a);
void admit_uninit(struct agent *a);
/* Takes what has come in, at most @most messages. */
void admit_receive(struct agent *a, int most);
void admit_status(struct agent *a, const struct saina_job *job, int w);
void admit_job_gone(struct agent *a, const struct saina_job *job);

/* health.c */
struct health {
	struct source timer;
	unsigned int period_ms;
	uint64_t last;		/* tick */
	uint64_t slow_check;
};

int health_init(struct agent *a);
void health_uninit(struct agent *a);
void health_heard(struct agent *a, const struct saina_job *job, int w);
void health_replan(struct agent *a);	/* jobs or their times changed */

/* relay.c */
struct relay {
	struct source source;		/* aggregator:48864, for sending */
	struct source events;		/* the data path's ring buffers */
	struct log_limit limit;
};

int relay_init(struct agent *a);
void relay_uninit(struct agent *a);

/* ctlserver.c */
struct client;

struct ctlserver {
	struct source source;
	struct client *clients;
	unsigned int groups;		/* somebody subscribed to these */
	unsigned int n;
	gid_t admin_gid;
	bool has_admin_gid;
};

int ctlserver_init(struct agent *a);
void ctlserver_uninit(struct agent *a);
/* To all subscribers of @group; @msg is complete but for its sequence number. */
void ctlserver_notify(struct agent *a, unsigned int group, const struct nlmsghdr *msg);

/* events.c */
void events_data_path(struct agent *a, const struct saina_event *ev);
void events_control(struct agent *a, struct saina_event *ev, const char *text);

/* state.c */
int state_save(struct agent *a);
int state_restore(struct agent *a);	/* -ENOENT: nothing saved */
void state_remove(struct agent *a);

struct agent {
	struct config cfg;
	struct loop loop;
	struct runtime runtime;
	struct saina_dp *dp;
	struct in_addr addr;
	struct plane plane;
	struct jobs jobs;
	struct rtnl rtnl;
	struct ovsdb ovsdb;
	struct ports ports;
	struct admit admit;
	struct health health;
	struct relay relay;
	struct ctlserver ctl;
	struct source signals;
	struct source delay_timer;
};

/* Everything a change entails: state saved, workers told.  Before any answer
 * that promises the change, and after each event. */
void agent_settle(struct agent *a);

#endif /* AGENT_AGENT_H */
