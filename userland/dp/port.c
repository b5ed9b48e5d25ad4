// SPDX-License-Identifier: GPL-2.0-or-later
/* Ports with a program: the list, take-over, replacing programs, and what the faults of a port
 * require. */
#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "dp/priv.h"

struct dp_port *dp_port_find(struct saina_dp *dp, int ifindex)
{
	for (int i = 0; i < dp->ports; i++)
		if (dp->port[i].ifindex == ifindex)
			return &dp->port[i];
	return NULL;
}

struct dp_port *dp_port_add(struct saina_dp *dp, int ifindex)
{
	struct dp_port *p = &dp->port[dp->ports++];

	*p = (struct dp_port){ .ifindex = ifindex, .xdp = -1,
			       .tc = { DP_TC_NONE, DP_TC_NONE } };
	return p;
}

void dp_port_remove(struct saina_dp *dp, struct dp_port *p)
{
	*p = dp->port[--dp->ports];
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

void dp_ports_close(struct saina_dp *dp, bool unpin)
{
	while (dp->ports) {
		struct dp_port *p = &dp->port[dp->ports - 1];

		dp_xdp_detach(dp, p, unpin);
		for (int s = 0; s < DP_TC_SIDES; s++)
			dp_tc_detach(dp, p, s, unpin);
		dp_port_remove(dp, p);
	}
}

static struct dp_port *port_adopt(struct saina_dp *dp, int ifindex)
{
	struct dp_port *p = dp_port_find(dp, ifindex);

	if (p)
		return p;
	return dp->ports < DP_PORTS_MAX ? dp_port_add(dp, ifindex) : NULL;
}

static void xdp_adopt(struct saina_dp *dp, int ifindex)
{
	bool generic;
	int fd = dp_xdp_adopt(dp, ifindex, &generic);
	struct dp_port *p = fd < 0 ? NULL : port_adopt(dp, ifindex);

	if (p) {
		p->xdp = fd;
		p->generic = generic;
	} else if (fd >= 0) {
		close(fd);
	}
}

static void tc_adopt(struct saina_dp *dp, const char *name)
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
			xdp_adopt(dp, ifindex);
		else
			tc_adopt(dp, e->d_name);
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
	}
}

int dp_port_egress(struct saina_dp *dp, int ifindex)
{
	struct saina_port_conf c;
	__u32 key = ifindex;

	if (bpf_map_lookup_elem(dp->map[DP_PORTS], &key, &c) || !c.loss_out)
		return -1;
	return dp->prog[DP_PROG_EGRESS];
}

/* The flag INJECT follows from the faults of the ports; the others are the caller's. */
int dp_global_write(struct saina_dp *dp)
{
	struct saina_global g = dp->global;
	struct saina_port_conf c;
	__u32 zero = 0, key, *prev = NULL;

	g.flags &= ~SAINA_GLOBAL_F_INJECT;
	while (!bpf_map_get_next_key(dp->map[DP_PORTS], prev, &key)) {
		if (!bpf_map_lookup_elem(dp->map[DP_PORTS], &key, &c) && c.loss_in)
			g.flags |= SAINA_GLOBAL_F_INJECT;
		prev = &key;
	}
	if (bpf_map_update_elem(dp->map[DP_GLOBAL], &zero, &g, BPF_ANY))
		return dp_fail(dp, -errno, "map saina_global: %s", strerror(errno));
	return 0;
}
