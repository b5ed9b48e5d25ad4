// SPDX-License-Identifier: GPL-2.0
/*
 * Attributes that a command does not take are left out of its policy: strict
 * validation then refuses them.  Policies give types, widths and what makes a
 * string; ranges of numbers are the job core's, whose sentences name the
 * numbers and are the same in the agent.
 */
#include <linux/ctype.h>

#include "netlink/netlink_gen.h"

static int string_check(const struct nlattr *attr, unsigned int most, const char *too_long,
			struct netlink_ext_ack *extack)
{
	const char *s = nla_data(attr);
	unsigned int i, len = nla_len(attr), chars = strnlen(s, len);

	if (chars + 1 != len) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "the string does not end with its only zero");
		return -EINVAL;
	}
	if (chars > most) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "");
		extack->_msg = too_long;
		return -ERANGE;
	}
	for (i = 0; i < chars; i++) {
		/* isprint() of the kernel knows Latin-1 */
		if (!isascii(s[i]) || !isprint(s[i])) {
			NL_SET_ERR_MSG_ATTR(extack, attr,
					    "the string has a character that cannot be printed");
			return -EINVAL;
		}
	}
	return 0;
}

static int name_check(const struct nlattr *attr, struct netlink_ext_ack *extack)
{
	BUILD_BUG_ON(SAINA_NAME_LEN != 32);
	return string_check(attr, 31, "the string is longer than the 31 characters allowed", extack);
}

static int token_check(const struct nlattr *attr, struct netlink_ext_ack *extack)
{
	BUILD_BUG_ON(SAINA_TOKEN_LEN != 32);
	return string_check(attr, 32, "the token is longer than the 32 characters allowed", extack);
}

static int policy_check(const struct nlattr *attr, struct netlink_ext_ack *extack)
{
	return string_check(attr, 95, "the policy is longer than the 95 characters allowed", extack);
}

#define NAME	NLA_POLICY_VALIDATE_FN(NLA_BINARY, name_check)
#define TOKEN	NLA_POLICY_VALIDATE_FN(NLA_BINARY, token_check)
#define POLICY	NLA_POLICY_VALIDATE_FN(NLA_BINARY, policy_check)

static const struct nla_policy job_which_nl_policy[SAINA_A_JOB_MAX + 1] = {
	[SAINA_A_JOB_ID] = { .type = NLA_U16 },
	[SAINA_A_JOB_NAME] = NAME,
};

static const struct nla_policy job_new_nl_policy[SAINA_A_JOB_MAX + 1] = {
	[SAINA_A_JOB_ID] = { .type = NLA_U16 },
	[SAINA_A_JOB_NAME] = NAME,
	[SAINA_A_JOB_ELEMENTS] = { .type = NLA_U64 },
	[SAINA_A_JOB_WORKERS] = { .type = NLA_U8 },
	[SAINA_A_JOB_PAYLOAD] = { .type = NLA_U16 },
	[SAINA_A_JOB_POOL] = { .type = NLA_U32 },
	[SAINA_A_JOB_RING] = { .type = NLA_U32 },
	[SAINA_A_JOB_ELEM_TYPE] = { .type = NLA_U8 },
	[SAINA_A_JOB_EXPONENT] = { .type = NLA_S8 },
	[SAINA_A_JOB_POLICY] = POLICY,
	[SAINA_A_JOB_TOKEN] = TOKEN,
	[SAINA_A_JOB_HEARTBEAT_MS] = { .type = NLA_U16 },
	[SAINA_A_JOB_DEAD_MS] = { .type = NLA_U16 },
};

/* What cannot change is refused by the job core, with a better sentence. */
static const struct nla_policy job_set_nl_policy[SAINA_A_JOB_MAX + 1] = {
	[SAINA_A_JOB_ID] = { .type = NLA_U16 },
	[SAINA_A_JOB_NAME] = NAME,
	[SAINA_A_JOB_STATE] = { .type = NLA_U8 },
	[SAINA_A_JOB_ELEMENTS] = { .type = NLA_U64 },
	[SAINA_A_JOB_WORKERS] = { .type = NLA_U8 },
	[SAINA_A_JOB_PAYLOAD] = { .type = NLA_U16 },
	[SAINA_A_JOB_POOL] = { .type = NLA_U32 },
	[SAINA_A_JOB_RING] = { .type = NLA_U32 },
	[SAINA_A_JOB_ELEM_TYPE] = { .type = NLA_U8 },
	[SAINA_A_JOB_EXPONENT] = { .type = NLA_S8 },
	[SAINA_A_JOB_POLICY] = POLICY,
	[SAINA_A_JOB_TOKEN] = TOKEN,
	[SAINA_A_JOB_HEARTBEAT_MS] = { .type = NLA_U16 },
	[SAINA_A_JOB_DEAD_MS] = { .type = NLA_U16 },
};

static const struct nla_policy worker_which_nl_policy[SAINA_A_WORKER_MAX + 1] = {
	[SAINA_A_WORKER_JOB_ID] = { .type = NLA_U16 },
	[SAINA_A_WORKER_JOB_NAME] = NAME,
	[SAINA_A_WORKER_ID] = { .type = NLA_U8 },
};

static const struct nla_policy worker_set_nl_policy[SAINA_A_WORKER_MAX + 1] = {
	[SAINA_A_WORKER_JOB_ID] = { .type = NLA_U16 },
	[SAINA_A_WORKER_JOB_NAME] = NAME,
	[SAINA_A_WORKER_ID] = { .type = NLA_U8 },
	[SAINA_A_WORKER_NAME] = NAME,
	[SAINA_A_WORKER_STATE] = { .type = NLA_U8 },
	[SAINA_A_WORKER_IFINDEX] = { .type = NLA_U32 },
	[SAINA_A_WORKER_IP] = { .type = NLA_BE32 },
	[SAINA_A_WORKER_MAC] = NLA_POLICY_ETH_ADDR,
	[SAINA_A_WORKER_UDP_PORT] = { .type = NLA_BE16 },
	[SAINA_A_WORKER_SESSION] = { .type = NLA_U64 },
	[SAINA_A_WORKER_RELAY] = { .type = NLA_U8 },
	[SAINA_A_WORKER_ROUND] = { .type = NLA_U32 },
	[SAINA_A_WORKER_LATE] = { .type = NLA_U64 },
};

static const struct nla_policy stats_which_nl_policy[SAINA_A_STATS_MAX + 1] = {
	[SAINA_A_STATS_JOB_ID] = { .type = NLA_U16 },
	[SAINA_A_STATS_JOB_NAME] = NAME,
};

static const struct nla_policy limits_set_nl_policy[SAINA_A_LIMITS_MAX + 1] = {
	[SAINA_A_LIMITS_JOBS] = { .type = NLA_U32 },
	[SAINA_A_LIMITS_MEMORY_JOB] = { .type = NLA_U64 },
	[SAINA_A_LIMITS_MEMORY] = { .type = NLA_U64 },
};

/* The top level of each command: one nest, or nothing. */
#define TOP(name, attr, nested)								\
	static const struct nla_policy name##_top_policy[SAINA_A_MAX + 1] = {		\
		[attr] = NLA_POLICY_NESTED(nested),					\
	}

TOP(job_which, SAINA_A_JOB, job_which_nl_policy);
TOP(job_new, SAINA_A_JOB, job_new_nl_policy);
TOP(job_set, SAINA_A_JOB, job_set_nl_policy);
TOP(worker_which, SAINA_A_WORKER, worker_which_nl_policy);
TOP(worker_set, SAINA_A_WORKER, worker_set_nl_policy);
TOP(stats_which, SAINA_A_STATS, stats_which_nl_policy);
TOP(limits_set, SAINA_A_LIMITS, limits_set_nl_policy);

static const struct nla_policy empty_top_policy[SAINA_A_MAX + 1] = { };

/* Taken as they are and refused by saina_nl_agent_*(). */
static const struct nla_policy agent_top_policy[SAINA_A_MAX + 1] = {
	[SAINA_A_PORT] = { .type = NLA_NESTED },
	[SAINA_A_SLOT] = { .type = NLA_NESTED },
	[SAINA_A_GROUPS] = { .type = NLA_U32 },
};

#define OP(id, pol, flag) .cmd = SAINA_CMD_##id, .policy = pol##_top_policy, \
	.maxattr = SAINA_A_MAX, .flags = flag

#define ANYBODY	0
#define ADMIN	GENL_UNS_ADMIN_PERM

const struct genl_ops saina_nl_ops[] = {
	{ OP(JOB_NEW, job_new, ADMIN), .doit = saina_nl_job_new_doit },
	{ OP(JOB_SET, job_set, ADMIN), .doit = saina_nl_job_set_doit },
	{ OP(JOB_DEL, job_which, ADMIN), .doit = saina_nl_job_del_doit },
	{ OP(JOB_GET, job_which, ANYBODY), .doit = saina_nl_job_get_doit,
	  .start = saina_nl_job_get_start, .dumpit = saina_nl_job_get_dumpit },
	{ OP(WORKER_SET, worker_set, ADMIN), .doit = saina_nl_worker_set_doit },
	{ OP(WORKER_DEL, worker_which, ADMIN), .doit = saina_nl_worker_del_doit },
	{ OP(WORKER_GET, worker_which, ANYBODY), .doit = saina_nl_worker_get_doit,
	  .start = saina_nl_worker_get_start, .dumpit = saina_nl_worker_get_dumpit },
	{ OP(PORT_GET, agent, ANYBODY),
	  .start = saina_nl_agent_start, .dumpit = saina_nl_agent_dumpit },
	{ OP(PORT_SET, agent, ADMIN), .doit = saina_nl_agent_doit },
	{ OP(SLOT_GET, agent, ANYBODY),
	  .start = saina_nl_agent_start, .dumpit = saina_nl_agent_dumpit },
	{ OP(STATS_GET, stats_which, ANYBODY),
	  .start = saina_nl_stats_get_start, .dumpit = saina_nl_stats_get_dumpit },
	{ OP(LIMITS_GET, empty, ANYBODY), .doit = saina_nl_limits_get_doit },
	{ OP(LIMITS_SET, limits_set, ADMIN), .doit = saina_nl_limits_set_doit },
	{ OP(SUBSCRIBE, agent, ANYBODY), .doit = saina_nl_agent_doit },
};
const unsigned int saina_nl_n_ops = ARRAY_SIZE(saina_nl_ops);

const struct genl_multicast_group saina_nl_groups[] = {
	[SAINA_NLGRP_CONFIG] = { .name = SAINA_MCGRP_CONFIG },
	[SAINA_NLGRP_EVENTS] = { .name = SAINA_MCGRP_EVENTS },
};
const unsigned int saina_nl_n_groups = ARRAY_SIZE(saina_nl_groups);
