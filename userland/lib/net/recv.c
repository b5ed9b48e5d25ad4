// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Receiving: many datagrams with one call, and with UDP_GRO many messages in each. */
#include <errno.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <linux/errqueue.h>
#include "io.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define BUFFER_SIZE  65536 /* UDP_GRO hands over up to 64 KiB at once */
#define CONTROL_SIZE (CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint32_t)))

struct saina_rx {
	uint8_t data[SAINA_IO_BUFFERS][BUFFER_SIZE] __attribute__((aligned(64)));
	struct mmsghdr m[SAINA_IO_BUFFERS];
	struct iovec iov[SAINA_IO_BUFFERS];
	struct sockaddr_in from[SAINA_IO_BUFFERS];
	union {
		char buf[CONTROL_SIZE];
		struct cmsghdr align;
	} control[SAINA_IO_BUFFERS];
};

int saina_io_rx_init(struct saina_io *io)
{
	for (int i = 0; i < 2; i++)
		io->rx[i] = aligned_alloc(64, sizeof(*io->rx[i]));
	return io->rx[0] && io->rx[1] ? 0 : -ENOMEM;
}

/*
 * Fills each buffer at most once.  Reads whole batches only two at a time: more would evict each
 * other from the cache before they are parsed.
 */
int saina_io_receive(struct saina_io *io, bool mcast)
{
	unsigned int n = io->batches && mcast ? 2 : SAINA_IO_BUFFERS;
	struct saina_rx *rx = io->rx[mcast];
	int ret;

	for (unsigned int i = 0; i < n; i++) {
		rx->iov[i] = (struct iovec){rx->data[i], BUFFER_SIZE};
		rx->m[i].msg_hdr = (struct msghdr){
			.msg_name = &rx->from[i],
			.msg_namelen = sizeof(rx->from[i]),
			.msg_iov = &rx->iov[i],
			.msg_iovlen = 1,
			.msg_control = rx->control[i].buf,
			.msg_controllen = CONTROL_SIZE,
		};
	}
	ret = recvmmsg(mcast ? io->mcast : io->ucast, rx->m, n, MSG_DONTWAIT, NULL);
	io->more = ret == (int)n;
	if (mcast && ret > 0)
		io->batches = rx->m[0].msg_len > BUFFER_SIZE / 2;
	return ret;
}

static bool same_address(const struct sockaddr_in *a, const struct sockaddr_in *b)
{
	return a->sin_addr.s_addr == b->sin_addr.s_addr && a->sin_port == b->sin_port;
}

void saina_io_datagram(struct saina_io *io, bool mcast, int i, struct saina_datagram *d)
{
	struct saina_rx *rx = io->rx[mcast];
	struct msghdr *m = &rx->m[i].msg_hdr;
	uint32_t drops;
	int gso;

	d->p = rx->data[i];
	d->left = d->size = rx->m[i].msg_len;
	d->from = same_address(&rx->from[i], &io->ctrl)			     ? SAINA_FROM_CTRL
		  : same_address(&rx->from[i], &io->data)		     ? SAINA_FROM_DATA
		  : mcast && rx->from[i].sin_addr.s_addr == io->local.s_addr ? SAINA_FROM_SELF
									     : SAINA_FROM_OTHERS;
	d->overflow = false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
			memcpy(&gso, CMSG_DATA(c), sizeof(gso));
			if (gso > 0)
				d->size = gso;
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
			memcpy(&drops, CMSG_DATA(c), sizeof(drops));
			d->overflow = drops != io->drops[mcast];
			io->drops[mcast] = drops;
		}
	}
}

static enum saina_unreached unreached_of(const struct sock_extended_err *e)
{
	if (e->ee_origin != SO_EE_ORIGIN_ICMP || e->ee_type != ICMP_DEST_UNREACH)
		return SAINA_UNREACHED_NOT;
	switch (e->ee_code) {
	case ICMP_PORT_UNREACH:
		return SAINA_UNREACHED_CLOSED;
	case ICMP_NET_ANO:
	case ICMP_HOST_ANO:
	case ICMP_PKT_FILTERED:
		return SAINA_UNREACHED_FILTERED;
	default: /* also from this host's kernel, when ARP gets no answer */
		return SAINA_UNREACHED_NOBODY;
	}
}

enum saina_unreached saina_io_unreached(struct saina_io *io)
{
	enum saina_unreached last = SAINA_UNREACHED_NOT, now;
	union {
		char buf[CMSG_SPACE(sizeof(struct sock_extended_err) + sizeof(struct sockaddr_in))];
		struct cmsghdr align;
	} control;
	struct sock_extended_err e;

	while (io->errors) {
		struct msghdr m = {.msg_control = control.buf,
				   .msg_controllen = sizeof(control.buf)};

		if (recvmsg(io->ucast, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			break;
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
			if (c->cmsg_level != IPPROTO_IP || c->cmsg_type != IP_RECVERR)
				continue;
			memcpy(&e, CMSG_DATA(c), sizeof(e));
			now = unreached_of(&e);
			last = now ? now : last;
		}
	}
	return last;
}
