/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * saina doctor: what its parts share.
 */
#ifndef SAINA_DOCTOR_H
#define SAINA_DOCTOR_H

#include "net/links.h"
#include "tool.h"

enum doc_verdict {
	DOC_OK,
	DOC_SKIP,	/* could not be looked at: says why */
	DOC_WARN,	/* works, but slower or at risk */
	DOC_FAIL,
};

/**
 * doc_report() - the outcome of one check
 * @check: short name, the same in every outcome of the check
 * @fix: what to do, one sentence or command; NULL if nothing
 * @fmt: what was found
 */
void doc_report(enum doc_verdict v, const char *check, const char *fix, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* After the last check: how many there were of each outcome.  Returns the exit status. */
int doc_finish(void);
/* A fix made of parts; static storage, good until the next call. */
const char *doc_fix(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* What a link's driver can. */
struct doc_driver {
	char name[32];
	__u64 features;		/* DOC_XDP_*, valid if has_features */
	bool has_features;
};

/* enum netdev_xdp_act of kernels from 6.3 on */
#define DOC_XDP_BASIC		0x01
#define DOC_XDP_REDIRECT	0x02
#define DOC_XDP_NDO_XMIT	0x04	/* frames can be redirected to it */

void doc_read_driver(const struct link *l, struct doc_driver *d);
/* Offload setting by a legacy ethtool command: 1, 0, or a negative errno. */
int doc_read_offload(const char *ifname, unsigned int cmd);

/* Handler threads of the ovs-vswitchd of that database; -1: no such process. */
int doc_ovs_handlers(const char *socket, int *pid);

/* What the host checks and the bridge checks know of the running system. */
struct doc_state {
	const struct tool *t;
	struct saina_ctl *ctl;		/* NULL: no control plane */
	bool may_load;			/* programs, so that one can be tried */
	bool ctl_ok;			/* the lists below are filled */
	struct rpc_list jobs, workers, ports;
	const char *config;		/* file read, NULL = none */
	char bridge[IFNAMSIZ];
	char ovsdb[108];
	char bpffs[256];
};

void doc_host(struct doc_state *s);
void doc_backend(struct doc_state *s);
void doc_bridge(struct doc_state *s);
void doc_worker(__be32 to);
/* Receive buffers, of the host and of a worker. */
void doc_buffers(const struct doc_state *s);
void doc_buffers_worker(void);
/* Bytes that a worker's socket for results is charged with a full window of this job.
 * @xdp: each result may come in a page of its own. */
unsigned long doc_buffers_need(const struct saina_job_attrs *job, bool xdp);
/* Does a firewall keep joins from the agent; results from a worker behind @l? */
void doc_firewall_host(void);
void doc_firewall_worker(const struct link *l);
/* Has this process that capability, CAP_*? */
bool doc_has_cap(unsigned int cap);
/* First line of a file, without its end; false if it cannot be read. */
bool doc_read_line(const char *path, char *text, size_t size);
/* What a command prints, at most @size - 1 bytes; its exit status, -1: it could not run. */
int doc_run(const char *command, char *text, size_t size);

#endif /* SAINA_DOCTOR_H */
