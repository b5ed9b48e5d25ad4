/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bpf file system: checks, and mounting it. */
#ifndef NET_BPFFS_H
#define NET_BPFFS_H

#include <stdbool.h>
#include <stddef.h>

#define BPFFS_USUAL "/sys/fs/bpf"	/* sysfs: holds no directories unless a bpffs is mounted there */

bool bpffs_is(const char *path);	/* is @path on a bpffs? */
/* Is nothing pinned in @path?  A new bpffs has two files of its own.  False: it cannot be read. */
bool bpffs_empty(const char *path);
/*
 * Mounts a bpffs at the directory @path.  0; -ENOTEMPTY: the mount would hide files, or @path
 * cannot be read; or another negative errno.
 */
int bpffs_mount(const char *path);
/* The mount point that pins in @path need: BPFFS_USUAL for what is below it, else @path. */
void bpffs_mount_point(const char *path, char *point, size_t size);

#endif /* NET_BPFFS_H */
