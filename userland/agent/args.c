// SPDX-License-Identifier: GPL-2.0-or-later
/* The command line, and the configuration file under it. */
#include <argp.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/config.h"

const char *argp_program_version = "sainad " SAINA_VERSION;

enum {
	OPT_DAEMONIZE = 256,
	OPT_KEEP,
	OPT_CHECK,
	OPT_CHECK_PROGRAM,
	OPT_READY_FD,
	OPT_RELOADED,
	OPT_KEY, /* and on: keys of the file */
};

/* Keys of the file that have an option, in the order of options[]. */
static const char *const key_options[] = {
	"bridge", "bridge_type", "address", "ovsdb",	   "control",	"runtime_dir",
	"bpffs",  "object",	 "hook",    "admin_group", "log_level", "control_plane",
	"metrics",
};
#define N_KEYS (int)(sizeof(key_options) / sizeof(key_options[0]))

static const struct argp_option options[] = {
	{ "config", 'c', "FILE", 0,
	  "configuration file (default " CONFIG_FILE_DEFAULT ", which may be missing)", 1 },
	{ "daemonize", OPT_DAEMONIZE, NULL, 0,
	  "go to the background when set up, and log to syslog", 1 },
	{ "keep", OPT_KEEP, NULL, 0,
	  "when stopped, leave the data path running for the next start to take over", 1 },
	{ "check-config", OPT_CHECK, NULL, 0,
	  "check the configuration file, and do nothing else", 1 },
	{ "check-program", OPT_CHECK_PROGRAM, NULL, 0,
	  "check whether the kernel accepts the XDP program, and do nothing else", 1 },
	{ "ready-fd", OPT_READY_FD, "N", 0,
	  "write \"ready\" to file descriptor N when set up, and close it", 1 },
	{ CONFIG_RELOADED + 2, OPT_RELOADED, NULL, OPTION_HIDDEN, NULL, 1 },
	{ NULL, 0, NULL, 0, "These options override the configuration file:", 2 },
	{ "bridge", OPT_KEY + 0, "NAME", 0, "bridge whose ports connect the workers", 2 },
	{ "bridge-type", OPT_KEY + 1, "auto|ovs|linux", 0, "type of the bridge", 2 },
	{ "address", OPT_KEY + 2, "IPV4", 0,
	  "address of the aggregator (default: the bridge's first IPv4 address)", 2 },
	{ "ovsdb", OPT_KEY + 3, "PATH", 0, "unix socket of the OVSDB server", 2 },
	{ "control", OPT_KEY + 4, "PATH", 0, "unix socket of the control interface", 2 },
	{ "runtime-dir", OPT_KEY + 5, "DIR", 0, "directory of the state and the lock", 2 },
	{ "bpffs", OPT_KEY + 6, "DIR", 0, "directory where BPF programs and maps are pinned", 2 },
	{ "object", OPT_KEY + 7, "FILE", 0, "the XDP program; saina_tc.bpf.o must be in the same directory", 2 },
	{ "hook", OPT_KEY + 8, "auto|xdp|generic|tc", 0, "hook of the ports at which the program is attached", 2 },
	{ "admin-group", OPT_KEY + 9, "GROUP", 0, "group that may change jobs and ports, besides root", 2 },
	{ "log-level", OPT_KEY + 10, "LEVEL", 0, "error, warn, info or debug", 2 },
	{ "control-plane", OPT_KEY + 11, "auto|kernel|agent", 0, "control plane that keeps the jobs: saina.ko or sainad", 2 },
	{ "metrics", OPT_KEY + 12, "ADDRESS:PORT|unix:PATH|off", 0, "address where Prometheus reads /metrics", 2 },
	{ 0 },
};

/* Options are kept until the file has been read, and override it. */
struct arguments {
	struct config *cfg;
	const char *key[N_KEYS];
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct arguments *args = state->input;
	char *end;

	switch (key) {
	case 'c':
		args->cfg->file = arg;
		return 0;
	case OPT_DAEMONIZE:
		args->cfg->daemonize = true;
		return 0;
	case OPT_KEEP:
		args->cfg->keep = true;
		return 0;
	case OPT_CHECK:
		args->cfg->check = true;
		return 0;
	case OPT_CHECK_PROGRAM:
		args->cfg->check_program = true;
		return 0;
	case OPT_RELOADED:
		args->cfg->reloaded = true;
		return 0;
	case OPT_READY_FD:
		/* written to and closed before the reload */
		if (args->cfg->reloaded)
			return 0;
		args->cfg->ready_fd = strtol(arg, &end, 10);
		if (!*arg || *end || args->cfg->ready_fd < 0 ||
		    fcntl(args->cfg->ready_fd, F_GETFD) < 0)
			argp_error(state, "--ready-fd: '%s' is not an open file descriptor", arg);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "'%s' is not understood: sainad takes options only", arg);
		return 0;
	}
	if (key >= OPT_KEY && key < OPT_KEY + N_KEYS) {
		args->key[key - OPT_KEY] = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.doc = "The agent of SAINA: attaches the aggregation program to the ports of a bridge, admits workers and monitors them.",
};

int args_configure(struct config *cfg, int argc, char **argv, bool again, char *text, size_t size)
{
	struct arguments args = { .cfg = cfg };
	int i, ret;

	config_defaults(cfg);
	cfg->reloaded = again;
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, &args);
	ret = config_load(cfg, cfg->file ? cfg->file : CONFIG_FILE_DEFAULT, cfg->file != NULL, text,
			  size);
	if (!cfg->file)
		cfg->file = CONFIG_FILE_DEFAULT;
	for (i = 0; !ret && i < N_KEYS; i++)
		if (args.key[i])
			ret = config_set(cfg, key_options[i], args.key[i], text, size);
	if (ret)
		config_free(cfg);
	return ret;
}
