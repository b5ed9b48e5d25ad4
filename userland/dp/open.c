// SPDX-License-Identifier: GPL-2.0-or-later
/* Opening the data path: loads the objects, or takes over those that are pinned. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>
#include <linux/magic.h>
#include "dp/priv.h"

/* Was a pinned data path taken over, so that jobs may be running? */
bool saina_dp_taken_over(const struct saina_dp *dp)
{
	return dp->taken_over;
}

static int pin_dir_open(struct saina_dp *dp)
{
	struct statfs fs;

	if (snprintf(dp->pin_dir, sizeof(dp->pin_dir), "%s", dp->opts.pin_dir) >=
	    (int)sizeof(dp->pin_dir))
		return dp_fail(dp, -ENAMETOOLONG, "the name of the pin directory is too long");
	if (statfs(dp->pin_dir, &fs))
		return dp_fail(dp, -errno, "%s: %s", dp->pin_dir, strerror(errno));
	if ((unsigned int)fs.f_type != BPF_FS_MAGIC)
		return dp_fail(dp, -ENODEV, "%s is not on a bpffs: mount one there (mount -t bpf bpf %s)",
			       dp->pin_dir, dp->pin_dir);
	dp->pinned = true;
	return 0;
}

static int maps_adopt(struct saina_dp *dp)
{
	char path[PATH_MAX];
	int err;

	for (int i = 0; i < DP_MAPS; i++) {
		dp->map[i] = bpf_obj_get(dp_pin_path(dp, path, dp_map_name[i]));
		if (dp->map[i] < 0)
			return dp_fail(
				dp, -errno,
				"%s: %s; the pins are incomplete, remove the directory's content",
				path, strerror(errno));
	}
	err = dp_progs_adopt(dp);
	if (err)
		return err;
	dp->taken_over = true;
	return 0;
}

static int maps_load(struct saina_dp *dp)
{
	char path[PATH_MAX];
	int err;

	err = dp_progs_load(dp, false, dp->prog);
	if (err)
		return err;
	dp_progs_load_tc(dp, dp->prog);
	if (!dp->pinned)
		return 0;
	for (int i = 0; i < DP_MAPS; i++)
		if (bpf_obj_pin(dp->map[i], dp_pin_path(dp, path, dp_map_name[i])))
			return dp_fail(dp, -errno, "cannot pin %s: %s", path, strerror(errno));
	return dp_progs_pin(dp);
}

/* Unlinks the pins of any layout whose names begin with @kind; returns how many. */
static int pins_unlink(const struct saina_dp *dp, const char *kind)
{
	DIR *dir = opendir(dp->pin_dir);
	struct dirent *e;
	int n = 0;

	while (dir && (e = readdir(dir)))
		if (!strncmp(e->d_name, kind, strlen(kind)))
			n += !unlinkat(dirfd(dir), e->d_name, 0);
	if (dir)
		closedir(dir);
	return n;
}

/* Programs first: without their pins the rest is not taken over. */
static int pins_remove(const struct saina_dp *dp)
{
	int programs = pins_unlink(dp, DP_PIN_PROG);

	pins_unlink(dp, "link-");
	pins_unlink(dp, "clsact-");
	pins_unlink(dp, "saina_");
	return programs;
}

/* Stops a pinned data path that is incomplete, not wanted, or of another version.  Its
 * maps are not read. */
static void pinned_stop(struct saina_dp *dp)
{
	bool ours = dp_progs_are_pinned(dp);

	dp_ports_adopt(dp);
	dp_ports_close(dp, true);
	dp_fanout_ifb_remove_strays(dp);
	if (pins_remove(dp) && !ours)
		dp_log(dp, 1,
		       "the data path pinned in %s is of another version (not layout %u): it is stopped and removed",
		       dp->pin_dir, SAINA_LAYOUT);
}

/*
 * After a take-over: replaces the running programs by the installed ones if they differ,
 * port by port, on the same maps.  All state is in the maps, so no round is lost.  If the
 * new programs do not fit the maps, the old ones stay.
 */
static void programs_upgrade(struct saina_dp *dp)
{
	if (!dp_progs_replace(dp))
		return;
	dp_ports_upgrade(dp);
	for (int i = 0; i < dp->ports; i++)
		dp_jobs_port_changed(dp, dp->port[i].ifindex);
	if (dp_progs_pin(dp))
		dp_log(dp, 0, "%s", dp->error);
	else
		dp_log(dp, 2, "the running programs were replaced by %s", dp->object);
}

/**
 * saina_dp_open() - load the data path, or take over the one that is pinned
 * @out: the handle.  After a failure only saina_dp_error() and saina_dp_close() may be
 *	called with it; NULL without memory
 * @opts: NULL: defaults
 *
 * Returns 0 or a negative errno.
 */
int saina_dp_open(struct saina_dp **out, const struct saina_dp_opts *opts)
{
	struct saina_dp *dp = calloc(1, sizeof(*dp));
	int err = 0;

	*out = dp;
	if (!dp)
		return -ENOMEM;
	if (opts)
		dp->opts = *opts;
	for (int i = 0; i < DP_MAPS; i++)
		dp->map[i] = -1;
	for (int i = 0; i < DP_PROGS; i++)
		dp->prog[i] = -1;
	dp->rings_epoll = -1;
	dp->events_timer = -1;
	dp->cpus = libbpf_num_possible_cpus();
	if (dp->cpus < 0)
		return dp_fail(dp, dp->cpus, "cannot determine the number of CPUs: %s",
			       strerror(-dp->cpus));
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);

	if (dp->opts.pin_dir) {
		err = pin_dir_open(dp);
		if (err)
			return err;
	}
	if (dp->pinned && !dp->opts.fresh && dp_progs_are_pinned(dp)) {
		err = maps_adopt(dp);
		if (!err)
			err = dp_ports_adopt(dp);
		if (!err)
			err = saina_dp_global_get(dp, &dp->global);
		if (!err)
			programs_upgrade(dp);
	} else {
		if (dp->pinned)
			pinned_stop(dp);
		err = maps_load(dp);
		if (err && dp->pinned)
			pins_remove(dp);
	}
	return err;
}

/**
 * saina_dp_close() - close the handle
 * @unpin: stop the data path: detach from all ports, remove the pins.  False: it keeps
 *	running if it is pinned
 */
void saina_dp_close(struct saina_dp *dp, bool unpin)
{
	if (!dp)
		return;
	dp_rings_close(dp);
	dp_ports_close(dp, unpin);
	if (unpin || !dp->pinned)
		dp_jobs_remove_ifbs(dp);
	dp_jobs_free(dp);
	if (dp->pinned && unpin)
		pins_remove(dp);
	for (int i = 0; i < DP_MAPS; i++)
		if (dp->map[i] >= 0)
			close(dp->map[i]);
	dp_progs_close(dp);
	free(dp);
}

/**
 * saina_dp_global_set() - set the aggregator's address
 *
 * Before the first call the programs pass every frame.
 */
int saina_dp_global_set(struct saina_dp *dp, const struct saina_global *g)
{
	dp->global = *g;
	return dp_global_write(dp);
}

int saina_dp_global_get(struct saina_dp *dp, struct saina_global *g)
{
	__u32 zero = 0;

	if (bpf_map_lookup_elem(dp->map[DP_GLOBAL], &zero, g))
		return dp_fail(dp, -errno, "map saina_global: %s", strerror(errno));
	g->flags &= ~SAINA_GLOBAL_F_INJECT;
	return 0;
}
