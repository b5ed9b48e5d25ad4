// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The directory the agent lives in (one agent each, by a lock) and the place
 * on bpffs where the data path's objects are pinned.
 */
#include <errno.h>
#include <fcntl.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "agent/agent.h"

const char *runtime_path(const struct agent *a, const char *name, char *buf, size_t size)
{
	snprintf(buf, size, "%s/%s", a->cfg.runtime_dir, name);
	return buf;
}

static bool is_bpffs(const char *path)
{
	struct statfs fs;

	return !statfs(path, &fs) && (unsigned long)fs.f_type == BPF_FS_MAGIC;
}

/* Nothing pinned here?  Each bpffs is born with two files of its own. */
static bool is_empty(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	bool empty = true;

	if (!dir)
		return false;
	while (empty && (e = readdir(dir)))
		empty = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
			!strcmp(e->d_name, "maps.debug") || !strcmp(e->d_name, "progs.debug");
	closedir(dir);
	return empty;
}

/* mkdir -p; @mode is the last one's.  Return: 1 if that is new, 0, negative errno. */
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

/* What a later start has to know to undo it: a file with a path in it. */
static void note_path(struct agent *a, const char *note, const char *what)
{
	char buf[CONFIG_PATH_MAX + 16];
	int fd;

	fd = open(runtime_path(a, note, buf, sizeof(buf)),
		  O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, what, strlen(what)) < 0)
		log_warn("bpffs: %s: %s: a later sainad will not undo it", buf, strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void recall_path(struct agent *a, const char *note, char *what, size_t size)
{
	char buf[CONFIG_PATH_MAX + 16];
	ssize_t n;
	int fd;

	fd = open(runtime_path(a, note, buf, sizeof(buf)), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, what, size - 1);
	what[n > 0 ? n : 0] = 0;
	close(fd);
}

static int mount_bpffs(struct agent *a, const char *where)
{
	/* A mount would hide what is in there. */
	if (!is_empty(where)) {
		log_error("bpffs: %s is a directory with something in it, and no bpffs: name "
			  "an empty or a new one, or one on a bpffs (as /sys/fs/bpf/saina)",
			  where);
		return -ENOTEMPTY;
	}
	if (mount("bpf", where, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700")) {
		log_error("bpffs: cannot mount one at %s: %s", where, strerror(errno));
		return -errno;
	}
	log_info("bpffs: mounted one at %s", where);
	snprintf(a->runtime.mounted, sizeof(a->runtime.mounted), "%s", where);
	note_path(a, "mounted", where);
	return 0;
}

/*
 * Makes cfg.bpffs a directory on a bpffs.  Where nothing is mounted yet the
 * usual place (/sys/fs/bpf, where no directory can be made) gets the mount,
 * elsewhere the directory itself does.
 */
static int make_pin_dir(struct agent *a)
{
	const char *path = a->cfg.bpffs, *slash = strrchr(path, '/');
	char parent[CONFIG_PATH_MAX];
	int ret;

	/* of an earlier incarnation */
	recall_path(a, "mounted", a->runtime.mounted, sizeof(a->runtime.mounted));
	if (!is_bpffs(a->runtime.mounted))
		a->runtime.mounted[0] = 0;
	recall_path(a, "made", a->runtime.made, sizeof(a->runtime.made));
	if (is_bpffs(path))
		return 0;
	snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path) ?: 1, path);
	if (!is_bpffs(parent) && !strcmp(parent, "/sys/fs/bpf")) {
		ret = mount_bpffs(a, parent);
		if (ret)
			return ret;
	}
	ret = make_dirs(path, 0700);
	if (ret > 0) {
		snprintf(a->runtime.made, sizeof(a->runtime.made), "%s", path);
		note_path(a, "made", path);
	}
	if (ret < 0) {
		log_error("bpffs: cannot make %s: %s", path, strerror(-ret));
		return ret;
	}
	return is_bpffs(path) ? 0 : mount_bpffs(a, path);
}

int runtime_init(struct agent *a)
{
	char buf[CONFIG_PATH_MAX + 16];
	int ret;

	ret = make_dirs(a->cfg.runtime_dir, 0755);
	if (ret < 0) {
		log_error("runtime_dir: cannot make %s: %s", a->cfg.runtime_dir, strerror(-ret));
		return ret;
	}
	a->runtime.lock =
		open(runtime_path(a, "lock", buf, sizeof(buf)), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (a->runtime.lock < 0) {
		ret = -errno;
		log_error("runtime_dir: %s: %s", buf, strerror(errno));
		return ret;
	}
	if (flock(a->runtime.lock, LOCK_EX | LOCK_NB)) {
		log_error(
			"another sainad runs in %s: stop it, or give this one a runtime_dir of its own",
			a->cfg.runtime_dir);
		close(a->runtime.lock);
		return -EBUSY;
	}
	ret = make_pin_dir(a);
	if (ret)
		runtime_uninit(a, false);
	return ret;
}

/* Undoes what is ours and empty; a take-over leaves all of it (@keep). */
void runtime_uninit(struct agent *a, bool keep)
{
	char buf[CONFIG_PATH_MAX + 16];

	if (!keep) {
		bool made = !strcmp(a->cfg.bpffs, a->runtime.made);

		if (made && strcmp(a->cfg.bpffs, a->runtime.mounted))
			rmdir(a->cfg.bpffs);
		/* others may have pinned something there since */
		if (a->runtime.mounted[0] && is_empty(a->runtime.mounted)) {
			if (umount(a->runtime.mounted))
				log_warn("bpffs: %s: %s", a->runtime.mounted, strerror(errno));
			else if (made && !strcmp(a->cfg.bpffs, a->runtime.mounted))
				rmdir(a->cfg.bpffs);
		}
		unlink(runtime_path(a, "mounted", buf, sizeof(buf)));
		unlink(runtime_path(a, "made", buf, sizeof(buf)));
		unlink(runtime_path(a, "lock", buf, sizeof(buf)));
		rmdir(a->cfg.runtime_dir); /* only if it is empty */
	}
	close(a->runtime.lock);
}
