/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Declarations of the saina command.
 */
#ifndef SAINA_TOOL_H
#define SAINA_TOOL_H

#include <linux/types.h>
#include "ctl/ctl.h"
#include "ctl/obj.h"
#include "args.h"
#include "print.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* The command line options. */
struct tool {
	enum out_mode	mode;
	const char	*socket;	/* -s; NULL: connect.c chooses */
	bool		show_tokens;
};

struct tool_cmd {
	const char *name;
	int (*fn)(const struct tool *t, struct args *a);
	const char *help;	/* its arguments, for the help; NULL: an alias that is not listed */
};

/*
 * cmd.c: runs the command that the next word names (without a word, the first one), or prints the
 * help of @object. Returns the exit status.
 */
int tool_dispatch(const struct tool *t, struct args *a, const char *object,
		  const struct tool_cmd *cmds, size_t n);

/* One function for each object. */
int tool_job(const struct tool *t, struct args *a);
int tool_worker(const struct tool *t, struct args *a);
int tool_port(const struct tool *t, struct args *a);
int tool_slot(const struct tool *t, struct args *a);
int tool_stats(const struct tool *t, struct args *a);
int tool_limits(const struct tool *t, struct args *a);
int tool_policy(const struct tool *t, struct args *a);
/* controller.c */
int policy_control(const struct tool *t, struct args *a);
/* monitor_arrivals.c */
int monitor_arrivals(const struct tool *t, struct args *a);

int tool_monitor(const struct tool *t, struct args *a);
int tool_top(const struct tool *t, struct args *a);
int tool_bench(const struct tool *t, struct args *a);
int tool_doctor(const struct tool *t, struct args *a);

/* ---- connect.c: whom to talk to; on failure prints why and returns NULL ---- */

/* For requests about jobs: the agent that serves this network namespace, else the kernel. */
struct saina_ctl *connect_open(const struct tool *t);
/* For subscribers and controllers: the owner of the jobs. saina.ko outlives the agent's restarts. */
struct saina_ctl *connect_owner(const struct tool *t);
/* The agent: ports, slots and counters belong to the data path, which is the agent's. */
struct saina_ctl *connect_agent(const struct tool *t);
/* As connect_open() and connect_agent(), without printing: on failure NULL and *error. */
struct saina_ctl *connect_quiet(const struct tool *t, const char **error);
struct saina_ctl *connect_agent_quiet(const struct tool *t, const char **error);
/* The agent that serves the kernel's jobs of this network namespace, or NULL. */
struct saina_ctl *connect_serving_agent(void);
bool is_kernel(const struct saina_ctl *ctl);
bool module_loaded(void);
/* Reads the limits, the backend and the bridge of @ctl. Returns 0 or a negative errno. */
int limits_of(struct saina_ctl *ctl, struct saina_limits_attrs *l);

/* ---- rpc.c: requests and replies ---- */

/**
 * rpc_call() - send a request and read the replies
 * @req: object of class @rc, or NULL
 * @each: called with each object of class @c in the replies, may be NULL
 *
 * Prints the refusal. Returns the exit status.
 */
int rpc_call(struct saina_ctl *ctl, int cmd, bool dump,
	     const struct saina_attr_class *rc, const void *req,
	     const struct saina_attr_class *c, void (*each)(void *arg, const void *obj), void *arg);

/* The same without printing. Returns 0 or a negative errno. */
int rpc_call_quiet(struct saina_ctl *ctl, int cmd, bool dump,
		   const struct saina_attr_class *rc, const void *req,
		   const struct saina_attr_class *c, void (*each)(void *arg, const void *obj), void *arg);

/* Sends a request that returns no object, and closes @ctl (NULL: fails). Returns the status. */
int rpc_change(struct saina_ctl *ctl, int cmd, const struct saina_attr_class *c, const void *req);

/* A growing array of the objects in the replies, filled by rpc_list(), which is as rpc_call(). */
struct rpc_list {
	size_t n, room;
	void *v;
};
int rpc_list(struct saina_ctl *ctl, int cmd, bool dump, const struct saina_attr_class *rc,
	     const void *req, const struct saina_attr_class *c, struct rpc_list *list);
void rpc_list_free(struct rpc_list *list);

/* ---- names of things ---- */
const char *backend_name(unsigned int backend);
/* The text form; static storage, valid until the next call. */
const char *policy_name(const struct saina_policy_attrs *a);
/*
 * Parse a job's name or number ("digits", "3") into the name or id of a request, and a worker's
 * number. Return 0 or EXIT_USAGE.
 */
int parse_job(const struct args *a, const char *word, __u64 *has, unsigned int attr_id,
	      unsigned int attr_name, __u16 *id, char *name);
int parse_worker_id(const struct args *a, const char *word, __u8 *id);

/* ---- printing of objects; shared by show and monitor ---- */
/*
 * Prints the scheduled policy of a job and what it waits for; in text, nothing if there is none.
 * @format: of its name; @end: printed last
 */
void policy_next_print(const struct saina_job_attrs *job, const char *format, const char *end);

/* The place of a job in a tree: before its keys are parsed; then, 0 or EXIT_USAGE; printed. */
void uplink_prepare(struct saina_job_attrs *req);
int uplink_complete(const struct args *a, struct saina_job_attrs *req);
void uplink_print(const struct saina_job_attrs *job);
void port_print(const struct saina_port_attrs *p);

#endif /* SAINA_TOOL_H */
