// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chooses the control plane to ask.  Where saina.ko has the jobs, that is the agent that serves
 * this network namespace, which also knows the data path; without one it is the kernel.  An agent
 * that does not use saina.ko has jobs of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "tool.h"

#define PROBE_MS 3000 /* time for an agent to say which backend it has; one that does not hangs */
#define UNIX_LISTENS 0x10000	/* in the flags of /proc/net/unix */

bool is_kernel(const struct saina_ctl *ctl)
{
	return !strcmp(saina_ctl_peer(ctl), "kernel");
}

bool module_loaded(void)
{
	return !access("/sys/module/saina", F_OK);
}

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static void limits_cb(void *arg, const void *obj)
{
	memcpy(arg, obj, sizeof(struct saina_limits_attrs));
}

int limits_of(struct saina_ctl *ctl, struct saina_limits_attrs *l)
{
	memset(l, 0, sizeof(*l));
	return rpc_call_quiet(ctl, SAINA_CMD_LIMITS_GET, false, NULL, NULL, &saina_limits_class,
			      limits_cb, l);
}

static struct saina_ctl *open_agent(const char **error)
{
	const char *path = variable("SAINA_CTL_SOCKET");
	struct saina_ctl *ctl;

	saina_ctl_open(&ctl, path && strcmp(path, "kernel") ? path : SAINA_CTL_SOCKET, error);
	return ctl;
}

/* Does the agent listen in this network namespace?  In another one it serves other jobs. */
static bool serves_here(const struct saina_ctl *agent)
{
	struct stat ours, listed;
	unsigned int flags;
	bool here = false;
	char line[256], path[128];
	FILE *f;

	if (stat(saina_ctl_peer(agent), &ours))
		return false;
	f = fopen("/proc/self/net/unix", "re");
	while (f && !here && fgets(line, sizeof(line), f))
		/* accepted sockets have the same path, but are in their client's namespace */
		here = sscanf(line, "%*[^:]: %*x %*x %x %*x %*x %*u %127s", &flags, path) == 2 &&
		       flags & UNIX_LISTENS && !stat(path, &listed) &&
		       listed.st_dev == ours.st_dev && listed.st_ino == ours.st_ino;
	if (f)
		fclose(f);
	return here;
}

/* Asks for the agent's backend, with a short time-out; 0: no agent, or no answer. */
static int backend_of(struct saina_ctl *agent)
{
	struct saina_limits_attrs l;
	int ret;

	if (!agent)
		return 0;
	saina_ctl_set_timeout(agent, PROBE_MS);
	ret = limits_of(agent, &l);
	saina_ctl_set_timeout(agent, SAINA_CTL_TIMEOUT_MS);
	if (!ret)
		return l.backend;
	if (module_loaded())
		fprintf(stderr, "saina: note: %s; only the kernel is used\n",
			saina_ctl_error(agent));
	return 0;
}

struct saina_ctl *connect_serving_agent(void)
{
	const char *error;
	struct saina_ctl *agent = open_agent(&error);

	if (backend_of(agent) == SAINA_BACKEND_KERNEL && serves_here(agent))
		return agent;
	saina_ctl_close(agent);
	return NULL;
}

/*
 * The agent is asked first: it knows whether saina.ko has its jobs.
 * @through_agent: prefer the agent of the kernel's jobs to the kernel
 * @unused: out: saina.ko is loaded, but an agent that does not use it has the jobs
 */
static struct saina_ctl *find(const struct tool *t, bool through_agent, bool *unused,
			      const char **error)
{
	const char *chosen = t->socket && *t->socket ? t->socket : variable("SAINA_CONTROL") ?:
			     variable("SAINA_CTL_SOCKET");
	struct saina_ctl *ctl, *agent;
	int backend;

	*unused = false;
	if (chosen && strcmp(chosen, "kernel")) {
		saina_ctl_open(&ctl, chosen, error);
		return ctl;
	}
	agent = open_agent(error);
	backend = backend_of(agent);
	if (backend == SAINA_BACKEND_AGENT && !chosen) {
		*unused = module_loaded();
		return agent;
	}
	if (through_agent && backend == SAINA_BACKEND_KERNEL && serves_here(agent))
		return agent;
	if (saina_ctl_open(&ctl, "kernel", error) && !chosen)
		return agent ?: open_agent(error);
	saina_ctl_close(agent);
	return ctl;
}

static struct saina_ctl *find_or_report(const struct tool *t, bool through_agent)
{
	const char *error;
	bool unused;
	struct saina_ctl *ctl = find(t, through_agent, &unused, &error);

	if (!ctl)
		fprintf(stderr, "saina: %s\n", error);
	else if (unused)
		fprintf(stderr,
			"saina: note: saina.ko is loaded, but not in use: sainad at %s has the jobs (saina doctor says why)\n",
			saina_ctl_peer(ctl));
	return ctl;
}

struct saina_ctl *connect_open(const struct tool *t)
{
	return find_or_report(t, true);
}

struct saina_ctl *connect_owner(const struct tool *t)
{
	return find_or_report(t, false);
}

struct saina_ctl *connect_quiet(const struct tool *t, const char **error)
{
	bool unused;

	return find(t, true, &unused, error);
}

struct saina_ctl *connect_agent_quiet(const struct tool *t, const char **error)
{
	struct saina_ctl *ctl = connect_quiet(t, error);

	if (!ctl || !is_kernel(ctl))
		return ctl;
	saina_ctl_close(ctl);
	return open_agent(error);
}

struct saina_ctl *connect_agent(const struct tool *t)
{
	const char *error;
	struct saina_ctl *ctl = connect_agent_quiet(t, &error);

	if (!ctl)
		fprintf(stderr, "saina: %s\n", error);
	return ctl;
}
