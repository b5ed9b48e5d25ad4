// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina monitor - changes and events as they happen, one per line.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "monitor_print.h"
#include "signals.h"

/* Prints those notifications of the agent that the kernel does not send. */
static int print_agent_event(const struct nlmsghdr *nlh, void *arg)
{
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(nlh);
	struct saina_event_attrs event;

	if (g->cmd == SAINA_CMD_EVENT && !saina_ctl_decode(nlh, &saina_event_class, &event) &&
	    SAINA_HAS(&event, SAINA_A_EVENT_TEXT))
		return monitor_print(nlh, arg);
	return g->cmd == SAINA_CMD_PORT_NTF ? monitor_print(nlh, arg) : 0;
}

struct monitor {
	unsigned int groups;
	struct saina_ctl *ctl, *agent;	/* @agent: only if @ctl is the kernel */
	time_t checked;
};

static void subscribe_agent(struct monitor *m)
{
	m->agent = is_kernel(m->ctl) ? connect_serving_agent() : NULL;
	if (m->agent && saina_ctl_subscribe(m->agent, m->groups)) {
		saina_ctl_close(m->agent);
		m->agent = NULL;
	}
}

/* Reads what is pending; 0, or the error that ended the connection. */
static int read_pending(struct saina_ctl *ctl, int (*fn)(const struct nlmsghdr *nlh, void *arg))
{
	int ret;

	while (!stop_requested()) {
		ret = saina_ctl_next(ctl, 0, fn, NULL);
		if (ret == -ETIMEDOUT || ret == -EINTR)
			return 0;
		if (ret == -ENOBUFS)
			fprintf(stderr, "saina: %s\n", saina_ctl_error(ctl));
		else if (ret)
			return ret;
	}
	return 0;
}

/*
 * Checks once a second whether the agent has started, and whether the module was unloaded, which
 * netlink sockets do not report. Returns 0, or -ENODEV if it was.
 */
static int check_peers(struct monitor *m)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!is_kernel(m->ctl) || now.tv_sec == m->checked)
		return 0;
	m->checked = now.tv_sec;
	if (rpc_call_quiet(m->ctl, SAINA_CMD_LIMITS_GET, false, NULL, NULL, NULL, NULL, NULL)) {
		fprintf(stderr, "saina: saina.ko was unloaded: there will be no more notifications\n");
		return -ENODEV;
	}
	if (m->agent)
		return 0;
	subscribe_agent(m);
	if (m->agent)
		fprintf(stderr, "saina: sainad has started: its ports are monitored, too\n");
	return 0;
}

static int wait_notifications(struct monitor *m)
{
	struct pollfd p[2] = {
		{ .fd = saina_ctl_fd(m->ctl), .events = POLLIN },
		{ .fd = m->agent ? saina_ctl_fd(m->agent) : -1, .events = POLLIN },
	};
	int ret;

	/* notifications that came during a call are queued, not in the socket */
	ret = read_pending(m->ctl, monitor_print);
	if (ret) {
		fprintf(stderr, "saina: %s\n", saina_ctl_error(m->ctl));
		return ret;
	}
	if (m->agent && read_pending(m->agent, print_agent_event)) {
		fprintf(stderr, "saina: sainad has ended: its ports are not monitored until it starts again\n");
		saina_ctl_close(m->agent);
		m->agent = NULL;
		p[1].fd = -1;
	}
	/* the wait is finite, because a signal may come just before it */
	if (!stop_requested())
		poll(p, 2, 500);
	return check_peers(m);
}

static int run_monitor(const struct tool *t, struct args *a, unsigned int groups)
{
	struct monitor m = { .groups = groups };
	int ret;

	ret = args_done(a);
	if (ret)
		return ret;
	m.ctl = connect_owner(t);
	if (!m.ctl)
		return EXIT_FAILURE;
	stop_on_signals(false);
	ret = saina_ctl_subscribe(m.ctl, groups);
	if (ret) {
		fprintf(stderr, "saina: %s\n", saina_ctl_error(m.ctl));
		saina_ctl_close(m.ctl);
		return EXIT_FAILURE;
	}
	subscribe_agent(&m);
	out_stream(t->mode);
	fprintf(stderr, "saina: monitoring (Ctrl-C ends it)\n");
	while (!ret && !stop_requested() && !ferror(stdout))
		ret = wait_notifications(&m);
	saina_ctl_close(m.agent);
	saina_ctl_close(m.ctl);
	return out_end() || !stop_requested() ? EXIT_FAILURE : 0;
}

static int monitor_all(const struct tool *t, struct args *a)
{
	return run_monitor(t, a, SAINA_GROUPS_CONFIG | SAINA_GROUPS_EVENTS);
}

static int monitor_config(const struct tool *t, struct args *a)
{
	return run_monitor(t, a, SAINA_GROUPS_CONFIG);
}

static int monitor_events(const struct tool *t, struct args *a)
{
	return run_monitor(t, a, SAINA_GROUPS_EVENTS);
}

int tool_monitor(const struct tool *t, struct args *a)
{
	static const struct tool_cmd cmds[] = {
		{ "all", monitor_all, "" },
		{ "config", monitor_config, "" },
		{ "events", monitor_events, "" },
		{ "arrivals", monitor_arrivals, "[JOB]" },
	};

	return tool_dispatch(t, a, "monitor", cmds, ARRAY_SIZE(cmds));
}
