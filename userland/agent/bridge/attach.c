// SPDX-License-Identifier: GPL-2.0-or-later
/* The XDP program on a port: native, or generic if the configuration says so. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <linux/if_link.h>

#include "agent/bridge/bridge.h"

static bool already(struct agent *a, int ifindex)
{
	int list[SAINA_PORTS_MAX], i, n;

	n = saina_dp_attached(a->dp, list, SAINA_PORTS_MAX);
	for (i = 0; i < n; i++)
		if (list[i] == ifindex)
			return true;
	return false;
}

/* How it is attached: as asked for, or as an earlier agent was asked to. */
static bool is_generic(struct agent *a, int ifindex, bool taken_over)
{
	const struct link *link = links_by_index(&a->bridge->links, ifindex);

	return taken_over && link ? link->xdp == XDP_ATTACHED_SKB : a->cfg.generic;
}

/* Found pinned with faults on purpose: they go on. */
static void resume_faults(struct agent *a, struct port *p)
{
	struct saina_port_conf conf;

	if (!saina_dp_port_get(a->dp, p->ifindex, &conf) &&
	    (conf.loss_in || conf.loss_out || conf.delay_in_us || conf.delay_out_us))
		ports_faults_set(a, p, &conf);
}

int attach_port(struct agent *a, struct port *p)
{
	bool taken_over = already(a, p->ifindex), generic;
	int ret;

	p->text[0] = 0;
	p->mode = SAINA_PORT_MODE_NONE;
	ret = taken_over ? 0 : saina_dp_attach(a->dp, p->ifindex, a->cfg.generic);
	if (ret) {
		snprintf(p->text, sizeof(p->text), "%.110s%s", saina_dp_error(a->dp),
			 ret == -EOPNOTSUPP && !a->cfg.generic
				 ? "; xdp = \"generic\" would do, slower"
				 : "");
		log_warn("port %s: not attached, nobody can join from it: %s", p->name, p->text);
		return ret;
	}
	generic = is_generic(a, p->ifindex, taken_over);
	p->mode = generic ? SAINA_PORT_MODE_GENERIC : SAINA_PORT_MODE_NATIVE;
	if (generic)
		snprintf(p->text, sizeof(p->text),
			 "generic XDP, as configured: slower than native");
	log_info("port %s: %s (driver %s, MTU %u, %s XDP)", p->name,
		 taken_over ? "taken over" : "attached", p->driver, p->mtu,
		 generic ? "generic" : "native");
	if (taken_over)
		resume_faults(a, p);
	return 0;
}

void detach_port(struct agent *a, struct port *p)
{
	int ret = saina_dp_detach(a->dp, p->ifindex);

	if (ret && ret != -ENODEV && ret != -ENOENT)
		log_warn("port %s: cannot detach: %s", p->name, saina_dp_error(a->dp));
}
