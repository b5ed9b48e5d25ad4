// SPDX-License-Identifier: GPL-2.0-or-later
/* The programs of the data path: which object, loaded onto which maps. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "dp/priv.h"

#ifndef SAINA_PREFIX
#define SAINA_PREFIX "/usr/local"
#endif

#define OBJECT_NAME	"saina_xdp.bpf.o"

static const char *const prog_name[DP_PROGS] = {
	[DP_PROG_XDP] = "saina_xdp",
	[DP_PROG_EGRESS] = "saina_egress",
};

/* The program on the ports, for BPF_PROG_TEST_RUN; the descriptor stays ours. */
int saina_dp_prog_fd(const struct saina_dp *dp)
{
	return dp->prog[DP_PROG_XDP];
}

/* libbpf's print callback has no argument; opening is done by one thread. */
static __thread struct saina_dp *printing;

static int print(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	static const int to[] = { [LIBBPF_WARN] = 0, [LIBBPF_INFO] = 2, [LIBBPF_DEBUG] = 3 };
	char line[1024];
	size_t n;

	if (!printing || !printing->opts.log || level == LIBBPF_DEBUG)
		return 0;
	vsnprintf(line, sizeof(line), fmt, ap);
	n = strlen(line);
	if (n && line[n - 1] == '\n')
		line[n - 1] = 0;
	printing->opts.log(printing->opts.log_arg, to[level], line);
	return 0;
}

static int find_map_object(struct saina_dp *dp)
{
	const char *env = getenv("SAINA_BPF_OBJECT");
	char self[PATH_MAX / 2];
	ssize_t n;

	if (dp->opts.object || env) {
		snprintf(dp->object, sizeof(dp->object), "%s",
			 dp->opts.object ? dp->opts.object : env);
		if (!access(dp->object, R_OK))
			return 0;
		return dp_fail(dp, -errno, "cannot read the BPF object %s: %s", dp->object,
			       strerror(errno));
	}
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n > 0) {
		self[n] = 0;
		snprintf(dp->object, sizeof(dp->object), "%s/%s", dirname(self), OBJECT_NAME);
		if (!access(dp->object, R_OK))
			return 0;
	}
	snprintf(dp->object, sizeof(dp->object), "%s/lib/saina/%s", SAINA_PREFIX, OBJECT_NAME);
	if (!access(dp->object, R_OK))
		return 0;
	return dp_fail(dp, -ENOENT,
		       "%s is neither beside the program nor in %s/lib/saina; install it or set SAINA_BPF_OBJECT",
		       OBJECT_NAME, SAINA_PREFIX);
}

/* The variant for saina.ko lies beside the other. */
static int find_object(struct saina_dp *dp)
{
	static const char end[] = ".bpf.o", variant[] = "_kmod.bpf.o";
	int err = find_map_object(dp);
	size_t len = strlen(dp->object);

	if (err || !dp->opts.kernel)
		return err;
	if (len < strlen(end) || strcmp(dp->object + len - strlen(end), end) ||
	    len - strlen(end) + sizeof(variant) > sizeof(dp->object))
		return dp_fail(dp, -EINVAL, "%s: a BPF object is called something%s", dp->object, end);
	strcpy(dp->object + len - strlen(end), variant);
	if (!access(dp->object, R_OK))
		return 0;
	return dp_fail(dp, -errno,
		       "cannot read the BPF object %s, which is for saina.ko: %s; install it, or unload the module",
		       dp->object, strerror(errno));
}

/* Opens the object; with @reuse its maps are those we have. */
int dp_object_load(struct saina_dp *dp, bool reuse, struct bpf_object **out)
{
	struct bpf_object *obj;
	int err;

	*out = NULL;
	err = find_object(dp);
	if (err)
		return err;
	printing = dp;
	libbpf_set_print(print);
	obj = bpf_object__open_file(dp->object, NULL);
	if (!obj) {
		err = dp_fail(dp, -errno, "%s is not a BPF object of this library's kind: %s",
			      dp->object, strerror(errno));
		goto out;
	}
	for (int i = 0; reuse && i < DP_MAPS; i++) {
		struct bpf_map *m = bpf_object__find_map_by_name(obj, dp_map_name[i]);

		err = m ? bpf_map__reuse_fd(m, dp->map[i]) : -ENOENT;
		if (err) {
			dp_fail(dp, err, "%s: map %s: %s", dp->object, dp_map_name[i],
				strerror(-err));
			goto close;
		}
	}
	err = bpf_object__load(obj);
	if (err) {
		dp_fail(dp, err, "the kernel refused the XDP program %s: %s%s", dp->object,
			strerror(-err), err == -EPERM ? " (are you root?)" : "");
		goto close;
	}
	*out = obj;
	goto out;

close:
	bpf_object__close(obj);
out:
	printing = NULL;
	return err;
}

int dp_progs_get(struct saina_dp *dp, const struct bpf_object *obj, int *prog)
{
	for (int i = 0; i < DP_PROGS; i++) {
		struct bpf_program *p = bpf_object__find_program_by_name(obj, prog_name[i]);

		prog[i] = p ? dup(bpf_program__fd(p)) : -1;
		if (prog[i] < 0) {
			while (i--) {
				close(prog[i]);
				prog[i] = -1;
			}
			return dp_fail(dp, -ENOENT, "%s lacks a program", dp->object);
		}
	}
	return 0;
}

static const char *prog_path(const struct saina_dp *dp, char *path, int prog)
{
	char name[64];

	snprintf(name, sizeof(name), DP_PIN_PROG "%u-%s", SAINA_LAYOUT, prog_name[prog]);
	return dp_pin_path(dp, path, name);
}

/* Programs last, that of the ports behind the other: its pin says "complete", and by
 * its name which layout the maps have. */
int dp_progs_pin(struct saina_dp *dp)
{
	char path[PATH_MAX];

	for (int i = DP_PROGS - 1; i >= 0; i--) {
		unlink(prog_path(dp, path, i));
		if (bpf_obj_pin(dp->prog[i], path))
			return dp_fail(dp, -errno, "cannot pin %s: %s", path, strerror(errno));
	}
	return 0;
}

bool dp_progs_pinned(const struct saina_dp *dp)
{
	char path[PATH_MAX];

	return !access(prog_path(dp, path, DP_PROG_XDP), F_OK);
}

int dp_progs_take_over(struct saina_dp *dp)
{
	char path[PATH_MAX];

	for (int i = 0; i < DP_PROGS; i++) {
		dp->prog[i] = bpf_obj_get(prog_path(dp, path, i));
		if (dp->prog[i] < 0)
			return dp_fail(dp, -errno,
				       "%s: %s; the pins are incomplete, remove the directory's content",
				       path, strerror(errno));
	}
	return 0;
}

void dp_progs_close(struct saina_dp *dp)
{
	for (int i = 0; i < DP_PROGS; i++) {
		if (dp->prog[i] >= 0)
			close(dp->prog[i]);
		dp->prog[i] = -1;
	}
}

static bool same_program(int a, int b)
{
	struct bpf_prog_info x = {}, y = {};
	__u32 len = sizeof(x);

	if (bpf_obj_get_info_by_fd(a, &x, &len))
		return false;
	len = sizeof(y);
	return !bpf_obj_get_info_by_fd(b, &y, &len) && !memcmp(x.tag, y.tag, sizeof(x.tag));
}

/*
 * After a take-over: if the program installed is another than the one that
 * runs, it takes its place, port by port, on the same maps.  All state is in
 * the maps, so no round is lost; where the new one does not fit them, the old
 * one goes on.
 */
void dp_progs_upgrade(struct saina_dp *dp)
{
	struct bpf_object *obj;
	int prog[DP_PROGS];

	if (dp_object_load(dp, true, &obj) || dp_progs_get(dp, obj, prog)) {
		dp_log(dp, 1, "the running XDP program stays: %s", dp->error);
		if (obj)
			bpf_object__close(obj);
		return;
	}
	bpf_object__close(obj);
	if (same_program(prog[DP_PROG_XDP], dp->prog[DP_PROG_XDP]) &&
	    same_program(prog[DP_PROG_EGRESS], dp->prog[DP_PROG_EGRESS])) {
		for (int i = 0; i < DP_PROGS; i++)
			close(prog[i]);
		return;
	}
	for (int i = 0; i < DP_PROGS; i++) {
		close(dp->prog[i]);
		dp->prog[i] = prog[i];
	}
	dp_ports_upgrade(dp);
	if (dp_progs_pin(dp))
		dp_log(dp, 0, "%s", dp->error);
	else
		dp_log(dp, 2, "the running XDP program was replaced by %s", dp->object);
}
