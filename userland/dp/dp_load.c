// SPDX-License-Identifier: GPL-2.0-or-later
/* Opening the data path: load the object, or take over what is pinned. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>
#include <linux/magic.h>
#include "dp/priv.h"

#define MAP_NAME_HOT(E)		[DP_HOT + SIZE_##E] = "saina_hot_" #E,
#define MAP_NAME_RING(E)	[DP_RING + SIZE_##E] = "saina_ring_" #E,
#define MAP_NAME_VIEW(E)	[DP_VIEW + SIZE_##E] = "saina_view_" #E,
#define MAP_NAME_INPUT(E)	[DP_INPUT + SIZE_##E] = "saina_input_" #E,
#define MAP_NAME_BOARD(E)	[DP_OUTPUT + SIZE_##E] = "saina_output_" #E,
#define SIZE_NAME(E)		SIZE_##E,
enum { SAINA_ELEMS_LIST(SIZE_NAME) SIZES };
SAINA_ASSERT(SIZES == DP_SIZES, "DP_SIZES");

/* Who changes one of these puts the next SAINA_LAYOUT into uapi/saina/bpf.h. */
#define LAYOUT_SIZE(TYPE, SIZE) \
	SAINA_ASSERT(sizeof(struct TYPE) == (SIZE), #TYPE " has another size: so has SAINA_LAYOUT")
SAINA_ASSERT(SAINA_LAYOUT == 14, "the sizes below are those of layout 14");
SAINA_ASSERT(DP_MAPS == 51, "there are other maps: so is SAINA_LAYOUT");
LAYOUT_SIZE(saina_global, 12);
LAYOUT_SIZE(saina_job_conf, 2304);
LAYOUT_SIZE(saina_job_rt, 208);
LAYOUT_SIZE(saina_slot_meta, 64);
LAYOUT_SIZE(saina_counted, 256);
LAYOUT_SIZE(saina_input_head, 64);
LAYOUT_SIZE(saina_output_head, 64);
LAYOUT_SIZE(saina_slot_lock, 64);
LAYOUT_SIZE(saina_clock, 2680);
LAYOUT_SIZE(saina_arrival, 224);
LAYOUT_SIZE(saina_counters, 464);
LAYOUT_SIZE(saina_port_conf, 40);
LAYOUT_SIZE(saina_addr, 16);
LAYOUT_SIZE(saina_place, 12);
LAYOUT_SIZE(saina_asked, 8);
LAYOUT_SIZE(saina_event_seen, 520);
LAYOUT_SIZE(saina_event, 40);
LAYOUT_SIZE(saina_relay_msg, 8256);
LAYOUT_SIZE(saina_delay_msg, 9240);

const char *const dp_map_name[DP_MAPS] = {
	[DP_GLOBAL] = "saina_global",
	[DP_JOBS] = "saina_jobs",
	[DP_RT] = "saina_rt",
	[DP_CLOCK] = "saina_clock",
	[DP_COUNTED] = "saina_counted",
	[DP_SIGNS] = "saina_signs",
	[DP_FANOUT] = "saina_fanout",
	[DP_WCOUNT] = "saina_wcount",
	[DP_GCOUNT] = "saina_gcount",
	[DP_LOCKS] = "saina_locks",
	[DP_PORTS] = "saina_ports",
	[DP_TX] = "saina_tx",
	[DP_JOIN_SRC] = "saina_join_src",
	[DP_EVENTS] = "saina_events",
	[DP_RELAY] = "saina_relay",
	[DP_DELAY] = "saina_delay",
	[DP_FANOUT_IFB] = "saina_fanout_ifb",
	[DP_TC_HANDOFF] = "saina_tc_handoff",
	[DP_ASKED] = "saina_asked",
	[DP_EVENT_SEEN] = "saina_event_seen",
	[DP_ARRIVAL] = "saina_arrival",
	SAINA_ELEMS_LIST(MAP_NAME_HOT)
	SAINA_ELEMS_LIST(MAP_NAME_RING)
	SAINA_ELEMS_LIST(MAP_NAME_INPUT)
	SAINA_ELEMS_LIST(MAP_NAME_VIEW)
	SAINA_ELEMS_LIST(MAP_NAME_BOARD)
};

#define SIZE_VALUE(E) E,
const __u32 dp_elems[DP_SIZES] = { SAINA_ELEMS_LIST(SIZE_VALUE) };

int dp_size_index(__u32 elems)
{
	for (int i = 0; i < DP_SIZES; i++)
		if (dp_elems[i] == elems)
			return i;
	return -1;
}

void dp_log(const struct saina_dp *dp, int level, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	if (!dp->opts.log)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	dp->opts.log(dp->opts.log_arg, level, line);
}

int dp_fail(struct saina_dp *dp, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(dp->error, sizeof(dp->error), fmt, ap);
	va_end(ap);
	if (err == -EMFILE)
		snprintf(dp->error, sizeof(dp->error),
			 "no descriptor is left for its maps: raise LimitNOFILE= of sainad's unit (or `ulimit -n`) and start it again");
	return err;
}

/* The sentence of the last failure. */
const char *saina_dp_error(const struct saina_dp *dp)
{
	return dp ? dp->error : "out of memory";
}

/* Were there pins, so that jobs may be running already? */
bool saina_dp_taken_over(const struct saina_dp *dp)
{
	return dp->taken_over;
}

const char *dp_pin_path(const struct saina_dp *dp, char *path, const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", dp->pin_dir, name);
	return path;
}

static int prepare_pin_dir(struct saina_dp *dp)
{
	struct statfs fs;

	if (snprintf(dp->pin_dir, sizeof(dp->pin_dir), "%s", dp->opts.pin_dir) >=
	    (int)sizeof(dp->pin_dir))
		return dp_fail(dp, -ENAMETOOLONG, "the pin directory's name is too long");
	if (statfs(dp->pin_dir, &fs))
		return dp_fail(dp, -errno, "%s: %s", dp->pin_dir, strerror(errno));
	if ((unsigned int)fs.f_type != BPF_FS_MAGIC)
		return dp_fail(dp, -ENODEV, "%s is not on a bpffs", dp->pin_dir);
	dp->pinned = true;
	return 0;
}

static int take_over(struct saina_dp *dp)
{
	char path[PATH_MAX];
	int err;

	for (int i = 0; i < DP_MAPS; i++) {
		dp->map[i] = bpf_obj_get(dp_pin_path(dp, path, dp_map_name[i]));
		if (dp->map[i] < 0)
			return dp_fail(dp, -errno,
				       "%s: %s; the pins are incomplete, remove the directory's content",
				       path, strerror(errno));
	}
	err = dp_progs_take_over(dp);
	if (err)
		return err;
	dp->taken_over = true;
	return 0;
}

static int load(struct saina_dp *dp)
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

/* Unlinks the pins, of any layout, whose names begin with @kind; returns how many. */
static int unpin_all(const struct saina_dp *dp, const char *kind)
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

/* Programs first: without theirs the others are no data path to be taken over. */
static int remove_pins(const struct saina_dp *dp)
{
	int programs = unpin_all(dp, DP_PIN_PROG);

	unpin_all(dp, "link-");
	unpin_all(dp, "clsact-");
	unpin_all(dp, "saina_");
	return programs;
}

/* What is pinned is of a start that did not get far, or not wanted, or of another
 * version; its maps are not looked at. */
static void stop_pinned(struct saina_dp *dp)
{
	bool ours = dp_progs_pinned(dp);

	dp_ports_find_pinned(dp);
	dp_ports_close(dp, true);
	dp_outlets_remove_strays(dp);
	if (remove_pins(dp) && !ours)
		dp_log(dp, 1,
		       "what is pinned in %s is of another version (its maps have not layout %u): it is stopped and removed",
		       dp->pin_dir, SAINA_LAYOUT);
}

/**
 * saina_dp_open() - load the data path, or take over the one that is pinned
 * @dp: out: the handle.  After a failure it is good for saina_dp_error() and
 *	saina_dp_close() only, or NULL if there was no memory
 * @opts: see there; NULL for none
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
	dp->cpus = libbpf_num_possible_cpus();
	if (dp->cpus < 0)
		return dp_fail(dp, dp->cpus, "cannot tell the number of CPUs: %s",
			       strerror(-dp->cpus));
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);

	if (dp->opts.pin_dir) {
		err = prepare_pin_dir(dp);
		if (err)
			return err;
	}
	if (dp->pinned && !dp->opts.fresh && dp_progs_pinned(dp)) {
		err = take_over(dp);
		if (!err)
			err = dp_ports_find_pinned(dp);
		if (!err)
			err = saina_dp_global_get(dp, &dp->global);
		if (!err)
			dp_progs_upgrade(dp);
	} else {
		if (dp->pinned)
			stop_pinned(dp);
		err = load(dp);
		if (err && dp->pinned)
			remove_pins(dp);
	}
	return err;
}

/**
 * saina_dp_close() - let go of the data path
 * @unpin: stop it: detach from all ports, remove the pins.  False leaves it
 *	running if it is pinned
 */
void saina_dp_close(struct saina_dp *dp, bool unpin)
{
	if (!dp)
		return;
	dp_delay_stop(dp);
	dp_rings_close(dp);
	dp_ports_close(dp, unpin);
	if (unpin || !dp->pinned)
		dp_jobs_remove_outlets(dp);
	dp_jobs_free(dp);
	if (dp->pinned && unpin)
		remove_pins(dp);
	for (int i = 0; i < DP_MAPS; i++)
		if (dp->map[i] >= 0)
			close(dp->map[i]);
	dp_progs_close(dp);
	free(dp);
}

/* The flag INJECT is ours, the rest the caller's. */
int dp_global_write(struct saina_dp *dp)
{
	struct saina_global g = dp->global;
	struct saina_port_conf c;
	__u32 zero = 0, key, *prev = NULL;

	g.flags &= ~SAINA_GLOBAL_F_INJECT;
	while (!bpf_map_get_next_key(dp->map[DP_PORTS], prev, &key)) {
		if (!bpf_map_lookup_elem(dp->map[DP_PORTS], &key, &c) &&
		    (c.loss_in || c.delay_in_us))
			g.flags |= SAINA_GLOBAL_F_INJECT;
		prev = &key;
	}
	if (bpf_map_update_elem(dp->map[DP_GLOBAL], &zero, &g, BPF_ANY))
		return dp_fail(dp, -errno, "saina_global: %s", strerror(errno));
	return 0;
}

/**
 * saina_dp_global_set() - the aggregator's address
 * @g: from now on; no packet is ours before the first call
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
		return dp_fail(dp, -errno, "saina_global: %s", strerror(errno));
	g->flags &= ~SAINA_GLOBAL_F_INJECT;
	return 0;
}
