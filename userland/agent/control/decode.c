// SPDX-License-Identifier: GPL-2.0-or-later
#include <ctype.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <linux/genetlink.h>

#include "agent/control/decode.h"
#include "core/policy_text.h"

enum attr_type { ATTR_NONE, ATTR_U8, ATTR_U16, ATTR_U32, ATTR_U64, ATTR_STRING, ATTR_BINARY };

struct attr_rule {
	const char *name;
	enum attr_type type;
	int len; /* STRING: longest without its zero; BINARY: exactly */
};

/* clang-format off */
#define RULE(obj, attr, t, l) [SAINA_A_##obj##_##attr] = { #attr, ATTR_##t, l }

static const struct attr_rule job_rules[DECODE_ATTRS] = {
	RULE(JOB, ID, U16, 0),
	RULE(JOB, NAME, STRING, SAINA_NAME_LEN - 1),
	RULE(JOB, STATE, U8, 0),
	RULE(JOB, ELEMENTS, U64, 0),
	RULE(JOB, WORKERS, U8, 0),
	RULE(JOB, PAYLOAD, U16, 0),
	RULE(JOB, POOL, U32, 0),
	RULE(JOB, RING, U32, 0),
	RULE(JOB, ELEM_TYPE, U8, 0),
	RULE(JOB, EXPONENT, U8, 0),
	RULE(JOB, POLICY, STRING, 95),
	RULE(JOB, TOKEN, STRING, SAINA_TOKEN_LEN),
	RULE(JOB, HEARTBEAT_MS, U16, 0),
	RULE(JOB, DEAD_MS, U16, 0),
	/* replies; the agent's own state file has them too */
	RULE(JOB, GENERATION, U32, 0),
	RULE(JOB, ROUND, U32, 0),
	RULE(JOB, POLICY_SEQ, U32, 0),
};

static const struct attr_rule worker_rules[DECODE_ATTRS] = {
	RULE(WORKER, JOB_ID, U16, 0),
	RULE(WORKER, JOB_NAME, STRING, SAINA_NAME_LEN - 1),
	RULE(WORKER, ID, U8, 0),
	RULE(WORKER, NAME, STRING, SAINA_NAME_LEN - 1),
	RULE(WORKER, STATE, U8, 0),
	RULE(WORKER, IFINDEX, U32, 0),
	RULE(WORKER, IP, U32, 0),
	RULE(WORKER, MAC, BINARY, 6),
	RULE(WORKER, UDP_PORT, U16, 0),
	RULE(WORKER, SESSION, U64, 0),
	RULE(WORKER, RELAY, U8, 0),
	RULE(WORKER, ROUND, U32, 0),
	RULE(WORKER, LATE, U64, 0),
};

static const struct attr_rule port_rules[DECODE_ATTRS] = {
	RULE(PORT, IFINDEX, U32, 0),
	RULE(PORT, IFNAME, STRING, IFNAMSIZ - 1),
	RULE(PORT, LOSS_IN, U32, 0),
	RULE(PORT, LOSS_OUT, U32, 0),
	RULE(PORT, DELAY_IN, U32, 0),
	RULE(PORT, DELAY_OUT, U32, 0),
	RULE(PORT, SEED, U64, 0),
};

static const struct attr_rule slot_rules[DECODE_ATTRS] = {
	RULE(SLOT, JOB_ID, U16, 0),
	RULE(SLOT, JOB_NAME, STRING, SAINA_NAME_LEN - 1),
};

static const struct attr_rule stats_rules[DECODE_ATTRS] = {
	RULE(STATS, JOB_ID, U16, 0),
	RULE(STATS, JOB_NAME, STRING, SAINA_NAME_LEN - 1),
};

static const struct attr_rule limits_rules[DECODE_ATTRS] = {
	RULE(LIMITS, JOBS, U32, 0),
	RULE(LIMITS, MEMORY_JOB, U64, 0),
	RULE(LIMITS, MEMORY, U64, 0),
};

static const struct {
	const char *name;
	const struct attr_rule *rules;
} objects[] = {
	[SAINA_A_JOB] = { "JOB", job_rules },
	[SAINA_A_WORKER] = { "WORKER", worker_rules },
	[SAINA_A_PORT] = { "PORT", port_rules },
	[SAINA_A_SLOT] = { "SLOT", slot_rules },
	[SAINA_A_STATS] = { "STATS", stats_rules },
	[SAINA_A_LIMITS] = { "LIMITS", limits_rules },
	[SAINA_A_EVENT] = { "EVENT", NULL },
	[SAINA_A_GROUPS] = { "GROUPS", NULL },
};
/* clang-format on */

static const char *object_name(unsigned int type)
{
	return type && type <= SAINA_A_MAX ? objects[type].name : "unknown";
}

/* Is there a whole attribute at @a?  Nothing is read beyond @left bytes. */
static bool attr_whole(const struct nlattr *a, size_t left)
{
	return left >= sizeof(*a) && a->nla_len >= sizeof(*a) && a->nla_len <= left;
}

static size_t attr_step(const struct nlattr *a, size_t left)
{
	size_t step = NLA_ALIGN(a->nla_len);

	return step < left ? step : left;
}

static int attr_check(const struct nlattr *a, const struct attr_rule *r, const char *object,
		      struct saina_core_err *err)
{
	static const int width[] = {
		[ATTR_U8] = 1, [ATTR_U16] = 2, [ATTR_U32] = 4, [ATTR_U64] = 8
	};
	const char *s = mnl_attr_get_payload(a);
	int len = mnl_attr_get_payload_len(a), chars;

	if (a->nla_type & ~NLA_TYPE_MASK)
		return saina_refuse(err, -EINVAL, 0,
				    "%s.%s: is neither nested nor in network byte order", object,
				    r->name);
	switch (r->type) {
	case ATTR_STRING:
		chars = strnlen(s, len);
		if (chars == len)
			return saina_refuse(err, -EINVAL, 0,
					    "%s.%s: the string does not end with a zero", object,
					    r->name);
		if (chars + 1 != len)
			return saina_refuse(err, -EINVAL, 0,
					    "%s.%s: bytes follow the end of the string", object,
					    r->name);
		if (chars > r->len)
			return saina_refuse(err, -ERANGE, 0,
					    "%s.%s: is longer than the %d characters allowed",
					    object, r->name, r->len);
		for (; *s; s++)
			if (!isprint((unsigned char)*s))
				return saina_refuse(err, -EINVAL, 0,
						    "%s.%s: has a character that cannot be printed",
						    object, r->name);
		return 0;
	case ATTR_BINARY:
		if (len != r->len)
			return saina_refuse(err, -EINVAL, 0, "%s.%s: has %d bytes, must have %d",
					    object, r->name, len, r->len);
		return 0;
	default:
		if (len != width[r->type])
			return saina_refuse(err, -EINVAL, 0, "%s.%s: has %d bytes, must have %d",
					    object, r->name, len, width[r->type]);
		return 0;
	}
}

static int decode_nest(int top, __u64 allowed, struct decoded *d, struct saina_core_err *err)
{
	const char *object = objects[top].name;
	const struct attr_rule *rules = objects[top].rules;
	const struct nlattr *a = mnl_attr_get_payload(d->nest);
	size_t left = mnl_attr_get_payload_len(d->nest);
	unsigned int type;
	int ret;

	for (; left; left -= attr_step(a, left), a = mnl_attr_next(a)) {
		d->bad = d->nest;
		if (!attr_whole(a, left))
			return saina_refuse(err, -EINVAL, 0, "%s: an attribute is cut short",
					    object);
		d->bad = a;
		type = mnl_attr_get_type(a);
		if (type >= DECODE_ATTRS || rules[type].type == ATTR_NONE)
			return saina_refuse(err, -EINVAL, 0,
					    "%s: attribute %u is unknown or not for requests",
					    object, type);
		if (!(allowed & 1ull << type))
			return saina_refuse(err, -EINVAL, 0, "%s.%s: this request does not take it",
					    object, rules[type].name);
		if (d->tb[type])
			return saina_refuse(err, -EINVAL, 0, "%s.%s: is given twice", object,
					    rules[type].name);
		ret = attr_check(a, &rules[type], object, err);
		if (ret)
			return ret;
		d->tb[type] = a;
		d->has |= 1ull << type;
	}
	d->bad = NULL;
	return 0;
}

int decode_request(const struct nlmsghdr *nlh, int top, __u64 allowed, struct decoded *d,
		   struct saina_core_err *err)
{
	const struct nlattr *a = mnl_nlmsg_get_payload_offset(nlh, sizeof(struct genlmsghdr));
	size_t left = nlh->nlmsg_len - NLMSG_HDRLEN - NLMSG_ALIGN(sizeof(struct genlmsghdr));
	unsigned int type;

	memset(d, 0, sizeof(*d));
	for (; left; left -= attr_step(a, left), a = mnl_attr_next(a)) {
		if (!attr_whole(a, left))
			return saina_refuse(err, -EINVAL, 0, "the request is cut short");
		d->bad = a;
		type = mnl_attr_get_type(a);
		if (!top || type != (unsigned int)top)
			return saina_refuse(err, -EINVAL, 0,
					    "this request does not take attribute %u (%s)", type,
					    object_name(type));
		if (d->nest || d->groups)
			return saina_refuse(err, -EINVAL, 0, "%s is given twice",
					    object_name(type));
		if (type == SAINA_A_GROUPS) {
			if (mnl_attr_get_payload_len(a) != 4)
				return saina_refuse(err, -EINVAL, 0,
						    "GROUPS: has %u bytes, must have 4",
						    mnl_attr_get_payload_len(a));
			d->groups = a;
			continue;
		}
		if (!(a->nla_type & NLA_F_NESTED))
			return saina_refuse(err, -EINVAL, 0, "%s: is not marked as nested",
					    object_name(type));
		d->nest = a;
	}
	d->bad = NULL;
	return d->nest ? decode_nest(top, allowed, d, err) : 0;
}

const char *decode_string(const struct decoded *d, int attr)
{
	return d->tb[attr] ? mnl_attr_get_str(d->tb[attr]) : NULL;
}

static void get_string(const struct decoded *d, int attr, void *to)
{
	const char *s = decode_string(d, attr);

	if (s)
		memcpy(to, s, strlen(s)); /* @to is zeroed, and longer or a token */
}

static __u64 get_number(const struct decoded *d, int attr)
{
	if (!d->tb[attr])
		return 0;
	switch (mnl_attr_get_payload_len(d->tb[attr])) {
	case 1:
		return mnl_attr_get_u8(d->tb[attr]);
	case 2:
		return mnl_attr_get_u16(d->tb[attr]);
	case 4:
		return mnl_attr_get_u32(d->tb[attr]);
	default:
		return mnl_attr_get_u64(d->tb[attr]);
	}
}

int decode_job(struct decoded *d, struct saina_job_req *req, struct saina_core_err *err)
{
	memset(req, 0, sizeof(*req));
	req->has = d->has;
	req->id = get_number(d, SAINA_A_JOB_ID);
	req->state = get_number(d, SAINA_A_JOB_STATE);
	req->workers = get_number(d, SAINA_A_JOB_WORKERS);
	req->elem = get_number(d, SAINA_A_JOB_ELEM_TYPE);
	req->exponent = (__s8)get_number(d, SAINA_A_JOB_EXPONENT);
	req->payload = get_number(d, SAINA_A_JOB_PAYLOAD);
	req->heartbeat_ms = get_number(d, SAINA_A_JOB_HEARTBEAT_MS);
	req->dead_ms = get_number(d, SAINA_A_JOB_DEAD_MS);
	req->pool = get_number(d, SAINA_A_JOB_POOL);
	req->ring = get_number(d, SAINA_A_JOB_RING);
	req->elements = get_number(d, SAINA_A_JOB_ELEMENTS);
	get_string(d, SAINA_A_JOB_NAME, req->name);
	get_string(d, SAINA_A_JOB_TOKEN, req->token);
	if (!d->tb[SAINA_A_JOB_POLICY])
		return 0;
	return saina_policy_parse(decode_string(d, SAINA_A_JOB_POLICY), SAINA_WORKERS_MAX,
				  &req->policy, err);
}

void decode_worker(const struct decoded *d, struct saina_worker_req *req)
{
	memset(req, 0, sizeof(*req));
	req->has = d->has;
	req->job_id = get_number(d, SAINA_A_WORKER_JOB_ID);
	req->id = get_number(d, SAINA_A_WORKER_ID);
	req->state = get_number(d, SAINA_A_WORKER_STATE);
	req->relay = get_number(d, SAINA_A_WORKER_RELAY);
	req->session = get_number(d, SAINA_A_WORKER_SESSION);
	req->ifindex = get_number(d, SAINA_A_WORKER_IFINDEX);
	req->round = get_number(d, SAINA_A_WORKER_ROUND);
	req->late = get_number(d, SAINA_A_WORKER_LATE);
	req->ip = get_number(d, SAINA_A_WORKER_IP);
	req->udp_port = get_number(d, SAINA_A_WORKER_UDP_PORT);
	get_string(d, SAINA_A_WORKER_JOB_NAME, req->job_name);
	get_string(d, SAINA_A_WORKER_NAME, req->name);
	if (d->tb[SAINA_A_WORKER_MAC])
		memcpy(req->mac, mnl_attr_get_payload(d->tb[SAINA_A_WORKER_MAC]), sizeof(req->mac));
}
