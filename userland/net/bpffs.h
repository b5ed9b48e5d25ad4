/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bpf file system: where it is mounted, and mounting it. */
#ifndef NET_BPFFS_H
#define NET_BPFFS_H

#include <stdbool.h>
#include <stddef.h>

#define BPFFS_USUAL "/sys/fs/bpf"	/* no directory can be made there without a mount */

bool bpffs_is(const char *path);	/* on a bpffs */
/* Nothing pinned here?  Each bpffs is born with two files of its own. */
bool bpffs_empty(const char *path);
/* Mounts one at the directory @path, which must be empty: a mount would hide what
 * is in there (-ENOTEMPTY). */
int bpffs_mount(const char *path);
/* The directory that has to be a bpffs, or on one, for @path to be used for pins:
 * the usual place for what is below it, else @path itself. */
void bpffs_mount_point(const char *path, char *point, size_t size);

#endif /* NET_BPFFS_H */
