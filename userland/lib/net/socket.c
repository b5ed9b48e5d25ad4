// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Sockets, addresses, and what the interface can do. */
#include <errno.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/udp.h>
#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "io.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define RCVBUF	    (8 << 20)
#define BATCH_BYTES (68 << 10) /* taken from a socket's buffer by a datagram of 64 KiB */

/* Sets the message of a failed call; returns @err. */
__attribute__((format(printf, 3, 4))) static int set_error(struct saina_io *io, int err,
							   const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(io->error, sizeof(io->error), fmt, ap);
	va_end(ap);
	return err;
}

/* @host: an IPv4 address, or a name, whose first one is taken.  0 or EAI_*. */
static int resolve(const char *host, struct in_addr *addr)
{
	const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_DGRAM };
	struct addrinfo *found;
	int ret;

	if (inet_pton(AF_INET, host, addr) == 1)
		return 0;
	/* "10.1", "0x7f.1" are addresses for getaddrinfo(), and mistakes here */
	if (!host[strspn(host, "0123456789.xX")])
		return EAI_NONAME;
	ret = getaddrinfo(host, NULL, &hints, &found);
	if (ret)
		return ret;
	*addr = ((const struct sockaddr_in *)found->ai_addr)->sin_addr;
	freeaddrinfo(found);
	return 0;
}

/*
 * Not 0.0.0.0, loopback (Debian's /etc/hosts has the host's name at 127.0.1.1), multicast or
 * broadcast.
 */
static bool is_of_a_bridge(in_addr_t address)
{
	return address != INADDR_ANY && address >> 24 != IN_LOOPBACKNET &&
	       address < INADDR_UNSPEC_GROUP;
}

static int parse_address(struct saina_io *io, const char *text)
{
	const char *colon = text ? strchr(text, ':') : NULL;
	unsigned long port = SAINA_PORT_CTRL;
	size_t n = text ? colon ? (size_t)(colon - text) : strlen(text) : 0;
	char host[256], *end;
	int ret;

	if (!n || n >= sizeof(host))
		goto bad;
	memcpy(host, text, n);
	host[n] = 0;
	io->ctrl.sin_family = io->data.sin_family = AF_INET;
	ret = resolve(host, &io->ctrl.sin_addr);
	if (ret)
		return set_error(io, -EINVAL,
				 "aggregator \"%s\": is not an IPv4 address, and as a host name: %s", host,
				 gai_strerror(ret));
	inet_ntop(AF_INET, &io->ctrl.sin_addr, io->address, sizeof(io->address));
	if (!is_of_a_bridge(ntohl(io->ctrl.sin_addr.s_addr)))
		return set_error(io, -EINVAL,
				 "aggregator %s: this cannot be the address of sainad's bridge: give that "
				 "address (`ip addr show` on sainad's host, or sainad's log)",
				 io->address);
	if (colon) {
		port = strtoul(colon + 1, &end, 10);
		if (end == colon + 1 || *end || !port || port > 65535)
			goto bad;
	}
	io->data.sin_addr = io->ctrl.sin_addr;
	io->ctrl.sin_port = htons(port);
	io->data.sin_port = htons(SAINA_PORT_DATA);
	return 0;
bad:
	return set_error(io, -EINVAL,
			 "aggregator \"%s\": must be HOST or HOST:PORT, with an IPv4 address or a host name and a port 1..65535%s",
			 text ? text : "", text ? "" : " (is SAINA_AGGREGATOR set?)");
}

static void tune_socket(int fd)
{
	int one = 1, size = RCVBUF, whole = IP_PMTUDISC_PROBE;

	/* FORCE needs CAP_NET_ADMIN; the other one is limited by net.core.rmem_max.  If these and
	 * the next options fail, the library is only slower.
	 */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &one, sizeof(one));
	setsockopt(fd, SOL_UDP, UDP_GRO, &one, sizeof(one));
	/* The data path takes no fragments: a message that does not fit is an error. */
	setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &whole, sizeof(whole));
}

/* The local address that packets to the aggregator leave from. */
static int find_local(struct saina_io *io)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t len = sizeof(a);
	int fd, ret = 0;

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (void *)&io->ctrl, sizeof(io->ctrl)) || getsockname(fd, (void *)&a, &len))
		ret = -errno;
	else
		io->local = a.sin_addr;
	close(fd);
	return ret;
}

/* Fills ifindex and ifname (and local, if an interface was asked for). */
static int find_interface(struct saina_io *io, const char *want)
{
	struct ifaddrs *list, *i;
	int ret = -ENODEV;

	if (getifaddrs(&list))
		return -errno;
	for (i = list; i; i = i->ifa_next) {
		const struct sockaddr_in *a = (void *)i->ifa_addr;

		if (!a || a->sin_family != AF_INET)
			continue;
		if (want ? !strcmp(i->ifa_name, want) : a->sin_addr.s_addr == io->local.s_addr) {
			io->local = a->sin_addr;
			strncpy(io->ifname, i->ifa_name, sizeof(io->ifname) - 1);
			io->ifindex = if_nametoindex(io->ifname);
			ret = 0;
			break;
		}
	}
	freeifaddrs(list);
	return ret;
}

void saina_io_mtu(struct saina_io *io)
{
	struct ifreq ifr = {0};

	memcpy(ifr.ifr_name, io->ifname, sizeof(io->ifname));
	if (!ioctl(io->ucast, SIOCGIFMTU, &ifr))
		io->mtu = ifr.ifr_mtu;
}

/* A new unicast socket, bound to any port. */
static int open_unicast(struct saina_io *io, bool by_interface)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = io->local};
	uint32_t index = htonl(io->ifindex);

	io->ucast = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (io->ucast < 0)
		return set_error(io, -errno, "cannot create a UDP socket: %s", strerror(errno));
	tune_socket(io->ucast);
	if (by_interface && setsockopt(io->ucast, IPPROTO_IP, IP_UNICAST_IF, &index, sizeof(index)))
		return set_error(io, -errno, "cannot send by interface %s: %s", io->ifname,
				 strerror(errno));
	if (bind(io->ucast, (void *)&a, sizeof(a)))
		return set_error(io, -errno, "cannot bind a UDP socket: %s", strerror(errno));
	return 0;
}

/* From a port of the protocol, answers would look like requests to filters and in captures. */
static bool has_protocol_port(int fd)
{
	struct sockaddr_in a = {0};
	socklen_t len = sizeof(a);

	return !getsockname(fd, (void *)&a, &len) && ntohs(a.sin_port) >= SAINA_PORT_DATA &&
	       ntohs(a.sin_port) <= SAINA_PORT_RESULT;
}

/*
 * Keeps sockets with a port of the protocol open until one has another port, so that the kernel
 * does not give the same port again.
 */
static int open_unicast_on_free_port(struct saina_io *io, bool by_interface)
{
	int kept[SAINA_PORT_RESULT - SAINA_PORT_DATA + 1], n = 0;
	int ret = open_unicast(io, by_interface);

	while (!ret && n < (int)(sizeof(kept) / sizeof(kept[0])) && has_protocol_port(io->ucast)) {
		kept[n++] = io->ucast;
		ret = open_unicast(io, by_interface);
	}
	while (n)
		close(kept[--n]);
	return ret;
}

/* The unicast socket is not connected, because answers come from two ports. */
int saina_io_open(struct saina_io *io, const char *aggregator, const char *interface)
{
	int ret, one = 1;

	ret = parse_address(io, aggregator);
	if (ret)
		return ret;
	io->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (io->wake < 0)
		return set_error(io, -errno, "eventfd: %s", strerror(errno));
	io->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (io->timer < 0)
		return set_error(io, -errno, "timerfd: %s", strerror(errno));
	if (!interface) {
		ret = find_local(io);
		if (ret)
			return set_error(io, ret,
					 "no route to the aggregator %s: %s; is that the address of "
					 "sainad's bridge, and is this host attached to it?",
					 io->address, strerror(-ret));
	}
	ret = find_interface(io, interface);
	if (ret && interface)
		return set_error(io, ret, "interface %s does not exist or has no IPv4 address",
				 interface);
	if (ret)
		return set_error(io, ret, "no interface has the local address from which this host reaches %s",
				 io->address);

	ret = open_unicast_on_free_port(io, interface);
	if (ret)
		return ret;
	saina_io_mtu(io);
	io->errors = !setsockopt(io->ucast, IPPROTO_IP, IP_RECVERR, &one, sizeof(one));
	io->segment = true;
	return saina_io_rx_init(io);
}

/* The multicast socket is bound to the group, so it receives only results. */
int saina_io_group(struct saina_io *io, const struct saina_job *job)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET,
		.sin_port = htons(SAINA_PORT_RESULT),
		.sin_addr.s_addr = htonl(job->group),
	};
	struct ip_mreqn m = {
		.imr_multiaddr.s_addr = htonl(job->group),
		.imr_ifindex = io->ifindex,
	};
	int fd, one = 1, zero = 0, ret;

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return set_error(io, -errno, "cannot create a UDP socket: %s", strerror(errno));
	tune_socket(fd);
	/* Several workers in one network namespace receive the same results. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	/* Receive nothing of groups that other sockets have joined on other interfaces. */
	setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &zero, sizeof(zero));
	if (bind(fd, (void *)&a, sizeof(a)) ||
	    setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof(m))) {
		ret = set_error(io, -errno, "cannot join the multicast group of job %u on %s: %s",
				job->id, io->ifname, strerror(errno));
		close(fd);
		return ret;
	}
	io->mcast = fd;
	return 0;
}

bool saina_io_relink(struct saina_io *io, const struct saina_job *job)
{
	struct ip_mreqn m = {.imr_multiaddr.s_addr = htonl(job->group)};
	int old = io->ifindex, by = 0;
	socklen_t len = sizeof(by);
	uint32_t index;

	if (find_interface(io, NULL) || io->ifindex == old)
		return false;
	m.imr_ifindex = io->ifindex;
	index = htonl(io->ifindex);
	/* If this fails, results still come as answers to questions, which is slower. */
	setsockopt(io->mcast, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof(m));
	if (!getsockopt(io->ucast, IPPROTO_IP, IP_UNICAST_IF, &by, &len) && by)
		setsockopt(io->ucast, IPPROTO_IP, IP_UNICAST_IF, &index, sizeof(index));
	saina_io_mtu(io);
	return true;
}

/* With TTL 0 only the sockets and the firewall of this host see it. */
bool saina_io_loop(struct saina_io *io, const struct saina_job *job)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET,
		.sin_port = htons(SAINA_PORT_RESULT),
		.sin_addr.s_addr = htonl(job->group),
	};
	struct ip_mreqn m = {.imr_ifindex = io->ifindex};
	int zero = 0, one = 1;

	return !setsockopt(io->ucast, IPPROTO_IP, IP_MULTICAST_IF, &m, sizeof(m)) &&
	       !setsockopt(io->ucast, IPPROTO_IP, IP_MULTICAST_TTL, &zero, sizeof(zero)) &&
	       !setsockopt(io->ucast, IPPROTO_IP, IP_MULTICAST_LOOP, &one, sizeof(one)) &&
	       sendto(io->ucast, &zero, 1, 0, (void *)&a, sizeof(a)) == 1;
}

void saina_io_no_errors(struct saina_io *io)
{
	int zero = 0;

	saina_io_unreached(io);
	setsockopt(io->ucast, IPPROTO_IP, IP_RECVERR, &zero, sizeof(zero));
	io->errors = false;
}

/* One batch less than fits, because results may come twice. */
uint32_t saina_io_room(const struct saina_io *io)
{
	int size = 0;
	socklen_t len = sizeof(size);

	getsockopt(io->mcast, SOL_SOCKET, SO_RCVBUF, &size, &len);
	return size < 3 * BATCH_BYTES ? 1 : size / BATCH_BYTES - 1;
}

void saina_io_close(struct saina_io *io)
{
	if (io->ucast >= 0)
		close(io->ucast);
	if (io->mcast >= 0)
		close(io->mcast);
	if (io->wake >= 0)
		close(io->wake);
	if (io->timer >= 0)
		close(io->timer);
	free(io->rx[0]);
	free(io->rx[1]);
	free(io->buf);
}

/* With GRO a veth has the NAPI that redirected frames need. */
int saina_io_gro(struct saina_io *io)
{
	struct ethtool_value v = {.cmd = ETHTOOL_GGRO};
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	memcpy(ifr.ifr_name, io->ifname, sizeof(io->ifname));
	ifr.ifr_data = (void *)&v;
	if (ioctl(io->ucast, SIOCETHTOOL, &ifr))
		return -errno;
	return v.data != 0;
}

void saina_io_wake(struct saina_io *io)
{
	uint64_t one = 1;

	if (write(io->wake, &one, sizeof(one)) < 0)
		return; /* EAGAIN: a wake-up is pending */
}

void saina_io_set_timer(struct saina_io *io, uint64_t ns)
{
	struct itimerspec t = {.it_value = {ns / 1000000000, ns % 1000000000}};

	timerfd_settime(io->timer, 0, &t, NULL);
}

void saina_io_wait_timer(struct saina_io *io)
{
	uint64_t times;

	if (read(io->timer, &times, sizeof(times)) < 0)
		return; /* interrupted */
}

struct saina_ready saina_io_wait(struct saina_io *io, uint64_t ns)
{
	short out = saina_io_pending(io) && !io->held_ns ? POLLOUT : 0;
	struct pollfd p[4] = {
		{.fd = io->wake, .events = POLLIN},
		{.fd = io->ucast, .events = POLLIN | out},
		{.fd = io->mcast, .events = POLLIN}, /* -1 is skipped by poll() */
		{.fd = io->shm, .events = POLLIN},
	};
	struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
	struct saina_ready none = {false, false, false};
	uint64_t junk;

	if (t.tv_sec > 3600)
		t.tv_sec = 3600;
	if (ppoll(p, 4, &t, NULL) <= 0)
		return none;
	if ((p[0].revents & POLLIN) && read(io->wake, &junk, sizeof(junk)) < 0)
		return none;
	io->writable = p[1].revents & POLLOUT;
	return (struct saina_ready){p[1].revents & ~POLLOUT, p[2].revents, p[3].revents};
}
