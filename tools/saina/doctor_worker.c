// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina doctor worker: checks the container or virtual machine of a worker, from inside.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "net/request.h"
#include "doctor_check.h"

#define HEADERS (20 + 8 + (unsigned int)sizeof(struct saina_hdr))

struct route {
	int oif;
	bool gateway;
	__u8 type;
	bool found;
};

static int route_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct rtmsg *rt = mnl_nlmsg_get_payload(nlh);
	struct route *r = arg;
	const struct nlattr *a;

	r->found = true;
	r->type = rt->rtm_type;
	mnl_attr_for_each(a, nlh, sizeof(*rt)) {
		if (mnl_attr_get_type(a) == RTA_OIF)
			r->oif = (int)mnl_attr_get_u32(a);
		if (mnl_attr_get_type(a) == RTA_GATEWAY)
			r->gateway = true;
	}
	return MNL_CB_STOP;
}

static int route_get(__be32 to, struct route *r)
{
	char buf[64] __attribute__((aligned(8)));
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct rtmsg *rt;

	memset(r, 0, sizeof(*r));
	nlh->nlmsg_type = RTM_GETROUTE;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	rt = mnl_nlmsg_put_extra_header(nlh, sizeof(*rt));
	rt->rtm_family = AF_INET;
	rt->rtm_dst_len = 32;
	mnl_attr_put_u32(nlh, RTA_DST, to);
	return net_request(NETLINK_ROUTE, nlh, route_cb, r);
}

/* Finds the interface towards @to; if @to is 0, the first one that is up and has an address. */
static const struct link *find_interface(__be32 to, const struct links *links)
{
	char text[INET_ADDRSTRLEN];
	const struct link *l = NULL;
	struct in_addr address;
	struct route r;
	int ret;

	if (!to) {
		for (int i = 0; i < links->n && !l; i++) {
			if (!(links->v[i].flags & IFF_LOOPBACK) && links->v[i].flags & IFF_UP &&
			    !link_address(links->v[i].name, &address, NULL))
				l = &links->v[i];
		}
		if (l)
			doc_report(DOC_OK, "interface", NULL,
				   "checking %s (for the interface towards the aggregator: saina doctor worker to HOST)", l->name);
		else
			doc_report(DOC_FAIL, "interface", "give the container an interface and an address",
				   "no interface is up and has an IPv4 address");
		return l;
	}
	inet_ntop(AF_INET, &to, text, sizeof(text));
	ret = route_get(to, &r);
	if (ret || !r.found) {
		doc_report(DOC_FAIL, "route", "give this container an address in the aggregator's subnet",
			   "no route to %s: %s", text, strerror(ret ? -ret : ENETUNREACH));
		return NULL;
	}
	if (r.type == RTN_LOCAL) {
		doc_report(DOC_FAIL, "route", "run saina doctor worker inside the worker's container",
			   "%s is an address of this host itself", text);
		return NULL;
	}
	l = links_by_index(links, r.oif);
	if (!l || r.type != RTN_UNICAST) {
		doc_report(DOC_FAIL, "route", doc_fix("fix the route; to see it: ip route get %s", text),
			   "the route to %s leads nowhere", text);
		return NULL;
	}
	if (r.gateway)
		doc_report(DOC_FAIL, "route",
			   "plug this container into the aggregator's bridge and give it an address in that subnet",
			   "%s is behind a gateway (via %s): workers must be on the bridge itself", text,
			   l->name);
	else
		doc_report(DOC_OK, "route", NULL, "%s is on the link of %s", text, l->name);
	return l;
}

static void check_mtu(const struct link *l)
{
	static const unsigned int sizes[] = {
#define SIZE(E) E,
		SAINA_ELEMS_LIST(SIZE)
#undef SIZE
	};
	unsigned int fits = 0;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		if (l->mtu >= HEADERS + 4 * sizes[i])
			fits = sizes[i];
	}
	if (!fits)
		doc_report(DOC_FAIL, "mtu",
			   doc_fix("ip link set %s mtu %u or more, at both ends", l->name,
				   HEADERS + 4 * sizes[0]),
			   "%s: MTU %u is too small for any payload", l->name, l->mtu);
	else
		doc_report(DOC_OK, "mtu", NULL, "%s: MTU %u, for jobs with a payload up to %u elements",
			   l->name, l->mtu, fits);
}

static void check_offloads(const struct link *l)
{
	int gro = doc_read_offload(l->name, ETHTOOL_GGRO), csum = doc_read_offload(l->name, ETHTOOL_GTXCSUM);
	bool veth = !strcmp(l->kind, "veth");

	if (gro < 0)
		doc_report(DOC_SKIP, "napi", NULL, "%s: cannot read the GRO setting: %s", l->name, strerror(-gro));
	else if (gro || l->xdp_id || !veth)
		doc_report(DOC_OK, "napi", NULL, "%s: results can be redirected to it%s", l->name,
			   gro && veth ? " (GRO is on)" : "");
	else if (!doc_has_cap(CAP_NET_ADMIN))
		doc_report(DOC_OK, "napi",
			   "on the host, check that saina port show has mode tc for its port; if not: saina port set PORT hook auto",
			   "%s: stock container (GRO is off, no CAP_NET_ADMIN): XDP redirects do not reach it; frames from hook tc do, and nothing is needed here",
			   l->name);
	else
		doc_report(DOC_WARN, "napi",
			   doc_fix("on the host: saina port set PORT hook auto (tc, except on OVS's userspace datapath); or here: ethtool -K %s gro on, then start the worker again",
				   l->name),
			   "%s: GRO is off, so this veth has no NAPI: unless its port has mode tc, results take the slow path through the bridge",
			   l->name);
	if (csum < 0)
		doc_report(DOC_SKIP, "tx-checksum", NULL, "%s: cannot read the setting: %s", l->name, strerror(-csum));
	else if (csum)
		doc_report(DOC_OK, "tx-checksum", NULL, "%s: on, messages can be sent in batches", l->name);
	else	/* the userspace datapath of OVS needs it off, so this is not an error */
		doc_report(DOC_OK, "tx-checksum", NULL,
			   "%s: off: right for OVS's userspace datapath; elsewhere sending is faster with it on",
			   l->name);
}

static void check_multicast(const struct link *l)
{
	struct ip_mreqn m = {
		.imr_multiaddr.s_addr = htonl(SAINA_GROUP_BASE | (SAINA_JOBS_MAX - 1)),
		.imr_ifindex = l->ifindex,
	};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		doc_report(DOC_FAIL, "multicast", "enable IPv4 in the container", "cannot create a UDP socket: %s",
			   strerror(errno));
		return;
	}
	if (!setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof(m)))
		doc_report(DOC_OK, "multicast", NULL, "%s: multicast groups can be joined", l->name);
	else if (errno == ENOBUFS)
		doc_report(DOC_FAIL, "multicast", "sysctl -w net.ipv4.igmp_max_memberships=64",
			   "%s: too many multicast groups are joined already", l->name);
	else
		doc_report(DOC_FAIL, "multicast", doc_fix("ip link set %s up multicast on", l->name),
			   "%s: cannot join multicast groups: %s", l->name, strerror(errno));
	close(fd);
}

/* Reports why there is no answer. A connected socket gets EHOSTUNREACH for ICMP "prohibited". */
static void report_no_answer(int err, const char *address, const struct link *l)
{
	switch (err) {
	case ECONNREFUSED:
		doc_report(DOC_FAIL, "aggregator",
			   "start sainad on the host of the bridge; if sainad runs, allow UDP port 48865 there (run saina doctor there)",
			   "%s answers that its UDP port %d is closed: sainad does not run there, or a firewall there rejects it",
			   address, SAINA_PORT_CTRL);
		return;
	case EHOSTUNREACH:
		doc_report(DOC_FAIL, "aggregator", "allow UDP port 48865 there (run saina doctor there)",
			   "a firewall at %s rejects UDP port %d", address, SAINA_PORT_CTRL);
		return;
	case EPERM:
		doc_report(DOC_FAIL, "aggregator", "allow outgoing UDP to ports 48864 and 48865 here",
			   "a firewall here blocks messages to %s, UDP port %d", address, SAINA_PORT_CTRL);
		return;
	}
	/* OVS's userspace datapath forwards frames without a checksum that was left to the NIC. */
	doc_report(DOC_FAIL, "aggregator",
		   doc_read_offload(l->name, ETHTOOL_GTXCSUM) > 0 ?
			doc_fix("on the host of the bridge, check that sainad runs, has this address, and that no firewall blocks UDP port %d (run saina doctor there); if the bridge is OVS's userspace datapath: ethtool -K %s tx off",
				SAINA_PORT_CTRL, l->name) :
			"on the host of the bridge, check that sainad runs, has this address, and that no firewall blocks UDP port 48865 (run saina doctor there)",
		   "no answer from %s, UDP port %d: %s", address, SAINA_PORT_CTRL,
		   err ? strerror(err) : "timed out; a firewall may drop the messages");
}

/* A firewall here may let joins out, but not gradients. @fd is connected to the control port. */
static void check_data_port(int fd, struct sockaddr_in *sin, const char *address,
			    const struct saina_hdr *h)
{
	sin->sin_port = htons(SAINA_PORT_DATA);
	if (!connect(fd, (void *)sin, sizeof(*sin)) && send(fd, h, sizeof(*h), 0) < 0)
		doc_report(DOC_FAIL, "aggregator", "allow outgoing UDP to ports 48864 and 48865 here",
			   "gradients cannot be sent to %s, UDP port %d: %s", address, SAINA_PORT_DATA,
			   errno == EPERM ? "a firewall here blocks them" : strerror(errno));
	else
		doc_report(DOC_OK, "aggregator", NULL, "sainad at %s answers", address);
}

/* Sends a heartbeat of an unknown worker: any answer, also a refusal, shows that the agent runs. */
static void check_agent(__be32 to, const struct link *l)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(SAINA_PORT_CTRL),
				   .sin_addr.s_addr = to };
	union {
		struct saina_hdr h;
		char bytes[SAINA_CTRL_LEN];
	} heartbeat = { .h = {
		.version = SAINA_PROTO_VERSION,
		.type = SAINA_MSG_HEARTBEAT,
		.job = htole16(SAINA_JOBS_MAX - 1),
		.worker = SAINA_WORKERS_MAX - 1,
	} };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char text[INET_ADDRSTRLEN], answer[2048];
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int err = 0;

	inet_ntop(AF_INET, &to, text, sizeof(text));
	if (fd < 0 || connect(fd, (void *)&sin, sizeof(sin)))
		err = errno;
	for (int try = 0; !err && try < 5; try++) {
		ssize_t n;

		if (send(fd, &heartbeat, sizeof(heartbeat), 0) < 0 && errno != ECONNREFUSED)
			err = errno;
		if (poll(&p, 1, 400) <= 0)
			continue;
		n = recv(fd, answer, sizeof(answer), 0);
		if (n >= (ssize_t)sizeof(heartbeat.h) && answer[0] == SAINA_PROTO_VERSION) {
			check_data_port(fd, &sin, text, &heartbeat.h);
			close(fd);
			return;
		}
		if (n < 0)
			err = errno;
	}
	if (fd >= 0)
		close(fd);
	report_no_answer(err, text, l);
}

void doc_worker(__be32 to)
{
	struct links links = { 0 };
	const struct link *l;
	int ret = links_read(&links);

	if (ret) {
		doc_report(DOC_FAIL, "interface", "run this where rtnetlink can be used",
			   "interfaces cannot be read: %s", strerror(-ret));
		return;
	}
	l = find_interface(to, &links);
	if (l) {
		if (!(l->flags & IFF_UP))
			doc_report(DOC_FAIL, "interface", doc_fix("ip link set %s up", l->name),
				   "%s is down", l->name);
		check_mtu(l);
		check_offloads(l);
		check_multicast(l);
		doc_firewall_worker(l);
	}
	doc_buffers_worker();
	if (l && to)
		check_agent(to, l);
	links_close(&links);
}
