/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The configuration: file and command line. */
#ifndef AGENT_CONFIG_H
#define AGENT_CONFIG_H

#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/core.h"

#define CONFIG_FILE_DEFAULT "/etc/saina/sainad.conf"
/* First argument of a process that goes on after SIGHUP: it is in the background already. */
#define CONFIG_RELOADED "--reloaded"

#define CONFIG_PATH_MAX	  256
#define CONFIG_SOCKET_MAX 108	/* sizeof(sockaddr_un.sun_path) */

enum backend_choice { BACKEND_AUTO, BACKEND_KERNEL, BACKEND_AGENT };

enum bridge_type { BRIDGE_AUTO, BRIDGE_OVS, BRIDGE_LINUX };

struct config_job {
	struct saina_job_attrs req;
	int line;		/* of the file, for refusals */
};

struct config {
	char bridge[IFNAMSIZ];
	enum bridge_type bridge_type;
	enum backend_choice backend;
	struct in_addr address;	/* 0: the bridge's first */
	int hook;		/* enum saina_port_hook, default of all ports */
	int log_level;
	char ovsdb[CONFIG_SOCKET_MAX];
	char control[CONFIG_SOCKET_MAX];
	char runtime_dir[CONFIG_PATH_MAX];
	char bpffs[CONFIG_PATH_MAX];
	char object[CONFIG_PATH_MAX];	/* empty: search the built-in places */
	char admin_group[64];
	char metrics[CONFIG_SOCKET_MAX];	/* empty: disabled */
	struct saina_limits limits;
	__u64 limits_has;	/* bits SAINA_A_LIMITS_* of those in the file */
	int limits_line;
	struct config_job *jobs;
	int n_jobs;

	/* command line only */
	const char *file;
	bool reloaded;
	bool daemonize;
	bool keep;
	bool check;
	bool check_program;
	int ready_fd;
};

void config_defaults(struct config *cfg);
/* Reads @path into @cfg.  @must: a missing file is an error.  On failure @text is the
 * message, with file and line. */
int config_load(struct config *cfg, const char *path, bool must, char *text, size_t size);
/* Sets a scalar key, for the command line. */
int config_set(struct config *cfg, const char *key, const char *value, char *text, size_t size);
void config_free(struct config *cfg);
/* Parses "ADDRESS:PORT", or "[ADDRESS]:PORT" for IPv6.  Return: 0 or -EINVAL. */
int config_host_port(const char *text, char *host, size_t size, unsigned int *port);

/*
 * args.c: reads file and command line.  @again: as before, in a process that is ready.  A command
 * line that makes no sense ends the process; other errors are returned, with @text.
 */
int args_configure(struct config *cfg, int argc, char **argv, bool again, char *text, size_t size);

#endif /* AGENT_CONFIG_H */
