// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Metadata of frames, which a sender with a tap (or a packet socket) chooses: what the kernel does
 * with it after the tc program, on a port with offloads and on one without.
 *
 *	tap -> saina_tc -> rig1 (as fan-out ifb) -> rig2, where all frames are checked
 *
 * Each frame that comes out must be a datagram for the workers whose messages are results, or
 * NOPs.  Section 10.1 of Documentation/datapath.rst.
 *
 *	meta_test [FRAMES [SEED]]
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include "test_job.h"
#include "harness_shm.h"
#include "lib/rng.h"
#include "dp/dp.h"

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4	/* headers before 6.2 */
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

#define MESSAGE		(sizeof(struct saina_hdr) + 4 * JOB_ELEMS)
#define DOORBELL	(sizeof(struct saina_hdr) + sizeof(struct saina_doorbell))
#define SEGMENTS	4
#define FORGED		0x29a0029a
#define VNET		sizeof(struct virtio_net_hdr)

struct harness harness;
bool agrees;

static struct job j;
static struct rng r;
static int tap = -1, out = -1;

/* What is sent: a virtio header and a frame. */
static struct {
	struct virtio_net_hdr vnet;
	uint8_t f[FRAME_MAX];
	unsigned int len, messages;
} t;

/* Frames that came out. */
static struct {
	unsigned long frames, results, completions;
	char wrong[160];
} seen;

static int32_t value(uint32_t round, uint32_t segment)
{
	return (int32_t)(round << 3 | segment) + 1;
}

static void wrong(const char *what, unsigned int n)
{
	if (!seen.wrong[0])
		snprintf(seen.wrong, sizeof(seen.wrong), "%s %u", what, n);
}

static void check_out_message(const uint8_t *m, unsigned int len)
{
	struct saina_hdr h;
	int32_t v;

	if (len < sizeof(h))
		return wrong("a message of bytes:", len);
	memcpy(&h, m, sizeof(h));
	if (h.type == SAINA_MSG_COMPLETION && len == DOORBELL) {
		seen.completions++;
		return;
	}
	if (h.type != SAINA_MSG_RESULT && h.type != SAINA_MSG_NOP)
		return wrong("a message of type", h.type);
	for (unsigned int at = sizeof(h); at + sizeof(v) <= len; at += sizeof(v)) {
		memcpy(&v, m + at, sizeof(v));
		if (v != (h.type == SAINA_MSG_RESULT ? value(h.round, h.segment) : 0))
			return wrong("an element changed, at byte", at);
	}
	if (h.type == SAINA_MSG_RESULT && (h.job != j.conf.job || h.contributors != 1 ||
					   h.version != SAINA_PROTO_VERSION))
		wrong("a result of job", h.job);
	seen.results += h.type == SAINA_MSG_RESULT;
}

static void check_out_frame(const struct virtio_net_hdr *vnet, const uint8_t *f, unsigned int len)
{
	bool unfinished = vnet->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM;
	unsigned int udp_len, size;

	if (len < FRAME_HDR || f[12] != 8 || f[13])
		return;		/* from the kernel itself: IPv6 */
	seen.frames++;
	udp_len = frame_get16(f + FRAME_UDP + 4);
	if (len != FRAME_UDP + udp_len || frame_get16(f + FRAME_IP + 2) != udp_len + 20)
		return wrong("a frame that does not end where it says, of bytes:", len);
	if (frame_get16(f + FRAME_IP + 6) != 0x4000 ||
	    frame_sum(f + FRAME_IP, 20, 0) != 0xffff ||
	    memcmp(f + FRAME_IP + 16, &j.conf.group, 4))
		return wrong("an IP header that is not of a result, fragment", frame_get16(f + FRAME_IP + 6));
	if (unfinished && (vnet->csum_start != FRAME_UDP || vnet->csum_offset != 6))
		return wrong("a checksum yet to be written, summed from", vnet->csum_start);
	if (!unfinished && frame_get16(f + FRAME_UDP + 6) &&
	    frame_sum(f + FRAME_UDP, udp_len, frame_sum(f + FRAME_IP + 12, 8, 17 + udp_len)) != 0xffff)
		return wrong("a wrong UDP checksum, frame of bytes:", len);
	if (vnet->gso_type != VIRTIO_NET_HDR_GSO_NONE && vnet->gso_type != VIRTIO_NET_HDR_GSO_UDP_L4)
		return wrong("a GSO batch of type", vnet->gso_type);
	size = vnet->gso_type ? vnet->gso_size : udp_len - 8;
	for (unsigned int at = FRAME_HDR; at < len; at += size)
		check_out_message(f + at, len - at < size ? len - at : size);
}

/* Checks all frames that came out; waits @ms for the first. */
static void check_out(int ms)
{
	static uint8_t buf[VNET + 66000];
	struct pollfd p = { .fd = out, .events = POLLIN };
	ssize_t n;

	while (poll(&p, 1, ms) > 0) {
		n = recv(out, buf, sizeof(buf), MSG_DONTWAIT);
		/* EINVAL: a GSO batch of UDP that this kernel has no name for (6.1) */
		if (n >= (ssize_t)VNET)
			check_out_frame((void *)buf, buf + VNET, n - VNET);
		ms = 0;
	}
}

/* A frame as a worker's kernel makes it: @n gradients of a new round. */
static void good(unsigned int n)
{
	struct saina_job_rt rt;
	uint8_t one[FRAME_MAX];
	int32_t v[JOB_ELEMS];

	if (saina_dp_job_rt(harness.dp, j.conf.job, &rt))
		rt.next_round = 0;
	memset(&t, 0, sizeof(t));
	t.messages = n;
	t.len = FRAME_HDR;
	for (unsigned int s = 0; s < n; s++) {
		for (unsigned int i = 0; i < JOB_ELEMS; i++)
			v[i] = value(rt.next_round, s);
		job_frame(&j, one, SAINA_MSG_GRAD, 0, rt.next_round, s, v);
		memcpy(t.f, one, FRAME_HDR);
		memcpy(t.f + t.len, one + FRAME_HDR, MESSAGE);
		t.len += MESSAGE;
	}
	frame_resize(t.f, t.len);
	t.vnet.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	t.vnet.csum_start = FRAME_UDP;
	t.vnet.csum_offset = 6;
	t.vnet.hdr_len = FRAME_HDR;
	if (n > 1) {
		t.vnet.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4;
		t.vnet.gso_size = MESSAGE;
	}
}

/* The lengths cover only the first @n messages; those behind are forged. */
static void forge_behind(unsigned int n)
{
	unsigned int len = FRAME_HDR + n * MESSAGE;

	for (unsigned int i = n; i < t.messages; i++) {
		struct saina_hdr *h = (void *)(t.f + FRAME_HDR + i * MESSAGE);

		h->type = SAINA_MSG_RESULT;
		h->contributors = 1;
		for (unsigned int e = 0; e < JOB_ELEMS; e++)
			((int32_t *)(h + 1))[e] = FORGED;
	}
	frame_resize(t.f, len);
}

/* A DOORBELL for segment 0 of a new round, a forged result behind its datagram. */
static void doorbell(void)
{
	struct saina_input_head *in = harness_shm_input(&harness, j.conf.job, 0, 0);
	struct saina_doorbell posted = { .posted = 1 };
	struct saina_hdr *h = (void *)(t.f + FRAME_HDR);

	good(2);
	t.vnet.gso_type = t.vnet.gso_size = 0;
	forge_behind(1);
	memmove((uint8_t *)h + DOORBELL, (uint8_t *)h + MESSAGE, MESSAGE);
	t.len = FRAME_HDR + DOORBELL + MESSAGE;
	in->session = h->session;
	in->round = h->round;
	in->segment = 0;
	in->exponent = h->exponent;
	h->type = SAINA_MSG_DOORBELL;
	h->count = 0;
	memcpy(h + 1, &posted, sizeof(posted));
	frame_resize(t.f, FRAME_HDR + DOORBELL);
}

/* Sends the frame; false if the kernel refuses it. */
static bool send_frame_out(void)
{
	struct {
		struct virtio_net_hdr vnet;
		uint8_t f[FRAME_MAX];
	} __attribute__((packed)) one = { .vnet = t.vnet };

	memcpy(one.f, t.f, t.len);
	return write(tap, &one, VNET + t.len) == (ssize_t)(VNET + t.len);
}

static unsigned long fragments(void)
{
	struct saina_counters c = {};

	saina_dp_counters(harness.dp, -1, -1, &c);
	return c.c[SAINA_C_FRAGMENT];
}

static void begin(void)
{
	memset(&seen, 0, sizeof(seen));
}

static void verdict(bool good, const char *port, const char *what)
{
	if (seen.wrong[0])
		tap_note("%s", seen.wrong);
	tap_ok(good && !seen.wrong[0], "meta: port with offloads %s: %s", port, what);
}

static void test_cases(const char *port, bool countable)
{
	static const uint8_t types[] = { VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_UDP,
					 VIRTIO_NET_HDR_GSO_TCPV6, 0x81, 0x25, 0x45, 0x65 };
	unsigned long before = fragments(), taken = 0;
	bool ok, super;

	begin();
	good(SEGMENTS);
	super = send_frame_out();
	check_out(200);
	if (!super)
		tap_note("this kernel takes no GSO batches of UDP from a tap (6.1)");
	ok = !super || !countable || seen.results == SEGMENTS;
	good(1);
	ok &= send_frame_out();
	check_out(200);
	verdict(ok && fragments() == before, port, "frames as workers send them are answered");

	begin();
	good(SEGMENTS);
	forge_behind(1);
	taken += send_frame_out();
	good(SEGMENTS);
	forge_behind(2);
	taken += send_frame_out();
	check_out(200);
	verdict(taken == (super ? 2 : 0) && fragments() == before + taken && !seen.frames, port,
		"a GSO batch that goes on behind its datagram does not come out");

	begin();
	before += taken;
	taken = 0;
	good(2);
	t.vnet.gso_type = t.vnet.gso_size = 0;
	forge_behind(1);
	ok = send_frame_out();
	check_out(200);
	verdict(ok && fragments() == before && seen.results == 1, port,
		"what lies behind the datagram of a single message does not come out");

	begin();
	doorbell();
	ok = send_frame_out();
	check_out(200);
	ok &= seen.completions == 1 && seen.frames == 1;
	good(2);
	t.vnet.gso_type = t.vnet.gso_size = 0;
	((struct saina_hdr *)(t.f + FRAME_HDR))->type = SAINA_MSG_PULL;
	((struct saina_hdr *)(t.f + FRAME_HDR))->round--;
	forge_behind(1);
	ok &= send_frame_out();
	check_out(200);
	/* a PULL is answered to its sender */
	verdict(ok && fragments() == before && seen.frames == 1, port,
		"what lies behind the datagram of a DOORBELL or a PULL does not come out");

	begin();
	for (unsigned int at = 0; at + 2 < FRAME_HDR + MESSAGE; at += 10) {
		if (at == 40)
			continue;
		good(1);
		t.vnet.csum_start = at < 34 ? 0 : at - 4;
		t.vnet.csum_offset = at - t.vnet.csum_start;
		taken += send_frame_out();
	}
	check_out(200);
	verdict(taken && fragments() == before + taken && !seen.frames, port,
		"a checksum to be written elsewhere: the frame does not come out");

	begin();
	before += taken;
	taken = 0;
	for (unsigned int i = 0; i < sizeof(types); i++) {
		good(SEGMENTS);
		t.vnet.gso_type = types[i];
		t.vnet.gso_size = 200;
		taken += send_frame_out();
	}
	check_out(200);
	verdict(fragments() == before + taken && !seen.frames, port,
		"GSO batches of TCP, of UFO and of tunnels do not come out");

	/* the kernel takes the tag out of the frame before the program sees it */
	begin();
	before = fragments();
	good(1);
	memmove(t.f + 16, t.f + 12, t.len - 12);
	frame_be16(t.f + 12, 0x8100);
	frame_be16(t.f + 14, 0);
	t.len += 4;
	t.vnet.csum_start += 4;
	t.vnet.hdr_len += 4;
	ok = send_frame_out();
	check_out(200);
	verdict(ok && fragments() == before + 1 && !seen.frames, port,
		"a gradient behind a priority tag does not come out");
}

static void corrupt(void)
{
	switch (rng_below(&r, 9)) {
	case 0:
		t.vnet.flags = rng_below(&r, 8);
		break;
	case 1:
		t.vnet.gso_type = rng_u64(&r);
		break;
	case 2:
		t.vnet.gso_type = rng_below(&r, 6) | (rng_chance(&r, 300) ? 0x80 : 0);
		break;
	case 3:
		t.vnet.gso_size = rng_chance(&r, 500) ? rng_u64(&r) : rng_below(&r, 2 * MESSAGE);
		break;
	case 4:
		t.vnet.csum_start = rng_below(&r, rng_chance(&r, 500) ? 60 : t.len);
		break;
	case 5:
		t.vnet.csum_offset = rng_chance(&r, 500) ? rng_below(&r, 30) : rng_below(&r, t.len);
		break;
	case 6:
		t.vnet.hdr_len = rng_below(&r, t.len + 20);
		break;
	case 7:
		forge_behind(rng_range(&r, 1, t.messages));
		break;
	case 8:
		frame_be16(t.f + FRAME_UDP + 6, rng_u64(&r));
		break;
	}
}

static void test_random(const char *port, unsigned int frames)
{
	unsigned int taken = 0;

	begin();
	for (unsigned int i = 0; i < frames && !seen.wrong[0]; i++) {
		good(rng_range(&r, 1, SEGMENTS));
		for (unsigned int n = rng_below(&r, 4); n; n--)
			corrupt();
		taken += send_frame_out();
		check_out(0);
		if (seen.wrong[0])
			tap_note("frame %u: flags %#x gso_type %#x gso_size %u csum %u + %u hdr_len %u, %u bytes, IP says %u",
				 i, t.vnet.flags, t.vnet.gso_type, t.vnet.gso_size, t.vnet.csum_start,
				 t.vnet.csum_offset, t.vnet.hdr_len, t.len, frame_get16(t.f + FRAME_IP + 2));
	}
	check_out(200);
	verdict(taken && seen.results, port, "random metadata change no result");
	tap_note("%u of %u frames taken by the tap, %lu came out with %lu results", taken, frames,
		 seen.frames, seen.results);
}

static void open_tap(void)
{
	struct ifreq ifr = { .ifr_name = "tap0",
			     .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };

	tap = open("/dev/net/tun", O_RDWR);
	if (tap < 0)
		tap_skip_all("there is no /dev/net/tun");
	if (ioctl(tap, TUNSETIFF, &ifr) || system("ip link set tap0 up"))
		tap_bail("tap0: %m");
}

static void open_out(void)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
				  .sll_ifindex = harness.port[2] };
	int on = 1, much = 8 << 20;

	if (system("ip link set rig1 up && ip link set rig2 up"))
		tap_bail("rig1: %m");
	out = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	if (out < 0 || setsockopt(out, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) ||
	    setsockopt(out, SOL_SOCKET, SO_RCVBUFFORCE, &much, sizeof(much)) ||
	    bind(out, (struct sockaddr *)&at, sizeof(at)))
		tap_bail("packet socket: %m");
}

static void offload_off(void)
{
	struct ethtool_value v = { .cmd = ETHTOOL_STXCSUM };
	struct ifreq ifr = { .ifr_name = "rig1", .ifr_data = (void *)&v };

	/* without checksums there is no UDP segmentation either */
	if (ioctl(out, SIOCETHTOOL, &ifr))
		tap_bail("ethtool -K rig1 tx off: %m");
}

int main(int argc, char **argv)
{
	unsigned int frames = argc > 1 ? strtoul(argv[1], NULL, 0) : 20000;
	int fanout_ifb;
	__u32 job;

	harness_open(&harness);
	open_tap();
	open_out();
	rng_seed(&r, argc > 2 ? strtoull(argv[2], NULL, 0) : 24);
	j = job_create(5, 1, SEGMENTS, policy_bsp());
	j.conf.worker[0].ifindex = if_nametoindex("tap0");
	job_publish(&j);
	if (harness_shm_set(&harness, j.conf.job, 0, true))
		tap_bail("%s", saina_dp_error(harness.dp));
	if (saina_dp_attach(harness.dp, j.conf.worker[0].ifindex, SAINA_DP_TC, false))
		tap_bail("%s", saina_dp_error(harness.dp));
	fanout_ifb = harness_map(&harness, "saina_fanout_ifb");
	job = j.conf.job;
	if (bpf_map_update_elem(fanout_ifb, &job, &harness.port[1], BPF_ANY))
		tap_bail("saina_fanout_ifb: %m");
	close(fanout_ifb);
	/* 6.1 does not hand a GSO batch of UDP to a packet socket with these headers */
	test_cases("on", false);
	test_random("on", frames);
	offload_off();
	test_cases("off", true);
	test_random("off", frames);
	close(out);
	close(tap);
	harness_close(&harness);
	return tap_done();
}
