// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Acknowledgements: errno, sentence and attribute of a refusal.
 */
#include <errno.h>
#include <string.h>
#include <linux/netlink.h>

#include "ctl/priv.h"

static const struct saina_attr_class *request_class(const struct nlmsghdr *req)
{
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(req);
	const struct saina_op *op = saina_ctl_op(g->cmd);

	return op ? op->class : NULL;
}

/* Name of the attribute at byte @offs of the request, which may be in a nest. */
static const char *offending_attr(const struct nlmsghdr *req, __u32 offs)
{
	const struct saina_attr_class *c = request_class(req);
	const struct nlattr *a, *hit;
	const struct saina_attr *row;

	if (offs > req->nlmsg_len || req->nlmsg_len - offs < sizeof(*hit) || offs % NLMSG_ALIGNTO)
		return NULL;
	hit = (const void *)((const char *)req + offs);
	mnl_attr_for_each(a, req, sizeof(struct genlmsghdr)) {
		const char *end = (const char *)a + a->nla_len;

		row = c ? saina_ctl_attr(c, mnl_attr_get_type(a)) : NULL;
		if (row && row->nest && hit > a && (const char *)hit < end)
			c = row->nest;
	}
	row = c ? saina_ctl_attr(c, mnl_attr_get_type(hit)) : NULL;
	return row ? row->name : NULL;
}

/* Name of the missing attribute @type of the request, or (@has_nest) of the nest at byte
 * @nest of it. */
static const char *missing_attr(const struct nlmsghdr *req, __u32 type, bool has_nest, __u32 nest)
{
	const struct saina_attr_class *c = request_class(req);
	const struct saina_attr *row;

	if (c && has_nest) {
		if (nest > req->nlmsg_len || req->nlmsg_len - nest < sizeof(struct nlattr) ||
		    nest % NLMSG_ALIGNTO)
			return NULL;
		row = saina_ctl_attr(c, mnl_attr_get_type((const void *)((const char *)req + nest)));
		c = row ? row->nest : NULL;
	}
	row = c ? saina_ctl_attr(c, type) : NULL;
	return row ? row->name : NULL;
}

/* Does sainad, or the kernel's netlink, refuse something because it is of an earlier version? */
static bool is_version_mismatch(const char *text)
{
	const char *end = strstr(text, " is unknown");

	return (end && !end[strlen(" is unknown")]) || !strcmp(text, "Unknown attribute type");
}

static void get_text(const struct nlattr *a, char *text, size_t size)
{
	size_t len = mnl_attr_get_payload_len(a);

	if (len >= size)
		len = size - 1;
	memcpy(text, mnl_attr_get_payload(a), len);
	text[len] = 0;
	saina_ctl_sanitize(text);
}

/* Reads the sentence of an acknowledgement without an error: a warning. */
static void warning_parse(struct saina_ctl *ctl, const char *tlv, const char *end)
{
	const struct nlattr *a = (const void *)tlv;
	int left = (int)(end - tlv);

	for (; left > 0 && mnl_attr_ok(a, left);
	     left -= MNL_ALIGN(a->nla_len), a = mnl_attr_next(a))
		if (mnl_attr_get_type(a) == NLMSGERR_ATTR_MSG)
			get_text(a, ctl->warning, sizeof(ctl->warning));
}

/* Reads sentence and attribute of a refusal; @tlv: behind the fixed part. */
static void ext_ack_parse(struct saina_ctl *ctl, const struct nlmsghdr *req, const char *tlv,
			  const char *end, int err)
{
	const struct nlattr *a = (const void *)tlv;
	__u32 offs = 0, miss = 0, nest = 0;
	bool has_miss = false, has_nest = false;
	char text[256] = "";
	int left = (int)(end - tlv);

	for (; left > 0 && mnl_attr_ok(a, left);
	     left -= MNL_ALIGN(a->nla_len), a = mnl_attr_next(a)) {
		unsigned int len = mnl_attr_get_payload_len(a);

		switch (mnl_attr_get_type(a)) {
		case NLMSGERR_ATTR_MSG:
			get_text(a, text, sizeof(text));
			break;
		case NLMSGERR_ATTR_OFFS:
			if (len == 4)
				offs = mnl_attr_get_u32(a);
			break;
		case NLMSGERR_ATTR_MISS_TYPE:
			has_miss = len == 4;
			if (has_miss)
				miss = mnl_attr_get_u32(a);
			break;
		case NLMSGERR_ATTR_MISS_NEST:
			has_nest = len == 4;
			if (has_nest)
				nest = mnl_attr_get_u32(a);
			break;
		}
	}
	if (offs)
		ctl->attr = offending_attr(req, offs);
	else if (has_miss)
		ctl->attr = missing_attr(req, miss, has_nest, nest);
	if (!text[0] && has_miss && ctl->attr)
		saina_ctl_fail(ctl, err, "\"%s\" is missing", ctl->attr);
	else if (!text[0])
		saina_ctl_fail(ctl, err, err == -EPERM || err == -EACCES ? "%s (are you root?)" : "%s",
		     strerror(-err));
	else if (is_version_mismatch(text))
		saina_ctl_fail(ctl, err, "%s: %s is of an earlier version than this program", text,
			       ctl->kernel ? "saina.ko" : "sainad");
	else
		saina_ctl_fail(ctl, err, "%s", text);
}

int saina_ctl_ack_parse(struct saina_ctl *ctl, const struct nlmsghdr *nlh,
			const struct nlmsghdr *req)
{
	const char *body = (const char *)nlh + NLMSG_HDRLEN;
	const char *end = (const char *)nlh + nlh->nlmsg_len;
	size_t fixed = nlh->nlmsg_type == NLMSG_ERROR ? sizeof(struct nlmsgerr) : sizeof(int);
	int err;

	if ((size_t)(end - body) < fixed) {
		if (nlh->nlmsg_type == NLMSG_DONE)
			return 0;
		return saina_ctl_fail(ctl, -EBADMSG, "%s sent a malformed acknowledgement",
				      ctl->peer);
	}
	memcpy(&err, body, sizeof(err));
	if (err > 0 || err < -4095)
		return saina_ctl_fail(ctl, -EBADMSG, "%s sent an invalid error number (%d)",
				      ctl->peer, err);
	/* Without NLM_F_CAPPED the request is repeated before the TLVs. */
	if (nlh->nlmsg_type == NLMSG_ERROR && !(nlh->nlmsg_flags & NLM_F_CAPPED)) {
		const struct nlmsgerr *e = (const void *)body;

		if (e->msg.nlmsg_len >= sizeof(e->msg) &&
		    e->msg.nlmsg_len - sizeof(e->msg) <= (size_t)(end - body) - fixed)
			fixed += NLMSG_ALIGN(e->msg.nlmsg_len - sizeof(e->msg));
	}
	if (!(nlh->nlmsg_flags & NLM_F_ACK_TLVS) || (size_t)(end - body) < fixed)
		fixed = end - body;
	if (!err) {
		warning_parse(ctl, body + fixed, end);
		return 0;
	}
	ext_ack_parse(ctl, req, body + fixed, end, err);
	return err;
}
