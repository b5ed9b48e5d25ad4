// SPDX-License-Identifier: GPL-2.0-or-later
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#include "net/bpffs.h"

bool bpffs_is(const char *path)
{
	struct statfs fs;

	return !statfs(path, &fs) && (unsigned int)fs.f_type == BPF_FS_MAGIC;
}

bool bpffs_empty(const char *path)
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

int bpffs_mount(const char *path)
{
	if (!bpffs_empty(path))
		return -ENOTEMPTY;
	return mount("bpf", path, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700") ? -errno
											: 0;
}

void bpffs_mount_point(const char *path, char *point, size_t size)
{
	size_t usual = strlen(BPFFS_USUAL);
	bool below = !strncmp(path, BPFFS_USUAL, usual) && path[usual] == '/';

	snprintf(point, size, "%s", below ? BPFFS_USUAL : path);
}
