// SPDX-License-Identifier: GPL-2.0-or-later
/* Ports: attaching the program by bpf_link, injected faults. */
#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/if_link.h>
#include "dp/priv.h"

static const char *ifname(int ifindex, char *name)
{
	if (!if_indextoname(ifindex, name))
		snprintf(name, IF_NAMESIZE, "#%d", ifindex);
	return name;
}

static struct dp_port *port_find(struct saina_dp *dp, int ifindex)
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

/**
 * saina_dp_attach() - the program onto a port
 * @generic: the kernel's slow generic mode instead of the driver's
 *
 * 0 also if it is there already.  -EOPNOTSUPP: the driver has no native XDP;
 * -EBUSY: another program is there.
 */
int saina_dp_attach(struct saina_dp *dp, int ifindex, bool generic)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts,
		    .flags = generic ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE);
	struct bpf_devmap_val v = { .ifindex = ifindex };
	char path[PATH_MAX], name[IF_NAMESIZE];
	__u32 key = ifindex;
	int link, err;

	if (port_find(dp, ifindex))
		return 0;
	if (dp->ports == DP_PORTS_MAX)
		return dp_fail(dp, -ENOSPC, "%d ports are the most there can be", DP_PORTS_MAX);
	link = bpf_link_create(dp->prog[DP_PROG_XDP], ifindex, BPF_XDP, &opts);
	if (link < 0) {
		err = -errno;
		ifname(ifindex, name);
		if (err == -EOPNOTSUPP)
			return dp_fail(dp, err, "port %s: its driver has no native XDP", name);
		if (err == -EBUSY || err == -EEXIST)
			return dp_fail(dp, -EBUSY,
				       "port %s: another XDP program is attached to it; `ip link show %s` tells which",
				       name, name);
		return dp_fail(dp, err, "port %s: the XDP program cannot be attached: %s", name,
			       strerror(-err));
	}
	v.bpf_prog.fd = dp_port_egress(dp, ifindex);
	if (bpf_map_update_elem(dp->map[DP_TX], &key, &v, BPF_ANY)) {
		err = dp_fail(dp, -errno, "port %s: cannot be redirected to: %s",
			      ifname(ifindex, name), strerror(errno));
		goto detach;
	}
	if (dp->pinned) {
		unlink(link_path(dp, path, ifindex)); /* of a device that had this number */
		if (bpf_obj_pin(link, path)) {
			err = dp_fail(dp, -errno, "cannot pin %s: %s", path, strerror(errno));
			goto detach;
		}
	}
	dp->port[dp->ports++] = (struct dp_port){ .ifindex = ifindex, .link = link };
	return 0;

detach:
	bpf_map_delete_elem(dp->map[DP_TX], &key);
	close(link);
	return err;
}

static void port_drop(struct saina_dp *dp, struct dp_port *p, bool unpin)
{
	char path[PATH_MAX];

	if (unpin) {
		if (dp->pinned)
			unlink(link_path(dp, path, p->ifindex));
		bpf_link_detach(p->link);
	}
	close(p->link);
	*p = dp->port[--dp->ports];
}

/**
 * saina_dp_detach() - take the program off a port
 *
 * Also right when the device has gone.  Its injected faults are forgotten.
 */
int saina_dp_detach(struct saina_dp *dp, int ifindex)
{
	struct dp_port *p = port_find(dp, ifindex);
	__u32 key = ifindex;

	if (!p)
		return dp_fail(dp, -ENOENT, "the program is not attached to port #%d", ifindex);
	port_drop(dp, p, true);
	bpf_map_delete_elem(dp->map[DP_TX], &key);
	bpf_map_delete_elem(dp->map[DP_PORTS], &key);
	return dp_global_write(dp);
}

/**
 * saina_dp_attached() - the ports the program is on
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
	while (dp->ports)
		port_drop(dp, &dp->port[dp->ports - 1], unpin);
}

/* The links of the run we take over from.  Links of devices that have gone
 * meanwhile say ifindex 0. */
int dp_ports_find_pinned(struct saina_dp *dp)
{
	struct dirent *e;
	DIR *dir = opendir(dp->pin_dir);

	if (!dir)
		return dp_fail(dp, -errno, "%s: %s", dp->pin_dir, strerror(errno));
	while ((e = readdir(dir)) && dp->ports < DP_PORTS_MAX) {
		struct bpf_link_info info = {};
		__u32 len = sizeof(info);
		char path[PATH_MAX];
		int ifindex, fd;

		if (sscanf(e->d_name, "link-%d", &ifindex) != 1)
			continue;
		fd = bpf_obj_get(link_path(dp, path, ifindex));
		if (fd < 0)
			continue;
		if (bpf_obj_get_info_by_fd(fd, &info, &len) || info.type != BPF_LINK_TYPE_XDP ||
		    (int)info.xdp.ifindex != ifindex) {
			unlink(path);
			close(fd);
			continue;
		}
		dp->port[dp->ports++] = (struct dp_port){ .ifindex = ifindex, .link = fd };
	}
	closedir(dir);
	return 0;
}

void dp_ports_upgrade(struct saina_dp *dp)
{
	char name[IF_NAMESIZE];

	for (int i = 0; i < dp->ports; i++) {
		int ifindex = dp->port[i].ifindex;

		if (bpf_link_update(dp->port[i].link, dp->prog[DP_PROG_XDP], NULL))
			dp_log(dp, 0, "port %s keeps the old XDP program: %s",
			       ifname(ifindex, name), strerror(errno));
		dp_job_port_changed(dp, ifindex);
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
 * saina_dp_port_set() - injected faults of a port
 * @c: what to inject; its random sequences start anew
 */
int saina_dp_port_set(struct saina_dp *dp, int ifindex, const struct saina_port_conf *c)
{
	struct saina_port_conf conf = *c;
	__u32 key = ifindex;

	conf.drawn_in = 0;
	conf.drawn_out = 0;
	if (bpf_map_update_elem(dp->map[DP_PORTS], &key, &conf, BPF_ANY))
		return dp_fail(dp, -errno, "port #%d: %s", ifindex, strerror(errno));
	dp_job_port_changed(dp, ifindex);
	return dp_global_write(dp);
}

/* The same back, with the numbers drawn so far; all 0 if nothing was ever set. */
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
