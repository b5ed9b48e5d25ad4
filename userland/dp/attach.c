// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Attaching the programs to ports, and injected faults: changes of a port that jobs follow,
 * the port first.
 */
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include "dp/priv.h"

static void tc_detach(struct saina_dp *dp, struct dp_port *p)
{
	bool had = p->tc[DP_TC_IN] != DP_TC_NONE;

	dp_tc_detach(dp, p, DP_TC_IN, true);
	dp_tc_detach(dp, p, DP_TC_OUT, true);
	if (had)
		dp_jobs_ports_changed(dp, false);
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
	err = dp_jobs_ports_changed(dp, true);
	if (!err)
		err = dp_tc_out_update(dp, p);
	if (err)
		tc_detach(dp, p);
	return err;
}

/* No result goes to the port from now on. */
static void hooks_detach(struct saina_dp *dp, struct dp_port *p)
{
	dp_xdp_detach(dp, p, true);
	dp_tc_detach(dp, p, DP_TC_IN, true);
	dp_tc_detach(dp, p, DP_TC_OUT, true);
	dp_port_remove(dp, p);
	dp_jobs_ports_changed(dp, false);
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
		return dp_fail(dp, -ENOSPC, "the limit of %d ports is reached", DP_PORTS_MAX);
	if (fresh)
		p = dp_port_add(dp, ifindex);
	if (hook == SAINA_DP_TC)
		err = tc_attach(dp, p);
	else
		err = dp_xdp_attach(dp, p, hook == SAINA_DP_GENERIC);
	v.bpf_prog.fd = dp_port_egress(dp, ifindex);
	if (!err && fresh && bpf_map_update_elem(dp->map[DP_TX], &key, &v, BPF_ANY))
		err = dp_fail(dp, -errno, "port %s: frames cannot be redirected to it: %s",
			      dp_ifname(ifindex, name), strerror(errno));
	/* workers that were admitted by this port before it left the bridge */
	if (!err && fresh)
		err = dp_jobs_ports_changed(dp, true);
	if (err && fresh)
		hooks_detach(dp, p);
	if (err)
		return err;
	if (hook == SAINA_DP_TC) {
		dp_xdp_detach(dp, p, true);
	} else if (!tc_handoff || tc_attach(dp, p) || dp_xdp_handoff_enable(dp, key)) {
		dp_xdp_handoff_disable(dp, key);
		tc_detach(dp, p);
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
	hooks_detach(dp, p);
	bpf_map_delete_elem(dp->map[DP_TX], &key);
	bpf_map_delete_elem(dp->map[DP_PORTS], &key);
	return dp_global_write(dp);
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
		dp_xdp_handoff_disable(dp, dp->port[i].ifindex);
		tc_detach(dp, &dp->port[i]);
	}
	dp_jobs_repair(dp);
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
	dp_jobs_port_changed(dp, ifindex);
	if (p)
		err = dp_tc_out_update(dp, p);
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
