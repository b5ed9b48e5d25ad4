// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina policy - policies of jobs: set now or on a schedule, cancel. controller.c has control.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

/* Events that a policy can wait for. */
static const struct {
	const char *name;
	__u32 type;
} triggers[] = {
	{ "k", SAINA_EV_K },
	{ "degraded", SAINA_EV_DEGRADED },
	{ "worker-joined", SAINA_EV_WORKER_JOINED },
	{ "worker-dead", SAINA_EV_WORKER_DEAD },
};

/* Formats the bits 1 << enum saina_event_type, as "k,degraded". */
static void policy_on_text(__u32 on, char *text, size_t size)
{
	size_t n = 0;

	*text = 0;
	for (size_t i = 0; i < ARRAY_SIZE(triggers) && n < size; i++)
		if (on >> triggers[i].type & 1)
			n += snprintf(text + n, size - n, "%s%s", n ? "," : "",
				      triggers[i].name);
}

void policy_next_print(const struct saina_job_attrs *job, const char *format, const char *end)
{
	char on[64];

	if (!SAINA_HAS(job, SAINA_A_JOB_POLICY_NEXT)) {
		out_null("policy_next", NULL);
		return;
	}
	out_open("policy_next");
	out_str("policy", format, policy_name(&job->policy_next));
	out_uint("seq", " seq %" PRIu64, job->policy_next_seq);
	out_uint("from", " from round %" PRIu64, job->policy_from);
	policy_on_text(job->policy_on, on, sizeof(on));
	out_str("on", job->policy_on ? " on %s" : NULL, on);
	out_text("%s", end);
	out_close();
}

/* Parses a list of events, such as "k,worker-dead". */
static int parse_on(const struct args *a, const char *word, __u32 *on)
{
	for (size_t len; *word; word += len + (word[len] == ',')) {
		size_t i;

		len = strcspn(word, ",");
		for (i = 0; i < ARRAY_SIZE(triggers); i++)
			if (strlen(triggers[i].name) == len &&
			    !memcmp(triggers[i].name, word, len))
				break;
		if (i == ARRAY_SIZE(triggers))
			return args_error(a, "unknown event \"%.*s\"; allowed: k, degraded, worker-joined, worker-dead",
					  (int)len, word);
		*on |= 1u << triggers[i].type;
	}
	return *on ? 0 : args_error(a, "\"on\" needs an event; allowed: k, degraded, worker-joined, worker-dead");
}

static int parse_job_arg(struct args *a, struct saina_job_attrs *req)
{
	return parse_job(a, args_next(a), &req->has, SAINA_A_JOB_ID, SAINA_A_JOB_NAME, &req->id,
			 req->name);
}

static int send_job_set(const struct tool *t, const struct saina_job_attrs *req)
{
	return rpc_change(connect_open(t), SAINA_CMD_JOB_SET, &saina_job_class, req);
}

static int policy_set(const struct tool *t, struct args *a)
{
	static const struct key policy = { "policy", KEY_POLICY, SAINA_A_JOB_POLICY,
					   KEY(saina_job_attrs, policy), .max = 0 };
	static const struct key from = { "from", KEY_NUMBER, SAINA_A_JOB_POLICY_FROM,
					 KEY(saina_job_attrs, policy_from), .max = SAINA_ROUND_MAX };
	struct saina_job_attrs req = { 0 };
	uint64_t *has = (uint64_t *)&req.has;
	const char *word;
	int ret;

	ret = parse_job_arg(a, &req);
	if (ret)
		return ret;
	word = args_next(a);
	if (!word)
		return args_error(a, "the policy is missing: give one, such as bsp, fastest:k=6, fastest:k=6,lead=none, timeout:10ms,kmin=4");
	ret = args_value(a, &policy, word, &req, has);
	while (!ret && (word = args_next(a))) {
		const char *value = args_next(a);

		if (!value) {
			ret = args_error(a, "\"%s\" needs a value", word);
		} else if (args_matches(word, "from")) {
			/* "from round 500" is accepted, too */
			if (!strcmp(value, "round") && args_peek(a))
				value = args_next(a);
			ret = args_value(a, &from, value, &req, has);
		} else if (args_matches(word, "on")) {
			ret = parse_on(a, value, &req.policy_on);
			SAINA_SET(&req, SAINA_A_JOB_POLICY_ON);
		} else {
			ret = args_error(a, "unknown key \"%s\"; allowed: from ROUND, on EVENT", word);
		}
	}
	return ret ? ret : send_job_set(t, &req);
}

static int policy_cancel(const struct tool *t, struct args *a)
{
	struct saina_job_attrs req = { 0 };
	int ret = parse_job_arg(a, &req);

	if (!ret)
		ret = args_done(a);
	if (ret)
		return ret;
	SAINA_PUT(&req, SAINA_A_JOB_POLICY_CANCEL, policy_cancel, 1);
	return send_job_set(t, &req);
}

int tool_policy(const struct tool *t, struct args *a)
{
	static const struct tool_cmd cmds[] = {
		{ "set", policy_set, "JOB POLICY [from [round] ROUND] [on EVENT[,EVENT]]" },
		{ "cancel", policy_cancel, "JOB" },
		{ "control", policy_control, "JOB [noise BATCHES] [groups MOST] [interval MS]" },
	};

	if (!args_peek(a))
		return args_error(a, "the command is missing; allowed: set, cancel, control, help (`saina job show' shows the policy in force and the scheduled one)");
	return tool_dispatch(t, a, "policy", cmds, ARRAY_SIZE(cmds));
}
