// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "agent/log.h"
#include "agent/runtime.h"
#include "net/bpffs.h"

const char *runtime_path(const struct runtime *r, const char *name, char *buf, size_t size)
{
	snprintf(buf, size, "%s/%s", r->cfg->runtime_dir, name);
	return buf;
}

/* mkdir -p; @mode is for the last directory.  Return: 1 if that is new, 0, negative errno. */
static int make_dirs(const char *path, mode_t mode)
{
	char buf[CONFIG_PATH_MAX], *at;

	snprintf(buf, sizeof(buf), "%s", path);
	for (at = strchr(buf + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = 0;
		if (mkdir(buf, 0755) && errno != EEXIST)
			return -errno;
		*at = '/';
	}
	if (!mkdir(path, mode))
		return 1;
	return errno == EEXIST ? 0 : -errno;
}

/* Saves a path for a later start, which has to undo it. */
static void save_path(struct runtime *r, const char *note, const char *what)
{
	char buf[CONFIG_PATH_MAX + 16];
	int fd;

	fd = open(runtime_path(r, note, buf, sizeof(buf)),
		  O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, what, strlen(what)) < 0)
		log_warn("bpffs: cannot write %s: %s: a later sainad will not unmount or remove what this one has created", buf, strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void load_path(struct runtime *r, const char *note, char *what, size_t size)
{
	char buf[CONFIG_PATH_MAX + 16];
	ssize_t n;
	int fd;

	fd = open(runtime_path(r, note, buf, sizeof(buf)), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, what, size - 1);
	what[n > 0 ? n : 0] = 0;
	close(fd);
}

static int mount_bpffs(struct runtime *r, const char *where)
{
	int ret = bpffs_mount(where);

	if (ret == -ENOTEMPTY)
		log_error("bpffs: the directory %s is not empty and not on a bpffs: choose an empty or a new directory, or one on a bpffs (such as %s/saina)",
			  where, BPFFS_USUAL);
	else if (ret)
		log_error("bpffs: cannot mount a bpffs at %s: %s", where, strerror(-ret));
	if (ret)
		return ret;
	log_info("bpffs: mounted a bpffs at %s", where);
	snprintf(r->mounted, sizeof(r->mounted), "%s", where);
	save_path(r, "mounted", where);
	return 0;
}

/* Makes cfg.bpffs a directory on a bpffs. */
static int make_pin_dir(struct runtime *r)
{
	const char *path = r->cfg->bpffs;
	char point[CONFIG_PATH_MAX];
	int ret;

	/* mounted or made by an earlier agent */
	load_path(r, "mounted", r->mounted, sizeof(r->mounted));
	if (!bpffs_is(r->mounted))
		r->mounted[0] = 0;
	load_path(r, "made", r->made, sizeof(r->made));
	if (bpffs_is(path))
		return 0;
	bpffs_mount_point(path, point, sizeof(point));
	if (strcmp(point, path) && !bpffs_is(point)) {
		ret = mount_bpffs(r, point);
		if (ret)
			return ret;
	}
	ret = make_dirs(path, 0700);
	if (ret > 0) {
		snprintf(r->made, sizeof(r->made), "%s", path);
		save_path(r, "made", path);
	}
	if (ret < 0) {
		log_error("bpffs: cannot create %s: %s", path, strerror(-ret));
		return ret;
	}
	return bpffs_is(path) ? 0 : mount_bpffs(r, path);
}

/* An agent that was just killed may hold the lock until its exit is complete. */
static int take_lock(int fd, int tries)
{
	const struct timespec pause = { .tv_nsec = 50 * 1000000 };

	for (int i = 0; i < tries; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return 0;
		nanosleep(&pause, NULL);
	}
	return -EBUSY;
}

/* An agent with another runtime_dir would take the data path over, and remove it at its end. */
static int lock_pin_dir(struct runtime *r)
{
	int ret;

	r->pin_lock = open(r->cfg->bpffs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->pin_lock < 0) {
		ret = -errno;
		log_error("bpffs: %s: %s", r->cfg->bpffs, strerror(errno));
		return ret;
	}
	ret = take_lock(r->pin_lock, 10);
	if (ret)
		log_error("another sainad has its pins in %s: give this one a --bpffs of its own",
			  r->cfg->bpffs);
	return ret;
}

int runtime_init(struct runtime *r, const struct config *cfg)
{
	char buf[CONFIG_PATH_MAX + 16];
	int ret;

	r->cfg = cfg;
	r->pin_lock = -1;
	ret = make_dirs(r->cfg->runtime_dir, 0755);
	if (ret < 0) {
		log_error("runtime_dir: cannot create %s: %s", r->cfg->runtime_dir, strerror(-ret));
		return ret;
	}
	r->lock =
		open(runtime_path(r, "lock", buf, sizeof(buf)), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (r->lock < 0) {
		ret = -errno;
		log_error("runtime_dir: %s: %s", buf, strerror(errno));
		return ret;
	}
	if (take_lock(r->lock, 40)) {
		log_error(
			"another sainad runs in %s: stop it, or give this one a --runtime-dir, --control and --bpffs of its own",
			r->cfg->runtime_dir);
		close(r->lock);
		return -EBUSY;
	}
	if (ftruncate(r->lock, 0) || dprintf(r->lock, "%d\n", getpid()) < 0)
		log_warn("runtime_dir: cannot write the process id to %s: %s", buf, strerror(errno));
	ret = make_pin_dir(r);
	if (!ret)
		ret = lock_pin_dir(r);
	if (ret)
		runtime_uninit(r, false);
	return ret;
}

void runtime_uninit(struct runtime *r, bool keep)
{
	char buf[CONFIG_PATH_MAX + 16];

	/* a bpffs with an open directory cannot be unmounted */
	if (r->pin_lock >= 0)
		close(r->pin_lock);
	if (!keep) {
		bool made = !strcmp(r->cfg->bpffs, r->made);

		if (made && strcmp(r->cfg->bpffs, r->mounted))
			rmdir(r->cfg->bpffs);
		/* others may have pinned something there since */
		if (r->mounted[0] && bpffs_empty(r->mounted)) {
			if (umount(r->mounted))
				log_warn("bpffs: %s: %s", r->mounted, strerror(errno));
			else if (made && !strcmp(r->cfg->bpffs, r->mounted))
				rmdir(r->cfg->bpffs);
		}
		unlink(runtime_path(r, "mounted", buf, sizeof(buf)));
		unlink(runtime_path(r, "made", buf, sizeof(buf)));
		unlink(runtime_path(r, "lock", buf, sizeof(buf)));
		rmdir(r->cfg->runtime_dir); /* only if it is empty */
	}
	close(r->lock);
}
