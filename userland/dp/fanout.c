// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fan-out: how a result reaches the ports of all active workers of a job.
 *
 *  - the XDP program redirects it to the job's devmap;
 *  - the tc program redirects it to the job's ifb, an interface whose egress filters copy
 *    frames to the ports.  A job has one while one of its workers is behind a port with
 *    the tc hook.
 */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "dp/priv.h"
#include "net/links.h"
#include "net/tc.h"

#define PRIO_FIRST	1	/* of the filter for port[0] */
#define NAME_TRIES	64	/* names may be taken by other agents in this namespace */

/* Do results go to this port?  Not to one that has left the bridge, whose workers may come back. */
static bool port_is_served(struct saina_dp *dp, __u32 ifindex)
{
	return dp->opts.any_port || dp_port_find(dp, ifindex);
}

/* Devmaps */

/* Adds or updates a port in a devmap.  A port that no longer exists is no error: its
 * workers are silent, and die of that. */
static void devmap_set(struct saina_dp *dp, int fd, int ifindex)
{
	struct bpf_devmap_val v = {
		.ifindex = ifindex,
		.bpf_prog.fd = dp_port_egress(dp, ifindex),
	};
	__u32 key = ifindex;

	if (bpf_map_update_elem(fd, &key, &v, BPF_ANY) && errno != EINVAL && errno != ENODEV)
		dp_log(dp, 1, "port #%d: frames cannot be redirected to it: %s", ifindex,
		       strerror(errno));
}

void dp_devmap_update(struct saina_dp *dp, int fd, int ifindex)
{
	struct bpf_devmap_val v;

	if (!bpf_map_lookup_elem(fd, &ifindex, &v))
		devmap_set(dp, fd, ifindex);
}

/* Is a worker of the mask @of behind the port, and are results sent there? */
static bool port_has_worker(struct saina_dp *dp, const struct saina_job_conf *c, __u32 ifindex,
			    __u64 of)
{
	if (!port_is_served(dp, ifindex))
		return false;
	for (int w = 0; w < SAINA_WORKERS_MAX; w++)
		if (c->worker[w].flags & SAINA_BIND_BOUND && c->worker[w].ifindex == ifindex && of >> w & 1)
			return true;
	return false;
}

/* Adds the attached ports of active workers, before the snapshot is in force. */
static void devmaps_grow(struct saina_dp *dp, int fanout, const struct saina_job_conf *c)
{
	struct bpf_devmap_val v;

	for (int w = 0; w < SAINA_WORKERS_MAX; w++) {
		const struct saina_binding *b = &c->worker[w];
		__u32 key = b->ifindex;

		if (!(b->flags & SAINA_BIND_BOUND) || !key || !port_is_served(dp, key))
			continue;
		if (bpf_map_lookup_elem(dp->map[DP_TX], &key, &v))
			devmap_set(dp, dp->map[DP_TX], key);
		if ((c->active & ~c->relay) >> w & 1 && bpf_map_lookup_elem(fanout, &key, &v))
			devmap_set(dp, fanout, key);
	}
}

/* Removes the other ports, after it is in force. */
static void devmap_shrink(struct saina_dp *dp, int fanout, const struct saina_job_conf *c)
{
	__u32 have[SAINA_FANOUT_MAX], key, *prev = NULL;
	int n = 0;

	while (n < SAINA_FANOUT_MAX && !bpf_map_get_next_key(fanout, prev, &key)) {
		have[n] = key;
		prev = &have[n++];
	}
	for (int i = 0; i < n; i++)
		if (!port_has_worker(dp, c, have[i], c->active & ~c->relay))
			bpf_map_delete_elem(fanout, &have[i]);
}

/* The ifb */

/* The interface's alias names its owner: a pin directory, or a process. */
static void alias_format(const struct saina_dp *dp, char *alias, size_t size, const char *job)
{
	if (dp->pinned)
		snprintf(alias, size, "saina %.160s %s", dp->pin_dir, job);
	else
		snprintf(alias, size, "saina process %d %s", getpid(), job);
}

static int ifb_create(struct saina_dp *dp, __u32 job, int *ifindex)
{
	char name[IF_NAMESIZE], what[32], alias[256];
	int err = -EEXIST;

	snprintf(what, sizeof(what), "results of job %u", job);
	alias_format(dp, alias, sizeof(alias), what);
	for (unsigned int n = 0; n < NAME_TRIES && err == -EEXIST; n++) {
		snprintf(name, sizeof(name), n ? "saina%u-%u" : "saina%u", job, n);
		err = tc_ifb_add(name, alias, ifindex);
	}
	if (err)
		return dp_fail(
			dp, err,
			"cannot create an interface of type ifb: %s (needs the kernel modules ifb and sch_ingress)",
			strerror(-err));
	return 0;
}

/* A port that no longer exists is no error: its workers are silent, and die of that. */
static int mirror_add(struct saina_dp *dp, struct dp_fanout_ifb *o, __u32 port)
{
	char name[IF_NAMESIZE];
	int err;

	for (int i = 0; i < SAINA_WORKERS_MAX; i++)
		if (o->port[i] == port)
			return 0;
	for (int i = 0; i < SAINA_WORKERS_MAX; i++) {
		if (o->port[i])
			continue;
		err = tc_mirror_add(o->ifindex, PRIO_FIRST + i, port);
		if (!err)
			o->port[i] = port;
		return !err || err == -ENODEV || err == -EINVAL
			       ? 0
			       : dp_fail(dp, err, "results cannot be copied to port %s: %s",
					 dp_ifname(port, name), strerror(-err));
	}
	return dp_fail(dp, -ENOSPC, "results cannot be copied to more than %d ports",
		       SAINA_WORKERS_MAX);
}

static bool port_has_tc(struct saina_dp *dp, __u32 ifindex)
{
	const struct dp_port *p = dp_port_find(dp, ifindex);

	return p && p->tc[DP_TC_IN] != DP_TC_NONE;
}

/* ifindex of the port of worker @w, 0 if it is not active or its port has left the bridge. */
static __u32 served_port(struct saina_dp *dp, const struct saina_job_conf *c, int w)
{
	const struct saina_binding *b = &c->worker[w];

	return b->flags & SAINA_BIND_BOUND && c->active >> w & 1 && port_is_served(dp, b->ifindex) ?
		       b->ifindex : 0;
}

static bool ifb_is_needed(struct saina_dp *dp, const struct saina_job_conf *c)
{
	for (int w = 0; w < SAINA_WORKERS_MAX; w++)
		if (served_port(dp, c, w) && port_has_tc(dp, served_port(dp, c, w)))
			return true;
	return false;
}

static int mirrors_add(struct saina_dp *dp, struct dp_fanout_ifb *o, const struct saina_job_conf *c)
{
	int err = 0;

	for (int w = 0; !err && w < SAINA_WORKERS_MAX; w++)
		if (served_port(dp, c, w))
			err = mirror_add(dp, o, served_port(dp, c, w));
	return err;
}

/* Results are redirected to @ifindex from now on. */
static int ifb_publish(struct saina_dp *dp, __u32 job, __u32 ifindex)
{
	if (bpf_map_update_elem(dp->map[DP_FANOUT_IFB], &job, &ifindex, BPF_ANY))
		return dp_fail(dp, -errno, "map saina_fanout_ifb of job %u: %s", job, strerror(errno));
	return 0;
}

/* Creates an interface, which replaces the present one, if any. */
static int ifb_replace(struct saina_dp *dp, struct dp_job *j, const struct saina_job_conf *c)
{
	struct dp_fanout_ifb o = { .known = true };
	int err = ifb_create(dp, c->job, &o.ifindex);

	if (err)
		return err;
	err = mirrors_add(dp, &o, c);
	if (!err)
		err = ifb_publish(dp, c->job, o.ifindex);
	if (err) {
		tc_link_del(o.ifindex);
		return err;
	}
	if (j->ifb.ifindex)
		tc_link_del(j->ifb.ifindex);
	j->ifb = o;
	return 0;
}

static int fanout_ifb_grow(struct saina_dp *dp, struct dp_job *j, const struct saina_job_conf *c)
{
	if (!ifb_is_needed(dp, c))
		return 0;
	if (!j->ifb.known)
		return ifb_replace(dp, j, c);
	return mirrors_add(dp, &j->ifb, c);
}

static void fanout_ifb_shrink(struct saina_dp *dp, struct dp_job *j, const struct saina_job_conf *c)
{
	struct dp_fanout_ifb *o = &j->ifb;

	if (!o->ifindex)
		return;
	if (!ifb_is_needed(dp, c)) {
		dp_fanout_ifb_remove(dp, j, c->job);
		return;
	}
	for (int i = 0; i < SAINA_WORKERS_MAX; i++) {
		if (!o->port[i] || port_has_worker(dp, c, o->port[i], c->active))
			continue;
		tc_filter_del(o->ifindex, PRIO_FIRST + i);
		o->port[i] = 0;
	}
}

void dp_fanout_ifb_remove(struct saina_dp *dp, struct dp_job *j, __u32 job)
{
	if (!j->ifb.ifindex)
		return;
	ifb_publish(dp, job, 0);
	tc_link_del(j->ifb.ifindex);
	j->ifb = (struct dp_fanout_ifb){};
}

/* Replaces the interface if somebody removed it or changed its filters. */
void dp_fanout_ifb_repair(struct saina_dp *dp, struct dp_job *j)
{
	const struct dp_fanout_ifb *o = &j->ifb;
	int n = 0;

	if (!o->known)
		return;
	for (int i = 0; i < SAINA_WORKERS_MAX; i++)
		n += !!o->port[i];
	if (tc_filters(o->ifindex, true) == n)
		return;
	if (ifb_replace(dp, j, &j->conf))
		dp_log(dp, 0, "%s", dp->error);
	else
		dp_log(dp, 1,
		       "job %u: the interface of its results was changed by others and is replaced",
		       j->conf.job);
}

static bool ifb_is_ours(const struct saina_dp *dp, const struct link *link)
{
	char alias[256];

	alias_format(dp, alias, sizeof(alias), "");
	return !strcmp(link->kind, "ifb") && !strncmp(link->alias, alias, strlen(alias));
}

/* After a take-over the interface is known, but not its filters. */
void dp_fanout_ifb_adopt(struct saina_dp *dp, struct dp_job *j, __u32 job)
{
	struct links links = { 0 };
	const struct link *link;
	__u32 ifindex;

	if (bpf_map_lookup_elem(dp->map[DP_FANOUT_IFB], &job, &ifindex) || !ifindex ||
	    links_read(&links))
		return;
	link = links_by_index(&links, ifindex);
	if (link && ifb_is_ours(dp, link))
		j->ifb.ifindex = ifindex;
	links_close(&links);
}

/* Removes interfaces that an earlier run with this pin directory left behind. */
void dp_fanout_ifb_remove_strays(struct saina_dp *dp)
{
	struct links links = { 0 };

	if (links_read(&links))
		return;
	for (int i = 0; i < links.n; i++)
		if (ifb_is_ours(dp, &links.v[i]))
			tc_link_del(links.v[i].ifindex);
	links_close(&links);
}

/* Does this kernel support ifb and mirroring?  Checked before a port gets the tc hook. */
int dp_fanout_ifb_probe(struct saina_dp *dp)
{
	int ifindex, err;

	if (dp->can_ifb)
		return 0;
	err = ifb_create(dp, SAINA_JOBS_MAX, &ifindex);
	if (err)
		return err;
	err = tc_mirror_add(ifindex, PRIO_FIRST, ifindex);
	tc_link_del(ifindex);
	if (err)
		return dp_fail(dp, err,
			       "cannot create a tc filter that mirrors: %s (needs the kernel modules cls_u32 and act_mirred)",
			       strerror(-err));
	dp->can_ifb = true;
	return 0;
}

int dp_fanout_grow(struct saina_dp *dp, struct dp_job *j, const struct saina_job_conf *c)
{
	devmaps_grow(dp, j->maps[DP_JOB_FANOUT], c);
	return fanout_ifb_grow(dp, j, c);
}

void dp_fanout_shrink(struct saina_dp *dp, struct dp_job *j, const struct saina_job_conf *c)
{
	devmap_shrink(dp, j->maps[DP_JOB_FANOUT], c);
	fanout_ifb_shrink(dp, j, c);
}
