// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina worker - workers of jobs: show, set, del.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/lateness.h"
#include "tool.h"

#define HAS(A) SAINA_HAS(w, SAINA_A_WORKER_##A)

/*
 * Prints how much later than the first gradient of the round this worker's came: mean and
 * histogram.
 */
static void print_arrivals(const struct saina_worker_attrs *w)
{
	if (!HAS(ARRIVALS)) {
		out_null("arrivals", NULL);
		return;
	}
	out_open("arrivals");
	out_uint("rounds", "    arrivals of %" PRIu64 " rounds:", w->arrivals);
	out_uint("sum_us", NULL, w->arrival_us);
	out_float("mean_ms", " mean %.3f ms late,", saina_lateness_ms(w->arrival_us, w->arrivals, 0, 0));
	out_float("last_ms", " last %.3f ms\n", (double)w->arrival_last_us / 1000);
	/* bucket 0: 0 us, bucket i: 2^(i-1)..2^i - 1 us */
	out_array("hist");
	for (int i = 0; HAS(ARRIVAL_HIST) && i < SAINA_ARRIVAL_BUCKETS; i++)
		out_uint(NULL, NULL, w->arrival_hist[i]);
	out_array_end();
	out_close();
}

static void worker_print(const struct saina_worker_attrs *w)
{
	char ip[INET_ADDRSTRLEN] = "", mac[18], session[17];

	out_str("job", "%s ", w->job_name);
	out_uint("job_id", NULL, w->job_id);
	out_uint("worker", "worker %" PRIu64, w->id);
	out_str("name", w->name[0] ? " %s" : NULL, w->name);
	out_str("state", ": %s", SAINA_ENUM_NAME(saina_worker_state_names, w->state));
	if (HAS(ROUND))
		out_uint("round", " round %" PRIu64, w->round);
	if (HAS(SEEN_MS))
		out_uint("seen_ms", " seen %" PRIu64 " ms ago", w->seen_ms);
	if (HAS(RELAY))
		out_str("results", " results %s", w->relay ? "relayed (slow)" : "fast");
	out_text("\n   ");
	if (HAS(IFNAME))
		out_str("port", " port %s", w->ifname);
	else if (HAS(IFINDEX))
		out_null("port", " port gone");
	if (HAS(IFINDEX))
		out_uint("ifindex", HAS(IFNAME) ? NULL : " ifindex %" PRIu64, w->ifindex);
	if (HAS(MAC)) {
		snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", w->mac[0], w->mac[1],
			 w->mac[2], w->mac[3], w->mac[4], w->mac[5]);
		out_str("mac", " mac %s", mac);
	}
	if (HAS(IP)) {
		inet_ntop(AF_INET, &w->ip, ip, sizeof(ip));
		out_str("ip", " ip %s", ip);
	}
	if (HAS(UDP_PORT))
		out_uint("udp_port", " udp-port %" PRIu64, ntohs(w->udp_port));
	/* a string, because most JSON readers keep only 53 bits of a number */
	if (HAS(SESSION)) {
		snprintf(session, sizeof(session), "%016llx", w->session);
		out_str("session", " session %s", session);
	}
	if (HAS(PART))
		out_uint("part", " part %" PRIu64, w->part);
	out_text("\n");
	if (HAS(SENT)) {
		out_uint("sent", "    sent %" PRIu64, w->sent);
		out_uint("resent", " again %" PRIu64, w->resent);
		out_float("resent_share", " (%.4f)", w->sent ? (double)w->resent / w->sent : 0);
		out_usec("rtt_us", " round trip %s", w->rtt_us);
		out_uint("window", " window %" PRIu64 "\n", w->window);
	}
	if (HAS(TROUBLE))
		out_str("trouble", "    %s\n", w->trouble);
	print_arrivals(w);
}

static void print_workers(const struct rpc_list *list)
{
	const struct saina_worker_attrs *w = list->v;

	for (size_t i = 0; i < list->n; i++) {
		out_open(NULL);
		worker_print(&w[i]);
		out_close();
	}
	if (!list->n)
		out_text("no workers\n");
}

static int parse_job_of(struct args *a, struct saina_worker_attrs *req)
{
	return parse_job(a, args_next(a), &req->has, SAINA_A_WORKER_JOB_ID,
			 SAINA_A_WORKER_JOB_NAME, &req->job_id, req->job_name);
}

static int worker_show(const struct tool *t, struct args *a)
{
	struct saina_worker_attrs req = { 0 };
	const struct saina_attr_class *c = &saina_worker_class;
	struct saina_ctl *ctl;
	struct rpc_list list;
	bool one = false;
	int ret = 0;

	if (args_peek(a)) {
		ret = parse_job_of(a, &req);
		if (!ret && args_peek(a)) {
			one = true;
			ret = parse_worker_id(a, args_next(a), &req.id);
			SAINA_SET(&req, SAINA_A_WORKER_ID);
		}
		if (!ret)
			ret = args_done(a);
	}
	if (ret)
		return ret;
	ctl = connect_open(t);
	if (!ctl)
		return EXIT_FAILURE;
	out_begin(t->mode);
	ret = rpc_list(ctl, SAINA_CMD_WORKER_GET, !one, req.has ? c : NULL, &req, c,
					      &list);
	if (!ret)
		print_workers(&list);
	rpc_list_free(&list);
	saina_ctl_close(ctl);
	return out_finish(ret);
}

static int change_worker(const struct tool *t, struct args *a, int cmd)
{
	static const struct key keys[] = {
		{ "state", KEY_WORD, SAINA_A_WORKER_STATE, KEY(saina_worker_attrs, state),
		  .min = SAINA_WORKER_STATE_ALIVE, .words = &saina_worker_state_names[SAINA_WORKER_STATE_ALIVE], .required = true },
	};
	struct saina_worker_attrs req = { 0 };
	int ret;

	ret = parse_job_of(a, &req);
	if (!ret)
		ret = parse_worker_id(a, args_next(a), &req.id);
	if (ret)
		return ret;
	SAINA_SET(&req, SAINA_A_WORKER_ID);
	if (cmd == SAINA_CMD_WORKER_SET)
		ret = args_keys(a, keys, ARRAY_SIZE(keys), &req, (uint64_t *)&req.has);
	else
		ret = args_done(a);
	if (ret)
		return ret;
	return rpc_change(connect_open(t), cmd, &saina_worker_class, &req);
}

static int worker_set(const struct tool *t, struct args *a)
{
	return change_worker(t, a, SAINA_CMD_WORKER_SET);
}

static int worker_del(const struct tool *t, struct args *a)
{
	return change_worker(t, a, SAINA_CMD_WORKER_DEL);
}

int tool_worker(const struct tool *t, struct args *a)
{
	static const struct tool_cmd cmds[] = {
		{ "show", worker_show, "[JOB [WORKER]]" },
		{ "list", worker_show, NULL },
		{ "set", worker_set, "JOB WORKER state alive|slow|dead|left" },
		{ "del", worker_del, "JOB WORKER" },
		{ "delete", worker_del, NULL },
		{ "remove", worker_del, NULL },
	};

	return tool_dispatch(t, a, "worker", cmds, ARRAY_SIZE(cmds));
}
