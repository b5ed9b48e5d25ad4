// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina limits - limits on the number of jobs, and on the memory that they take.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tool.h"

static void print_limits(void *arg, const void *obj)
{
	const struct saina_limits_attrs *l = obj;

	out_open(NULL);
	out_uint("jobs_used", "jobs %" PRIu64, l->jobs_used);
	out_uint("jobs", " of %" PRIu64 "\n", l->jobs);
	out_bytes("memory_used", "memory %s", l->memory_used);
	out_bytes("memory", " of %s\n", l->memory);
	out_bytes("memory_job", "memory-job %s at most\n", l->memory_job);
	if (SAINA_HAS(l, SAINA_A_LIMITS_BACKEND))
		out_str("backend", "applied by the %s\n", backend_name(l->backend));
	out_close();
}

static int limits_show(const struct tool *t, struct args *a)
{
	struct saina_ctl *ctl;
	int ret = args_done(a);

	if (ret)
		return ret;
	/* asks the kernel, if it has the jobs: it also counts jobs without a data path */
	ctl = connect_owner(t);
	if (!ctl)
		return EXIT_FAILURE;
	out_begin(t->mode);
	ret = rpc_call(ctl, SAINA_CMD_LIMITS_GET, false, NULL, NULL, &saina_limits_class,
		       print_limits, NULL);
	saina_ctl_close(ctl);
	return out_finish(ret);
}

static int limits_set(const struct tool *t, struct args *a)
{
	static const struct key keys[] = {
		{ "jobs", KEY_NUMBER, SAINA_A_LIMITS_JOBS, KEY(saina_limits_attrs, jobs),
		  .max = UINT32_MAX },
		{ "memory-job", KEY_BYTES, SAINA_A_LIMITS_MEMORY_JOB,
		  KEY(saina_limits_attrs, memory_job), .max = UINT64_MAX },
		{ "memory", KEY_BYTES, SAINA_A_LIMITS_MEMORY, KEY(saina_limits_attrs, memory),
		  .max = UINT64_MAX },
	};
	struct saina_limits_attrs req = { 0 };
	int ret;

	ret = args_set_keys(a, keys, ARRAY_SIZE(keys), &req, (uint64_t *)&req.has);
	if (ret)
		return ret;
	return rpc_change(connect_open(t), SAINA_CMD_LIMITS_SET, &saina_limits_class, &req);
}

int tool_limits(const struct tool *t, struct args *a)
{
	static const struct tool_cmd cmds[] = {
		{ "show", limits_show, "" },
		{ "list", limits_show, NULL },
		{ "set", limits_set, "[jobs N] [memory-job BYTES] [memory BYTES]" },
	};

	return tool_dispatch(t, a, "limits", cmds, ARRAY_SIZE(cmds));
}
