// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina stats - counters of the data path.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

static const struct {
	const char *name, *text;
	bool drop;
} counters[SAINA_C_N] = {
#define ROW(id, name, drop, text) [SAINA_C_##id] = { name, text, drop },
	SAINA_COUNTER_LIST(ROW)
#undef ROW
};

#define WORKER_ANY	(-1)
#define WORKER_GLOBAL	(-2)	/* counters of no job */

struct stats_view {
	bool all, drops;
	int worker;	/* WORKER_*, or the number of the only worker to print */
	int shown;
};

static void print_counters(const struct stats_view *v, const struct saina_stats_attrs *s, const char *key, bool drop)
{
	out_open(key);
	for (int i = 0; i < SAINA_C_N; i++) {
		if (counters[i].drop != drop || (!s->counters[i] && !v->all))
			continue;
		out_text("    %s %-14s", drop ? "drop" : "    ", counters[i].name);
		out_uint(counters[i].name, "%12" PRIu64, s->counters[i]);
		out_text("  %s\n", counters[i].text);
	}
	out_close();
}

static void print_stats(void *arg, const void *obj)
{
	const struct saina_stats_attrs *s = obj;
	struct stats_view *v = arg;
	bool has_job = SAINA_HAS(s, SAINA_A_STATS_JOB_ID) ||
		       SAINA_HAS(s, SAINA_A_STATS_JOB_NAME);
	bool has_worker = SAINA_HAS(s, SAINA_A_STATS_WORKER);
	bool any = v->all;

	if (v->worker == WORKER_GLOBAL ? has_job
				       : v->worker != WORKER_ANY &&
						 (!has_worker || s->worker != v->worker))
		return;
	for (int i = 0; i < SAINA_C_N && !any; i++)
		any = s->counters[i] && (!v->drops || counters[i].drop);
	if (!any)
		return;
	v->shown++;
	out_open(NULL);
	if (has_job) {
		out_uint("job_id", NULL, s->job_id);
		out_str("job", "job %s", s->job_name);
	} else {
		out_null("job", "of no job");
	}
	if (has_worker)
		out_uint("worker", " worker %" PRIu64, s->worker);
	else
		out_null("worker", NULL);
	out_text(":\n");
	if (!v->drops)
		print_counters(v, s, "counters", false);
	print_counters(v, s, "drops", true);
	out_close();
}

static int stats_run(const struct tool *t, struct args *a, struct stats_view *v)
{
	struct saina_stats_attrs req = { 0 };
	struct saina_ctl *ctl;
	const char *word;
	int ret = 0;

	v->worker = WORKER_ANY;
	word = args_peek(a);
	/* a job called "global" or "all" can only be named by its number */
	if (word && !strcmp(word, "global")) {
		args_next(a);
		v->worker = WORKER_GLOBAL;
	} else if (word && strcmp(word, "all")) {
		ret = parse_job(a, args_next(a), &req.has, SAINA_A_STATS_JOB_ID,
				SAINA_A_STATS_JOB_NAME, &req.job_id, req.job_name);
		word = args_peek(a);
		if (!ret && word && strcmp(word, "all")) {
			ret = parse_worker_id(a, args_next(a), &req.worker);
			v->worker = req.worker;
		}
	}
	word = args_peek(a);
	if (!ret && word && !strcmp(word, "all")) {
		args_next(a);
		v->all = true;
	}
	if (!ret)
		ret = args_done(a);
	if (ret)
		return ret;
	ctl = connect_agent(t);
	if (!ctl)
		return EXIT_FAILURE;
	out_begin(t->mode);
	ret = rpc_call(ctl, SAINA_CMD_STATS_GET, true, req.has ? &saina_stats_class : NULL,
		       &req, &saina_stats_class, print_stats, v);
	if (!ret && !v->shown)
		out_text(v->drops ? "nothing was dropped\n" : "nothing was counted\n");
	saina_ctl_close(ctl);
	return out_finish(ret);
}

static int stats_show(const struct tool *t, struct args *a)
{
	struct stats_view v = { 0 };

	return stats_run(t, a, &v);
}

static int stats_drops(const struct tool *t, struct args *a)
{
	struct stats_view v = { .drops = true };

	return stats_run(t, a, &v);
}

int tool_stats(const struct tool *t, struct args *a)
{
	static const struct tool_cmd cmds[] = {
		{ "show", stats_show, "[global | JOB [WORKER]] [all]" },
		{ "list", stats_show, NULL },
		{ "drops", stats_drops, "[global | JOB [WORKER]] [all]" },
	};

	return tool_dispatch(t, a, "stats", cmds, ARRAY_SIZE(cmds));
}
