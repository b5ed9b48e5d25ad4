// SPDX-License-Identifier: GPL-2.0-or-later
/* sainad: sets everything up in order, undoes it in reverse, and forwards notifications
 * between folders. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>

#include "agent/control/control.h"
#include "agent/metrics/metrics.h"
#include "agent/process.h"
#include "agent/uplink/uplink.h"

/* Notifications of lower folders */

static void job_changed(struct agent *a, int cmd, const struct saina_job *job, int worker)
{
	members_job_changed(a, cmd, job);
	uplinks_job_changed(a, cmd, job);
	control_notify(a, cmd, job, worker);
}

static void job_event(struct agent *a, const struct saina_event *ev, const char *text)
{
	const struct saina_job *job;

	/* another client of the backend may have admitted it */
	if (ev->type == SAINA_EV_WORKER_JOINED) {
		job = saina_core_job_find(a->jobs->core, 1, ev->job, NULL, NULL);
		if (job)
			liveness_heard(a, job, ev->worker);
	}
	control_notify_event(a, ev, text);
}

static const struct jobs_ops jobs_ops = {
	.changed = job_changed,
	.event = job_event,
	.save = state_save,
};

static void port_changed(struct agent *a, const struct port *p, bool there)
{
	members_port_changed(a, p->ifindex, p->name, there);
	control_notify_port(a, p, there);
}

static void port_hook(struct agent *a, const struct port *p)
{
	delivery_replan(a);
}

static const struct bridge_ops bridge_ops = {
	.port = port_changed,
	.hook = port_hook,
	.bridge = delivery_bridge_changed,
	.changed = control_notify_port_changed,
};

static void flush_changes(void *arg)
{
	control_flush(arg);
}

/* Signals */

/* SIGHUP with a configuration that cannot be used changes nothing. */
static bool reload_is_possible(struct agent *a)
{
	struct config cfg;
	char text[320];
	int ret;

	ret = fchdir(a->reload.directory) ? -errno : 0;
	if (ret)
		snprintf(text, sizeof(text), "%s", strerror(-ret));
	else
		ret = args_configure(&cfg, a->reload.argc, a->reload.argv, true, text, sizeof(text));
	if (a->cfg.daemonize && chdir("/"))
		log_warn("cannot change to directory /: %s", strerror(errno));
	if (!ret) {
		ret = jobs_check(&cfg, text, sizeof(text));
		config_free(&cfg);
	}
	if (ret)
		log_error("SIGHUP: the old configuration stays in force: %s", text);
	return !ret;
}

static void signal_ready(struct source *s, uint32_t events)
{
	struct signalfd_siginfo info;
	struct agent *a = s->arg;

	if (read(s->fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP && process_reloads(&a->cfg)) {
		if (!reload_is_possible(a))
			return;
		a->jobs->unsaved = true; /* the file may have gone since it was written */
		jobs_commit(a);
		if (a->jobs->unsaved) {
			log_error("SIGHUP: the old configuration stays in force: the jobs are %s",
				  a->jobs->unsaved_why);
			return;
		}
		log_info("SIGHUP: restarting with the new configuration; the data path keeps running");
		a->cfg.keep = a->reload.due = true;
		a->loop.stop = true;
		return;
	}
	log_info("%s: stopping%s", strsignal(info.ssi_signo),
		 a->cfg.keep ? ", the data path stays for the next start" : "");
	a->loop.stop = true;
}

static int signals_init(struct agent *a, struct source *s)
{
	sigset_t set;
	int ret;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	/* reloads; in the foreground a hang-up of the terminal stops sainad like Ctrl-C */
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	*s = (struct source){ .ready = signal_ready, .arg = a };
	s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->fd < 0) {
		ret = -errno;
		log_error("signalfd: %s", strerror(-ret));
		return ret;
	}
	ret = loop_add(&a->loop, s, EPOLLIN);
	if (ret)
		close(s->fd);
	return ret;
}

static void signals_uninit(struct agent *a, struct source *s)
{
	loop_del(&a->loop, s);
	close(s->fd);
}

/* The data path */

static void log_data_path(void *arg, int level, const char *line)
{
	log_line(level < LOG_L_DEBUG ? level : LOG_L_DEBUG, "data path: %s", line);
}

/* @fresh: do not take over what is pinned, it belongs to the other backend. */
static int dp_init(struct agent *a, bool fresh)
{
	struct saina_dp_opts opts = {
		.object = a->cfg.object[0] ? a->cfg.object : NULL,
		.pin_dir = a->cfg.bpffs,
		.fresh = fresh,
		.kernel = a->backend->ops->uses_module,
		.log = log_data_path,
	};
	int ret = saina_dp_open(&a->dp, &opts);

	if (ret) {
		log_error("data path: %s", a->dp ? saina_dp_error(a->dp) : strerror(-ret));
		if (opts.kernel)
			log_error("this data path uses saina.ko: check with `saina doctor` that the module is of this version and has BTF, or start sainad without it (control_plane = \"agent\")");
		if (a->dp)
			saina_dp_close(a->dp, false);
	} else if (saina_dp_taken_over(a->dp)) {
		log_info("found a data path at %s: taking it over", a->cfg.bpffs);
	}
	return ret;
}

static int serve(struct agent *a, int background)
{
	int ret;

	log_info("ready: bridge %s, aggregator %s, control socket %s, %d ports", a->cfg.bridge,
		 inet_ntoa(a->addr), a->cfg.control, a->bridge->n);
	process_ready(&a->cfg);
	if (background >= 0)
		process_detach(background);
	ret = loop_run(&a->loop, flush_changes, a);
	jobs_commit(a);
	if (!a->cfg.keep) {
		members_dismiss(a);
		backend_release_workers(a);
	}
	return ret;
}

static int run(struct agent *a, int background)
{
	struct source signals;
	struct saved *saved;
	bool keep = false;
	int ret;

	a->started = loop_now();
	if (a->cfg.daemonize && a->cfg.reloaded)
		process_background_again();
	log_level_set(a->cfg.log_level);
	process_limits();
	ret = loop_init(&a->loop);
	if (ret)
		return ret;
	ret = signals_init(a, &signals);
	if (ret)
		goto err_loop;
	ret = runtime_init(&a->runtime, &a->cfg);
	if (ret)
		goto err_signals;
	saved = state_load(a);
	ret = backend_init(a, state_has_running_local(saved));
	if (ret)
		goto err_saved;
	ret = dp_init(a, state_of_other_backend(a, saved));
	if (ret)
		goto err_backend;
	/* until the jobs are known, a failure must not take a running data path down */
	keep = saina_dp_taken_over(a->dp);
	ret = jobs_init(a, &jobs_ops);
	if (ret)
		goto err_dp;
	ret = bridge_init(a, &bridge_ops);
	if (ret)
		goto err_jobs;
	ret = members_init(a);
	if (ret)
		goto err_bridge;
	/* a port gets the program only when the UDP port, which workers need, was free */
	ret = bridge_attach(a);
	if (ret)
		goto err_members;
	ret = control_init(a);
	if (ret)
		goto err_members;
	ret = backend_start(a);
	if (ret)
		goto err_control;
	state_restore(a, saved);
	ret = backend_add_configured(a);
	if (ret)
		goto err_control;
	a->jobs->unsaved = true;
	jobs_commit(a);
	ret = metrics_init(a);
	if (ret)
		goto err_control;
	ret = uplinks_init(a);
	if (!ret)
		ret = serve(a, background);
	keep = a->cfg.keep;
	uplinks_uninit(a);
	metrics_uninit(a);

err_control:
	control_uninit(a);
err_members:
	members_uninit(a);
err_bridge:
	bridge_uninit(a);
err_jobs:
	jobs_uninit(a);
err_dp:
	if (!keep)
		state_remove(a);
	saina_dp_close(a->dp, !keep);
err_backend:
	backend_uninit(a);
err_saved:
	state_free(saved);
	runtime_uninit(&a->runtime, keep);
err_signals:
	signals_uninit(a, &signals);
err_loop:
	loop_uninit(&a->loop);
	return ret;
}

/* Loads the XDP program as a start would, without pinning or attaching anything. */
static int check_program(const struct config *cfg)
{
	struct saina_dp_opts opts = {
		.object = cfg->object[0] ? cfg->object : NULL,
		.kernel = backend_wants_kernel(cfg),
	};
	struct saina_dp *dp;
	int ret = saina_dp_open(&dp, &opts);

	if (ret)
		printf("%s\n", dp ? saina_dp_error(dp) : strerror(-ret));
	else
		printf("the kernel accepts the XDP program that %s\n",
		       opts.kernel ? "uses saina.ko" : "does without saina.ko");
	saina_dp_close(dp, false);
	return ret ? 1 : 0;
}

int main(int argc, char **argv)
{
	static struct jobs jobs;
	static struct backend backend;
	static struct bridge bridge;
	static struct members members;
	static struct control control;
	static struct agent a = {
		.jobs = &jobs,
		.backend = &backend,
		.bridge = &bridge,
		.members = &members,
		.control = &control,
	};
	char text[320];
	int ret, fd = -1;

	ret = args_configure(&a.cfg, argc, argv, false, text, sizeof(text));
	if (!ret)
		ret = jobs_check(&a.cfg, text, sizeof(text));
	if (ret)
		fprintf(stderr, "sainad: %s\n", text);
	if (ret || a.cfg.check) {
		if (!ret)
			printf("%s: %s\n", a.cfg.file,
			       access(a.cfg.file, F_OK) ? "there is no such file: the defaults are valid" : "valid");
		config_free(&a.cfg);
		return ret ? 2 : 0;
	}
	if (geteuid()) {
		fprintf(stderr,
			"sainad: only root can load and attach an XDP program: use sudo\n");
		return 1;
	}
	if (a.cfg.check_program) {
		ret = check_program(&a.cfg);
		config_free(&a.cfg);
		return ret;
	}
	a.reload.directory = open(".", O_PATH | O_CLOEXEC);
	a.reload.argc = argc;
	a.reload.argv = argv;
	/* started as /proc/self/exe, it is called "exe": pkill and saina doctor look for its name */
	if (a.cfg.reloaded)
		prctl(PR_SET_NAME, "sainad");
	if (a.cfg.daemonize && !a.cfg.reloaded) {
		fd = process_background();
		if (fd < 0) {
			fprintf(stderr, "sainad: cannot go to the background: %s\n", strerror(-fd));
			return 1;
		}
	}
	ret = run(&a, fd);
	if (a.reload.due) {
		ret = process_restart(argc, argv, a.reload.directory);
		log_error("SIGHUP: cannot restart: %s", strerror(-ret));
	}
	config_free(&a.cfg);
	return ret ? 1 : 0;
}
