// SPDX-License-Identifier: GPL-2.0-or-later
/* The programs of the data path: finding the objects, loading, pinning, replacing them. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "dp/priv.h"

#define OBJECT_NAME	"saina_xdp.bpf.o"
#define TC_NAME		"saina_tc"	/* its object's name has this for saina_xdp */

static const char *const prog_name[DP_PROGS] = {
	[DP_PROG_XDP] = "saina_xdp",
	[DP_PROG_EGRESS] = "saina_egress",
	[DP_PROG_TC] = "saina_tc",
	[DP_PROG_TC_OUT] = "saina_tc_out",
};

/* The XDP program, for BPF_PROG_TEST_RUN.  Not to be closed by the caller. */
int saina_dp_prog_fd(const struct saina_dp *dp)
{
	return dp->prog[DP_PROG_XDP];
}

/* libbpf's print callback has no argument for the handle. */
static __thread struct saina_dp *log_to;
static __thread bool log_failures_as_debug;	/* of an optional object */

static int libbpf_print(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	static const int to[] = { [LIBBPF_WARN] = 0, [LIBBPF_INFO] = 2, [LIBBPF_DEBUG] = 3 };
	int to_level = log_failures_as_debug ? 3 : to[level];
	char line[1024];
	size_t n;

	if (!log_to || !log_to->opts.log || level == LIBBPF_DEBUG)
		return 0;
	vsnprintf(line, sizeof(line), fmt, ap);
	n = strlen(line);
	if (n && line[n - 1] == '\n')
		line[n - 1] = 0;
	log_to->opts.log(log_to->opts.log_arg, to_level, line);
	return 0;
}

static int map_object_find(struct saina_dp *dp)
{
	const char *env = getenv("SAINA_BPF_OBJECT");
	char self[PATH_MAX / 2], *dir;
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
	self[n > 0 ? n : 0] = 0;
	dir = dirname(self);
	snprintf(dp->object, sizeof(dp->object), "%s/%s", dir, OBJECT_NAME);
	if (!access(dp->object, R_OK))
		return 0;
	/* as installed: PREFIX/sbin/sainad and PREFIX/lib/saina, wherever PREFIX is */
	snprintf(dp->object, sizeof(dp->object), "%s/../lib/saina/%s", dir, OBJECT_NAME);
	if (!access(dp->object, R_OK))
		return 0;
	return dp_fail(
		dp, -ENOENT,
		"%s is neither in %s nor in %s/../lib/saina; install it or set SAINA_BPF_OBJECT",
		OBJECT_NAME, dir, dir);
}

/* The variant for saina.ko is in the same directory. */
static int xdp_object_find(struct saina_dp *dp)
{
	static const char end[] = ".bpf.o", variant[] = "_kmod.bpf.o";
	int err = map_object_find(dp);
	size_t len = strlen(dp->object);

	if (err || !dp->opts.kernel)
		return err;
	if (len < strlen(end) || strcmp(dp->object + len - strlen(end), end) ||
	    len - strlen(end) + sizeof(variant) > sizeof(dp->object))
		return dp_fail(dp, -EINVAL, "%s: the name of a BPF object must end in %s",
			       dp->object, end);
	strcpy(dp->object + len - strlen(end), variant);
	if (!access(dp->object, R_OK))
		return 0;
	return dp_fail(
		dp, -errno,
		"cannot read the BPF object %s, which is for saina.ko: %s; install it, or unload the module",
		dp->object, strerror(errno));
}

/* Opens and loads an object.  @reuse: onto the maps of @dp.  @optional: a failure is
 * logged as debug message. */
static int object_load(struct saina_dp *dp, const char *path, bool reuse, bool optional,
		       struct bpf_object **out)
{
	struct bpf_object *obj;
	int err = 0;

	*out = NULL;
	log_to = dp;
	log_failures_as_debug = optional;
	libbpf_set_print(libbpf_print);
	obj = bpf_object__open_file(path, NULL);
	if (!obj) {
		err = dp_fail(dp, -errno, "%s cannot be opened as a BPF object: %s", path,
			      strerror(errno));
		goto out;
	}
	for (int i = 0; reuse && i < DP_MAPS; i++) {
		struct bpf_map *m = bpf_object__find_map_by_name(obj, dp_map_name[i]);

		err = m ? bpf_map__reuse_fd(m, dp->map[i]) : -ENOENT;
		if (err) {
			dp_fail(dp, err, "%s: map %s: %s", path, dp_map_name[i], strerror(-err));
			goto close;
		}
	}
	err = bpf_object__load(obj);
	if (err) {
		dp_fail(dp, err, "the kernel refused the program %s: %s%s", path, strerror(-err),
			err == -EPERM ? " (are you root?)" : "");
		goto close;
	}
	*out = obj;
	goto out;

close:
	bpf_object__close(obj);
out:
	log_to = NULL;
	return err;
}

/* Duplicates the descriptors of programs @from .. @to - 1 of the object at @path. */
static int progs_dup(struct saina_dp *dp, const struct bpf_object *obj, const char *path, int *prog,
		     int from, int to)
{
	for (int i = from; i < to; i++) {
		struct bpf_program *p = bpf_object__find_program_by_name(obj, prog_name[i]);

		prog[i] = p ? dup(bpf_program__fd(p)) : -1;
		if (prog[i] < 0) {
			int err = p ? -errno : -ENOENT;

			dp_fail(dp, err, "%s: program %s: %s", path, prog_name[i],
				p ? strerror(-err) : "there is none");
			while (i-- > from) {
				close(prog[i]);
				prog[i] = -1;
			}
			return err;
		}
	}
	return 0;
}

static int maps_dup(struct saina_dp *dp, const struct bpf_object *obj)
{
	for (int i = 0; i < DP_MAPS; i++) {
		int fd = bpf_object__find_map_fd_by_name(obj, dp_map_name[i]), err;

		dp->map[i] = fd < 0 ? fd : dup(fd);
		if (dp->map[i] >= 0)
			continue;
		err = fd < 0 ? -ENOENT : -errno;
		return dp_fail(dp, err, "%s: map %s: %s", dp->object, dp_map_name[i],
			       fd < 0 ? "there is none" : strerror(-err));
	}
	return 0;
}

int dp_progs_load(struct saina_dp *dp, bool reuse, int *prog)
{
	struct bpf_object *obj;
	int err = xdp_object_find(dp);

	if (!err)
		err = object_load(dp, dp->object, reuse, false, &obj);
	if (err)
		return err;
	if (!reuse)
		err = maps_dup(dp, obj);
	if (!err)
		err = progs_dup(dp, obj, dp->object, prog, DP_PROG_XDP, DP_PROG_TC);
	bpf_object__close(obj);
	return err;
}

/* The object of the tc programs: in the same directory, its name with saina_tc instead of
 * saina_xdp. */
static int tc_object_find(struct saina_dp *dp, char *path, size_t size)
{
	static const char xdp[] = "saina_xdp";
	const char *base = strrchr(dp->object, '/');

	base = base ? base + 1 : dp->object;
	if (strncmp(base, xdp, strlen(xdp)))
		return dp_fail(dp, -ENOENT,
			       "%s: the name must begin with %s, so that the tc object can be found",
			       dp->object, xdp);
	if (snprintf(path, size, "%.*s" TC_NAME "%s", (int)(base - dp->object), dp->object,
		     base + strlen(xdp)) >= (int)size)
		return dp_fail(dp, -ENAMETOOLONG, "%s: the name is too long", dp->object);
	if (access(path, R_OK))
		return dp_fail(dp, -errno, "%s: %s", path, strerror(errno));
	return 0;
}

void dp_progs_load_tc(struct saina_dp *dp, int *prog)
{
	char path[PATH_MAX];
	struct bpf_object *obj;
	int err;

	prog[DP_PROG_TC] = prog[DP_PROG_TC_OUT] = -1;
	err = tc_object_find(dp, path, sizeof(path));
	if (!err)
		err = object_load(dp, path, true, true, &obj);
	if (!err) {
		err = progs_dup(dp, obj, path, prog, DP_PROG_TC, DP_PROGS);
		bpf_object__close(obj);
	}
	if (!err)
		return;
	snprintf(dp->tc_error, sizeof(dp->tc_error), "%.*s", (int)sizeof(dp->tc_error) - 1,
		 dp->error);
	dp_log(dp, 2, "no tc hook: %s", dp->tc_error);
}

static const char *prog_path(const struct saina_dp *dp, char *path, int prog)
{
	char name[64];

	snprintf(name, sizeof(name), DP_PIN_PROG "%u-%s", SAINA_LAYOUT, prog_name[prog]);
	return dp_pin_path(dp, path, name);
}

/* The XDP program is pinned last: its pin marks the directory complete, and its name has
 * the layout of the maps. */
int dp_progs_pin(struct saina_dp *dp)
{
	char path[PATH_MAX];

	for (int i = DP_PROGS - 1; i >= 0; i--) {
		unlink(prog_path(dp, path, i));
		if (dp->prog[i] >= 0 && bpf_obj_pin(dp->prog[i], path))
			return dp_fail(dp, -errno, "cannot pin %s: %s", path, strerror(errno));
	}
	return 0;
}

bool dp_progs_are_pinned(const struct saina_dp *dp)
{
	char path[PATH_MAX];

	return !access(prog_path(dp, path, DP_PROG_XDP), F_OK);
}

int dp_progs_adopt(struct saina_dp *dp)
{
	char path[PATH_MAX];

	for (int i = 0; i < DP_PROGS; i++) {
		dp->prog[i] = bpf_obj_get(prog_path(dp, path, i));
		if (dp->prog[i] < 0 && i < DP_PROG_TC)
			return dp_fail(
				dp, -errno,
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

static bool prog_is_same(int a, int b)
{
	struct bpf_prog_info x = {}, y = {};
	__u32 len = sizeof(x);

	if (a < 0 || b < 0)
		return a < 0 && b < 0;
	if (bpf_obj_get_info_by_fd(a, &x, &len))
		return false;
	len = sizeof(y);
	return !bpf_obj_get_info_by_fd(b, &y, &len) && !memcmp(x.tag, y.tag, sizeof(x.tag));
}

bool dp_progs_replace(struct saina_dp *dp)
{
	bool same = true;
	int prog[DP_PROGS];

	if (dp_progs_load(dp, true, prog)) {
		dp_log(dp, 1, "the running programs stay: %s", dp->error);
		return false;
	}
	dp_progs_load_tc(dp, prog);
	for (int i = 0; i < DP_PROGS; i++) {
		if (prog[i] < 0)
			prog[i] = dp->prog[i] < 0 ? -1 : dup(dp->prog[i]);
		same &= prog_is_same(prog[i], dp->prog[i]);
	}
	for (int i = 0; i < DP_PROGS; i++) {
		int old = same ? prog[i] : dp->prog[i];

		if (!same)
			dp->prog[i] = prog[i];
		if (old >= 0)
			close(old);
	}
	return !same;
}
