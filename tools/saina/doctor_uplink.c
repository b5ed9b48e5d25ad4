// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina doctor: the way of a job's sums to its parent, and, on the parent's host, how they come in.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <ifaddrs.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>

#include "doctor_check.h"

#define IP_UDP		28
#define ANSWER_MS	1000
#define FORWARDING	"rx-udp-gro-forwarding"

/**
 * struct way - how this host reaches an address
 * @fd: connected UDP socket
 * @dev: interface that it sends by
 * @near: the address is on the network of that interface
 * @mtu: of the way, as the kernel knows it
 */
struct way {
	int fd;
	char dev[IFNAMSIZ];
	bool near;
	int mtu;
};

/* Return: 0 or a negative errno. */
static int way_find(struct way *w, const struct saina_uplink_attrs *u)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = u->address, .sin_port = u->port };
	struct sockaddr_in own;
	socklen_t len = sizeof(own), mtu_len = sizeof(w->mtu);
	struct ifaddrs *all = NULL, *i;

	*w = (struct way){ .fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) };
	if (w->fd < 0 || connect(w->fd, (struct sockaddr *)&to, sizeof(to)) ||
	    getsockname(w->fd, (struct sockaddr *)&own, &len) ||
	    getsockopt(w->fd, IPPROTO_IP, IP_MTU, &w->mtu, &mtu_len) || getifaddrs(&all))
		return -errno;
	for (i = all; i; i = i->ifa_next) {
		const struct sockaddr_in *a = (const void *)i->ifa_addr, *m = (const void *)i->ifa_netmask;

		if (!a || a->sin_family != AF_INET || a->sin_addr.s_addr != own.sin_addr.s_addr)
			continue;
		snprintf(w->dev, sizeof(w->dev), "%s", i->ifa_name);
		w->near = m && !((a->sin_addr.s_addr ^ u->address) & m->sin_addr.s_addr);
	}
	freeifaddrs(all);
	return 0;
}

/* Any answer to a HEARTBEAT of nobody will do.  Return: reason of the REFUSE, or a negative errno. */
static int ask_agent(int fd)
{
	union {
		struct saina_hdr h;
		char bytes[SAINA_CTRL_LEN];
	} m = { .h = { .version = SAINA_PROTO_VERSION, .type = SAINA_MSG_HEARTBEAT } };
	struct saina_refuse refusal;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	if (send(fd, &m, sizeof(m), 0) < 0)
		return -errno;
	if (poll(&p, 1, ANSWER_MS) <= 0)
		return -ETIMEDOUT;
	n = recv(fd, &m, sizeof(m), MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	if (n < (ssize_t)(sizeof(m.h) + sizeof(refusal)) || m.h.type != SAINA_MSG_REFUSE)
		return -EPROTO;
	memcpy(&refusal, &m.h + 1, sizeof(refusal));
	return le32toh(refusal.reason);
}

static void check_reach(const struct saina_job_attrs *job, const struct way *w, const char *address)
{
	int reason = ask_agent(w->fd);

	if (reason == SAINA_REFUSE_VERSION)
		doc_report(DOC_FAIL, "uplink", "update the older of the two hosts",
			   "job %s: sainad at %s speaks another version of the protocol", job->name, address);
	else if (reason < 0)
		doc_report(DOC_FAIL, "uplink", "start sainad there, or open UDP ports 48864 to 48866 between the two hosts",
			   "job %s: sainad at %s does not answer: %s", job->name, address, strerror(-reason));
	else
		doc_report(DOC_OK, "uplink", NULL, "job %s: sainad at %s answers, by %s", job->name, address, w->dev);
}

/* Results of the parent are dropped where this host's own program runs: it takes them for forged. */
static bool goes_by_bridge(const struct doc_state *s, const char *dev)
{
	const struct saina_port_attrs *p = s->ports.v;

	for (size_t i = 0; i < s->ports.n; i++)
		if (p[i].mode != SAINA_PORT_MODE_NONE && !strcmp(p[i].ifname, dev))
			return true;
	return !strcmp(dev, s->bridge);
}

static void check_uplink(const struct doc_state *s, const struct saina_job_attrs *job)
{
	const struct saina_uplink_attrs *u = &job->uplink;
	int need = IP_UDP + sizeof(struct saina_hdr) + 4 * job->payload, ret;
	char address[INET_ADDRSTRLEN];
	struct way w;

	inet_ntop(AF_INET, &u->address, address, sizeof(address));
	ret = way_find(&w, u);
	if (ret) {
		doc_report(DOC_FAIL, "uplink", doc_fix("ip route get %s", address), "job %s: no way to its parent at %s: %s",
			   job->name, address, strerror(-ret));
		goto out;
	}
	if (goes_by_bridge(s, w.dev))
		doc_report(DOC_FAIL, "uplink", "reach the parent by an interface that is no port of the bridge",
			   "job %s: the way to its parent is by %s, where results of other hosts are dropped (forged)",
			   job->name, w.dev);
	if (!w.near)
		doc_report(DOC_FAIL, "uplink", "put both hosts in one network, or a tunnel (VXLAN) between them",
			   "job %s: its parent at %s is behind a router, and results are multicast within one network",
			   job->name, address);
	if (w.mtu < need)
		doc_report(DOC_FAIL, "uplink", "raise the MTU, or add both jobs with a smaller payload",
			   "job %s: the MTU to its parent is %d, and a payload of %u needs %d", job->name, w.mtu,
			   job->payload, need);
	check_reach(job, &w, address);
	if (SAINA_HAS(u, SAINA_A_UPLINK_TEXT) && job->active && !SAINA_HAS(u, SAINA_A_UPLINK_WEIGHT))
		doc_report(DOC_WARN, "uplink", NULL, "job %s: %s", job->name, u->text);
out:
	if (w.fd >= 0)
		close(w.fd);
}

/* Is an offload on that only its name tells?  1, 0, or a negative errno. */
static int feature_is_on(const char *ifname, const char *name)
{
	struct ethtool_sset_info *info = calloc(1, sizeof(*info) + sizeof(__u32));
	struct ifreq r = { .ifr_data = (void *)info };
	struct ethtool_gstrings *names = NULL;
	struct ethtool_gfeatures *f = NULL;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret = -ENOTSUP;
	__u32 n, i;

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", ifname);
	if (fd < 0 || !info)
		goto out;
	info->cmd = ETHTOOL_GSSET_INFO;
	info->sset_mask = 1ull << ETH_SS_FEATURES;
	if (ioctl(fd, SIOCETHTOOL, &r) || !info->sset_mask)
		goto out;
	n = info->data[0];
	names = calloc(1, sizeof(*names) + n * ETH_GSTRING_LEN);
	f = calloc(1, sizeof(*f) + (n + 31) / 32 * sizeof(f->features[0]));
	if (!names || !f)
		goto out;
	*names = (struct ethtool_gstrings){ .cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_FEATURES, .len = n };
	*f = (struct ethtool_gfeatures){ .cmd = ETHTOOL_GFEATURES, .size = (n + 31) / 32 };
	r.ifr_data = (void *)names;
	if (ioctl(fd, SIOCETHTOOL, &r))
		goto out;
	r.ifr_data = (void *)f;
	if (ioctl(fd, SIOCETHTOOL, &r))
		goto out;
	for (i = 0; i < n; i++)
		if (!strncmp((char *)names->data + i * ETH_GSTRING_LEN, name, ETH_GSTRING_LEN))
			ret = f->features[i / 32].active >> i % 32 & 1;
out:
	if (fd >= 0)
		close(fd);
	free(info);
	free(names);
	free(f);
	return ret;
}

/* A NIC or tunnel as a port, by which nodes come: the tc program wants their batches whole. */
static void check_nodes(const struct doc_state *s)
{
	const struct saina_port_attrs *p = s->ports.v;

	for (size_t i = 0; i < s->ports.n; i++) {
		if (p[i].mode != SAINA_PORT_MODE_TC || !strcmp(p[i].driver, "veth") || !strcmp(p[i].driver, "tun"))
			continue;
		if (!feature_is_on(p[i].ifname, FORWARDING))
			doc_report_of(DOC_WARN, "uplink", p[i].ifname, "ethtool -K {} gro on " FORWARDING " on",
				      "sums of other hosts come in frame by frame: UDP GRO is not forwarded");
	}
	doc_report_group();
}

void doc_uplink(const struct doc_state *s)
{
	const struct saina_job_attrs *job = s->jobs.v;
	bool nodes = false;

	for (size_t i = 0; i < s->jobs.n; i++) {
		if (SAINA_HAS(&job[i], SAINA_A_JOB_UPLINK))
			check_uplink(s, &job[i]);
		nodes |= SAINA_HAS(&job[i], SAINA_A_JOB_WEIGHTS);
	}
	if (nodes)
		check_nodes(s);
}
