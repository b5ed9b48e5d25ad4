// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina port - ports of the bridge: hook, driver and injected faults.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

static void print_faults(const struct saina_port_attrs *p)
{
	if (!p->loss_in && !p->loss_out && !out_is_json())
		return;
	out_text("    INJECTED");
	out_open("injected");
	out_float("loss_in", " loss-in %.4g", p->loss_in / 4294967296.0);
	out_float("loss_out", " loss-out %.4g", p->loss_out / 4294967296.0);
	out_uint("seed", " seed %" PRIu64 "\n", p->seed);
	out_close();
}

void port_print(const struct saina_port_attrs *p)
{
	out_uint("ifindex", "%" PRIu64 ": ", p->ifindex);
	out_str("port", "%s:", p->ifname);
	out_str("mode", " mode %s", SAINA_ENUM_NAME(saina_port_mode_names, p->mode));
	if (SAINA_HAS(p, SAINA_A_PORT_HOOK))
		out_str("hook", " hook %s", SAINA_ENUM_NAME(saina_port_hook_names, p->hook));
	out_str("driver", p->driver[0] ? " driver %s" : NULL, p->driver);
	out_uint("mtu", " mtu %" PRIu64, p->mtu);
	out_flag("jumbo", NULL, p->jumbo);
	out_uint("workers", " workers %" PRIu64, p->workers);
	out_uint("relayed", p->relayed ? " relayed %" PRIu64 : NULL, p->relayed);
	out_text("\n");
	if (SAINA_HAS(p, SAINA_A_PORT_TEXT) && p->text[0])
		out_str("text", "    %s\n", p->text);
	print_faults(p);
}

static int compare_ifindex(const void *a, const void *b)
{
	const struct saina_port_attrs *p = a, *q = b;

	return (p->ifindex > q->ifindex) - (p->ifindex < q->ifindex);
}

static int port_show(const struct tool *t, struct args *a)
{
	const char *ifname = args_next(a);
	const struct saina_port_attrs *p;
	struct saina_ctl *ctl;
	struct rpc_list list;
	int ret = args_done(a), n = 0;

	if (ret)
		return ret;
	ctl = connect_agent(t);
	if (!ctl)
		return EXIT_FAILURE;
	ret = rpc_list(ctl, SAINA_CMD_PORT_GET, true, NULL, NULL, &saina_port_class, &list);
	saina_ctl_close(ctl);
	p = list.v;
	if (!ret && list.n)
		qsort(list.v, list.n, sizeof(*p), compare_ifindex);
	out_begin(t->mode);
	for (size_t i = 0; !ret && i < list.n; i++) {
		if (ifname && strcmp(ifname, p[i].ifname))
			continue;
		n++;
		out_open(NULL);
		port_print(&p[i]);
		out_close();
	}
	rpc_list_free(&list);
	if (!ret && !n && ifname) {
		fprintf(stderr, "saina: \"%s\" is not a port of the bridge; `saina port show' lists the ports\n", ifname);
		ret = EXIT_FAILURE;
	} else if (!ret && !n) {
		out_text("no ports (the bridge has none, or sainad has not found it: saina doctor)\n");
	}
	return out_finish(ret);
}

static int port_set(const struct tool *t, struct args *a)
{
	static const struct key keys[] = {
		{ "hook", KEY_WORD, SAINA_A_PORT_HOOK, KEY(saina_port_attrs, hook),
		  .min = SAINA_PORT_HOOK_AUTO, .words = saina_port_hook_names },
		{ "loss-in", KEY_SHARE, SAINA_A_PORT_LOSS_IN, KEY(saina_port_attrs, loss_in),
		  .max = 1 },
		{ "loss-out", KEY_SHARE, SAINA_A_PORT_LOSS_OUT, KEY(saina_port_attrs, loss_out),
		  .max = 1 },
		{ "seed", KEY_NUMBER, SAINA_A_PORT_SEED, KEY(saina_port_attrs, seed),
		  .max = UINT64_MAX },
	};
	struct saina_port_attrs req = { 0 };
	const char *name = args_next(a);
	int ret;

	if (!name)
		return args_error(a, "the port is missing: give the name of its interface");
	if (!*name || strlen(name) >= sizeof(req.ifname))
		return args_error(a, "\"%s\" is not an interface name: must have 1 to %zu characters", name,
				  sizeof(req.ifname) - 1);
	strcpy(req.ifname, name);
	SAINA_SET(&req, SAINA_A_PORT_IFNAME);
	ret = args_set_keys(a, keys, ARRAY_SIZE(keys), &req, (uint64_t *)&req.has);
	if (ret)
		return ret;
	return rpc_change(connect_agent(t), SAINA_CMD_PORT_SET, &saina_port_class, &req);
}

int tool_port(const struct tool *t, struct args *a)
{
	static const struct tool_cmd cmds[] = {
		{ "show", port_show, "[INTERFACE]" },
		{ "list", port_show, NULL },
		{ "set", port_set,
		  "INTERFACE [hook auto|xdp|generic|tc] [loss-in P] [loss-out P] [seed N]" },
	};

	return tool_dispatch(t, a, "port", cmds, ARRAY_SIZE(cmds));
}
