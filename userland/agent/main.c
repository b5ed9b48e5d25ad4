// SPDX-License-Identifier: GPL-2.0-or-later
/* sainad: options, the ladder of what is set up in which order, and its reverse. */
#include <argp.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "agent/agent.h"

const char *argp_program_version = "sainad " SAINA_VERSION;

enum {
	OPT_KEEP = 256,
	OPT_CHECK,
	OPT_CHECK_PROGRAM,
	OPT_READY_FD,
	OPT_KEY, /* and on: keys of the file */
};

/* Keys of the file that the command line overrides, in the order of options[]. */
static const char *const key_options[] = {
	"bridge", "bridge_type", "address", "ovsdb",	   "control",	"runtime_dir",
	"bpffs",  "object",	 "xdp",	    "admin_group", "log_level", "control_plane",
};
#define N_KEYS (int)(sizeof(key_options) / sizeof(key_options[0]))

static const struct argp_option options[] = {
	{ "config", 'c', "FILE", 0,
	  "configuration (default " CONFIG_FILE_DEFAULT ", which may be missing)", 1 },
	{ "foreground", 'f', NULL, 0, "stay in the foreground and log to stderr", 1 },
	{ "keep", OPT_KEEP, NULL, 0,
	  "when stopped, leave the data path running for the next start to take over", 1 },
	{ "check-config", OPT_CHECK, NULL, 0,
	  "say whether the configuration is right, and do nothing else", 1 },
	{ "check-program", OPT_CHECK_PROGRAM, NULL, 0,
	  "say whether the kernel takes the XDP program, and do nothing else", 1 },
	{ "ready-fd", OPT_READY_FD, "N", 0,
	  "write \"ready\" to this descriptor when set up, and close it", 1 },
	{ NULL, 0, NULL, 0, "Instead of what the configuration says:", 2 },
	{ "bridge", OPT_KEY + 0, "NAME", 0, "the bridge", 2 },
	{ "bridge-type", OPT_KEY + 1, "auto|ovs|linux", 0, "its kind", 2 },
	{ "address", OPT_KEY + 2, "IPV4", 0,
	  "the aggregator's address (default: the bridge's first)", 2 },
	{ "ovsdb", OPT_KEY + 3, "PATH", 0, "unix socket of the OVSDB server", 2 },
	{ "control", OPT_KEY + 4, "PATH", 0, "unix socket of the control interface", 2 },
	{ "runtime-dir", OPT_KEY + 5, "DIR", 0, "state and lock", 2 },
	{ "bpffs", OPT_KEY + 6, "DIR", 0, "where to pin", 2 },
	{ "object", OPT_KEY + 7, "FILE", 0, "the XDP program", 2 },
	{ "xdp", OPT_KEY + 8, "native|generic", 0, "how to attach it", 2 },
	{ "admin-group", OPT_KEY + 9, "GROUP", 0, "who may change things besides root", 2 },
	{ "log-level", OPT_KEY + 10, "LEVEL", 0, "error, warn, info or debug", 2 },
	{ "control-plane", OPT_KEY + 11, "auto|kernel|agent", 0, "who has the jobs", 2 },
	{ 0 },
};

/* Options are applied after the file has been read: kept until then. */
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
	case 'f':
		args->cfg->foreground = true;
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
	case OPT_READY_FD:
		args->cfg->ready_fd = strtol(arg, &end, 10);
		if (!*arg || *end || args->cfg->ready_fd < 0 ||
		    fcntl(args->cfg->ready_fd, F_GETFD) < 0)
			argp_error(state, "--ready-fd: '%s' is no open file descriptor", arg);
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
	.doc = "The agent of SAINA: puts the aggregation program on the ports of a bridge, admits workers and watches over them.",
};

static int configure(struct config *cfg, int argc, char **argv)
{
	struct arguments args = { .cfg = cfg };
	char text[320];
	int i, ret;

	config_defaults(cfg);
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, &args);
	ret = config_load(cfg, cfg->file ? cfg->file : CONFIG_FILE_DEFAULT, cfg->file != NULL, text,
			  sizeof(text));
	if (!cfg->file)
		cfg->file = CONFIG_FILE_DEFAULT;
	for (i = 0; !ret && i < N_KEYS; i++)
		if (args.key[i])
			ret = config_set(cfg, key_options[i], args.key[i], text, sizeof(text));
	if (!ret)
		ret = jobs_check(cfg, text, sizeof(text));
	if (ret)
		fprintf(stderr, "sainad: %s\n", text);
	return ret;
}

void agent_settle(struct agent *a)
{
	const struct saina_job *job;
	int id, w;

	if (!a->jobs.changed)
		return;
	a->jobs.changed = false;
	if (a->jobs.unsaved)
		state_save(a);
	health_replan(a);
	for (id = 0; (job = saina_core_job_next(a->jobs.core, id)); id = job->id + 1) {
		if (!a->jobs.aux[job->id]->status_due)
			continue;
		a->jobs.aux[job->id]->status_due = false;
		for (w = 0; w < job->workers; w++)
			if (jobs_alive(job, w))
				admit_status(a, job, w);
	}
}

static void settle(void *arg)
{
	agent_settle(arg);
}

/* Signals */

static void signal_ready(struct source *s, uint32_t events)
{
	struct signalfd_siginfo info;
	struct agent *a = s->arg;

	if (read(s->fd, &info, sizeof(info)) != sizeof(info))
		return;
	log_info("%s: stopping%s", strsignal(info.ssi_signo),
		 a->cfg.keep ? ", the data path stays for the next start" : "");
	a->loop.stop = true;
}

static int signals_init(struct agent *a)
{
	sigset_t set;
	int ret;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	/* the terminal went: an end like Ctrl-C; in the background there is none */
	if (a->cfg.foreground)
		sigaddset(&set, SIGHUP);
	else
		signal(SIGHUP, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	a->signals = (struct source){ .ready = signal_ready, .arg = a };
	a->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (a->signals.fd < 0)
		return -errno;
	ret = loop_add(&a->loop, &a->signals, EPOLLIN);
	if (ret)
		close(a->signals.fd);
	return ret;
}

static void signals_uninit(struct agent *a)
{
	loop_del(&a->loop, &a->signals);
	close(a->signals.fd);
}

/* The data path */

static void dp_log(void *arg, int level, const char *line)
{
	log_line(level < LOG_L_DEBUG ? level : LOG_L_DEBUG, "data path: %s", line);
}

static int dp_init(struct agent *a)
{
	struct saina_dp_opts opts = {
		.object = a->cfg.object[0] ? a->cfg.object : NULL,
		.pin_dir = a->cfg.bpffs,
		.kernel = a->plane.kernel,
		.log = dp_log,
	};
	int ret = saina_dp_open(&a->dp, &opts);

	if (ret) {
		log_error("data path: %s", a->dp ? saina_dp_error(a->dp) : strerror(-ret));
		if (a->plane.kernel)
			log_error("that was the program that uses saina.ko: is the module of this version and built with BTF? `saina doctor` says more; rmmod saina, or control_plane = \"agent\", does without it");
		if (a->dp)
			saina_dp_close(a->dp, false);
	} else if (saina_dp_taken_over(a->dp)) {
		log_info("found a data path at %s: taking it over", a->cfg.bpffs);
	}
	return ret;
}

/* Tells whoever waits that the agent is set up. */
static void say_ready(struct agent *a)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	int fd;

	log_info("ready: bridge %s, aggregator %s, control socket %s, %d ports", a->cfg.bridge,
		 inet_ntoa(a->addr), a->cfg.control, a->ports.n);
	if (a->cfg.ready_fd >= 0) {
		if (write(a->cfg.ready_fd, "ready\n", 6) != 6)
			log_warn("--ready-fd: %s", strerror(errno));
		close(a->cfg.ready_fd);
	}
	if (len < 2 || len >= sizeof(addr.sun_path))
		return;
	memcpy(addr.sun_path, path, len);
	if (addr.sun_path[0] == '@')
		addr.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || sendto(fd, "READY=1", 7, MSG_NOSIGNAL, (struct sockaddr *)&addr,
			     offsetof(struct sockaddr_un, sun_path) + len) < 0)
		log_warn("NOTIFY_SOCKET: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
}

/* Workers need not find out by silence. */
static void say_goodbye(struct agent *a)
{
	const struct saina_job *job;
	int id;

	for (id = 0; (job = saina_core_job_next(a->jobs.core, id)); id = job->id + 1)
		admit_job_gone(a, job);
}

static int serve(struct agent *a, int background)
{
	char null = 0;
	int ret, fd;

	say_ready(a);
	if (background >= 0) {
		log_to_syslog();
		fd = open("/dev/null", O_RDWR);
		dup2(fd, 0);
		dup2(fd, 1);
		dup2(fd, 2);
		if (fd > 2)
			close(fd);
		if (write(background, &null, 1) != 1)
			log_warn("the process that started this one is gone");
		close(background);
	}
	ret = loop_run(&a->loop, settle, a);
	if (!a->cfg.keep) {
		say_goodbye(a);
		plane_dismiss(a);
	}
	return ret;
}

static int run(struct agent *a, int background)
{
	bool keep = false;
	int ret;

	log_level_set(a->cfg.log_level);
	ret = loop_init(&a->loop);
	if (ret)
		return ret;
	ret = signals_init(a);
	if (ret)
		goto err_loop;
	ret = runtime_init(a);
	if (ret)
		goto err_signals;
	ret = plane_init(a);
	if (ret)
		goto err_runtime;
	ret = dp_init(a);
	if (ret)
		goto err_plane;
	/* until the state is read, failing must not take a running data path down */
	keep = saina_dp_taken_over(a->dp);
	ret = jobs_init(a);
	if (ret)
		goto err_dp;
	ret = health_init(a);
	if (ret)
		goto err_jobs;
	ret = rtnl_init(a);
	if (ret)
		goto err_health;
	ret = ports_init(a);
	if (ret)
		goto err_rtnl;
	ret = admit_init(a);
	if (ret)
		goto err_ports;
	ret = relay_init(a);
	if (ret)
		goto err_admit;
	ret = ctlserver_init(a);
	if (ret)
		goto err_relay;
	ret = plane_start(a);
	if (ret)
		goto err_ctlserver;
	ret = state_restore(a);
	if (ret && ret != -ENOENT)
		goto err_ctlserver;
	ret = jobs_configure(a);
	if (ret)
		goto err_ctlserver;
	state_save(a);
	ret = serve(a, background);
	keep = a->cfg.keep;

err_ctlserver:
	ctlserver_uninit(a);
err_relay:
	relay_uninit(a);
err_admit:
	admit_uninit(a);
err_ports:
	ports_uninit(a);
err_rtnl:
	rtnl_uninit(a);
err_health:
	health_uninit(a);
err_jobs:
	jobs_uninit(a);
err_dp:
	if (!keep)
		state_remove(a);
	saina_dp_close(a->dp, !keep);
err_plane:
	plane_uninit(a);
err_runtime:
	runtime_uninit(a, keep);
err_signals:
	signals_uninit(a);
err_loop:
	loop_uninit(&a->loop);
	return ret;
}

/* Tries what a start would do with the XDP program, pins and attaches nothing. */
static int check_program(struct config *cfg)
{
	struct saina_dp_opts opts = {
		.object = cfg->object[0] ? cfg->object : NULL,
		.kernel = plane_wanted(cfg),
	};
	struct saina_dp *dp;
	int ret = saina_dp_open(&dp, &opts);

	if (ret)
		printf("%s\n", dp ? saina_dp_error(dp) : strerror(-ret));
	else
		printf("the kernel takes the XDP program that %s\n",
		       opts.kernel ? "uses saina.ko" : "does without saina.ko");
	saina_dp_close(dp, false);
	return ret ? 1 : 0;
}

/*
 * Goes to the background.  Return: in the child the descriptor to write one
 * byte to when set up; the parent does not return.
 */
static int background(void)
{
	int fd[2], status;
	char byte;
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid) {
		close(fd[1]);
		if (read(fd[0], &byte, 1) == 1)
			exit(0);
		exit(waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
									  : 1);
	}
	close(fd[0]);
	setsid();
	if (chdir("/"))
		return -errno;
	return fd[1];
}

int main(int argc, char **argv)
{
	static struct agent a;
	int ret, fd = -1;

	ret = configure(&a.cfg, argc, argv);
	if (ret || a.cfg.check) {
		if (!ret)
			printf("%s: right\n", a.cfg.file);
		config_free(&a.cfg);
		return ret ? 2 : 0;
	}
	if (geteuid()) {
		fprintf(stderr,
			"sainad: loading and attaching an XDP program is for root: use sudo\n");
		return 1;
	}
	if (a.cfg.check_program) {
		ret = check_program(&a.cfg);
		config_free(&a.cfg);
		return ret;
	}
	if (!a.cfg.foreground) {
		fd = background();
		if (fd < 0) {
			fprintf(stderr, "sainad: cannot go to the background: %s\n", strerror(-fd));
			return 1;
		}
	}
	ret = run(&a, fd);
	config_free(&a.cfg);
	return ret ? 1 : 0;
}
