// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina.ko's tracepoints: each is provoked and read back from a trace instance of
 * this test's own, with what it says of the matter; and none is left over.
 *
 *	tracepoint_test OBJECT		in the test VM, module loaded, no jobs; as root
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "requests.h"
#include "../lib/tap.h"

#define RATE "/sys/module/saina/parameters/event_rate"

static char instance[128];
static char trace[1 << 18];	/* what has happened since the last look */
static struct bpf_object *object;
static char seen[64][64];	/* tracepoints by name */
static int n_seen;

static bool write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	bool good = f && fputs(text, f) >= 0;

	return f && !fclose(f) && good;
}

static bool instance_write(const char *file, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", instance, file);
	return write_file(path, text);
}

static void read_trace(void)
{
	char path[256];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/trace", instance);
	f = fopen(path, "r");
	if (f) {
		n = fread(trace, 1, sizeof(trace) - 1, f);
		fclose(f);
	}
	trace[n] = 0;
	instance_write("trace", "");
}

/* Is there a line " NAME: ... TEXT"?  read_trace() was before. */
static void traced(const char *name, const char *text)
{
	char mark[64], *line, *next, copy[sizeof(trace)];

	snprintf(mark, sizeof(mark), " %s: ", name);
	strcpy(copy, trace);
	for (line = copy; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		if (strstr(line, mark) && strstr(line, text))
			break;
	}
	if (!tap_ok(line != NULL, "%s: %s", name, text)) {
		for (line = strtok(trace, "\n"); line; line = strtok(NULL, "\n"))
			tap_note("%s", line);
		return;
	}
	snprintf(seen[n_seen++ % 64], sizeof(seen[0]), "%s", name);
}

static int run(const char *prog, struct saina_event ev)
{
	struct bpf_program *p = bpf_object__find_program_by_name(object, prog);
	char packet[64] = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = 1);
	__u32 zero = 0;

	bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "what"), &zero, &ev, BPF_ANY);
	if (bpf_prog_test_run_opts(bpf_program__fd(p), &opts))
		tap_note("running %s: %s", prog, strerror(errno));
	return opts.retval;
}

static int open_instance(void)
{
	static const char *const where[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };

	for (int i = 0; i < 2; i++) {
		snprintf(instance, sizeof(instance), "%s/instances/saina_test_%d", where[i], getpid());
		if (!mkdir(instance, 0700))
			return 0;
	}
	return -errno;
}

static void jobs_and_workers(void)
{
	request_job_new("a", 2, 1000);
	read_trace();
	traced("saina_job_new", "job=0 name=a state=forming workers=2 active=0 generation=");
	traced("saina_snapshot_published", "job=0 generation=");
	traced("saina_policy_asked", "job=0 round=0 policy_seq=1 old=0");
	traced("saina_job_set", "job=0 name=a state=forming");
	traced("saina_event", "type=job-state round=0 k=0 a=0 b=1");

	request_worker_bind(0, 1, 1);
	read_trace();
	traced("saina_worker_set",
	       "job=0 worker=1 state=alive ifindex=1 ip=127.0.0.2 port=4001 session=2 relay=0");
	traced("saina_snapshot_published", "active=2 relay=0 policy_seq=1");
	traced("saina_event", "worker=1 type=worker-joined");

	request_worker_state(0, 1, SAINA_WORKER_STATE_SLOW);
	read_trace();
	traced("saina_worker_set", "job=0 worker=1 state=slow");

	request_job_policy(0, "fastest:k=1");
	read_trace();
	traced("saina_policy_asked", "job=0 round=0 policy_seq=2 old=1");
	traced("saina_snapshot_published", "policy_seq=2 k=1");
	traced("saina_job_set", "policy=fastest k=1 policy_seq=2");

	request_job_new_as("steps", 2, 1000, 0, 0, "ssp:2");
	read_trace();
	traced("saina_job_new", "policy=ssp k=");
	request_job_del(1);
}

static void data_path(void)
{
	struct saina_ctl *sub;
	const char *error;

	run("send_event",
	    (struct saina_event){
		    .type = SAINA_EV_POLICY, .worker = 0xff, .k = 1, .round = 7, .a = 1, .b = 2});
	read_trace();
	traced("saina_policy_adopted", "job=0 round=7 policy_seq=2 old=1");
	traced("saina_event", "job=0 worker=255 type=policy round=7 k=1 a=1 b=2");

	run("ask", (struct saina_event){ .job = 77 });
	read_trace();
	traced("saina_lookup_miss", "job=77");

	write_file(RATE, "0");
	if (saina_ctl_open(&sub, "kernel", &error) ||
	    saina_ctl_subscribe(sub, SAINA_GROUPS_EVENTS)) {
		tap_ok(false, "subscribing: %s", error);
		return;
	}
	run("send_event", (struct saina_event){ .type = SAINA_EV_K, .worker = 0xff, .k = 1 });
	read_trace();
	traced("saina_event_lost", "job=0 worker=255 type=k round=0 k=1 a=0 b=0 over event_rate");
	write_file(RATE, "10000");
	saina_ctl_close(sub);
}

static void refusals(void)
{
	struct nlmsghdr *nlh;

	request_job_del(9);
	read_trace();
	traced("saina_refused", "cmd=3 error=-2 attr=1 there is no job 9");

	nlh = saina_ctl_msg(requests_ctl, SAINA_CMD_JOB_DEL, 0);
	mnl_attr_put_u32(nlh, SAINA_A_JOB_ID, 0);
	saina_ctl_call(requests_ctl, nlh, NULL, NULL);
	read_trace();
	traced("netlink_extack", "msg=");
}

static void ends(void)
{
	request_worker_bind(0, 0, 1);
	request_worker_state(0, 0, SAINA_WORKER_STATE_DEAD);
	read_trace();
	traced("saina_worker_set", "job=0 worker=0 state=dead");

	request_worker_del(0, 1);
	read_trace();
	traced("saina_worker_del", "job=0 worker=1 state=absent");

	request_job_del(0);
	read_trace();
	traced("saina_snapshot_withdrawn", "job=0 generation=");
	traced("saina_job_del", "job=0 name=a");
}

/* Every tracepoint of the module must have been seen above. */
static void none_forgotten(void)
{
	char path[256];
	struct dirent *e;
	int i, missed = 0, n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%s/events/saina", instance);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		if (strncmp(e->d_name, "saina_", 6))
			continue;
		n++;
		for (i = 0; i < n_seen && strcmp(seen[i], e->d_name); i++)
			;
		if (i == n_seen && ++missed)
			tap_note("%s was not provoked", e->d_name);
	}
	if (d)
		closedir(d);
	tap_ok(n && !missed, "all %d tracepoints of the module were seen", n);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	requests_open();
	object = bpf_object__open_file(argv[1], NULL);
	if (!object || bpf_object__load(object)) {
		tap_ok(false, "%s loads", argv[1]);
		return tap_done();
	}
	if (!tap_ok(!open_instance(), "a trace instance can be made"))
		return tap_done();
	if (tap_ok(instance_write("events/saina/enable", "1") &&
		   instance_write("events/netlink/netlink_extack/enable", "1"),
		   "the tracepoints can be enabled")) {
		jobs_and_workers();
		data_path();
		refusals();
		ends();
		none_forgotten();
	}
	instance_write("events/enable", "0");
	tap_ok(!rmdir(instance), "the trace instance can be removed");
	bpf_object__close(object);
	return tap_done();
}
