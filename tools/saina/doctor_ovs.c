// SPDX-License-Identifier: GPL-2.0-or-later
/* saina doctor: finds ovs-vswitchd and counts its handler threads. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor_check.h"

/* Does the command line of @pid name the database @path, or none if @path is the default? */
static bool serves_database(int pid, const char *path)
{
	char file[64], cmd[4096];
	bool any = false, hit = false;
	size_t n, len;
	FILE *f;

	snprintf(file, sizeof(file), "/proc/%d/cmdline", pid);
	f = fopen(file, "re");
	if (!f)
		return false;
	n = fread(cmd, 1, sizeof(cmd) - 1, f);
	fclose(f);
	cmd[n] = 0;
	for (size_t i = 0; i < n; i += len + 1) {
		len = strlen(cmd + i);
		if (strncmp(cmd + i, "unix:", 5))
			continue;
		any = true;
		hit |= !strcmp(cmd + i + 5, path);
	}
	return hit || (!any && (!strcmp(path, "/run/openvswitch/db.sock") ||
				!strcmp(path, "/var/run/openvswitch/db.sock")));
}

static int count_handlers(int pid)
{
	char path[64], comm[32];
	struct dirent *e;
	int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	if (!d)
		return -1;
	while ((e = readdir(d))) {
		char file[600];

		snprintf(file, sizeof(file), "%s/%s/comm", path, e->d_name);
		if (e->d_name[0] != '.' && doc_read_line(file, comm, sizeof(comm)) &&
		    !strncmp(comm, "handler", 7))
			n++;
	}
	closedir(d);
	return n;
}

int doc_ovs_handlers(const char *path, int *pid)
{
	struct dirent *e;
	char file[600], comm[32];
	int best = -1, n;
	DIR *d = opendir("/proc");

	if (!d)
		return -1;
	while ((e = readdir(d))) {
		int p = atoi(e->d_name);

		snprintf(file, sizeof(file), "/proc/%s/comm", e->d_name);
		if (p <= 0 || !doc_read_line(file, comm, sizeof(comm)) || strcmp(comm, "ovs-vswitchd") ||
		    !serves_database(p, path))
			continue;
		/* the process that monitors it has the same name, but no handler threads */
		n = count_handlers(p);
		if (n >= best) {
			best = n;
			*pid = p;
		}
	}
	closedir(d);
	return best;
}
