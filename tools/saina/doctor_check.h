/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * saina doctor: declarations of its files.
 */
#ifndef SAINA_DOCTOR_CHECK_H
#define SAINA_DOCTOR_CHECK_H

#include "net/links.h"
#include "tool.h"

enum doc_verdict {
	DOC_OK,
	DOC_SKIP,	/* could not be checked */
	DOC_WARN,	/* works, but slower or at risk */
	DOC_FAIL,
};

/**
 * doc_report() - print the result of one check
 * @check: short name of the check, which all of its results have
 * @fix: what to do, one sentence or command; NULL: nothing
 * @fmt: what was found
 */
void doc_report(enum doc_verdict v, const char *check, const char *fix, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/*
 * The same for one of many ports or workers, @subject, which replaces "{}" in @fix. Results that
 * differ only in the subject are joined; doc_report_group() prints them.
 */
void doc_report_of(enum doc_verdict v, const char *check, const char *subject, const char *fix,
		   const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void doc_report_group(void);
/* Prints the number of results of each kind, after the last check. Returns the exit status. */
int doc_finish(void);
/* Formats a fix; static storage, valid until the next call. */
const char *doc_fix(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Capabilities of a link's driver. */
struct doc_driver {
	char name[32];
	__u64 features;		/* DOC_XDP_*, valid if has_features */
	bool has_features;
};

/* enum netdev_xdp_act of kernels from 6.3 on */
#define DOC_XDP_BASIC		0x01
#define DOC_XDP_NDO_XMIT	0x04	/* it accepts redirected frames */

void doc_read_driver(const struct link *l, struct doc_driver *d);
/* Reads an offload setting by a legacy ethtool command: 1, 0, or a negative errno. */
int doc_read_offload(const char *ifname, unsigned int cmd);

/* Counts the handler threads of the ovs-vswitchd that uses this database; -1: no such process. */
int doc_ovs_handlers(const char *socket, int *pid);

/* State of the running system, for the checks of host and bridge. */
struct doc_state {
	const struct tool *t;
	struct saina_ctl *ctl;		/* NULL: no control plane */
	bool may_load;			/* this process may load BPF programs */
	bool ctl_ok;			/* the lists below are valid */
	struct rpc_list jobs, workers, ports;
	const char *config;		/* file that was read, NULL = none */
	bool bridge_chosen, ovsdb_chosen; /* given on the command line: not replaced by the agent's */
	bool userspace;			/* Open vSwitch's userspace datapath, where hook auto is XDP */
	char bridge[IFNAMSIZ];
	char ovsdb[108];
	char bpffs[256];
};

void doc_host(struct doc_state *s);
void doc_backend(struct doc_state *s);
void doc_bridge(struct doc_state *s);
void doc_worker(__be32 to);
/* Jobs that have a parent on another host, or are one. */
void doc_uplink(const struct doc_state *s);
/* Check receive buffers, of the host and of a worker. */
void doc_buffers(const struct doc_state *s);
void doc_buffers_worker(void);
/*
 * Bytes that the kernel charges to a worker's result socket for a full window of this job. @xdp:
 * each result may arrive in a page of its own.
 */
unsigned long doc_buffers_need(const struct saina_job_attrs *job, bool xdp);
/* Check whether a firewall drops joins to the agent, or results to a worker behind @l. */
void doc_firewall_host(void);
void doc_firewall_worker(const struct link *l);
/* Does this process have capability @cap (CAP_*)? */
bool doc_has_cap(unsigned int cap);
/* Reads the first line of a file, without its newline; false if that fails. */
bool doc_read_line(const char *path, char *text, size_t size);
/*
 * Runs a command and keeps its output, at most @size - 1 bytes. Returns its exit status, -1 if it
 * could not run.
 */
int doc_run(const char *command, char *text, size_t size);

#endif /* SAINA_DOCTOR_CHECK_H */
