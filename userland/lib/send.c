// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Sending.  GRADs and PULLs have one length, so they are written back to back in
 * one buffer and leave by UDP_SEGMENT, the kernel cutting them apart as late as it
 * can; where that is refused (transmit checksum offload off), by sendmmsg.
 */
#include <endian.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "private.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define BATCH_BYTES    65507 /* the largest UDP payload */
#define BATCH_SEGMENTS 64    /* the kernel's UDP_MAX_SEGMENTS of old */

int saina_send_init(struct saina *s)
{
	struct saina_batch *b = &s->batch;

	if (!b->buf)
		b->buf = aligned_alloc(64, 65536);
	if (!b->buf)
		return -ENOMEM;
	b->msg = s->msglen;
	b->max = BATCH_BYTES / b->msg;
	if (b->max > BATCH_SEGMENTS)
		b->max = BATCH_SEGMENTS;
	b->n = 0;
	b->segment = true;
	return 0;
}

void saina_send_exit(struct saina *s)
{
	free(s->batch.buf);
	s->batch.buf = NULL;
}

/* A header from this worker; the rest is 0. */
void saina_send_header(struct saina *s, struct saina_hdr *h, int type)
{
	memset(h, 0, sizeof(*h));
	h->version = SAINA_PROTO_VERSION;
	h->type = type;
	h->job = htole16(s->job);
	h->session = htole64(s->session);
	h->worker = s->worker;
}

/* Errors are loss, to be retried like loss; the first one is worth a line. */
static void send_failed(struct saina *s, int err)
{
	if (s->batch.complained)
		return;
	s->batch.complained = true;
	saina_log(s, "cannot send to the aggregator by %s: %s; trying on", s->ifname,
		  strerror(err));
}

void saina_send_control(struct saina *s, const struct sockaddr_in *to, const void *msg, size_t len)
{
	if (sendto(s->ucast, msg, len, 0, (const void *)to, sizeof(*to)) < 0)
		send_failed(s, errno);
}

static int send_segmented(struct saina *s, void *buf, unsigned int n, size_t msg)
{
	union {
		char buf[CMSG_SPACE(sizeof(uint16_t))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {.iov_base = buf, .iov_len = n * msg};
	struct msghdr m = {
		.msg_name = &s->data,
		.msg_namelen = sizeof(s->data),
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
	return sendmsg(s->ucast, &m, 0) < 0 ? -errno : 0;
}

/**
 * saina_send_probe() - send a PROBE, as a batch of two while batches are believed in
 *
 * A batch that no interface on the way cuts apart (generic XDP on the other end
 * of a veth) is one malformed message to the aggregator.  It gets no answer then.
 *
 * Returns whether it went as a batch.
 */
bool saina_send_probe(struct saina *s, const struct saina_hdr *h)
{
	struct saina_hdr twins[2] = {*h, *h};

	if (s->batch.segment && !send_segmented(s, twins, 2, sizeof(*h)))
		return true;
	saina_send_control(s, &s->data, h, sizeof(*h));
	return false;
}

static int flush_plain(struct saina *s)
{
	struct saina_batch *b = &s->batch;
	struct mmsghdr m[BATCH_SEGMENTS];
	struct iovec iov[BATCH_SEGMENTS];
	unsigned int done = 0;
	int ret;

	memset(m, 0, sizeof(m));
	for (unsigned int i = 0; i < b->n; i++) {
		iov[i].iov_base = b->buf + i * b->msg;
		iov[i].iov_len = b->msg;
		m[i].msg_hdr.msg_name = &s->data;
		m[i].msg_hdr.msg_namelen = sizeof(s->data);
		m[i].msg_hdr.msg_iov = &iov[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	while (done < b->n) {
		ret = sendmmsg(s->ucast, m + done, b->n - done, 0);
		if (ret < 0)
			return -errno;
		done += ret;
	}
	return 0;
}

void saina_send_flush(struct saina *s)
{
	struct saina_batch *b = &s->batch;
	int ret = 0;

	if (!b->n)
		return;
	if (b->segment && b->n > 1) {
		ret = send_segmented(s, b->buf, b->n, b->msg);
		/* How kernels say that the interface cannot checksum (EIO, EINVAL) or
		 * that they have never heard of UDP_SEGMENT.
		 */
		if (ret == -EIO || ret == -EINVAL || ret == -ENOPROTOOPT || ret == -EOPNOTSUPP) {
			b->segment = false;
			saina_log(s,
				  "%s does not take UDP_SEGMENT (%s): sending message by message; "
				  "`ethtool -K %s tx on` makes it faster",
				  s->ifname, strerror(-ret), s->ifname);
			ret = flush_plain(s);
		}
	} else {
		ret = flush_plain(s);
	}
	b->n = 0;
	if (ret)
		send_failed(s, -ret);
}

void *saina_send_slot(struct saina *s)
{
	struct saina_batch *b = &s->batch;

	if (b->n == b->max)
		saina_send_flush(s);
	return b->buf + b->msg * b->n++;
}
