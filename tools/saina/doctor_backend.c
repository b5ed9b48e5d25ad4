// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina doctor: checks which backend has the jobs, saina.ko or sainad, and why.
 */
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/utsname.h>

#include "doctor_check.h"

/* The agent, if it answers. */
struct agent_state {
	struct saina_ctl *ctl;
	int backend;		/* enum saina_backend, 0: unknown */
	const char *error;	/* why it does not answer */
	char where[PATH_MAX];
};

/*
 * Looks for saina.ko where distributions and DKMS install modules that are not the kernel's own.
 * @release: of the kernel, may be a glob pattern; @other: out: release of the first one found
 */
static bool module_installed(const char *release, char *other, size_t size)
{
	char pattern[PATH_MAX], *slash;
	bool here = false;
	glob_t g;

	snprintf(pattern, sizeof(pattern), "/lib/modules/%s/{updates,extra}{,/dkms}/saina.ko*",
		 release);
	other[0] = 0;
	if (!glob(pattern, GLOB_BRACE, NULL, &g)) {
		here = g.gl_pathc > 0;
		snprintf(other, size, "%s", g.gl_pathv[0] + strlen("/lib/modules/"));
		slash = strchr(other, '/');
		if (slash)
			*slash = 0;
		globfree(&g);
	}
	return here;
}

/* Reports that the module is not loaded, and whether it is installed, for this kernel or another. */
static void report_module_absent(const struct agent_state *agent)
{
	char text[128] = "", other[64];
	struct utsname u;

	uname(&u);
	if (access("/proc/modules", F_OK)) {
		doc_report(DOC_OK, "module", NULL,
			   "this kernel has no loadable modules: sainad is the control plane");
		return;
	}
	doc_read_line("/sys/kernel/security/lockdown", text, sizeof(text));
	if (strstr(text, "[integrity]") || strstr(text, "[confidentiality]"))
		doc_report(DOC_OK, "module", NULL,
			   "the kernel is locked down and loads only signed modules: sainad is the control plane");
	else if (module_installed(u.release, other, sizeof(other)))
		doc_report(DOC_OK, "module", "to have the jobs in the kernel: modprobe saina, then restart sainad",
			   "saina.ko is installed, but not loaded: sainad is the control plane");
	else if (module_installed("*", other, sizeof(other)))
		doc_report(DOC_WARN, "module",
			   doc_fix("dkms autoinstall -k %s (or make module install-module), then modprobe saina", u.release),
			   "saina.ko was built for another kernel (%s), not for this one (%s): sainad is the control plane",
			   other, u.release);
	else
		doc_report(DOC_OK, "module", NULL, "saina.ko is not loaded: sainad is the control plane");
}

/* Runs sainad --check-program, which tries to load the program that uses the module. */
static void check_program(const struct doc_state *s)
{
	char self[PATH_MAX / 2], command[PATH_MAX], text[2048], *line;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int status;

	if (!s->may_load) {
		doc_report(DOC_SKIP, "program", NULL, "no permission to load a BPF program");
		return;
	}
	self[n > 0 ? n : 0] = 0;
	line = strrchr(self, '/');
	if (line)
		*line = 0;
	snprintf(command, sizeof(command), "PATH=\"%s:$PATH\" sainad --check-program 2>&1", self);
	status = doc_run(command, text, sizeof(text));
	if (status < 0) {
		doc_report(DOC_SKIP, "program", NULL, "sainad cannot be run to test the program");
		return;
	}
	text[strcspn(text, "\n")] = 0;
	if (!status)
		doc_report(DOC_OK, "program", NULL, "%s", text);
	else
		doc_report(DOC_FAIL, "program",
			   "saina.ko and sainad must have the same version: build and install both (make all module install install-module), rmmod saina, modprobe saina; or work without saina.ko: rmmod saina",
			   "%s", text);
}

static void report_module_loaded(const struct doc_state *s, const struct agent_state *agent)
{
	char text[32] = "";
	int users = 0;

	if (doc_read_line("/sys/module/saina/refcnt", text, sizeof(text)))
		users = atoi(text);
	if (access("/sys/kernel/btf/saina", F_OK))
		doc_report(DOC_WARN, "module-btf",
			   "build saina.ko with make module, which says what BTF needs (pahole, vmlinux of this kernel)",
			   "saina.ko was built without BTF: no program can use it, so sainad has the jobs itself");
	if (agent->backend == SAINA_BACKEND_AGENT)
		doc_report(DOC_WARN, "module",
			   "rmmod saina; or restart sainad when its workers are done, with control_plane = \"auto\"",
			   "saina.ko is loaded, but not in use: sainad at %s has the jobs; sainad was started before, or jobs were running, or control_plane is \"agent\"",
			   agent->where);
	else if (agent->ctl)
		doc_report(DOC_OK, "module", NULL,
			   "saina.ko is loaded and has the jobs; SAINA's program uses it, so rmmod is refused until sainad is stopped (without --keep)");
	else if (users)
		doc_report(DOC_WARN, "module", "start sainad: it takes over",
			   "saina.ko is loaded and has the jobs, and SAINA's program uses it, but no sainad answers: rounds go on, but no worker can join (rmmod is refused until sainad is stopped without --keep)");
	else
		doc_report(DOC_WARN, "module", "start sainad",
			   "saina.ko is loaded, but no BPF program uses it: the jobs in it do not run");
	if (!users)
		check_program(s);
}

static void read_lists(struct doc_state *s, const struct agent_state *agent)
{
	const struct saina_ctl *wrong = NULL;

	if (rpc_list(s->ctl, SAINA_CMD_JOB_GET, true, NULL, NULL, &saina_job_class, &s->jobs) ||
	    rpc_list(s->ctl, SAINA_CMD_WORKER_GET, true, NULL, NULL, &saina_worker_class,
		     &s->workers))
		wrong = s->ctl;
	else if (agent->ctl && rpc_list(agent->ctl, SAINA_CMD_PORT_GET, true, NULL, NULL,
					&saina_port_class, &s->ports))
		wrong = agent->ctl;
	if (wrong) {
		doc_report(DOC_FAIL, "control-plane", "restart sainad (sainad and saina must have the same version)",
			   "%s gives a wrong answer: %s", saina_ctl_peer(wrong), saina_ctl_error(wrong));
		return;
	}
	s->ctl_ok = true;
	doc_report(DOC_OK, "control-plane", NULL, "%s%s: %zu jobs, %zu workers, %zu ports",
		   is_kernel(s->ctl) ? "saina.ko in the " : "sainad at ", saina_ctl_peer(s->ctl),
		   s->jobs.n, s->workers.n, s->ports.n);
}

/* Uses the bridge of the running agent, which may differ from that of the configuration file. */
static void adopt_bridge(struct doc_state *s, const struct saina_limits_attrs *l, const char *where)
{
	if (SAINA_HAS(l, SAINA_A_LIMITS_OVSDB) && !s->ovsdb_chosen)
		strcpy(s->ovsdb, l->ovsdb);
	if (!SAINA_HAS(l, SAINA_A_LIMITS_BRIDGE))
		return;
	if (!s->bridge_chosen)
		strcpy(s->bridge, l->bridge);
	else if (strcmp(s->bridge, l->bridge))
		doc_report(DOC_WARN, "agent", doc_fix("saina doctor host bridge %s; or name the socket of another agent: saina -s SOCKET doctor",
						      l->bridge),
			   "sainad at %s serves bridge %s, not %s", where, l->bridge, s->bridge);
}

void doc_backend(struct doc_state *s)
{
	struct saina_limits_attrs l;
	struct agent_state agent = { 0 };
	const char *error;

	s->ctl = connect_quiet(s->t, &error);
	agent.ctl = s->ctl && is_kernel(s->ctl) ? connect_agent_quiet(s->t, &agent.error) : s->ctl;
	if (agent.ctl) {
		agent.backend = limits_of(agent.ctl, &l) ? 0 : l.backend;
		snprintf(agent.where, sizeof(agent.where), "%s", saina_ctl_peer(agent.ctl));
		if (saina_ctl_warning(agent.ctl)[0])
			doc_report(DOC_FAIL, "state",
				   "make room, or make that directory writable: sainad tries again every second",
				   "what has changed at sainad at %s is %s", agent.where,
				   saina_ctl_warning(agent.ctl));
		adopt_bridge(s, &l, agent.where);
	}
	if (module_loaded())
		report_module_loaded(s, &agent);
	else
		report_module_absent(&agent);
	if (!s->ctl) {
		doc_report(DOC_WARN, "control-plane",
			   "start sainad, then run saina doctor again for more checks", "%s", error);
		return;
	}
	/* without an agent the kernel's jobs can still be checked */
	if (!agent.ctl)
		doc_report(DOC_WARN, "agent",
			   "start sainad: without it no worker can join and no port is attached", "%s",
			   agent.error);
	read_lists(s, &agent);
	if (agent.ctl != s->ctl)
		saina_ctl_close(agent.ctl);
}
