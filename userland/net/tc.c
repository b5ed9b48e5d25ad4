// SPDX-License-Identifier: GPL-2.0-or-later
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_mirred.h>

#include "net/request.h"
#include "net/tc.h"

#define INGRESS	 TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)
#define EGRESS	 TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)

struct request {
	char buf[1024] __attribute__((aligned(8)));
	struct nlmsghdr *nlh;
};

static void request_init(struct request *r, int type, int flags)
{
	r->nlh = mnl_nlmsg_put_header(r->buf);
	r->nlh->nlmsg_type = type;
	r->nlh->nlmsg_flags = NLM_F_REQUEST | flags;
}

static int request_send(struct request *r, mnl_cb_t cb, void *arg)
{
	return net_request(NETLINK_ROUTE, r->nlh, cb, arg);
}

static void link_request_init(struct request *r, int type, int flags, int ifindex)
{
	struct ifinfomsg *ifi;

	request_init(r, type, NLM_F_ACK | flags);
	ifi = mnl_nlmsg_put_extra_header(r->nlh, sizeof(*ifi));
	ifi->ifi_index = ifindex;
}

static struct tcmsg *tc_request_init(struct request *r, int type, int flags, int ifindex,
				     uint32_t parent)
{
	struct tcmsg *t;

	request_init(r, type, flags);
	t = mnl_nlmsg_put_extra_header(r->nlh, sizeof(*t));
	t->tcm_ifindex = ifindex;
	t->tcm_parent = parent;
	return t;
}

/* Queries */

struct kind_query {
	int ifindex;
	char *to;
	size_t size;
};

static int qdisc_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct tcmsg *t = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr;
	struct kind_query *k = arg;

	if (t->tcm_ifindex != k->ifindex || t->tcm_parent != TC_H_INGRESS)
		return MNL_CB_OK;
	mnl_attr_for_each(attr, nlh, sizeof(*t))
		if (mnl_attr_get_type(attr) == TCA_KIND)
			snprintf(k->to, k->size, "%s", mnl_attr_get_str(attr));
	return MNL_CB_OK;
}

int tc_ingress_kind(int ifindex, char *kind, size_t size)
{
	struct kind_query k = { ifindex, kind, size };
	struct request r;

	kind[0] = 0;
	tc_request_init(&r, RTM_GETQDISC, NLM_F_DUMP, ifindex, 0);
	return request_send(&r, qdisc_cb, &k);
}

static int filter_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct tcmsg *t = mnl_nlmsg_get_payload(nlh);
	int *n = arg;

	/* each priority has one message without a handle */
	*n += nlh->nlmsg_type == RTM_NEWTFILTER && !t->tcm_handle;
	return MNL_CB_OK;
}

int tc_filters(int ifindex, bool out)
{
	struct request r;
	int n = 0, ret;

	tc_request_init(&r, RTM_GETTFILTER, NLM_F_DUMP, ifindex, out ? EGRESS : INGRESS);
	ret = request_send(&r, filter_cb, &n);
	return ret ? ret : n;
}

static int police_cb(const struct nlmsghdr *nlh, void *arg)
{
	static const char kind[] = "police";
	bool *found = arg;

	/* each kind of filter nests its actions elsewhere; TCA_ACT_KIND has the zero byte, too */
	*found |= memmem(nlh, nlh->nlmsg_len, kind, sizeof(kind)) != NULL;
	return MNL_CB_OK;
}

bool tc_is_policed(int ifindex)
{
	struct request r;
	bool found = false;

	tc_request_init(&r, RTM_GETTFILTER, NLM_F_DUMP, ifindex, INGRESS);
	return !request_send(&r, police_cb, &found) && found;
}

struct filter_query {
	unsigned int prio;
	uint32_t handle;	/* 0: any */
	uint32_t found;		/* the first */
};

static int filter_query_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct tcmsg *t = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr;
	struct filter_query *w = arg;

	if (nlh->nlmsg_type != RTM_NEWTFILTER || w->found || TC_H_MAJ(t->tcm_info) >> 16 != w->prio ||
	    (w->handle && t->tcm_handle != w->handle))
		return MNL_CB_OK;
	mnl_attr_for_each(attr, nlh, sizeof(*t))
		if (mnl_attr_get_type(attr) == TCA_KIND && !strcmp(mnl_attr_get_str(attr), "bpf"))
			w->found = t->tcm_handle;
	return MNL_CB_OK;
}

uint32_t tc_bpf_find(int ifindex, bool out, unsigned int prio, uint32_t handle)
{
	struct filter_query w = { .prio = prio, .handle = handle };
	struct request r;

	tc_request_init(&r, RTM_GETTFILTER, NLM_F_DUMP, ifindex, out ? EGRESS : INGRESS);
	return request_send(&r, filter_query_cb, &w) ? 0 : w.found;
}

/* An ifb and its filters */

static int clsact_add(int ifindex)
{
	struct request r;
	struct tcmsg *t;

	t = tc_request_init(&r, RTM_NEWQDISC, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, ifindex,
			    TC_H_CLSACT);
	t->tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0);
	mnl_attr_put_strz(r.nlh, TCA_KIND, "clsact");
	return request_send(&r, NULL, NULL);
}

int tc_link_del(int ifindex)
{
	struct request r;

	link_request_init(&r, RTM_DELLINK, 0, ifindex);
	return request_send(&r, NULL, NULL);
}

static int link_add(const char *name)
{
	struct nlattr *info;
	struct request r;

	link_request_init(&r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, 0);
	mnl_attr_put_strz(r.nlh, IFLA_IFNAME, name);
	info = mnl_attr_nest_start(r.nlh, IFLA_LINKINFO);
	mnl_attr_put_strz(r.nlh, IFLA_INFO_KIND, "ifb");
	mnl_attr_nest_end(r.nlh, info);
	return request_send(&r, NULL, NULL);
}

/* RTM_NEWLINK does not accept an alias. */
static int alias_set(int ifindex, const char *alias)
{
	struct request r;

	link_request_init(&r, RTM_SETLINK, 0, ifindex);
	mnl_attr_put_str(r.nlh, IFLA_IFALIAS, alias);
	return request_send(&r, NULL, NULL);
}

int tc_ifb_add(const char *name, const char *alias, int *ifindex)
{
	int ret = link_add(name);

	if (ret)
		return ret;
	*ifindex = if_nametoindex(name);
	ret = *ifindex ? alias_set(*ifindex, alias) : -errno;
	if (!ret)
		ret = clsact_add(*ifindex);
	if (ret && *ifindex)
		tc_link_del(*ifindex);
	return ret;
}

int tc_mirror_add(int ifindex, unsigned int prio, int port)
{
	/* no keys: all frames match */
	struct tc_u32_sel all = { .flags = TC_U32_TERMINAL };
	struct tc_mirred parms = {
		.eaction = TCA_EGRESS_MIRROR,
		.action = TC_ACT_UNSPEC, /* "continue" */
		.ifindex = port,
	};
	struct nlattr *options, *acts, *act, *act_options;
	struct request r;
	struct tcmsg *t;

	t = tc_request_init(&r, RTM_NEWTFILTER, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, ifindex,
			    EGRESS);
	t->tcm_info = TC_H_MAKE(prio << 16, htons(ETH_P_ALL));
	mnl_attr_put_strz(r.nlh, TCA_KIND, "u32");
	options = mnl_attr_nest_start(r.nlh, TCA_OPTIONS);
	mnl_attr_put(r.nlh, TCA_U32_SEL, sizeof(all), &all);
	acts = mnl_attr_nest_start(r.nlh, TCA_U32_ACT);
	act = mnl_attr_nest_start(r.nlh, 1);
	mnl_attr_put_strz(r.nlh, TCA_ACT_KIND, "mirred");
	act_options = mnl_attr_nest_start(r.nlh, TCA_ACT_OPTIONS);
	mnl_attr_put(r.nlh, TCA_MIRRED_PARMS, sizeof(parms), &parms);
	mnl_attr_nest_end(r.nlh, act_options);
	mnl_attr_nest_end(r.nlh, act);
	mnl_attr_nest_end(r.nlh, acts);
	mnl_attr_nest_end(r.nlh, options);
	return request_send(&r, NULL, NULL);
}

int tc_filter_del(int ifindex, unsigned int prio)
{
	struct request r;
	struct tcmsg *t;

	t = tc_request_init(&r, RTM_DELTFILTER, NLM_F_ACK, ifindex, EGRESS);
	t->tcm_info = TC_H_MAKE(prio << 16, htons(ETH_P_ALL));
	return request_send(&r, NULL, NULL);
}
