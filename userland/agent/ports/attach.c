// SPDX-License-Identifier: GPL-2.0-or-later
/* The program on a port: chooses the hook, attaches, moves, detaches. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/ports/ports.h"

/* A port's mode is the hook of the data path. */
_Static_assert((int)SAINA_PORT_MODE_NONE == (int)SAINA_DP_NONE, "none");
_Static_assert((int)SAINA_PORT_MODE_NATIVE == (int)SAINA_DP_NATIVE, "native");
_Static_assert((int)SAINA_PORT_MODE_GENERIC == (int)SAINA_DP_GENERIC, "generic");
_Static_assert((int)SAINA_PORT_MODE_TC == (int)SAINA_DP_TC, "tc");

static const char *const mode_text[] = {
	[SAINA_PORT_MODE_NONE] = "no hook",
	[SAINA_PORT_MODE_NATIVE] = "native XDP",
	[SAINA_PORT_MODE_GENERIC] = "generic XDP",
	[SAINA_PORT_MODE_TC] = "tc",
};

/* Open vSwitch's userspace datapath reads frames from a packet socket, which sees them
 * after XDP but before tc. */
static bool is_userspace(struct agent *a)
{
	struct ovsdb_bridge info;

	return a->bridge->ovs && !ovsdb_bridge(&a->bridge->ovsdb, a->cfg.bridge, &info) &&
	       info.userspace;
}

bool ports_have_tc(struct agent *a)
{
	return !is_userspace(a);
}

/* Return: SAINA_PORT_MODE_* that the port should have; @why: reason, if that is unusual. */
static int choose_mode(struct agent *a, const struct port *p, const char **why)
{
	*why = "";
	switch (p->hook_requested) {
	case SAINA_PORT_HOOK_XDP:
		return SAINA_PORT_MODE_NATIVE;
	case SAINA_PORT_HOOK_GENERIC:
		*why = "generic XDP, as configured: slower than native";
		return SAINA_PORT_MODE_GENERIC;
	case SAINA_PORT_HOOK_TC:
		return SAINA_PORT_MODE_TC;
	}
	if (is_userspace(a))
		*why = "XDP: Open vSwitch's userspace datapath takes frames before tc";
	else if (strcmp(p->driver, "veth") && strcmp(p->driver, "tun"))
		*why = "XDP because frames of this driver do not come in GSO batches";
	else
		return SAINA_PORT_MODE_TC;
	return SAINA_PORT_MODE_NATIVE;
}

/* Goes on with the faults that an earlier agent injected. */
static void resume_faults(struct agent *a, struct port *p)
{
	struct saina_port_conf conf;

	if (!saina_dp_port_get(a->dp, p->ifindex, &conf))
		p->faults = conf.loss_in || conf.loss_out;
}

/* If the port cannot have the hook that suits it, may it have the other one?  Bridges, tunnels and
 * VLAN devices have no native XDP; tc works on them.
 */
static bool may_be_other(struct agent *a, const struct port *p)
{
	return p->hook_requested == SAINA_PORT_HOOK_AUTO && !is_userspace(a);
}

/* On failure p->text says why. */
static int attach_hook(struct agent *a, struct port *p, int mode)
{
	int ret;

	if (mode == SAINA_PORT_MODE_TC && is_userspace(a)) {
		snprintf(p->text, sizeof(p->text),
			 "Open vSwitch's userspace datapath takes frames before tc");
		return -EOPNOTSUPP;
	}
	ret = saina_dp_attach(a->dp, p->ifindex, (enum saina_dp_hook)mode, !is_userspace(a));
	if (ret)
		snprintf(p->text, sizeof(p->text), "%.110s%s", saina_dp_error(a->dp),
			 ret == -EOPNOTSUPP && mode == SAINA_PORT_MODE_NATIVE && !may_be_other(a, p)
				 ? "; hook \"generic\" would work, but is slower"
				 : "");
	return ret;
}

int port_hook_apply(struct agent *a, struct port *p)
{
	char tried[SAINA_TEXT_LEN] = "";
	int before = p->mode, mode, ret = 0;
	const char *why;

	mode = choose_mode(a, p, &why);
	if (mode != before)
		ret = attach_hook(a, p, mode);
	if (ret && may_be_other(a, p)) {
		mode = mode == SAINA_PORT_MODE_TC ? SAINA_PORT_MODE_NATIVE : SAINA_PORT_MODE_TC;
		snprintf(tried, sizeof(tried), "%s because of: %.110s", mode_text[mode], p->text);
		why = tried;
		ret = mode != before ? attach_hook(a, p, mode) : 0;
	}
	if (ret)
		return ret;
	snprintf(p->text, sizeof(p->text), "%s", why);
	if (mode == before)
		return 0;
	p->mode = mode;
	log_info("port %s: attached (driver %s, MTU %u, %s)", p->name, p->driver, p->mtu,
		 mode_text[mode]);
	a->bridge->ops->hook(a, p);
	return 0;
}

/* For a new port, or one that could not be attached before. */
void port_attach(struct agent *a, struct port *p)
{
	p->mode = (int)saina_dp_hook(a->dp, p->ifindex);
	if (p->mode != SAINA_PORT_MODE_NONE) {
		/* ports_hooks_apply() moves it when the requested hook has been restored */
		resume_faults(a, p);
		log_info("port %s: taken over (driver %s, MTU %u, %s)", p->name, p->driver, p->mtu,
			 mode_text[p->mode]);
		return;
	}
	if (port_hook_apply(a, p))
		log_warn("port %s: not attached, no worker can join through this port: %s", p->name, p->text);
}

void port_detach(struct agent *a, struct port *p)
{
	int ret = saina_dp_detach(a->dp, p->ifindex);

	if (ret && ret != -ENODEV && ret != -ENOENT)
		log_warn("port %s: cannot detach: %s", p->name, saina_dp_error(a->dp));
}
