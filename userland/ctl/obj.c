// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <string.h>

#include "ctl/obj.h"

static const __u8 width[] = { 1, 2, 4, 8 };

const struct saina_op *saina_ctl_op(unsigned int cmd)
{
	return cmd <= SAINA_CMD_MAX && saina_ops[cmd].name ? &saina_ops[cmd] : NULL;
}

const struct saina_attr *saina_ctl_attr(const struct saina_attr_class *c, unsigned int number)
{
	for (unsigned int i = 0; i < c->n; i++) {
		if (c->attrs[i].number == number)
			return &c->attrs[i];
	}
	return NULL;
}

void saina_ctl_sanitize(char *text)
{
	for (; *text; text++) {
		if (*text < 0x20 || *text > 0x7e)
			*text = '?';
	}
}

/* Decodes the attributes from @a to @end. */
static int attrs_decode(const struct nlattr *a, const struct nlattr *end,
			const struct saina_attr_class *c, void *attrs)
{
	int ret;

	memset(attrs, 0, c->size);
	for (; mnl_attr_ok(a, (const char *)end - (const char *)a); a = mnl_attr_next(a)) {
		const struct saina_attr *row = saina_ctl_attr(c, mnl_attr_get_type(a));

		if (!row)
			continue;	/* of a newer control plane */
		ret = saina_ctl_decode_attr(row, a, attrs);
		if (ret)
			return ret;
	}
	return 0;
}

int saina_ctl_decode_attr(const struct saina_attr *row, const struct nlattr *a, void *attrs)
{
	const char *from = mnl_attr_get_payload(a);
	unsigned int len = mnl_attr_get_payload_len(a);
	char *to = (char *)attrs + row->offset;
	__u64 *has = attrs;
	int ret;

	switch (row->kind) {
	case SAINA_ATTR_NEST:
		ret = attrs_decode((const void *)from, (const void *)(from + len), row->nest, to);
		if (ret)
			return ret;
		break;
	case SAINA_ATTR_STRING:
		if (len >= row->size)
			len = row->size - 1;
		memcpy(to, from, len);
		to[len] = 0;
		saina_ctl_sanitize(to);
		break;
	case SAINA_ATTR_WORDS:
		if (len % 8)
			return -EBADMSG;
		memcpy(to, from, len < row->size ? len : row->size);
		break;
	default:
		if (len != (row->kind == SAINA_ATTR_BYTES ? row->size : width[row->kind]))
			return -EBADMSG;
		memcpy(to, from, len);
	}
	*has |= 1ull << row->number;
	return 0;
}

int saina_ctl_decode(const struct nlmsghdr *nlh, const struct saina_attr_class *c, void *attrs)
{
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(nlh);
	const struct saina_op *op = saina_ctl_op(g->cmd);

	if (!op || op->class != c)
		return -ENOENT;
	return attrs_decode(mnl_nlmsg_get_payload_offset(nlh, sizeof(*g)),
			    mnl_nlmsg_get_payload_tail(nlh), c, attrs);
}

void saina_ctl_encode(struct nlmsghdr *nlh, const struct saina_attr_class *c, const void *attrs)
{
	struct nlattr *nest;
	__u64 has;

	memcpy(&has, attrs, sizeof(has));
	for (unsigned int i = 0; i < c->n; i++) {
		const struct saina_attr *row = &c->attrs[i];
		const char *from = (const char *)attrs + row->offset;

		if (!(has & (1ull << row->number)))
			continue;
		switch (row->kind) {
		case SAINA_ATTR_NEST:
			nest = mnl_attr_nest_start(nlh, row->number);
			saina_ctl_encode(nlh, row->nest, from);
			mnl_attr_nest_end(nlh, nest);
			break;
		case SAINA_ATTR_STRING:
			mnl_attr_put_strz(nlh, row->number, from);
			break;
		case SAINA_ATTR_BYTES:
		case SAINA_ATTR_WORDS:
			mnl_attr_put(nlh, row->number, row->size, from);
			break;
		default:
			mnl_attr_put(nlh, row->number, width[row->kind], from);
		}
	}
}
