// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The tc hook of a port: a tcx link where the kernel supports it (6.6), else a filter on
 * clsact, which others may remove: saina_dp_repair() restores it.  Programs and filters of
 * others stay: tcx runs several programs, and our filter passes foreign frames on.
 */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "dp/priv.h"
#include "net/tc.h"

/* From <linux/bpf.h> of 6.6; the build may use older headers. */
#define TCX_INGRESS	((enum bpf_attach_type)46)
#define TCX_EGRESS	((enum bpf_attach_type)47)
#define TCX_LINK	11
#define TCX_BEFORE	(1u << 3)	/* before all others */

#define PRIORITY	1
#define HANDLE		0x5a1a
#define HANDLE_OWN	0x5a1b		/* the clsact qdisc was created by us, too */

static const struct {
	enum bpf_attach_type tcx;
	enum bpf_tc_attach_point point;
	enum dp_prog prog;
	const char *pin;
	const char *clsact_pin;		/* pins the program: a filter cannot be pinned */
} side[DP_TC_SIDES] = {
	[DP_TC_IN] = { TCX_INGRESS, BPF_TC_INGRESS, DP_PROG_TC, "link-tc", "clsact-tc" },
	[DP_TC_OUT] = { TCX_EGRESS, BPF_TC_EGRESS, DP_PROG_TC_OUT, "link-tc-out", "clsact-tc-out" },
};

static const char *pin_path(const struct saina_dp *dp, char *path, enum dp_tc_side s, int ifindex,
			    bool clsact)
{
	char name[64];

	snprintf(name, sizeof(name), "%s-%d", clsact ? side[s].clsact_pin : side[s].pin, ifindex);
	return dp_pin_path(dp, path, name);
}

/* clsact */

static struct bpf_tc_hook tc_hook(int ifindex, enum bpf_tc_attach_point point)
{
	return (struct bpf_tc_hook){
		.sz = sizeof(struct bpf_tc_hook),
		.ifindex = ifindex,
		.attach_point = point,
	};
}

static struct bpf_tc_opts tc_opts(__u32 handle)
{
	return (struct bpf_tc_opts){
		.sz = sizeof(struct bpf_tc_opts),
		.handle = handle,
		.priority = PRIORITY,
	};
}

/* Handle of our filter, 0: none.  (libbpf's query would print to stderr.) */
static __u32 clsact_find(int ifindex, enum dp_tc_side s)
{
	for (__u32 handle = HANDLE; handle <= HANDLE_OWN; handle++)
		if (tc_bpf_find(ifindex, s == DP_TC_OUT, PRIORITY, handle))
			return handle;
	return 0;
}

/* A new filter runs before the others of its priority. */
static int filter_attach(struct saina_dp *dp, int ifindex, enum dp_tc_side s, __u32 handle)
{
	struct bpf_tc_hook hook = tc_hook(ifindex, side[s].point);
	struct bpf_tc_opts opts = tc_opts(handle);
	char name[IF_NAMESIZE];
	int err;

	opts.prog_fd = dp->prog[side[s].prog];
	err = bpf_tc_attach(&hook, &opts);
	if (err)
		return dp_fail(
			dp, err,
			"port %s: the tc program cannot be attached: %s (`tc filter show dev %s %s` shows the filters there)",
			dp_ifname(ifindex, name), strerror(-err), name,
			s == DP_TC_OUT ? "egress" : "ingress");
	return 0;
}

static int clsact_attach(struct saina_dp *dp, int ifindex, enum dp_tc_side s)
{
	struct bpf_tc_hook both = tc_hook(ifindex, BPF_TC_INGRESS | BPF_TC_EGRESS);
	__u32 handle = HANDLE_OWN;
	char kind[16] = "", name[IF_NAMESIZE];
	int err = tc_ingress_kind(ifindex, kind, sizeof(kind));

	if (!err && !strcmp(kind, "ingress"))
		return dp_fail(
			dp, -EBUSY,
			"port %s: its ingress qdisc belongs to another program (policing of Open vSwitch, a bandwidth limit of libvirt): before Linux 6.6 that excludes the tc hook",
			dp_ifname(ifindex, name));
	if (!err && !kind[0])
		err = bpf_tc_hook_create(&both);
	else if (clsact_find(ifindex, s == DP_TC_IN ? DP_TC_OUT : DP_TC_IN) != HANDLE_OWN)
		handle = HANDLE; /* the qdisc is not ours */
	if (err)
		return dp_fail(dp, err, "port %s: cannot add a clsact qdisc: %s%s",
			       dp_ifname(ifindex, name), strerror(-err),
			       err == -ENOENT ? " (needs the kernel module sch_ingress)" : "");
	return filter_attach(dp, ifindex, s, handle);
}

static void clsact_detach(int ifindex, enum dp_tc_side s)
{
	struct bpf_tc_hook both = tc_hook(ifindex, BPF_TC_INGRESS | BPF_TC_EGRESS);
	struct bpf_tc_hook hook = tc_hook(ifindex, side[s].point);
	struct bpf_tc_opts opts = tc_opts(clsact_find(ifindex, s));
	bool own = opts.handle == HANDLE_OWN;

	if (!opts.handle)
		return;
	bpf_tc_detach(&hook, &opts);
	/* others may use the qdisc by now */
	if (own && !tc_filters(ifindex, false) && !tc_filters(ifindex, true))
		bpf_tc_hook_destroy(&both);
}

static int clsact_pin(struct saina_dp *dp, int ifindex, enum dp_tc_side s)
{
	char path[PATH_MAX];

	unlink(pin_path(dp, path, s, ifindex, true));
	if (bpf_obj_pin(dp->prog[side[s].prog], path))
		return dp_fail(dp, -errno, "cannot pin %s: %s", path, strerror(errno));
	return 0;
}

/* Either of them */

int dp_tc_attach(struct saina_dp *dp, struct dp_port *p, enum dp_tc_side s)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = TCX_BEFORE);
	char path[PATH_MAX], name[IF_NAMESIZE];
	int fd, err = 0;

	if (p->tc[s] != DP_TC_NONE)
		return 0;
	if (dp->prog[side[s].prog] < 0)
		return dp_fail(dp, -ENOENT, "there is no tc program: %s", dp->tc_error);
	fd = bpf_link_create(dp->prog[side[s].prog], p->ifindex, side[s].tcx, &opts);
	if (fd < 0 && errno != EINVAL)
		return dp_fail(dp, -errno, "port %s: the tc program cannot be attached: %s",
			       dp_ifname(p->ifindex, name), strerror(errno));
	if (fd < 0) {
		err = clsact_attach(dp, p->ifindex, s);
		if (err)
			return err;
		fd = DP_TC_CLSACT;
	}
	p->tc[s] = fd;
	if (!dp->pinned)
		return 0;
	if (fd == DP_TC_CLSACT) {
		err = clsact_pin(dp, p->ifindex, s);
	} else {
		unlink(pin_path(dp, path, s, p->ifindex, false));
		if (bpf_obj_pin(fd, path))
			err = dp_fail(dp, -errno, "cannot pin %s: %s", path, strerror(errno));
	}
	if (err)
		dp_tc_detach(dp, p, s, true);
	return err;
}

/* @unpin: false: the attachment outlives this process. */
void dp_tc_detach(struct saina_dp *dp, struct dp_port *p, enum dp_tc_side s, bool unpin)
{
	char path[PATH_MAX];
	int fd = p->tc[s];

	if (fd == DP_TC_NONE)
		return;
	if (dp->pinned && unpin)
		unlink(pin_path(dp, path, s, p->ifindex, fd == DP_TC_CLSACT));
	if (fd == DP_TC_CLSACT && unpin)
		clsact_detach(p->ifindex, s);
	if (fd >= 0 && unpin)
		bpf_link_detach(fd);
	if (fd >= 0)
		close(fd);
	p->tc[s] = DP_TC_NONE;
}

/* Is @name the pin of an attachment?  Sets @ifindex, and @tc if the port still has it; else
 * removes the pin. */
bool dp_tc_adopt(struct saina_dp *dp, const char *name, int *ifindex, int tc[DP_TC_SIDES])
{
	tc[DP_TC_IN] = tc[DP_TC_OUT] = DP_TC_NONE;
	for (int s = 0; s < DP_TC_SIDES; s++) {
		struct bpf_link_info info = {};
		__u32 len = sizeof(info);
		char path[PATH_MAX], at[64];
		struct {
			__u32 ifindex;
			__u32 attach_type;
		} tcx;
		int fd;

		snprintf(at, sizeof(at), "%s-%%d", side[s].clsact_pin);
		if (sscanf(name, at, ifindex) == 1) {
			if (clsact_find(*ifindex, s))
				tc[s] = DP_TC_CLSACT;
			else
				unlink(pin_path(dp, path, s, *ifindex, true));
			return true;
		}
		snprintf(at, sizeof(at), "%s-%%d", side[s].pin);
		if (sscanf(name, at, ifindex) != 1)
			continue;
		fd = bpf_obj_get(pin_path(dp, path, s, *ifindex, false));
		if (fd < 0)
			return true;
		if (!bpf_obj_get_info_by_fd(fd, &info, &len) && info.type == TCX_LINK) {
			memcpy(&tcx, &info.raw_tracepoint, sizeof(tcx));
			if ((int)tcx.ifindex == *ifindex) {
				tc[s] = fd;
				return true;
			}
		}
		unlink(path);
		close(fd);
		return true;
	}
	return false;
}

/* Replaces an older program by that of dp->prog. */
int dp_tc_upgrade(struct saina_dp *dp, const struct dp_port *p, enum dp_tc_side s)
{
	struct bpf_tc_hook hook = tc_hook(p->ifindex, side[s].point);
	int fd = dp->prog[side[s].prog];

	if (p->tc[s] == DP_TC_NONE || fd < 0)
		return 0;
	if (p->tc[s] == DP_TC_CLSACT) {
		struct bpf_tc_opts opts = tc_opts(clsact_find(p->ifindex, s));
		int err;

		opts.prog_fd = fd;
		opts.flags = BPF_TC_F_REPLACE;
		err = opts.handle ? bpf_tc_attach(&hook, &opts) : -ENOENT;
		return err || !dp->pinned ? err : clsact_pin(dp, p->ifindex, s);
	}
	return bpf_link_update(p->tc[s], fd, NULL) ? -errno : 0;
}

/* Another filter was added before ours.  For a moment the port has none of ours. */
static int clsact_move_first(struct saina_dp *dp, int ifindex, enum dp_tc_side s, __u32 handle)
{
	struct bpf_tc_hook hook = tc_hook(ifindex, side[s].point);
	struct bpf_tc_opts opts = tc_opts(handle);

	bpf_tc_detach(&hook, &opts);
	return filter_attach(dp, ifindex, s, handle);
}

/* Restores a filter that others removed, or moves it before theirs.  Errors are logged. */
int dp_tc_repair(struct saina_dp *dp, const struct dp_port *p)
{
	char name[IF_NAMESIZE];
	__u32 handle;
	int err;

	for (int s = 0; s < DP_TC_SIDES; s++) {
		if (p->tc[s] != DP_TC_CLSACT || !if_indextoname(p->ifindex, name))
			continue;
		handle = clsact_find(p->ifindex, s);
		if (handle && tc_bpf_find(p->ifindex, s == DP_TC_OUT, PRIORITY, 0) == handle)
			continue;
		err = handle ? clsact_move_first(dp, p->ifindex, s, handle)
			     : clsact_attach(dp, p->ifindex, s);
		if (err) {
			dp_log(dp, 0, "%s", dp->error);
			return err;
		}
		dp_log(dp, 1, "port %s: the tc filter was %s by others and is %s again", name,
		       handle ? "preceded" : "removed", handle ? "first" : "attached");
	}
	return 0;
}

/* Attaches the tc egress program if the port has losses on the way out, else detaches it. */
int dp_tc_out_update(struct saina_dp *dp, struct dp_port *p)
{
	struct saina_port_conf c;
	__u32 key = p->ifindex;

	if (p->tc[DP_TC_IN] != DP_TC_NONE && !bpf_map_lookup_elem(dp->map[DP_PORTS], &key, &c) &&
	    c.loss_out)
		return dp_tc_attach(dp, p, DP_TC_OUT);
	dp_tc_detach(dp, p, DP_TC_OUT, true);
	return 0;
}
