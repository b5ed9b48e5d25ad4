// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The delay queue: frames with an injected delay.  The XDP programs put them in the ring
 * buffer saina_delay; a thread keeps them in a heap until they are due:
 *
 *  - a received frame runs through the XDP program again, as a live frame of
 *    BPF_PROG_TEST_RUN; its metadata (SAINA_DELAYED_MAGIC) prevents a second delay.  Live
 *    frames must fit a page: for longer ones the program is run without effect on the
 *    network, and a packet socket sends the frame that it returns;
 *  - a frame to transmit is sent by a packet socket.
 *
 * Before Linux 6.11 a frame that arrives during such a run on the same CPU can interrupt
 * it, and both use the same scratch memory: delays are meant for labs only.
 */
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <arpa/inet.h>
#include "monotonic.h"
#include "dp/priv.h"

#define META		sizeof(__u64)
#define LIVE_MAX	3000	/* a page without headroom and skb_shared_info */
#define QUEUE_MAX	65536	/* frames; beyond that the first due is released early */

struct delayed {
	__u64	due;
	__u64	order;		/* ties: first in, first out */
	__u32	ifindex;
	__u32	out;
	__u32	len;
	__u8	frame[];	/* META bytes of metadata, then the frame */
};

struct dp_delay {
	struct saina_dp *dp;
	struct ring_buffer *ring;
	pthread_t thread;
	int	stop;		/* eventfd */
	int	sock;		/* AF_PACKET */
	struct delayed **heap;
	size_t n, room;
	__u64 order;
};

static bool due_before(const struct delayed *a, const struct delayed *b)
{
	return a->due != b->due ? a->due < b->due : a->order < b->order;
}

static void heap_swap(struct dp_delay *d, size_t a, size_t b)
{
	struct delayed *t = d->heap[a];

	d->heap[a] = d->heap[b];
	d->heap[b] = t;
}

static int heap_push(struct dp_delay *d, struct delayed *h)
{
	size_t i = d->n;

	if (d->n == d->room) {
		size_t room = d->room ? 2 * d->room : 256;
		struct delayed **heap = realloc(d->heap, room * sizeof(*heap));

		if (!heap)
			return -ENOMEM;
		d->heap = heap;
		d->room = room;
	}
	d->heap[d->n++] = h;
	for (; i && due_before(d->heap[i], d->heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap_swap(d, i, (i - 1) / 2);
	return 0;
}

static struct delayed *heap_pop(struct dp_delay *d)
{
	struct delayed *top = d->heap[0];
	size_t i = 0, child;

	d->heap[0] = d->heap[--d->n];
	while ((child = 2 * i + 1) < d->n) {
		if (child + 1 < d->n && due_before(d->heap[child + 1], d->heap[child]))
			child++;
		if (!due_before(d->heap[child], d->heap[i]))
			break;
		heap_swap(d, i, child);
		i = child;
	}
	return top;
}

static void frame_send(struct dp_delay *d, __u32 ifindex, const void *frame, __u32 len)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_ifindex = ifindex,
		.sll_halen = ETH_ALEN,
	};

	memcpy(to.sll_addr, frame, ETH_ALEN);
	if (sendto(d->sock, frame, len, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to)) < 0)
		dp_log(d->dp, 2, "a delayed frame is lost at port #%u: %s", ifindex,
		       strerror(errno));
}

/* Adds the @n bytes at @p to @sum, as big-endian 16-bit words. */
static __u32 sum16(__u32 sum, const __u8 *p, size_t n)
{
	for (; n > 1; p += 2, n -= 2)
		sum += p[0] << 8 | p[1];
	return n ? sum + (p[0] << 8) : sum;
}

static __u16 fold(__u32 sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/*
 * With checksum offload the UDP checksum field holds the sum of the pseudo header
 * (RFC 768) only, and the device is to add the rest.  The copy of a frame loses the
 * mark that says so: complete the checksum here.
 */
static void checksum_finish(__u8 *frame, size_t len)
{
	__u8 *ip = frame + ETH_HLEN, *udp = ip + sizeof(struct iphdr);
	size_t udp_len;
	__u16 sum;

	if (len < ETH_HLEN + sizeof(struct iphdr) + sizeof(struct udphdr) ||
	    frame[12] != ETHERTYPE_IP >> 8 || frame[13] != (ETHERTYPE_IP & 0xff) || ip[0] != 0x45 ||
	    (ip[6] & 0x3f) || ip[7] || ip[9] != IPPROTO_UDP)
		return;
	udp_len = udp[4] << 8 | udp[5];
	if (udp_len < sizeof(struct udphdr) || udp_len > (size_t)(frame + len - udp))
		return;
	if ((udp[6] << 8 | udp[7]) != fold(sum16(IPPROTO_UDP + udp_len, ip + 12, 8)))
		return;
	sum = ~fold(sum16(0, udp, udp_len));
	if (!sum)
		sum = 0xffff;
	udp[6] = sum >> 8;
	udp[7] = sum;
}

static void frame_rerun(struct dp_delay *d, struct delayed *h)
{
	static __u8 out[sizeof(((struct saina_delay_msg *)0)->frame) + META];
	struct xdp_md ctx = {
		.data = META,
		.data_end = META + h->len,
		.ingress_ifindex = h->ifindex,
	};
	LIBBPF_OPTS(bpf_test_run_opts, t, .data_in = h->frame, .data_size_in = META + h->len,
		    .ctx_in = &ctx, .ctx_size_in = sizeof(ctx), .repeat = 1);

	if (h->len <= LIVE_MAX) {
		t.flags = BPF_F_TEST_XDP_LIVE_FRAMES;
		t.batch_size = 1;
	} else {
		t.data_out = out;
		t.data_size_out = sizeof(out);
	}
	if (bpf_prog_test_run_opts(d->dp->prog[DP_PROG_XDP], &t))
		dp_log(d->dp, 1, "a delayed frame is lost at port #%u: %s", h->ifindex,
		       strerror(errno));
	else if (h->len > LIVE_MAX && t.retval == XDP_REDIRECT)
		/* An answer to the sender, which is bound to this port: a frame that
		 * long is never redirected to many ports. */
		frame_send(d, h->ifindex, out, t.data_size_out);
}

static void frame_release(struct dp_delay *d, struct delayed *h)
{
	if (h->out)
		frame_send(d, h->ifindex, h->frame + META, h->len);
	else
		frame_rerun(d, h);
	free(h);
}

static int frame_enqueue(void *ctx, void *data, size_t size)
{
	const struct saina_delay_msg *m = data;
	const __u64 magic = SAINA_DELAYED_MAGIC;
	struct dp_delay *d = ctx;
	struct delayed *h;

	if (size < offsetof(struct saina_delay_msg, frame) ||
	    m->len > size - offsetof(struct saina_delay_msg, frame))
		return 0;
	h = malloc(sizeof(*h) + META + m->len);
	if (!h)
		return 0;
	h->due = m->time + 1000ull * m->delay_us;
	h->order = d->order++;
	h->ifindex = m->ifindex;
	h->out = m->out;
	h->len = m->len;
	memcpy(h->frame, &magic, META);
	memcpy(h->frame + META, m->frame, m->len);
	checksum_finish(h->frame + META, m->len);
	if (d->n >= QUEUE_MAX)
		frame_release(d, heap_pop(d));
	if (heap_push(d, h))
		free(h);
	return 0;
}

static void *delay_thread(void *arg)
{
	struct dp_delay *d = arg;
	struct pollfd fds[] = {
		{ .fd = ring_buffer__epoll_fd(d->ring), .events = POLLIN },
		{ .fd = d->stop, .events = POLLIN },
	};

	for (;;) {
		struct timespec wait, *until = NULL;
		__u64 now;

		if (d->n) {
			__u64 due = d->heap[0]->due, left;

			now = monotonic_ns();
			left = due > now ? due - now : 0;
			wait.tv_sec = left / 1000000000;
			wait.tv_nsec = left % 1000000000;
			until = &wait;
		}
		if (ppoll(fds, 2, until, NULL) < 0 && errno != EINTR)
			break;
		if (fds[1].revents)
			break;
		ring_buffer__consume(d->ring);
		now = monotonic_ns();
		while (d->n && d->heap[0]->due <= now)
			frame_release(d, heap_pop(d));
	}
	return NULL;
}

static void delay_free(struct dp_delay *d)
{
	while (d->n)
		free(heap_pop(d));
	free(d->heap);
	if (d->ring)
		ring_buffer__free(d->ring);
	if (d->stop >= 0)
		close(d->stop);
	if (d->sock >= 0)
		close(d->sock);
	free(d);
}

/**
 * saina_dp_delay_start() - start the thread that sends delayed frames when they are due
 *
 * Without it frames of ports with an injected delay are lost.
 */
int saina_dp_delay_start(struct saina_dp *dp)
{
	struct dp_delay *d;
	int err;

	if (dp->delay)
		return 0;
	d = calloc(1, sizeof(*d));
	if (!d)
		return dp_fail(dp, -ENOMEM, "no memory for delayed frames");
	d->dp = dp;
	d->stop = eventfd(0, EFD_CLOEXEC);
	d->sock = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	d->ring = ring_buffer__new(dp->map[DP_DELAY], frame_enqueue, d, NULL);
	if (d->stop < 0 || d->sock < 0 || !d->ring) {
		err = dp_fail(dp, -errno, "delayed frames: %s", strerror(errno));
		goto free;
	}
	err = -pthread_create(&d->thread, NULL, delay_thread, d);
	if (err) {
		dp_fail(dp, err, "delayed frames: %s", strerror(-err));
		goto free;
	}
	dp->delay = d;
	return 0;

free:
	delay_free(d);
	return err;
}

void dp_delay_stop(struct saina_dp *dp)
{
	struct dp_delay *d = dp->delay;
	__u64 one = 1;

	if (!d)
		return;
	dp->delay = NULL;
	if (write(d->stop, &one, sizeof(one)) == sizeof(one))
		pthread_join(d->thread, NULL);
	delay_free(d);
}
