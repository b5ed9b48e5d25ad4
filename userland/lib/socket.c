// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Sockets, addresses, and what the interface can do. */
#include <errno.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <arpa/inet.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "private.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define RCVBUF (8 << 20)

static void tune(int fd)
{
	int one = 1, size = RCVBUF;

	/* FORCE for those who may, else as far as net.core.rmem_max goes.  The
	 * others may fail: then it is slower, that is all.
	 */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &one, sizeof(one));
	setsockopt(fd, SOL_UDP, UDP_GRO, &one, sizeof(one));
}

/* The local address that packets to the aggregator leave from. */
static int find_local(struct saina *s)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t len = sizeof(a);
	int fd, ret = 0;

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (void *)&s->ctrl, sizeof(s->ctrl)) || getsockname(fd, (void *)&a, &len))
		ret = -errno;
	else
		s->local = a.sin_addr;
	close(fd);
	return ret;
}

/* Fills ifindex, ifname, mtu (and local, if an interface was asked for). */
static int find_interface(struct saina *s)
{
	const char *want = s->opts.interface;
	struct ifaddrs *list, *i;
	struct ifreq ifr;
	int ret = -ENODEV;

	if (getifaddrs(&list))
		return -errno;
	for (i = list; i; i = i->ifa_next) {
		const struct sockaddr_in *a = (void *)i->ifa_addr;

		if (!a || a->sin_family != AF_INET)
			continue;
		if (want ? !strcmp(i->ifa_name, want) : a->sin_addr.s_addr == s->local.s_addr) {
			s->local = a->sin_addr;
			strncpy(s->ifname, i->ifa_name, sizeof(s->ifname) - 1);
			s->ifindex = if_nametoindex(s->ifname);
			ret = 0;
			break;
		}
	}
	freeifaddrs(list);
	if (ret)
		return ret;

	memset(&ifr, 0, sizeof(ifr));
	memcpy(ifr.ifr_name, s->ifname, sizeof(s->ifname));
	if (!ioctl(s->ucast, SIOCGIFMTU, &ifr))
		s->mtu = ifr.ifr_mtu;
	return 0;
}

/**
 * saina_socket_open() - the unicast socket: all that we send, all answers
 *
 * Not connected, for answers come from two ports.
 */
int saina_socket_open(struct saina *s)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	char addr[INET_ADDRSTRLEN];
	int ret;

	inet_ntop(AF_INET, &s->ctrl.sin_addr, addr, sizeof(addr));
	s->ucast = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s->ucast < 0)
		return saina_error(s, -errno, "cannot create a UDP socket: %s", strerror(errno));
	if (!s->opts.interface) {
		ret = find_local(s);
		if (ret)
			return saina_error(s, ret, "no route to the aggregator %s: %s", addr,
					   strerror(-ret));
	}
	ret = find_interface(s);
	if (ret && s->opts.interface)
		return saina_error(s, ret, "interface %s is not there or has no IPv4 address",
				   s->opts.interface);
	if (ret)
		return saina_error(s, ret, "no interface has the address used towards %s", addr);

	tune(s->ucast);
	if (s->opts.interface) {
		uint32_t index = htonl(s->ifindex);

		if (setsockopt(s->ucast, IPPROTO_IP, IP_UNICAST_IF, &index, sizeof(index)))
			return saina_error(s, -errno, "cannot send by interface %s: %s", s->ifname,
					   strerror(errno));
	}
	a.sin_addr = s->local;
	if (bind(s->ucast, (void *)&a, sizeof(a)))
		return saina_error(s, -errno, "cannot bind a UDP socket: %s", strerror(errno));
	return 0;
}

/* The multicast socket: results.  Bound to the group, so nothing else comes. */
int saina_socket_group(struct saina *s)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET,
		.sin_port = htons(SAINA_PORT_RESULT),
		.sin_addr.s_addr = htonl(s->group),
	};
	struct ip_mreqn m = {
		.imr_multiaddr.s_addr = htonl(s->group),
		.imr_ifindex = s->ifindex,
	};
	int fd, one = 1, zero = 0, ret;

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return saina_error(s, -errno, "cannot create a UDP socket: %s", strerror(errno));
	tune(fd);
	/* Several workers in one network namespace are all to hear the results. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	/* Not what other sockets of this host have joined on other interfaces. */
	setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &zero, sizeof(zero));
	if (bind(fd, (void *)&a, sizeof(a)) ||
	    setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof(m))) {
		ret = saina_error(s, -errno, "cannot join the multicast group of job %u on %s: %s",
				  s->job, s->ifname, strerror(errno));
		close(fd);
		return ret;
	}
	s->mcast = fd;
	return 0;
}

void saina_socket_close(struct saina *s)
{
	if (s->ucast >= 0)
		close(s->ucast);
	if (s->mcast >= 0)
		close(s->mcast);
	s->ucast = s->mcast = -1;
}

/* Is GRO on?  With it a veth has the NAPI that redirected frames need. */
int saina_socket_gro(struct saina *s)
{
	struct ethtool_value v = {.cmd = ETHTOOL_GGRO};
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	memcpy(ifr.ifr_name, s->ifname, sizeof(s->ifname));
	ifr.ifr_data = (void *)&v;
	if (ioctl(s->ucast, SIOCETHTOOL, &ifr))
		return -errno;
	return v.data != 0;
}
