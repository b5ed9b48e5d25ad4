// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <string.h>
#include <linux/genetlink.h>

#include "agent/control/decode.h"
#include "core/os.h"

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

static int string_check(const char *s, size_t len, const struct saina_attr *row,
			struct saina_core_err *err)
{
	if (!memchr(s, 0, len < row->size ? len : row->size))
		return saina_refuse(err, -EINVAL, 0,
				    "%s: must end with a zero after at most %u characters",
				    row->name, row->size - 1);
	if (len > row->size)
		return saina_refuse(err, -ERANGE, 0, "%s: has %zu bytes, must have at most %u",
				    row->name, len, row->size);
	return 0;
}

static __u64 number_of(const struct nlattr *a)
{
	switch (mnl_attr_get_payload_len(a)) {
	case 1:
		return mnl_attr_get_u8(a);
	case 2:
		return mnl_attr_get_u16(a);
	case 4:
		return mnl_attr_get_u32(a);
	default:
		return mnl_attr_get_u64(a);
	}
}

static int number_check(const struct nlattr *a, const struct saina_attr *row,
			struct saina_core_err *err)
{
	size_t len = mnl_attr_get_payload_len(a);
	__u64 n;

	if (len != 1u << row->kind)
		return saina_refuse(err, -EINVAL, 0, "%s: has %zu bytes, must have %u", row->name,
				    len, 1u << row->kind);
	n = number_of(a);
	if (row->mask && n & ~(__u64)row->mask)
		return saina_refuse(err, -EINVAL, 0, "%s: unknown flags: 0x%x are known", row->name,
				    row->mask);
	if (row->max && (n < row->min || n > row->max))
		return saina_refuse(err, -ERANGE, 0, "%s: %llu: must be %u..%u", row->name,
				    (unsigned long long)n, row->min, row->max);
	return 0;
}

static int attrs_check(const struct nlattr *a, size_t left, const struct saina_attr_class *c,
		       __u64 takes, struct decoded *d, const struct nlattr **tb,
		       struct saina_core_err *err);

static int attr_check(const struct nlattr *a, const struct saina_attr *row, struct decoded *d,
		      struct saina_core_err *err)
{
	const struct nlattr *inner[DECODE_ATTRS] = { NULL };
	size_t len = mnl_attr_get_payload_len(a);
	const void *from = mnl_attr_get_payload(a);

	if (!(a->nla_type & NLA_F_NESTED) != !row->nest)
		return saina_refuse(err, -EINVAL, 0, "%s: %s marked as nested", row->name,
				    row->nest ? "must be" : "must not be");
	switch (row->kind) {
	case SAINA_ATTR_NEST:
		if (len && len < MNL_ATTR_HDRLEN)
			return saina_refuse(err, -ERANGE, 0,
					    "%s: has %zu bytes, too few for an attribute",
					    row->name, len);
		return attrs_check(from, len, row->nest, ~0ull, d, inner, err);
	case SAINA_ATTR_STRING:
		return string_check(from, len, row, err);
	case SAINA_ATTR_BYTES:
	case SAINA_ATTR_WORDS:
		if (len == row->size)
			return 0;
		return saina_refuse(err, -ERANGE, 0, "%s: has %zu bytes, must have %u", row->name,
				    len, row->size);
	default:
		return number_check(a, row, err);
	}
}

static int attrs_check(const struct nlattr *a, size_t left, const struct saina_attr_class *c,
		       __u64 takes, struct decoded *d, const struct nlattr **tb,
		       struct saina_core_err *err)
{
	const struct saina_attr *row;
	unsigned int number;
	int ret;

	for (; left; left -= attr_step(a, left), a = mnl_attr_next(a)) {
		if (!attr_whole(a, left)) {
			d->bad = NULL;
			return saina_refuse(err, -EINVAL, 0, "%s: an attribute is cut short",
					    c->name);
		}
		d->bad = a;
		number = mnl_attr_get_type(a);
		row = saina_ctl_attr(c, number);
		if (!row)
			return saina_refuse(err, -EINVAL, 0, "%s: attribute %u is unknown", c->name,
					    number);
		if (!(takes & 1ull << number))
			return saina_refuse(err, -EINVAL, 0,
					    "%s: this request does not take this attribute", row->name);
		if (tb[number])
			return saina_refuse(err, -EINVAL, 0, "%s: is given twice", row->name);
		ret = attr_check(a, row, d, err);
		if (ret)
			return ret;
		tb[number] = a;
	}
	d->bad = NULL;
	return 0;
}

int decode_request(const struct nlmsghdr *nlh, const struct saina_attr_class *c, __u64 takes,
		   struct decoded *d, struct saina_core_err *err)
{
	const struct nlattr *first = mnl_nlmsg_get_payload_offset(nlh, sizeof(struct genlmsghdr));
	unsigned int i;
	int ret;

	memset(d, 0, sizeof(*d));
	ret = attrs_check(first, nlh->nlmsg_len - ((const char *)first - (const char *)nlh), c,
			  takes, d, d->tb, err);
	for (i = 0; !ret && i < c->n; i++)
		if (d->tb[c->attrs[i].number])
			ret = saina_ctl_decode_attr(&c->attrs[i], d->tb[c->attrs[i].number],
						    &d->attrs);
	return ret;
}
