// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina doctor: checks the kernel, privileges, BPF, and the jobs.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "doctor_check.h"
#include "net/bpffs.h"

static void check_kernel(void)
{
	unsigned int major = 0, minor = 0;
	struct utsname u;
	bool btf = !access("/sys/kernel/btf/vmlinux", R_OK);

	uname(&u);
	if (sscanf(u.release, "%u.%u", &major, &minor) != 2 || major < 6 ||
	    (major == 6 && minor < 1))
		doc_report(DOC_FAIL, "kernel", "boot Linux 6.1 or later (Debian 12 has it)",
			   "Linux %s is too old", u.release);
	else
		doc_report(DOC_OK, "kernel", NULL, "Linux %s", u.release);
	if (btf)
		doc_report(DOC_OK, "btf", NULL, "the kernel has BTF (/sys/kernel/btf/vmlinux)");
	else
		doc_report(DOC_WARN, "btf", "use a kernel with CONFIG_DEBUG_INFO_BTF=y",
			   "/sys/kernel/btf/vmlinux does not exist: the hook tc is not available, and saina.ko cannot offer functions to BPF programs");
}

bool doc_has_cap(unsigned int cap)
{
	char line[128];
	unsigned long long eff = 0;
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "CapEff: %llx", &eff) == 1)
			break;
	}
	if (f)
		fclose(f);
	return eff & (1ull << cap);
}

static bool check_privileges(void)
{
	bool net = doc_has_cap(CAP_NET_ADMIN), bpf = doc_has_cap(CAP_BPF) || doc_has_cap(CAP_SYS_ADMIN);

	if (net && bpf)
		doc_report(DOC_OK, "privileges", NULL, "may load BPF programs and change the network%s",
			   geteuid() ? " (by capabilities)" : "");
	else
		doc_report(DOC_WARN, "privileges", "run saina doctor as root",
			   "%s%s%s missing: some checks are skipped, and sainad needs CAP_NET_ADMIN and CAP_BPF",
			   net ? "" : "CAP_NET_ADMIN", net || bpf ? "" : " and ",
			   bpf ? "" : "CAP_BPF");
	return net && bpf;
}

/* Tries to load an XDP program that passes every frame. */
static void check_bpf(bool allowed)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_XDP,
		.insns = (__u64)(uintptr_t)insns,
		.insn_cnt = 2,
		.license = (__u64)(uintptr_t)"GPL",
	};
	char text[128] = "";
	int fd;

	if (!allowed) {
		doc_report(DOC_SKIP, "bpf", NULL, "no permission to load a BPF program");
		return;
	}
	fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	if (fd >= 0) {
		close(fd);
		doc_report(DOC_OK, "bpf", NULL, "an XDP program can be loaded");
		return;
	}
	doc_read_line("/sys/kernel/security/lockdown", text, sizeof(text));
	if (errno == EPERM && strstr(text, "[confidentiality]"))
		doc_report(DOC_FAIL, "bpf", "boot with lockdown=integrity, or without lockdown",
			   "the kernel is locked down (confidentiality): no BPF program can be loaded");
	else if (errno == ENOSYS)
		doc_report(DOC_FAIL, "bpf", "use a kernel with CONFIG_BPF_SYSCALL=y",
			   "this kernel has no bpf() system call");
	else
		doc_report(DOC_FAIL, "bpf", "in a container, run this on its host instead",
			   "an XDP program cannot be loaded: %s", strerror(errno));
}

static void check_jit(void)
{
	char text[16];

	if (!doc_read_line("/proc/sys/net/core/bpf_jit_enable", text, sizeof(text)))
		doc_report(DOC_SKIP, "bpf-jit", NULL,
			   "net.core.bpf_jit_enable cannot be read in this network namespace");
	else if (!strcmp(text, "0"))
		doc_report(DOC_WARN, "bpf-jit", "sysctl -w net.core.bpf_jit_enable=1",
			   "the JIT is off, BPF programs are interpreted: several times slower");
	else
		doc_report(DOC_OK, "bpf-jit", NULL, "on");
}

/* Checks the agent's pin directory, or the file system above it. */
static void check_bpffs(const char *pin_dir)
{
	char dir[256];
	char *slash;

	snprintf(dir, sizeof(dir), "%s", pin_dir);
	while (access(dir, F_OK) && (slash = strrchr(dir, '/')) && slash != dir)
		*slash = 0;
	if (bpffs_is(dir))
		doc_report(DOC_OK, "bpffs", NULL, "at %s", dir);
	else
		doc_report(DOC_WARN, "bpffs",
			   "mount -t bpf bpf /sys/fs/bpf (ip netns exec hides it: use nsenter --net=...)",
			   "no BPF file system at %s: sainad has to mount one", pin_dir);
}

static void check_jobs(const struct doc_state *s)
{
	const struct saina_job_attrs *job = s->jobs.v;

	for (size_t i = 0; i < s->jobs.n; i++) {
		if (job[i].count[SAINA_JC_POLICY_MIX])
			doc_report(DOC_FAIL, "policy-mix", "report this: it is a bug",
				   "job %s: %" PRIu64 " slots saw two policies", job[i].name,
				   (uint64_t)job[i].count[SAINA_JC_POLICY_MIX]);
		if (SAINA_HAS(&job[i], SAINA_A_JOB_TEXT))
			doc_report(DOC_FAIL, "job",
				   doc_fix("free memory (free -m), then: saina job set %s state forming; or delete the job and add a smaller one",
					   job[i].name),
				   "job %s does not run: %s", job[i].name, job[i].text);
		else if (SAINA_HAS(&job[i], SAINA_A_JOB_TROUBLE))
			/*
			 * a live worker whose gradients do not arrive stops the job; other
			 * troubles, such as numbers that are not finite, do not
			 */
			doc_report(strstr(job[i].trouble, " is alive") ? DOC_FAIL : DOC_WARN, "job",
				   "on the worker's side: run saina doctor worker, and read the worker's own log",
				   "job %s: %s", job[i].name, job[i].trouble);
		else if (job[i].state == SAINA_JOB_STOPPED)
			doc_report(DOC_WARN, "job",
				   doc_fix("saina job set %s state running", job[i].name),
				   "job %s is stopped: its packets are refused", job[i].name);
	}
}

static void check_clock(void)
{
	char text[64] = "0";
	struct timespec now;

	doc_read_line("/proc/uptime", text, sizeof(text));
	clock_gettime(CLOCK_REALTIME, &now);
	if (now.tv_sec < 1700000000)	/* older than this program */
		doc_report(DOC_WARN, "clock", "set the clock (chrony, systemd-timesyncd)",
			   "the clock is wrong, and so are the times of events");
	else
		doc_report(DOC_OK, "clock", NULL, "up for %.0f s", strtod(text, NULL));
}

void doc_host(struct doc_state *s)
{
	bool allowed;

	check_kernel();
	check_clock();
	allowed = s->may_load = check_privileges();
	check_bpf(allowed);
	check_jit();
	check_bpffs(s->bpffs);
	doc_backend(s);
	check_jobs(s);
	doc_firewall_host();
}
