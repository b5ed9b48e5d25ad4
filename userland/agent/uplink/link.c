// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A relay's port of the bridge: a veth, whose other end is in a network namespace that lives as long
 * as this process and the relay have it open.  Frames of the host itself would meet no program.
 * Both ends have the relay's address as a route to one host, so no subnet is needed.  Its MAC address
 * is a permanent neighbour entry: a relay of another host on the same network may have the same address.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "agent/ports/ports.h"
#include "agent/uplink/internal.h"

#define MTU_DEFAULT 1500

/*
 * Calls @fn in a namespace.  Only this thread enters it.  Return: its result, or a negative errno.
 */
static int in_netns(int netns, int (*fn)(int arg), int arg)
{
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), ret;

	if (home < 0)
		return -errno;
	ret = netns < 0 ? unshare(CLONE_NEWNET) : setns(netns, CLONE_NEWNET);
	ret = ret ? -errno : fn(arg);
	if (setns(home, CLONE_NEWNET)) {
		log_error("cannot go back to the own network namespace: %s", strerror(errno));
		_exit(1);
	}
	close(home);
	return ret;
}

static int netns_open(int unused)
{
	int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* A veth accepts frames that XDP redirects only with NAPI, which GRO turns on. */
static int gro_enable(int unused)
{
	struct ethtool_value gro = { .cmd = ETHTOOL_SGRO, .data = 1 };
	struct ifreq r = { .ifr_name = "eth0", .ifr_data = (void *)&gro };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;

	if (fd < 0)
		return -errno;
	ret = ioctl(fd, SIOCETHTOOL, &r) ? -errno : 0;
	close(fd);
	return ret;
}

static int ip_batch(int netns, char *why, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static int ip_batch(int netns, char *why, size_t size, const char *fmt, ...)
{
	char *argv[] = { "ip", "-batch", "-", NULL };
	char input[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(input, sizeof(input), fmt, ap);
	va_end(ap);
	return command_run(argv, netns, input, why, size);
}

static int bridge_add(struct agent *a, const struct uplink_link *l, char *why, size_t size)
{
	char db[sizeof(a->cfg.ovsdb) + 16];
	char *argv[] = { "ovs-vsctl", db, "--timeout=5", "--", "--if-exists", "del-port",
			 (char *)l->name, "--", "add-port", a->cfg.bridge, (char *)l->name, NULL };

	if (!a->bridge->ovs)
		return ip_batch(-1, why, size, "link set %s master %s\n", l->name, a->cfg.bridge);
	snprintf(db, sizeof(db), "--db=unix:%s", a->cfg.ovsdb);
	return command_run(argv, -1, "", why, size);
}

static void bridge_del(struct agent *a, const struct uplink_link *l)
{
	char db[sizeof(a->cfg.ovsdb) + 16], why[SAINA_TEXT_LEN];
	char *argv[] = { "ovs-vsctl", db, "--timeout=5", "--if-exists", "del-port",
			 (char *)l->name, NULL };

	if (!a->bridge->ovs)
		return;
	snprintf(db, sizeof(db), "--db=unix:%s", a->cfg.ovsdb);
	if (command_run(argv, -1, "", why, sizeof(why)))
		log_warn("cannot remove port %s from bridge %s: %s", l->name, a->cfg.bridge, why);
}

void link_name(struct uplink_link *l, __u16 job, uint64_t incarnation)
{
	*l = (struct uplink_link){
		.netns = -1,
		/* 169.254.1.0 .. 169.254.254.255 */
		.addr.s_addr = htonl(0xa9fe0000u + 256 + incarnation % (254 * 256)),
	};
	snprintf(l->name, sizeof(l->name), "saina-up%u", job);
}

int link_make(struct agent *a, struct uplink_link *l, __u16 job, uint64_t incarnation, char *why,
	      size_t size)
{
	char addr[INET_ADDRSTRLEN], agent[INET_ADDRSTRLEN], mac[18], ignored[SAINA_TEXT_LEN];
	unsigned int mtu = a->mtu ? a->mtu : MTU_DEFAULT;
	int ret;

	link_name(l, job, incarnation);
	snprintf(mac, sizeof(mac), "02:%02x:%02x:%02x:%02x:%02x", (__u8)(incarnation >> 56),
		 (__u8)(incarnation >> 48), (__u8)(incarnation >> 40), (__u8)(incarnation >> 32),
		 (__u8)(incarnation >> 24));
	inet_ntop(AF_INET, &l->addr, addr, sizeof(addr));
	inet_ntop(AF_INET, &a->addr, agent, sizeof(agent));
	l->netns = in_netns(-1, netns_open, 0);
	if (l->netns < 0) {
		ret = l->netns;
		snprintf(why, size, "cannot make a network namespace: %s", strerror(-ret));
		l->name[0] = 0;
		return ret;
	}
	ip_batch(-1, ignored, sizeof(ignored), "link del %s\n", l->name);
	ret = ip_batch(-1, why, size, "link add %s mtu %u type veth peer name eth0 address %s mtu %u netns /proc/%d/fd/%d\n",
		       l->name, mtu, mac, mtu, getpid(), l->netns);
	if (!ret)
		in_netns(l->netns, gro_enable, 0);
	if (!ret)
		ret = ip_batch(l->netns, why, size,
			       "link set lo up\naddr add %s/32 dev eth0\nlink set eth0 up\n"
			       "route add %s/32 dev eth0 src %s\n",
			       addr, agent, addr);
	if (!ret)
		ret = bridge_add(a, l, why, size);
	if (!ret)
		ret = ip_batch(-1, why, size,
			       "link set %s up\nneigh replace %s lladdr %s dev %s nud permanent\n"
			       "route replace %s/32 dev %s src %s\n",
			       l->name, addr, mac, a->cfg.bridge, addr, a->cfg.bridge, agent);
	l->ifindex = if_nametoindex(l->name);
	if (ret)
		link_remove(a, l);
	return ret;
}

void link_remove(struct agent *a, struct uplink_link *l)
{
	char addr[INET_ADDRSTRLEN], ignored[SAINA_TEXT_LEN];

	if (!l->name[0])
		return;
	inet_ntop(AF_INET, &l->addr, addr, sizeof(addr));
	bridge_del(a, l);
	ip_batch(-1, ignored, sizeof(ignored), "route del %s/32 dev %s\nneigh del %s dev %s\n", addr,
		 a->cfg.bridge, addr, a->cfg.bridge);
	ip_batch(-1, ignored, sizeof(ignored), "link del %s\n", l->name);
	if (l->netns >= 0)
		close(l->netns);
	*l = (struct uplink_link){ .netns = -1 };
}
