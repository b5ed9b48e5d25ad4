// SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause)
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/saina.yaml */
/* YNL-GEN kernel source */

#include <net/netlink.h>
#include <net/genetlink.h>

#include "netlink_gen.h"

#include <uapi/linux/saina.h>
#include <saina/proto.h>
#include <saina/proto.h>
#include <saina/proto.h>
#include <saina/bpf.h>
#include <saina/bpf.h>
#include <saina/bpf.h>
#include <saina/bpf.h>

/* Common nested types */
const struct nla_policy saina_policy_nl_policy[SAINA_A_POLICY_LEAD + 1] = {
	[SAINA_A_POLICY_MODE] = NLA_POLICY_RANGE(NLA_U8, 1, 9),
	[SAINA_A_POLICY_LATE] = NLA_POLICY_RANGE(NLA_U8, 1, 2),
	[SAINA_A_POLICY_K] = { .type = NLA_U8, },
	[SAINA_A_POLICY_K_MIN] = { .type = NLA_U8, },
	[SAINA_A_POLICY_K_MAX] = { .type = NLA_U8, },
	[SAINA_A_POLICY_FLAGS] = NLA_POLICY_MASK(NLA_U8, 0x3),
	[SAINA_A_POLICY_S_TH] = { .type = NLA_U16, },
	[SAINA_A_POLICY_C_TH] = { .type = NLA_U16, },
	[SAINA_A_POLICY_STRIDE] = { .type = NLA_U16, },
	[SAINA_A_POLICY_TIMEOUT_US] = { .type = NLA_U32, },
	[SAINA_A_POLICY_SPREAD] = { .type = NLA_U8, },
	[SAINA_A_POLICY_WINDOW] = { .type = NLA_U32, },
	[SAINA_A_POLICY_GROUPS] = { .type = NLA_U8, },
	[SAINA_A_POLICY_GROUP] = NLA_POLICY_EXACT_LEN(64),
	[SAINA_A_POLICY_LEAD] = { .type = NLA_U8, },
};

const struct nla_policy saina_uplink_nl_policy[SAINA_A_UPLINK_PAD + 1] = {
	[SAINA_A_UPLINK_ADDRESS] = { .type = NLA_U32, },
	[SAINA_A_UPLINK_PORT] = { .type = NLA_U16, },
	[SAINA_A_UPLINK_JOB] = { .type = NLA_NUL_STRING, .len = 31, },
	[SAINA_A_UPLINK_WORKER] = { .type = NLA_U8, },
	[SAINA_A_UPLINK_TOKEN_FILE] = { .type = NLA_NUL_STRING, .len = 107, },
	[SAINA_A_UPLINK_TEXT] = { .type = NLA_NUL_STRING, .len = 159, },
	[SAINA_A_UPLINK_WEIGHT] = { .type = NLA_U32, },
	[SAINA_A_UPLINK_RANK] = { .type = NLA_U32, },
	[SAINA_A_UPLINK_DEPTH] = { .type = NLA_U8, },
	[SAINA_A_UPLINK_AWAY_ROUND] = { .type = NLA_U32, },
	[SAINA_A_UPLINK_AWAY_MS] = { .type = NLA_U64, },
	[SAINA_A_UPLINK_BYTES_UP] = { .type = NLA_U64, },
	[SAINA_A_UPLINK_BYTES_DOWN] = { .type = NLA_U64, },
};

/* SAINA_CMD_JOB_NEW - do */
static const struct nla_policy saina_job_new_nl_policy[SAINA_A_JOB_UPLINK + 1] = {
	[SAINA_A_JOB_ID] = { .type = NLA_U16, },
	[SAINA_A_JOB_NAME] = { .type = NLA_NUL_STRING, .len = 31, },
	[SAINA_A_JOB_ELEMENTS] = { .type = NLA_U64, },
	[SAINA_A_JOB_WORKERS] = { .type = NLA_U8, },
	[SAINA_A_JOB_PAYLOAD] = { .type = NLA_U16, },
	[SAINA_A_JOB_POOL] = { .type = NLA_U32, },
	[SAINA_A_JOB_RING] = { .type = NLA_U32, },
	[SAINA_A_JOB_ELEM_TYPE] = NLA_POLICY_RANGE(NLA_U8, 1, 4),
	[SAINA_A_JOB_EXPONENT] = { .type = NLA_S32, },
	[SAINA_A_JOB_POLICY] = NLA_POLICY_NESTED(saina_policy_nl_policy),
	[SAINA_A_JOB_TOKEN] = { .type = NLA_NUL_STRING, .len = 32, },
	[SAINA_A_JOB_HEARTBEAT_MS] = { .type = NLA_U16, },
	[SAINA_A_JOB_DEAD_MS] = { .type = NLA_U16, },
	[SAINA_A_JOB_BY_REFERENCE] = NLA_POLICY_MAX(NLA_U8, 2),
	[SAINA_A_JOB_ELEMENTS_AUTO] = { .type = NLA_U8, },
	[SAINA_A_JOB_WEIGHTS] = NLA_POLICY_EXACT_LEN(128),
	[SAINA_A_JOB_UPLINK] = NLA_POLICY_NESTED(saina_uplink_nl_policy),
};

/* SAINA_CMD_JOB_SET - do */
static const struct nla_policy saina_job_set_nl_policy[SAINA_A_JOB_UPLINK + 1] = {
	[SAINA_A_JOB_ID] = { .type = NLA_U16, },
	[SAINA_A_JOB_NAME] = { .type = NLA_NUL_STRING, .len = 31, },
	[SAINA_A_JOB_STATE] = NLA_POLICY_RANGE(NLA_U8, 1, 3),
	[SAINA_A_JOB_ELEMENTS] = { .type = NLA_U64, },
	[SAINA_A_JOB_WORKERS] = { .type = NLA_U8, },
	[SAINA_A_JOB_PAYLOAD] = { .type = NLA_U16, },
	[SAINA_A_JOB_POOL] = { .type = NLA_U32, },
	[SAINA_A_JOB_RING] = { .type = NLA_U32, },
	[SAINA_A_JOB_ELEM_TYPE] = NLA_POLICY_RANGE(NLA_U8, 1, 4),
	[SAINA_A_JOB_EXPONENT] = { .type = NLA_S32, },
	[SAINA_A_JOB_POLICY] = NLA_POLICY_NESTED(saina_policy_nl_policy),
	[SAINA_A_JOB_TOKEN] = { .type = NLA_NUL_STRING, .len = 32, },
	[SAINA_A_JOB_HEARTBEAT_MS] = { .type = NLA_U16, },
	[SAINA_A_JOB_DEAD_MS] = { .type = NLA_U16, },
	[SAINA_A_JOB_POLICY_FROM] = { .type = NLA_U32, },
	[SAINA_A_JOB_POLICY_ON] = { .type = NLA_U32, },
	[SAINA_A_JOB_POLICY_CANCEL] = { .type = NLA_U8, },
	[SAINA_A_JOB_K_SET] = { .type = NLA_U8, },
	[SAINA_A_JOB_CONTROLLER] = { .type = NLA_U8, },
	[SAINA_A_JOB_UPLINK] = NLA_POLICY_NESTED(saina_uplink_nl_policy),
};

/* SAINA_CMD_JOB_DEL - do */
static const struct nla_policy saina_job_del_nl_policy[SAINA_A_JOB_NAME + 1] = {
	[SAINA_A_JOB_ID] = { .type = NLA_U16, },
	[SAINA_A_JOB_NAME] = { .type = NLA_NUL_STRING, .len = 31, },
};

/* SAINA_CMD_JOB_GET - do */
static const struct nla_policy saina_job_get_nl_policy[SAINA_A_JOB_NAME + 1] = {
	[SAINA_A_JOB_ID] = { .type = NLA_U16, },
	[SAINA_A_JOB_NAME] = { .type = NLA_NUL_STRING, .len = 31, },
};

/* SAINA_CMD_WORKER_SET - do */
static const struct nla_policy saina_worker_set_nl_policy[SAINA_A_WORKER_ELEMENTS + 1] = {
	[SAINA_A_WORKER_JOB_ID] = { .type = NLA_U16, },
	[SAINA_A_WORKER_JOB_NAME] = { .type = NLA_NUL_STRING, .len = 31, },
	[SAINA_A_WORKER_ID] = { .type = NLA_U8, },
	[SAINA_A_WORKER_NAME] = { .type = NLA_NUL_STRING, .len = 31, },
	[SAINA_A_WORKER_STATE] = NLA_POLICY_MAX(NLA_U8, 4),
	[SAINA_A_WORKER_IFINDEX] = { .type = NLA_U32, },
	[SAINA_A_WORKER_IP] = { .type = NLA_U32, },
	[SAINA_A_WORKER_MAC] = NLA_POLICY_EXACT_LEN(6),
	[SAINA_A_WORKER_UDP_PORT] = { .type = NLA_U16, },
	[SAINA_A_WORKER_SESSION] = { .type = NLA_U64, },
	[SAINA_A_WORKER_RELAY] = { .type = NLA_U8, },
	[SAINA_A_WORKER_ROUND] = { .type = NLA_U32, },
	[SAINA_A_WORKER_LATE] = { .type = NLA_U64, },
	[SAINA_A_WORKER_ELEMENTS] = { .type = NLA_U64, },
};

/* SAINA_CMD_WORKER_DEL - do */
static const struct nla_policy saina_worker_del_nl_policy[SAINA_A_WORKER_ID + 1] = {
	[SAINA_A_WORKER_JOB_ID] = { .type = NLA_U16, },
	[SAINA_A_WORKER_JOB_NAME] = { .type = NLA_NUL_STRING, .len = 31, },
	[SAINA_A_WORKER_ID] = { .type = NLA_U8, },
};

/* SAINA_CMD_WORKER_GET - do */
static const struct nla_policy saina_worker_get_do_nl_policy[SAINA_A_WORKER_ID + 1] = {
	[SAINA_A_WORKER_JOB_ID] = { .type = NLA_U16, },
	[SAINA_A_WORKER_JOB_NAME] = { .type = NLA_NUL_STRING, .len = 31, },
	[SAINA_A_WORKER_ID] = { .type = NLA_U8, },
};

/* SAINA_CMD_WORKER_GET - dump */
static const struct nla_policy saina_worker_get_dump_nl_policy[SAINA_A_WORKER_JOB_NAME + 1] = {
	[SAINA_A_WORKER_JOB_ID] = { .type = NLA_U16, },
	[SAINA_A_WORKER_JOB_NAME] = { .type = NLA_NUL_STRING, .len = 31, },
};

/* SAINA_CMD_LIMITS_SET - do */
static const struct nla_policy saina_limits_set_nl_policy[SAINA_A_LIMITS_MEMORY + 1] = {
	[SAINA_A_LIMITS_JOBS] = { .type = NLA_U32, },
	[SAINA_A_LIMITS_MEMORY_JOB] = { .type = NLA_U64, },
	[SAINA_A_LIMITS_MEMORY] = { .type = NLA_U64, },
};

/* SAINA_CMD_PORT_SET - do */
static const struct nla_policy saina_port_set_nl_policy[SAINA_A_PORT_HOOK + 1] = {
	[SAINA_A_PORT_IFINDEX] = { .type = NLA_U32, },
	[SAINA_A_PORT_IFNAME] = { .type = NLA_NUL_STRING, .len = 15, },
	[SAINA_A_PORT_LOSS_IN] = { .type = NLA_U32, },
	[SAINA_A_PORT_LOSS_OUT] = { .type = NLA_U32, },
	[SAINA_A_PORT_SEED] = { .type = NLA_U64, },
	[SAINA_A_PORT_HOOK] = NLA_POLICY_MAX(NLA_U8, 3),
};

/* SAINA_CMD_SLOT_GET - dump */
static const struct nla_policy saina_slot_get_nl_policy[SAINA_A_SLOT_JOB_NAME + 1] = {
	[SAINA_A_SLOT_JOB_ID] = { .type = NLA_U16, },
	[SAINA_A_SLOT_JOB_NAME] = { .type = NLA_NUL_STRING, .len = 31, },
};

/* SAINA_CMD_STATS_GET - dump */
static const struct nla_policy saina_stats_get_nl_policy[SAINA_A_STATS_JOB_NAME + 1] = {
	[SAINA_A_STATS_JOB_ID] = { .type = NLA_U16, },
	[SAINA_A_STATS_JOB_NAME] = { .type = NLA_NUL_STRING, .len = 31, },
};

/* SAINA_CMD_SUBSCRIBE - do */
static const struct nla_policy saina_subscribe_nl_policy[SAINA_A_SUBSCRIPTION_GROUPS + 1] = {
	[SAINA_A_SUBSCRIPTION_GROUPS] = NLA_POLICY_MASK(NLA_U32, 0x3),
};

/* Ops table for saina */
static const struct genl_split_ops saina_nl_ops[] = {
	{
		.cmd		= SAINA_CMD_JOB_NEW,
		.pre_doit	= saina_nl_admin_pre_doit,
		.doit		= saina_nl_job_new_doit,
		.post_doit	= saina_nl_post_doit,
		.policy		= saina_job_new_nl_policy,
		.maxattr	= SAINA_A_JOB_UPLINK,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= SAINA_CMD_JOB_SET,
		.pre_doit	= saina_nl_admin_pre_doit,
		.doit		= saina_nl_job_set_doit,
		.post_doit	= saina_nl_post_doit,
		.policy		= saina_job_set_nl_policy,
		.maxattr	= SAINA_A_JOB_UPLINK,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= SAINA_CMD_JOB_DEL,
		.pre_doit	= saina_nl_admin_pre_doit,
		.doit		= saina_nl_job_del_doit,
		.post_doit	= saina_nl_post_doit,
		.policy		= saina_job_del_nl_policy,
		.maxattr	= SAINA_A_JOB_NAME,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= SAINA_CMD_JOB_GET,
		.pre_doit	= saina_nl_pre_doit,
		.doit		= saina_nl_job_get_doit,
		.post_doit	= saina_nl_post_doit,
		.policy		= saina_job_get_nl_policy,
		.maxattr	= SAINA_A_JOB_NAME,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd	= SAINA_CMD_JOB_GET,
		.start	= saina_nl_job_get_start,
		.dumpit	= saina_nl_job_get_dumpit,
		.flags	= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= SAINA_CMD_WORKER_SET,
		.pre_doit	= saina_nl_admin_pre_doit,
		.doit		= saina_nl_worker_set_doit,
		.post_doit	= saina_nl_post_doit,
		.policy		= saina_worker_set_nl_policy,
		.maxattr	= SAINA_A_WORKER_ELEMENTS,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= SAINA_CMD_WORKER_DEL,
		.pre_doit	= saina_nl_admin_pre_doit,
		.doit		= saina_nl_worker_del_doit,
		.post_doit	= saina_nl_post_doit,
		.policy		= saina_worker_del_nl_policy,
		.maxattr	= SAINA_A_WORKER_ID,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= SAINA_CMD_WORKER_GET,
		.pre_doit	= saina_nl_pre_doit,
		.doit		= saina_nl_worker_get_doit,
		.post_doit	= saina_nl_post_doit,
		.policy		= saina_worker_get_do_nl_policy,
		.maxattr	= SAINA_A_WORKER_ID,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= SAINA_CMD_WORKER_GET,
		.start		= saina_nl_worker_get_start,
		.dumpit		= saina_nl_worker_get_dumpit,
		.policy		= saina_worker_get_dump_nl_policy,
		.maxattr	= SAINA_A_WORKER_JOB_NAME,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= SAINA_CMD_LIMITS_GET,
		.pre_doit	= saina_nl_pre_doit,
		.doit		= saina_nl_limits_get_doit,
		.post_doit	= saina_nl_post_doit,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= SAINA_CMD_LIMITS_SET,
		.pre_doit	= saina_nl_admin_pre_doit,
		.doit		= saina_nl_limits_set_doit,
		.post_doit	= saina_nl_post_doit,
		.policy		= saina_limits_set_nl_policy,
		.maxattr	= SAINA_A_LIMITS_MEMORY,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd	= SAINA_CMD_PORT_GET,
		.dumpit	= saina_nl_port_get_dumpit,
		.flags	= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= SAINA_CMD_PORT_SET,
		.pre_doit	= saina_nl_admin_pre_doit,
		.doit		= saina_nl_port_set_doit,
		.post_doit	= saina_nl_post_doit,
		.policy		= saina_port_set_nl_policy,
		.maxattr	= SAINA_A_PORT_HOOK,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= SAINA_CMD_SLOT_GET,
		.dumpit		= saina_nl_slot_get_dumpit,
		.policy		= saina_slot_get_nl_policy,
		.maxattr	= SAINA_A_SLOT_JOB_NAME,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= SAINA_CMD_STATS_GET,
		.dumpit		= saina_nl_stats_get_dumpit,
		.policy		= saina_stats_get_nl_policy,
		.maxattr	= SAINA_A_STATS_JOB_NAME,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= SAINA_CMD_SUBSCRIBE,
		.doit		= saina_nl_subscribe_doit,
		.policy		= saina_subscribe_nl_policy,
		.maxattr	= SAINA_A_SUBSCRIPTION_GROUPS,
		.flags		= GENL_CMD_CAP_DO,
	},
};

static const struct genl_multicast_group saina_nl_mcgrps[] = {
	[SAINA_NLGRP_CONFIG] = { "config", },
	[SAINA_NLGRP_EVENTS] = { "events", },
};

struct genl_family saina_nl_family __ro_after_init = {
	.name		= SAINA_FAMILY_NAME,
	.version	= SAINA_FAMILY_VERSION,
	.netnsok	= true,
	.parallel_ops	= true,
	.module		= THIS_MODULE,
	.split_ops	= saina_nl_ops,
	.n_split_ops	= ARRAY_SIZE(saina_nl_ops),
	.mcgrps		= saina_nl_mcgrps,
	.n_mcgrps	= ARRAY_SIZE(saina_nl_mcgrps),
};
