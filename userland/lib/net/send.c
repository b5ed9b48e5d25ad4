// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Sending; never blocks.  GRADs and PULLs have one length, so they are written back to back in one
 * buffer and sent with UDP_SEGMENT, which the kernel splits as late as it can.  Where that is
 * refused (transmit checksum offload is off), sendmmsg() sends them.
 *
 * Messages that the kernel refuses (firewall, no route, smaller MTU) are kept and tried again at
 * growing intervals, and nothing else is sent meanwhile.  session/timeout.c limits how long.
 */
#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include "io.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define HOLD_NS	     MSEC /* interval between the first tries */
#define HOLD_DOUBLED 8	  /* the interval doubles this often */

int saina_io_buffer(struct saina_io *io)
{
	io->buf = aligned_alloc(64, 65536);
	return io->buf ? 0 : -ENOMEM;
}

/* Notes a refusal, unless the last one had the same reason. */
static void note_refusal(struct saina_io *io, int err)
{
	if (io->noted_err == err)
		return;
	io->noted_err = err;
	saina_note(&io->notes, "cannot send to the aggregator by %s: %s; trying again", io->ifname,
		   strerror(err));
}

static int send_segmented(struct saina_io *io, const void *buf, unsigned int n, size_t msg)
{
	union {
		char buf[CMSG_SPACE(sizeof(uint16_t))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {.iov_base = (void *)buf, .iov_len = n * msg};
	struct msghdr m = {
		.msg_name = &io->data,
		.msg_namelen = sizeof(io->data),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	uint16_t size = msg;

	c->cmsg_level = SOL_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(size));
	memcpy(CMSG_DATA(c), &size, sizeof(size));
	return sendmsg(io->ucast, &m, 0) < 0 ? -errno : 0;
}

/* An ICMP error about an earlier message must not fail the next one. */
static void clear_socket_error(struct saina_io *io)
{
	socklen_t len = sizeof(int);
	int err;

	if (io->errors)
		getsockopt(io->ucast, SOL_SOCKET, SO_ERROR, &err, &len);
}

/*
 * A batch that no interface on the way splits (generic XDP on the other end of a veth) is one
 * malformed message to the aggregator and gets no answer.  Probes go in twos to find that out.
 */
bool saina_io_message(struct saina_io *io, const struct saina_session_msg *m)
{
	uint8_t twins[2 * sizeof(m->buf)];

	clear_socket_error(io);
	if (m->probe && m->twice && io->segment) {
		memcpy(twins, m->buf, m->len);
		memcpy(twins + m->len, m->buf, m->len);
		if (!send_segmented(io, twins, 2, m->len))
			return true;
	}
	if (sendto(io->ucast, m->buf, m->len, 0, (void *)(m->probe ? &io->data : &io->ctrl),
		   sizeof(io->data)) >= 0) {
		io->ctrl_err = 0;
	} else if (errno != EAGAIN) {
		io->ctrl_err = errno;
		note_refusal(io, errno);
	}
	return false;
}

static int send_plain(struct saina_io *io)
{
	struct mmsghdr m[SAINA_ASK_SEGMENTS];
	struct iovec iov[SAINA_ASK_SEGMENTS];
	unsigned int n = io->n - io->done;
	int ret;

	memset(m, 0, sizeof(m));
	for (unsigned int i = 0; i < n; i++) {
		iov[i].iov_base = io->buf + (io->done + i) * io->msg;
		iov[i].iov_len = io->msg;
		m[i].msg_hdr.msg_name = &io->data;
		m[i].msg_hdr.msg_namelen = sizeof(io->data);
		m[i].msg_hdr.msg_iov = &iov[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	ret = sendmmsg(io->ucast, m, n, 0);
	if (ret < 0)
		return -errno;
	io->done += ret;
	return 0;
}

/* Kernels before 6.9 return EINVAL for a batch of messages that are too long. */
static bool fits_mtu(const struct saina_io *io)
{
	return io->msg + SAINA_IP_UDP_LEN <= io->mtu;
}

static int send_batch(struct saina_io *io)
{
	unsigned int n = io->n - io->done;
	int ret;

	if (!io->segment || n == 1)
		return send_plain(io);
	ret = send_segmented(io, io->buf + io->done * io->msg, n, io->msg);
	if (!ret)
		io->done = io->n;
	if (ret == -EINVAL || ret == -EMSGSIZE) {
		saina_io_mtu(io);
		if (!fits_mtu(io))
			return -EMSGSIZE;
	}
	/* The interface cannot checksum (EIO, EINVAL), or the kernel lacks UDP_SEGMENT. */
	if (ret == -EIO || ret == -EINVAL || ret == -ENOPROTOOPT || ret == -EOPNOTSUPP) {
		io->segment = false;
		saina_note(&io->notes,
			   "%s does not support UDP_SEGMENT (%s): sending message by message; "
			   "`ethtool -K %s tx on` makes it faster",
			   io->ifname, strerror(-ret), io->ifname);
		ret = 0;
	}
	return ret;
}

/* Do not try again at once.  @err is EAGAIN if the socket is full, whatever poll() said. */
static void hold_back(struct saina_io *io, int err, uint64_t now)
{
	io->held_ns =
		now + (HOLD_NS << (io->refusals < HOLD_DOUBLED ? io->refusals : HOLD_DOUBLED));
	if (err == EAGAIN)
		return;
	io->err = err;
	io->refusals++;
	io->congested |= err == ENOBUFS;
	if (err == EMSGSIZE)
		saina_io_mtu(io);
	note_refusal(io, err);
}

void saina_io_flush(struct saina_io *io, uint64_t now)
{
	unsigned int done = io->done;
	int ret = 0;

	if (now < io->held_ns)
		return;
	io->held_ns = 0;
	while (!ret && saina_io_pending(io))
		ret = send_batch(io);
	if (io->done != done) {
		io->refusals = 0;
		io->err = 0;
	}
	if (ret && (ret != -EAGAIN || (io->writable && io->done == done)))
		hold_back(io, -ret, now);
	io->writable = false;
}

void saina_io_send(struct saina_io *io, unsigned int n, size_t len, uint64_t now)
{
	io->n = n;
	io->msg = len;
	io->done = 0;
	saina_io_flush(io, now);
}
