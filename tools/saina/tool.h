/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the objects of the saina command share.
 */
#ifndef SAINA_TOOL_H
#define SAINA_TOOL_H

#include <linux/types.h>
#include "ctl/ctl.h"
#include "ctl/obj.h"
#include "args.h"
#include "print.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* The options. */
struct tool {
	enum out_mode	mode;
	const char	*socket;	/* -s, NULL = find out */
};

struct tool_cmd {
	const char *name;
	int (*fn)(const struct tool *t, struct args *a);
	const char *help;	/* what follows the name; NULL = not listed */
};

/* Runs the command the next word names (none: the first of the table), or
 * prints the help of @object.  Returns the exit status. */
int tool_dispatch(const struct tool *t, struct args *a, const char *object,
		  const struct tool_cmd *cmds, size_t n);

/* One per object. */
int tool_job(const struct tool *t, struct args *a);
int tool_worker(const struct tool *t, struct args *a);
int tool_port(const struct tool *t, struct args *a);
int tool_slot(const struct tool *t, struct args *a);
int tool_stats(const struct tool *t, struct args *a);
int tool_limits(const struct tool *t, struct args *a);
int tool_policy(const struct tool *t, struct args *a);
/* controller.c */
int policy_control(const struct tool *t, struct args *a);

int tool_monitor(const struct tool *t, struct args *a);
int tool_top(const struct tool *t, struct args *a);
int tool_doctor(const struct tool *t, struct args *a);

/* ---- rpc.c: the file that speaks netlink ---- */

/* Opens the control plane, or prints why it cannot be reached. */
struct saina_ctl *rpc_open(const struct tool *t);
/* The agent, also where the kernel has the jobs: ports, slots and counters are
 * the data path's, which is the agent's. */
struct saina_ctl *rpc_open_agent(const struct tool *t);
/* The same sentence, for whoever wants it otherwise: NULL and *error. */
struct saina_ctl *rpc_open_agent_quiet(const struct tool *t, const char **error);
struct saina_ctl *rpc_open_quiet(const struct tool *t, const char **error);

/**
 * rpc_call() - request with one object, replies of another class
 * @req: object of class @rc, or NULL
 * @each: called with each object of class @c in the replies, may be NULL
 *
 * Prints the refusal.  Returns the exit status.
 */
int rpc_call(struct saina_ctl *ctl, int cmd, bool dump,
	     const struct saina_attr_class *rc, const void *req,
	     const struct saina_attr_class *c, void (*each)(void *arg, const void *obj), void *arg);

/* The same, and nothing is printed: returns 0 or a negative errno. */
int rpc_call_quiet(struct saina_ctl *ctl, int cmd, bool dump,
		   const struct saina_attr_class *rc, const void *req,
		   const struct saina_attr_class *c, void (*each)(void *arg, const void *obj), void *arg);

/* A growing array of objects, and rpc_call() into one: a dump, or the one asked for. */
struct rpc_list {
	size_t n, room;
	void *v;
};
int rpc_list_one(struct saina_ctl *ctl, int cmd, const struct saina_attr_class *rc, const void *req,
		 const struct saina_attr_class *c, struct rpc_list *list);
int rpc_list_quiet(struct saina_ctl *ctl, int cmd, const struct saina_attr_class *c,
		   struct rpc_list *list);
int rpc_list(struct saina_ctl *ctl, int cmd, const struct saina_attr_class *rc, const void *req,
	     const struct saina_attr_class *c, struct rpc_list *list);
void rpc_list_free(struct rpc_list *list);
bool is_kernel(const struct saina_ctl *ctl);
/* enum saina_plane: who has the jobs that @ctl speaks of; 0: it does not say. */
int backend_of(struct saina_ctl *ctl);

/* ---- agent_view.c: the agent where the kernel has the jobs ---- */
/* NULL: @ctl is not the kernel, or there is no agent that serves it. */
struct saina_ctl *agent_view_open(const struct tool *t, const struct saina_ctl *ctl);
/* How many elements a message of a new job has, if that is not asked for: as many as fit
 * the ports of the agent. */
void agent_view_payload(struct saina_ctl *agent, struct saina_job_attrs *req);
/* Fills in what the kernel does not know; @agent may be NULL. */
void agent_view_jobs(struct saina_ctl *agent, struct saina_job_attrs *job, size_t n);
void agent_view_workers(struct saina_ctl *agent, struct saina_worker_attrs *w, size_t n);

/* ---- names of things ---- */
const char *job_state_name(unsigned int state);
const char *worker_state_name(unsigned int state);
const char *backend_name(unsigned int plane);
/* As people write it, until the next call. */
const char *policy_name(const struct saina_policy_attrs *a);
extern const char *const job_state_words[], *const worker_state_words[];
/* "digits", "3": a job as people name it, into the name or id of a request. */
int parse_job(const struct args *a, const char *word, __u64 *has, unsigned int attr_id,
	      unsigned int attr_name, __u16 *id, char *name);
int parse_worker_id(const struct args *a, const char *word, __u8 *id);

/* ---- how objects look; shared by show and monitor ---- */
void job_print(const struct saina_job_attrs *job);
/* "k, degraded": bits 1 << enum saina_event_type. */
void policy_on_text(__u32 on, char *text, size_t size);
/* The policy to come of a job, and what it waits for; nothing of it as text if there is none.
 * @format: of its name; @end: follows
 */
void policy_next_print(const struct saina_job_attrs *job, const char *format, const char *end);
void worker_print(const struct saina_worker_attrs *w);
void port_print(const struct saina_port_attrs *p);

#endif /* SAINA_TOOL_H */
