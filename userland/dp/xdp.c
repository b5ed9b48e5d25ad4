// SPDX-License-Identifier: GPL-2.0-or-later
/* The XDP hook of a port, by bpf_link. */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <linux/if_link.h>
#include "dp/priv.h"

static const char *link_path(const struct saina_dp *dp, char *path, int ifindex)
{
	snprintf(path, PATH_MAX, "%s/link-%d", dp->pin_dir, ifindex);
	return path;
}

int dp_xdp_handoff_enable(struct saina_dp *dp, __u32 ifindex)
{
	__u32 yes = 1;

	return bpf_map_update_elem(dp->map[DP_TC_HANDOFF], &ifindex, &yes, BPF_ANY);
}

void dp_xdp_handoff_disable(struct saina_dp *dp, __u32 ifindex)
{
	bpf_map_delete_elem(dp->map[DP_TC_HANDOFF], &ifindex);
}

/* Disables the hand-over first: without XDP any frame could carry its mark. */
void dp_xdp_detach(struct saina_dp *dp, struct dp_port *p, bool unpin)
{
	char path[PATH_MAX];

	if (unpin)
		dp_xdp_handoff_disable(dp, p->ifindex);
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

int dp_xdp_attach(struct saina_dp *dp, struct dp_port *p, bool generic)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts,
		    .flags = generic ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE);
	char path[PATH_MAX], name[IF_NAMESIZE];
	int link, err;

	if (p->xdp >= 0 && p->generic == generic)
		return 0;
	/* native and generic mode exclude each other */
	dp_xdp_detach(dp, p, true);
	link = bpf_link_create(dp->prog[DP_PROG_XDP], p->ifindex, BPF_XDP, &opts);
	if (link < 0) {
		err = -errno;
		dp_ifname(p->ifindex, name);
		if (err == -EOPNOTSUPP)
			return dp_fail(dp, err, "port %s: its driver has no native XDP", name);
		if (err == -EBUSY || err == -EEXIST)
			return dp_fail(
				dp, -EBUSY,
				"port %s: another XDP program is attached to it; `ip link show %s` shows it",
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

int dp_xdp_adopt(struct saina_dp *dp, int ifindex, bool *generic)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	struct bpf_link_info info = {};
	__u32 len = sizeof(info);
	char path[PATH_MAX];
	int fd = bpf_obj_get(link_path(dp, path, ifindex));

	if (fd < 0)
		return fd;
	if (bpf_obj_get_info_by_fd(fd, &info, &len) || info.type != BPF_LINK_TYPE_XDP ||
	    (int)info.xdp.ifindex != ifindex) {
		unlink(path);
		dp_xdp_handoff_disable(dp, ifindex);
		close(fd);
		return -ENOENT;
	}
	*generic = !bpf_xdp_query(ifindex, 0, &query) && query.attach_mode == XDP_ATTACHED_SKB;
	return fd;
}
