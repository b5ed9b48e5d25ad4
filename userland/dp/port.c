// SPDX-License-Identifier: GPL-2.0-or-later
/* Ports: attaching the XDP program, by bpf_link (the tc program: tc.c); injected faults. */
#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/if_link.h>
#include "dp/priv.h"

const char *dp_ifname(int ifindex, char *name)
{
	if (!if_indextoname(ifindex, name))
		snprintf(name, IF_NAMESIZE, "#%d", ifindex);
	return name;
}

struct dp_port *dp_port_find(struct saina_dp *dp, int ifindex)
{
	for (int i = 0; i < dp->ports; i++)
		if (dp->port[i].ifindex == ifindex)
			return &dp->port[i];
	return NULL;
}

static const char *link_path(const struct saina_dp *dp, char *path, int ifindex)
{
	snprintf(path, PATH_MAX, "%s/link-%d", dp->pin_dir, ifindex);
	return path;
}

static int tc_handoff_enable(struct saina_dp *dp, __u32 ifindex)
{
	__u32 yes = 1;

	return bpf_map_update_elem(dp->map[DP_TC_HANDOFF], &ifindex, &yes, BPF_ANY);
}

static void tc_handoff_disable(struct saina_dp *dp, __u32 ifindex)
{
	bpf_map_delete_elem(dp->map[DP_TC_HANDOFF], &ifindex);
}

/* Disables the hand-over first: without XDP any frame could carry its mark. */
static void xdp_detach(struct saina_dp *dp, struct dp_port *p, bool unpin)
{
	char path[PATH_MAX];

	if (unpin)
		tc_handoff_disable(dp, p->ifindex);
	if (p->xdp < 0)
		return;
	if (unpin) {
		if (dp->pinned)
			unlink(link_path(dp, path, p->ifindex));
		bpf_link_detach(p->xdp);
	}
	close(p->xdp);
	p->xdp = -1;
}

static int xdp_attach(struct saina_dp *dp, struct dp_port *p, bool generic)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts,
		    .flags = generic ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE);
	char path[PATH_MAX], name[IF_NAMESIZE];
	int link, err;

	if (p->xdp >= 0 && p->generic == generic)
		return 0;
	/* native and generic mode exclude each other */
	xdp_detach(dp, p, true);
	link = bpf_link_create(dp->prog[DP_PROG_XDP], p->ifindex, BPF_XDP, &opts);
	if (link < 0) {
		err = -errno;
		dp_ifname(p->ifindex, name);
		if (err == -EOPNOTSUPP)
			return dp_fail(dp, err, "port %s: its driver has no native XDP", name);
		if (err == -EBUSY || err == -EEXIST)
			return dp_fail(
				dp, -EBUSY,
				"port %s: another XDP program is attached to it; `ip link show %s` tells which",
				name, name);
		return dp_fail(dp, err, "port %s: the XDP program cannot be attached: %s", name,
			       strerror(-err));
	}
	if (dp->pinned) {
		unlink(link_path(dp, path, p->ifindex)); /* of an earlier device with this ifindex */
		if (bpf_obj_pin(link, path)) {
			err = dp_fail(dp, -errno, "cannot pin %s: %s", path, strerror(errno));
			close(link);
			return err;
		}
	}
	p->xdp = link;
	p->generic = generic;
	return 0;
}

/* Attaches the tc egress program if the port has losses on the way out, else detaches it. */
static int tc_out_update(struct saina_dp *dp, struct dp_port *p)
{
	struct saina_port_conf c;
	__u32 key = p->ifindex;

	if (p->tc[DP_TC_IN] != DP_TC_NONE && !bpf_map_lookup_elem(dp->map[DP_PORTS], &key, &c) &&
	    c.loss_out)
		return dp_tc_attach(dp, p, DP_TC_OUT);
	dp_tc_detach(dp, p, DP_TC_OUT, true);
	return 0;
}

static void tc_detach(struct saina_dp *dp, struct dp_port *p, bool unpin)
{
	bool had = p->tc[DP_TC_IN] != DP_TC_NONE;

	dp_tc_detach(dp, p, DP_TC_IN, unpin);
	dp_tc_detach(dp, p, DP_TC_OUT, unpin);
	if (had && unpin)
		dp_jobs_port_tc(dp, false);
}

/* The ifbs of jobs are created before a packet can need them. */
static int tc_attach(struct saina_dp *dp, struct dp_port *p)
{
	int err;

	if (p->tc[DP_TC_IN] != DP_TC_NONE)
		return 0;
	err = dp_fanout_ifb_probe(dp);
	if (!err)
		err = dp_tc_attach(dp, p, DP_TC_IN);
	if (err)
		return err;
	err = dp_jobs_port_tc(dp, true);
	if (!err)
		err = tc_out_update(dp, p);
	if (err)
		tc_detach(dp, p, true);
	return err;
}

static struct dp_port *port_add(struct saina_dp *dp, int ifindex)
{
	struct dp_port *p = &dp->port[dp->ports++];

	*p = (struct dp_port){ .ifindex = ifindex, .xdp = -1,
			       .tc = { DP_TC_NONE, DP_TC_NONE } };
	return p;
}

static void port_remove(struct saina_dp *dp, struct dp_port *p, bool unpin)
{
	xdp_detach(dp, p, unpin);
	tc_detach(dp, p, unpin);
	*p = dp->port[--dp->ports];
}

/**
 * saina_dp_attach() - attach the program to a port, at this hook and no other
 * @hook: not SAINA_DP_NONE
 * @tc_handoff: with XDP: attach the tc program, too, if possible; XDP hands results over to it
 *	that it cannot redirect.  Not where something between the two consumes frames
 *
 * A port that changes its hook has both for a moment: frames that the XDP program
 * consumes never reach tc.
 *
 * Returns 0, also if the program is attached already; -EOPNOTSUPP: the driver has no native
 * XDP; -EBUSY: another program or qdisc prevents it; another errno.  After a failure the
 * port is as it was, unless it was to change between native and generic XDP, which exclude
 * each other.
 */
int saina_dp_attach(struct saina_dp *dp, int ifindex, enum saina_dp_hook hook, bool tc_handoff)
{
	struct bpf_devmap_val v = { .ifindex = ifindex };
	struct dp_port *p = dp_port_find(dp, ifindex);
	char name[IF_NAMESIZE];
	bool fresh = !p;
	__u32 key = ifindex;
	int err;

	if (fresh && dp->ports == DP_PORTS_MAX)
		return dp_fail(dp, -ENOSPC, "%d ports are the most there can be", DP_PORTS_MAX);
	if (fresh)
		p = port_add(dp, ifindex);
	err = hook == SAINA_DP_TC ? tc_attach(dp, p) : xdp_attach(dp, p, hook == SAINA_DP_GENERIC);
	v.bpf_prog.fd = dp_port_egress(dp, ifindex);
	if (!err && fresh && bpf_map_update_elem(dp->map[DP_TX], &key, &v, BPF_ANY))
		err = dp_fail(dp, -errno, "port %s: cannot be redirected to: %s",
			      dp_ifname(ifindex, name), strerror(errno));
	if (err && fresh)
		port_remove(dp, p, true);
	if (err)
		return err;
	if (hook == SAINA_DP_TC) {
		xdp_detach(dp, p, true);
	} else if (!tc_handoff || tc_attach(dp, p) || tc_handoff_enable(dp, key)) {
		tc_handoff_disable(dp, key);
		tc_detach(dp, p, true);
	}
	return 0;
}

/**
 * saina_dp_detach() - detach the program from a port
 *
 * The device need not exist any more.  Injected faults of the port are removed.
 */
int saina_dp_detach(struct saina_dp *dp, int ifindex)
{
	struct dp_port *p = dp_port_find(dp, ifindex);
	__u32 key = ifindex;

	if (!p)
		return dp_fail(dp, -ENOENT, "the program is not attached to port #%d", ifindex);
	port_remove(dp, p, true);
	bpf_map_delete_elem(dp->map[DP_TX], &key);
	bpf_map_delete_elem(dp->map[DP_PORTS], &key);
	return dp_global_write(dp);
}

/* The hook of a port; XDP if the tc program is attached, too. */
enum saina_dp_hook saina_dp_hook(struct saina_dp *dp, int ifindex)
{
	const struct dp_port *p = dp_port_find(dp, ifindex);

	if (!p)
		return SAINA_DP_NONE;
	if (p->xdp < 0)
		return p->tc[DP_TC_IN] != DP_TC_NONE ? SAINA_DP_TC : SAINA_DP_NONE;
	return p->generic ? SAINA_DP_GENERIC : SAINA_DP_NATIVE;
}

/**
 * saina_dp_attached() - the ports that the program is attached to
 * @ifindexes: out, up to @max
 *
 * Returns how many were written.
 */
int saina_dp_attached(struct saina_dp *dp, int *ifindexes, int max)
{
	int n = 0;

	for (; n < dp->ports && n < max; n++)
		ifindexes[n] = dp->port[n].ifindex;
	return n;
}

/**
 * saina_dp_repair() - restore filters and fan-out ifbs that others have removed
 *
 * To be called after traffic control of an interface changed or an interface was removed.
 * A port whose filter cannot be restored loses the tc hook: see saina_dp_hook().
 */
void saina_dp_repair(struct saina_dp *dp)
{
	for (int i = 0; i < dp->ports; i++) {
		if (!dp_tc_repair(dp, &dp->port[i]))
			continue;
		tc_handoff_disable(dp, dp->port[i].ifindex);
		tc_detach(dp, &dp->port[i], true);
	}
	dp_jobs_repair(dp);
}

void dp_ports_close(struct saina_dp *dp, bool unpin)
{
	while (dp->ports)
		port_remove(dp, &dp->port[dp->ports - 1], unpin);
}

static struct dp_port *port_adopt(struct saina_dp *dp, int ifindex)
{
	struct dp_port *p = dp_port_find(dp, ifindex);

	if (p)
		return p;
	return dp->ports < DP_PORTS_MAX ? port_add(dp, ifindex) : NULL;
}

static void pinned_xdp_adopt(struct saina_dp *dp, int ifindex)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	struct bpf_link_info info = {};
	__u32 len = sizeof(info);
	char path[PATH_MAX];
	struct dp_port *p;
	int fd;

	fd = bpf_obj_get(link_path(dp, path, ifindex));
	if (fd < 0)
		return;
	if (bpf_obj_get_info_by_fd(fd, &info, &len) || info.type != BPF_LINK_TYPE_XDP ||
	    (int)info.xdp.ifindex != ifindex) {
		unlink(path);
		tc_handoff_disable(dp, ifindex);
		close(fd);
		return;
	}
	p = port_adopt(dp, ifindex);
	if (!p) {
		close(fd);
		return;
	}
	p->xdp = fd;
	p->generic = !bpf_xdp_query(ifindex, 0, &query) && query.attach_mode == XDP_ATTACHED_SKB;
}

static void pinned_tc_adopt(struct saina_dp *dp, const char *name)
{
	int ifindex, tc[DP_TC_SIDES];
	struct dp_port *p;

	if (!dp_tc_adopt(dp, name, &ifindex, tc))
		return;
	for (int s = 0; s < DP_TC_SIDES; s++) {
		if (tc[s] == DP_TC_NONE)
			continue;
		p = port_adopt(dp, ifindex);
		if (p)
			p->tc[s] = tc[s];
		else if (tc[s] >= 0)
			close(tc[s]);
	}
}

/* Adopts the attachments that are pinned.  The link of a device that no longer exists has
 * ifindex 0. */
int dp_ports_adopt(struct saina_dp *dp)
{
	struct dirent *e;
	DIR *dir = opendir(dp->pin_dir);
	int ifindex;

	if (!dir)
		return dp_fail(dp, -errno, "%s: %s", dp->pin_dir, strerror(errno));
	while ((e = readdir(dir))) {
		if (sscanf(e->d_name, "link-%d", &ifindex) == 1)
			pinned_xdp_adopt(dp, ifindex);
		else
			pinned_tc_adopt(dp, e->d_name);
	}
	closedir(dir);
	return 0;
}

void dp_ports_upgrade(struct saina_dp *dp)
{
	char name[IF_NAMESIZE];

	for (int i = 0; i < dp->ports; i++) {
		struct dp_port *p = &dp->port[i];
		int err = 0;

		if (p->xdp >= 0 && bpf_link_update(p->xdp, dp->prog[DP_PROG_XDP], NULL))
			err = -errno;
		for (int s = 0; !err && s < DP_TC_SIDES; s++)
			err = dp_tc_upgrade(dp, p, s);
		if (err)
			dp_log(dp, 0, "port %s keeps the old program: %s",
			       dp_ifname(p->ifindex, name), strerror(-err));
		dp_job_port_changed(dp, p->ifindex);
	}
}

int dp_port_egress(struct saina_dp *dp, int ifindex)
{
	struct saina_port_conf c;
	__u32 key = ifindex;

	if (bpf_map_lookup_elem(dp->map[DP_PORTS], &key, &c) || (!c.loss_out && !c.delay_out_us))
		return -1;
	return dp->prog[DP_PROG_EGRESS];
}

/**
 * saina_dp_port_set() - inject faults at a port
 * @c: the faults; their random sequences restart
 */
int saina_dp_port_set(struct saina_dp *dp, int ifindex, const struct saina_port_conf *c)
{
	struct dp_port *p = dp_port_find(dp, ifindex);
	struct saina_port_conf conf = *c;
	__u32 key = ifindex;
	int err = 0;

	conf.drawn_in = 0;
	conf.drawn_out = 0;
	if (bpf_map_update_elem(dp->map[DP_PORTS], &key, &conf, BPF_ANY))
		return dp_fail(dp, -errno, "port #%d: %s", ifindex, strerror(errno));
	dp_job_port_changed(dp, ifindex);
	if (p)
		err = tc_out_update(dp, p);
	return err ? err : dp_global_write(dp);
}

/* The injected faults, with the random numbers drawn so far; all 0 if none were set. */
int saina_dp_port_get(struct saina_dp *dp, int ifindex, struct saina_port_conf *c)
{
	__u32 key = ifindex;

	if (!bpf_map_lookup_elem(dp->map[DP_PORTS], &key, c))
		return 0;
	if (errno != ENOENT)
		return dp_fail(dp, -errno, "port #%d: %s", ifindex, strerror(errno));
	memset(c, 0, sizeof(*c));
	return 0;
}
