// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina slot - open slots: their age, and which workers are missing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

struct slot_view {
	struct rpc_list workers;	/* struct saina_worker_attrs: for their names */
	__u64 older_us;
	int seen, shown;
};

static const struct saina_worker_attrs *find_worker(const struct slot_view *v, __u16 job, int id)
{
	const struct saina_worker_attrs *w = v->workers.v;

	for (size_t i = 0; i < v->workers.n; i++) {
		if (w[i].job_id == job && w[i].id == id)
			return &w[i];
	}
	return NULL;
}

static void print_missing(const struct slot_view *v, const struct saina_slot_attrs *s)
{
	out_text("    missing");
	out_array("missing");
	for (int i = 0; i < SAINA_WORKERS_MAX; i++) {
		const struct saina_worker_attrs *w;

		if (!(s->missing & (1ull << i)))
			continue;
		w = find_worker(v, s->job_id, i);
		out_open(NULL);
		out_uint("worker", " %" PRIu64, i);
		if (w && w->name[0])
			out_str("name", " (%s)", w->name);
		else
			out_null("name", NULL);
		out_close();
	}
	out_array_end();
	out_text(s->missing ? "\n" : " none: the slot completes with the next packet\n");
}

static void print_slot(void *arg, const void *obj)
{
	const struct saina_slot_attrs *s = obj;
	struct slot_view *v = arg;

	v->seen++;
	if (s->age_us < v->older_us)
		return;
	v->shown++;
	out_open(NULL);
	out_uint("job_id", NULL, s->job_id);
	out_str("job", "%s ", s->job_name);
	out_uint("slot", "slot %" PRIu64 ":", s->index);
	out_uint("round", " round %" PRIu64, s->round);
	out_uint("segment", " segment %" PRIu64, s->segment);
	out_uint("count", " has %" PRIu64, s->count);
	out_uint("k", " of k %" PRIu64, s->k);
	out_usec("age_us", " age %s", s->age_us);
	out_ids("seen", " seen %s", s->seen);
	out_uint("policy_seq", NULL, s->policy);
	out_text("\n");
	print_missing(v, s);
	out_close();
}

static int show_job(struct saina_ctl *ctl, const struct saina_slot_attrs *req, struct slot_view *v)
{
	struct saina_worker_attrs wreq = { .job_id = req->job_id };
	int ret;

	if (SAINA_HAS(req, SAINA_A_SLOT_JOB_ID))
		SAINA_SET(&wreq, SAINA_A_WORKER_JOB_ID);
	if (SAINA_HAS(req, SAINA_A_SLOT_JOB_NAME))
		SAINA_SET(&wreq, SAINA_A_WORKER_JOB_NAME);
	strcpy(wreq.job_name, req->job_name);
	ret = rpc_list(ctl, SAINA_CMD_WORKER_GET, true, &saina_worker_class, &wreq,
		       &saina_worker_class, &v->workers);
	if (!ret)
		ret = rpc_call(ctl, SAINA_CMD_SLOT_GET, true, &saina_slot_class, req,
			       &saina_slot_class, print_slot, v);
	rpc_list_free(&v->workers);
	return ret;
}

static int show_all_jobs(struct saina_ctl *ctl, struct slot_view *v)
{
	const struct saina_job_attrs *job;
	struct rpc_list jobs;
	int ret;

	ret = rpc_list(ctl, SAINA_CMD_JOB_GET, true, NULL, NULL, &saina_job_class, &jobs);
	job = jobs.v;
	for (size_t i = 0; !ret && i < jobs.n; i++) {
		struct saina_slot_attrs req = { .job_id = job[i].id };

		SAINA_SET(&req, SAINA_A_SLOT_JOB_ID);
		ret = show_job(ctl, &req, v);
	}
	rpc_list_free(&jobs);
	return ret;
}

static int slot_show(const struct tool *t, struct args *a)
{
	static const struct key keys[] = {
		{ "older-than", KEY_MS, 1, .offset = 0, .size = sizeof(__u32), .max = 4000000 },
	};
	struct saina_slot_attrs req = { 0 };
	const char *word = args_peek(a);
	struct saina_ctl *ctl;
	struct slot_view v = { 0 };
	uint64_t has = 0;
	__u32 older = 0;
	int ret;

	if (word && strcmp(word, "older-than")) {
		ret = parse_job(a, args_next(a), &req.has, SAINA_A_SLOT_JOB_ID,
				SAINA_A_SLOT_JOB_NAME, &req.job_id, req.job_name);
		if (ret)
			return ret;
	}
	ret = args_keys(a, keys, ARRAY_SIZE(keys), &older, &has);
	if (ret)
		return ret;
	v.older_us = older;

	ctl = connect_agent(t);
	if (!ctl)
		return EXIT_FAILURE;
	out_begin(t->mode);
	ret = req.has ? show_job(ctl, &req, &v) : show_all_jobs(ctl, &v);
	if (!ret && !v.shown)
		out_text(v.seen ? "no open slot is that old\n" : "no open slots\n");
	saina_ctl_close(ctl);
	return out_finish(ret);
}

int tool_slot(const struct tool *t, struct args *a)
{
	static const struct tool_cmd cmds[] = {
		{ "show", slot_show, "[JOB] [older-than MS]" },
		{ "list", slot_show, NULL },
	};

	return tool_dispatch(t, a, "slot", cmds, ARRAY_SIZE(cmds));
}
