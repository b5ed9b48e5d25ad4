// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina job - jobs: add, set, del, show.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bottleneck.h"

#define HAS(A) SAINA_HAS(job, SAINA_A_JOB_##A)


static void print_sfcd(const struct saina_job_attrs *job)
{
	out_open("sfcd");
	out_text("    sfcd");
	out_uint("converged", " converged %" PRIu64, job->sfcd_converged);
	if (job->sfcd_observed)
		out_float("flip_share", " flips %.4f",
			  (double)job->sfcd_flips / (double)job->sfcd_observed);
	else
		out_null("flip_share", " flips -");
	out_uint("flips", " (%" PRIu64, job->sfcd_flips);
	out_uint("observed", " of %" PRIu64 " signs)\n", job->sfcd_observed);
	out_close();
}

static void print_policy(const struct saina_job_attrs *job)
{
	bool waits = HAS(POLICY_SEQ_ACTIVE) && job->policy_seq_active != job->policy_seq;

	out_str("policy", "    policy %s", policy_name(&job->policy));
	out_uint("policy_seq", " seq %" PRIu64, job->policy_seq);
	out_flag("policy_pending", ", asked for", waits);
	if (HAS(POLICY_ACTIVE))
		out_str("policy_active", waits ? "; in force %s" : NULL,
			policy_name(&job->policy_active));
	else
		out_null("policy_active", waits ? "; none in force yet" : NULL);
	if (HAS(POLICY_SEQ_ACTIVE))
		out_uint("policy_active_seq", waits && job->policy_seq_active ? " seq %" PRIu64 : NULL,
			 job->policy_seq_active);
	out_text("\n");
	policy_next_print(job, "    scheduled %s", "\n");
	if (HAS(K_SET))
		out_uint("k_set", "    k set to %" PRIu64, job->k_set);
	else
		out_null("k_set", job->controller ? "    k not set yet" : NULL);
	out_flag("controller", " by a controller", job->controller);
	out_text(HAS(K_SET) || job->controller ? "\n" : "");
}

/* A token is "(hidden)" unless @show_tokens. */
static void job_print(const struct saina_job_attrs *job, bool show_tokens)
{
	out_uint("id", "%" PRIu64 ": ", job->id);
	out_str("name", "%s: ", job->name);
	out_str("state", "%s", SAINA_ENUM_NAME(saina_job_state_names, job->state));
	out_uint("round", " round %" PRIu64, job->round);
	out_uint("k", " k %" PRIu64, job->k);
	out_uint("workers", " workers %" PRIu64, job->workers);
	out_ids("active", " active %s", job->active);
	out_uint("open_slots", " open-slots %" PRIu64 "\n", job->open_slots);
	print_policy(job);
	out_text("   ");
	if (job->elements)
		out_uint("elements", " elements %" PRIu64, job->elements);
	else
		out_null("elements", " elements");
	out_flag("elements_auto", job->elements ? " (auto)" : " auto", job->elements_auto);
	out_str("type", " type %s", SAINA_ENUM_NAME(saina_elem_type_names, job->elem_type));
	out_uint("payload", " payload %" PRIu64, job->payload);
	out_uint("segments", " segments %" PRIu64, job->segments);
	out_uint("pool", " pool %" PRIu64, job->pool);
	out_uint("ring", " ring %" PRIu64, job->ring);
	out_int("exponent", " exponent %" PRId64, job->exponent);
	out_bytes("memory", " memory %s\n", job->memory);
	out_text("   ");
	out_uint("heartbeat_ms", " heartbeat %" PRIu64 " ms", job->heartbeat_ms);
	out_uint("dead_ms", " dead %" PRIu64 " ms", job->dead_ms);
	out_uint("generation", " generation %" PRIu64, job->generation);
	if (HAS(TOKEN))
		out_str("token", " token %s", show_tokens ? job->token : "(hidden)");
#define COUNTER(id, name, text) \
	out_uint(name, job->count[SAINA_JC_##id] ? " " name " %" PRIu64 : NULL, job->count[SAINA_JC_##id]);
	SAINA_JOB_COUNTER_LIST(COUNTER)
#undef COUNTER
	out_text("\n");
	/* the counters have no meaning under other policies */
	if ((HAS(POLICY_ACTIVE) ? job->policy_active : job->policy).mode == SAINA_POLICY_SFCD)
		print_sfcd(job);
	else
		out_null("sfcd", NULL);
	if (job->by_reference)
		out_str("reference", job->by_reference == SAINA_REFERENCE_ONLY ?
			"    shared memory only: %s\n" : "    shared memory: %s\n",
			HAS(REFERENCE) ? job->reference : "allowed");
	uplink_print(job);
	if (HAS(TEXT))
		out_str("text", "    %s\n", job->text);
	if (HAS(TROUBLE))
		out_str("trouble", "    %s\n", job->trouble);
}

/* Prints why the job is slow, if it is. */
static void print_bottleneck(struct saina_ctl *agent, const struct saina_job_attrs *job)
{
	char text[BOTTLENECK_TEXT_LEN];
	struct bottleneck b;

	if (job->state != SAINA_JOB_RUNNING || bottleneck_read(agent, job->id, &b) ||
	    !bottleneck_text(&b, job, text, sizeof(text)))
		return;
	out_str("slow", "    %s\n", text);
}

/* Text only: JSON has state, workers and active. */
static void print_absent(const struct saina_job_attrs *job)
{
	bool forming = job->state == SAINA_JOB_FORMING;
	__u64 absent;

	if (out_is_json() || !job->workers || job->workers > SAINA_WORKERS_MAX ||
	    (!forming && job->state != SAINA_JOB_RUNNING))
		return;
	absent = ~0ull >> (SAINA_WORKERS_MAX - job->workers) & ~job->active;
	if (!absent)
		return;
	out_text("    %d of %d workers ", __builtin_popcountll(job->active), job->workers);
	out_ids(NULL, forming ? "have joined; missing %s; the log of sainad says which workers were refused, and why\n" :
				"take part, not %s (saina worker show says since when)\n", absent);
}

static void print_jobs(const struct tool *t, struct saina_ctl *ctl, const struct rpc_list *list)
{
	const struct saina_job_attrs *job = list->v;

	for (size_t i = 0; i < list->n; i++) {
		out_open(NULL);
		job_print(&job[i], t->show_tokens);
		print_absent(&job[i]);
		if (!is_kernel(ctl))
			print_bottleneck(ctl, &job[i]);
		out_close();
	}
}

static int job_show(const struct tool *t, struct args *a)
{
	struct saina_job_attrs req = { 0 };
	struct tool with_tokens = *t;
	struct saina_ctl *ctl;
	struct rpc_list list;
	bool one = !!args_peek(a);
	int ret;

	if (one) {
		ret = parse_job(a, args_next(a), &req.has, SAINA_A_JOB_ID, SAINA_A_JOB_NAME,
				&req.id, req.name);
		if (!ret && args_peek(a) && args_matches(args_peek(a), "tokens")) {
			with_tokens.show_tokens = true;
			args_next(a);
		}
		if (!ret)
			ret = args_done(a);
		if (ret)
			return ret;
	}
	t = &with_tokens;
	ctl = connect_open(t);
	if (!ctl)
		return EXIT_FAILURE;
	out_begin(t->mode);
	ret = rpc_list(ctl, SAINA_CMD_JOB_GET, !one, one ? &saina_job_class : NULL,
					      &req, &saina_job_class, &list);
	if (!ret)
		print_jobs(t, ctl, &list);
	if (!ret && !one && !list.n)
		out_text("no jobs (make one: saina job add NAME elements N workers N)\n");
	rpc_list_free(&list);
	saina_ctl_close(ctl);
	return out_finish(ret);
}

#define UPLINK_KEYS \
	{ "uplink", KEY_ENDPOINT, SAINA_A_JOB_UPLINK, KEY(saina_job_attrs, uplink), .max = 0 }, \
	{ "parent-job", KEY_STRING, SAINA_A_JOB_UPLINK, KEY(saina_job_attrs, uplink.job), \
	  .min = 1, .max = SAINA_NAME_LEN - 1 }, \
	{ "parent-worker", KEY_NUMBER, SAINA_A_JOB_UPLINK, KEY(saina_job_attrs, uplink.worker), \
	  .max = SAINA_WORKERS_MAX - 1 }, \
	{ "parent-token-file", KEY_STRING, SAINA_A_JOB_UPLINK, \
	  KEY(saina_job_attrs, uplink.token_file), .min = 1, \
	  .max = sizeof(((struct saina_uplink_attrs *)0)->token_file) - 1 }

static const struct key add_keys[] = {
	{ "elements", KEY_COUNT, SAINA_A_JOB_ELEMENTS, KEY(saina_job_attrs, elements), .min = 1,
	  .max = UINT64_MAX, .required = true, .zero = "auto" },
	{ "workers", KEY_NUMBER, SAINA_A_JOB_WORKERS, KEY(saina_job_attrs, workers), .min = 1,
	  .max = SAINA_WORKERS_MAX, .required = true },
	{ "id", KEY_NUMBER, SAINA_A_JOB_ID, KEY(saina_job_attrs, id), .max = SAINA_JOBS_MAX - 1 },
	{ "payload", KEY_NUMBER, SAINA_A_JOB_PAYLOAD, KEY(saina_job_attrs, payload), .max = UINT16_MAX },
	{ "pool", KEY_NUMBER, SAINA_A_JOB_POOL, KEY(saina_job_attrs, pool), .max = UINT32_MAX },
	{ "ring", KEY_NUMBER, SAINA_A_JOB_RING, KEY(saina_job_attrs, ring), .max = UINT32_MAX },
	{ "type", KEY_WORD, SAINA_A_JOB_ELEM_TYPE, KEY(saina_job_attrs, elem_type),
	  .min = SAINA_ELEM_INT32, .words = &saina_elem_type_names[SAINA_ELEM_INT32] },
	{ "policy", KEY_POLICY, SAINA_A_JOB_POLICY, KEY(saina_job_attrs, policy), .max = 0 },
	{ "token", KEY_STRING, SAINA_A_JOB_TOKEN, KEY(saina_job_attrs, token),
	  .max = SAINA_TOKEN_LEN },
	{ "token-file", KEY_FILE, SAINA_A_JOB_TOKEN, KEY(saina_job_attrs, token), .min = 1,
	  .max = SAINA_TOKEN_LEN },
	{ "exponent", KEY_S32, SAINA_A_JOB_EXPONENT, KEY(saina_job_attrs, exponent),
	  .min = SAINA_EXPONENT_MIN + SAINA_EXPONENT_BIAS, .max = SAINA_EXPONENT_MAX + SAINA_EXPONENT_BIAS },
	{ "heartbeat", KEY_NUMBER, SAINA_A_JOB_HEARTBEAT_MS, KEY(saina_job_attrs, heartbeat_ms),
	  .max = UINT16_MAX },
	{ "dead", KEY_NUMBER, SAINA_A_JOB_DEAD_MS, KEY(saina_job_attrs, dead_ms), .max = UINT16_MAX },
	{ "by-reference", KEY_FLAG, SAINA_A_JOB_BY_REFERENCE, KEY(saina_job_attrs, by_reference),
	  .max = SAINA_REFERENCE_ALLOWED },
	{ "by-reference-only", KEY_FLAG, SAINA_A_JOB_BY_REFERENCE,
	  KEY(saina_job_attrs, by_reference), .max = SAINA_REFERENCE_ONLY },
	{ "weights", KEY_WEIGHTS, SAINA_A_JOB_WEIGHTS, KEY(saina_job_attrs, weights), .max = 0 },
	UPLINK_KEYS,
};

static int job_add(const struct tool *t, struct args *a)
{
	struct saina_job_attrs req = { 0 };
	const char *name = args_next(a), *token;
	struct saina_ctl *ctl;
	struct rpc_list list;
	int ret;

	if (!name)
		return args_error(a, "the name of the new job is missing");
	if (!*name || strlen(name) >= sizeof(req.name))
		return args_error(a, "\"%s\" is not a job name: must have 1 to %zu characters", name,
				  sizeof(req.name) - 1);
	strcpy(req.name, name);
	SAINA_SET(&req, SAINA_A_JOB_NAME);
	uplink_prepare(&req);
	ret = args_keys(a, add_keys, ARRAY_SIZE(add_keys), &req, (uint64_t *)&req.has);
	if (!ret)
		ret = uplink_complete(a, &req);
	if (ret)
		return ret;
	if (!req.elements) {
		req.has &= ~(1ull << SAINA_A_JOB_ELEMENTS);
		SAINA_PUT(&req, SAINA_A_JOB_ELEMENTS_AUTO, elements_auto, 1);
	}
	token = getenv("SAINA_TOKEN");
	if (!SAINA_HAS(&req, SAINA_A_JOB_TOKEN) && token && *token) {
		if (strlen(token) > SAINA_TOKEN_LEN)
			return args_error(a, "SAINA_TOKEN is longer than %d characters", SAINA_TOKEN_LEN);
		strcpy(req.token, token);
		SAINA_SET(&req, SAINA_A_JOB_TOKEN);
	}
	ctl = connect_open(t);
	if (!ctl)
		return EXIT_FAILURE;
	out_begin(t->mode);
	ret = rpc_list(ctl, SAINA_CMD_JOB_NEW, false, &saina_job_class, &req,
			   &saina_job_class, &list);
	if (!ret)
		print_jobs(t, ctl, &list);
	rpc_list_free(&list);
	saina_ctl_close(ctl);
	return out_finish(ret);
}

static const struct key set_keys[] = {
	{ "policy", KEY_POLICY, SAINA_A_JOB_POLICY, KEY(saina_job_attrs, policy), .max = 0 },
	{ "k", KEY_NUMBER, SAINA_A_JOB_K_SET, KEY(saina_job_attrs, k_set), .max = UINT8_MAX },
	{ "state", KEY_WORD, SAINA_A_JOB_STATE, KEY(saina_job_attrs, state),
	  .min = SAINA_JOB_FORMING, .words = &saina_job_state_names[SAINA_JOB_FORMING] },
	{ "token", KEY_STRING, SAINA_A_JOB_TOKEN, KEY(saina_job_attrs, token),
	  .max = SAINA_TOKEN_LEN },
	{ "token-file", KEY_FILE, SAINA_A_JOB_TOKEN, KEY(saina_job_attrs, token), .min = 1,
	  .max = SAINA_TOKEN_LEN },
	{ "heartbeat", KEY_NUMBER, SAINA_A_JOB_HEARTBEAT_MS, KEY(saina_job_attrs, heartbeat_ms),
	  .max = UINT16_MAX },
	{ "dead", KEY_NUMBER, SAINA_A_JOB_DEAD_MS, KEY(saina_job_attrs, dead_ms), .max = UINT16_MAX },
	UPLINK_KEYS,
};

static int change_job(const struct tool *t, struct args *a, int cmd, const struct key *keys,
		      size_t n)
{
	struct saina_job_attrs req = { 0 };
	int ret;

	ret = parse_job(a, args_next(a), &req.has, SAINA_A_JOB_ID, SAINA_A_JOB_NAME, &req.id,
			req.name);
	if (ret)
		return ret;
	uplink_prepare(&req);
	ret = n ? args_set_keys(a, keys, n, &req, (uint64_t *)&req.has) : args_done(a);
	if (!ret)
		ret = uplink_complete(a, &req);
	if (ret)
		return ret;
	return rpc_change(connect_open(t), cmd, &saina_job_class, &req);
}

static int job_set(const struct tool *t, struct args *a)
{
	return change_job(t, a, SAINA_CMD_JOB_SET, set_keys, ARRAY_SIZE(set_keys));
}

static int job_del(const struct tool *t, struct args *a)
{
	return change_job(t, a, SAINA_CMD_JOB_DEL, NULL, 0);
}

int tool_job(const struct tool *t, struct args *a)
{
	static const struct tool_cmd cmds[] = {
		{ "show", job_show, "[JOB [tokens]]" },
		{ "list", job_show, NULL },
		{ "add", job_add,
		  "NAME elements N|auto workers N [id N] [payload E] [pool N] [ring R]\n"
		  "      [type int32|int16|float32|bfloat16] [policy POLICY] [token T | token-file FILE]\n"
		  "      [exponent E]\n"
		  "      [heartbeat MS] [dead MS] [by-reference | by-reference-only]\n"
		  "      [weights N,N,..]\n"
		  "      [uplink ADDRESS[:PORT] parent-job JOB parent-worker N [parent-token-file FILE]]" },
		{ "set", job_set,
		  "JOB [policy POLICY] [k K] [state forming|running|stopped]\n"
		  "      [token T | token-file FILE]\n"
		  "      [heartbeat MS] [dead MS]\n"
		  "      [uplink ADDRESS[:PORT] parent-job JOB parent-worker N [parent-token-file FILE]]" },
		{ "del", job_del, "JOB" },
		{ "delete", job_del, NULL },
		{ "remove", job_del, NULL },
	};

	return tool_dispatch(t, a, "job", cmds, ARRAY_SIZE(cmds));
}
