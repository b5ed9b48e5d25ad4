// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The receive thread: waits for packets and for time to pass, takes packets
 * apart, hands messages on.
 */
#include <endian.h>
#include <errno.h>
#include <fenv.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif
#include "private.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define BUFFERS	     16
#define BUFFER_SIZE  65536 /* UDP_GRO hands over up to 64 KiB at once */
#define CONTROL_SIZE (CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint32_t)))

struct rx {
	struct mmsghdr m[BUFFERS];
	struct iovec iov[BUFFERS];
	struct sockaddr_in from[BUFFERS];
	union {
		char buf[CONTROL_SIZE];
		struct cmsghdr align;
	} control[BUFFERS];
	uint8_t *data;
};

int saina_recv_init(struct saina *s)
{
	struct rx *rx = calloc(1, sizeof(*rx));

	if (!rx)
		return -ENOMEM;
	rx->data = aligned_alloc(64, BUFFERS * BUFFER_SIZE);
	if (!rx->data) {
		free(rx);
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < BUFFERS; i++) {
		rx->iov[i].iov_base = rx->data + i * BUFFER_SIZE;
		rx->iov[i].iov_len = BUFFER_SIZE;
	}
	s->rx = rx;
	return 0;
}

void saina_recv_exit(struct saina *s)
{
	struct rx *rx = s->rx;

	if (!rx)
		return;
	free(rx->data);
	free(rx);
	s->rx = NULL;
}

/* Wakes the thread: there is something new to send. */
void saina_recv_kick(struct saina *s)
{
	uint64_t one = 1;

	if (write(s->wake, &one, sizeof(one)) < 0)
		return; /* EAGAIN: it is being woken anyway */
}

/* One datagram's worth.  The lock is held. */
void saina_recv_message(struct saina *s, const struct sockaddr_in *from, const void *msg,
			size_t len, uint64_t now)
{
	const struct saina_hdr *h = msg;

	if (!saina_check(s, from, msg, len)) {
		s->stats.bad_messages++;
		return;
	}
	s->heard_ns = now;
	switch (h->type) {
	case SAINA_MSG_RESULT:
		saina_flow_result(s, h, h + 1, now);
		break;
	case SAINA_MSG_STALE:
		saina_flow_stale(s, h, now);
		break;
	default:
		saina_join_input(s, h, h + 1, now);
		break;
	}
}

static void take_apart(struct saina *s, int which, unsigned int i, uint64_t now)
{
	struct rx *rx = s->rx;
	struct msghdr *m = &rx->m[i].msg_hdr;
	const uint8_t *p = rx->iov[i].iov_base;
	size_t left = rx->m[i].msg_len, size = left;
	uint32_t drops;
	int gso;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
			memcpy(&gso, CMSG_DATA(c), sizeof(gso));
			if (gso > 0)
				size = gso;
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
			memcpy(&drops, CMSG_DATA(c), sizeof(drops));
			saina_window_overflow(s, which, drops);
		}
	}
	/* An empty datagram is one bad message, not none. */
	do {
		size_t n = left < size ? left : size;

		saina_recv_message(s, &rx->from[i], p, n, now);
		p += n;
		left -= n;
	} while (left);
}

/* Reads what a socket has, at most once around the buffers.  Unlocked. */
static int fill(struct saina *s, int fd)
{
	struct rx *rx = s->rx;

	for (unsigned int i = 0; i < BUFFERS; i++) {
		struct msghdr *m = &rx->m[i].msg_hdr;

		m->msg_name = &rx->from[i];
		m->msg_namelen = sizeof(rx->from[i]);
		m->msg_iov = &rx->iov[i];
		m->msg_iovlen = 1;
		m->msg_control = rx->control[i].buf;
		m->msg_controllen = CONTROL_SIZE;
		m->msg_flags = 0;
	}
	return recvmmsg(fd, rx->m, BUFFERS, MSG_DONTWAIT, NULL);
}

/* Returns whether there may be more. */
static bool receive(struct saina *s, int which)
{
	int fd, n;

	pthread_mutex_lock(&s->lock);
	fd = which ? s->mcast : s->ucast;
	pthread_mutex_unlock(&s->lock);
	n = fill(s, fd);
	if (n <= 0)
		return false;
	pthread_mutex_lock(&s->lock);
	for (int i = 0; i < n; i++)
		take_apart(s, which, i, saina_now());
	pthread_mutex_unlock(&s->lock);
	return n == BUFFERS;
}

static void default_float(void)
{
	fesetenv(FE_DFL_ENV);
#if defined(__x86_64__)
	_mm_setcsr(0x1f80); /* to nearest, no flush to zero, whatever was inherited */
#endif
}

void *saina_recv_thread(void *arg)
{
	struct saina *s = arg;
	struct pollfd p[3] = {
		{.events = POLLIN},
		{.events = POLLIN},
		{.events = POLLIN},
	};
	uint64_t now, when, w;
	struct timespec t;
	uint64_t junk;

	default_float();
	for (;;) {
		pthread_mutex_lock(&s->lock);
		now = saina_now();
		when = saina_join_run(s, now);
		w = saina_flow_run(s, now);
		if (w < when)
			when = w;
		p[0].fd = s->wake;
		p[1].fd = s->ucast;
		p[2].fd = s->mcast; /* -1 is skipped by poll() */
		if (s->stop) {
			pthread_mutex_unlock(&s->lock);
			return NULL;
		}
		pthread_mutex_unlock(&s->lock);

		now = saina_now();
		when = when > now ? when - now : 0;
		t.tv_sec = when / 1000000000;
		t.tv_nsec = when % 1000000000;
		if (t.tv_sec > 3600)
			t.tv_sec = 3600;
		if (ppoll(p, 3, &t, NULL) <= 0)
			continue;
		if ((p[0].revents & POLLIN) && read(s->wake, &junk, sizeof(junk)) < 0)
			continue;
		/* Multicast results first, and all of them: the unicast answers
		 * to our impatience were sent later.
		 */
		for (int i = 0; p[2].revents && i < 16; i++)
			if (!receive(s, 1))
				break;
		if (p[1].revents)
			receive(s, 0);
	}
}
