/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SAINA_TEST_BESIDE_H
#define SAINA_TEST_BESIDE_H

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* The path of a file from the folder of this program; @path has PATH_MAX bytes. */
static inline const char *path_beside(char *path, const char *name)
{
	char self[PATH_MAX - 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = 0;
	snprintf(path, PATH_MAX, "%s/%s", dirname(self), name);
	return path;
}

#endif /* SAINA_TEST_BESIDE_H */
