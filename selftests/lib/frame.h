/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames as workers send them, for tests: the layout of Ethernet, IPv4 and UDP
 * by hand, so that a mistake in the program's headers cannot hide here.
 */
#ifndef SAINA_TEST_FRAME_H
#define SAINA_TEST_FRAME_H

#include <stdint.h>
#include <string.h>
#include "saina/bpf.h"

#define FRAME_MAX	9216
#define FRAME_IP	14
#define FRAME_UDP	34
#define FRAME_HDR	42
#define FRAME_PAYLOAD	(FRAME_HDR + (unsigned int)sizeof(struct saina_hdr))
/* Bytes in one piece, unless asked for fewer: bpf_prog_test_run_xdp() takes a page without
 * XDP_PACKET_HEADROOM and struct skb_shared_info.
 */
#define FRAME_LINEAR	(4096u - 256 - 320)

static inline void frame_be16(uint8_t *p, unsigned int v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static inline unsigned int frame_get16(const uint8_t *p)
{
	return p[0] << 8 | p[1];
}

/* RFC 1071 over @len bytes, slow and plain; @sum: of what went before. */
static inline uint32_t frame_sum(const uint8_t *p, unsigned int len, uint32_t sum)
{
	for (; len > 1; p += 2, len -= 2)
		sum += frame_get16(p);
	if (len)
		sum += p[0] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static inline void frame_ip_checksum(uint8_t *f)
{
	frame_be16(f + FRAME_IP + 10, 0);
	frame_be16(f + FRAME_IP + 10, ~frame_sum(f + FRAME_IP, 20, 0));
}

/* 0xffff if the UDP checksum of a frame is right, over all it covers. */
static inline uint32_t frame_udp_sum(const uint8_t *f)
{
	unsigned int len = frame_get16(f + FRAME_UDP + 4);

	return frame_sum(f + FRAME_UDP, len, frame_sum(f + FRAME_IP + 12, 8, 17 + len));
}

/*
 * A message of the worker bound as @b: @len bytes of payload behind @hdr, from
 * the worker's addresses to the aggregator's.  Returns the frame's length.
 */
static inline unsigned int frame_make(uint8_t *f, const struct saina_global *g,
				      const struct saina_binding *b,
				      const struct saina_hdr *hdr, const void *payload,
				      unsigned int len)
{
	unsigned int udp_len = 8 + sizeof(*hdr) + len;

	memcpy(f, g->mac, 6);
	memcpy(f + 6, b->mac, 6);
	frame_be16(f + 12, 0x0800);
	memset(f + FRAME_IP, 0, 28);
	f[FRAME_IP] = 0x45;
	frame_be16(f + FRAME_IP + 2, 20 + udp_len);
	frame_be16(f + FRAME_IP + 6, 0x4000);
	f[FRAME_IP + 8] = 64;
	f[FRAME_IP + 9] = 17;
	memcpy(f + FRAME_IP + 12, &b->ip, 4);
	memcpy(f + FRAME_IP + 16, &g->ip, 4);
	frame_ip_checksum(f);
	memcpy(f + FRAME_UDP, &b->udp_port, 2);
	frame_be16(f + FRAME_UDP + 2, SAINA_PORT_DATA);
	frame_be16(f + FRAME_UDP + 4, udp_len);
	memcpy(f + FRAME_HDR, hdr, sizeof(*hdr));
	if (payload)
		memcpy(f + FRAME_PAYLOAD, payload, len);
	else
		memset(f + FRAME_PAYLOAD, 0, len);
	return FRAME_PAYLOAD + len;
}

/* The frame is @len bytes now: its lengths, and what the kernel leaves for a checksum if the device
 * is to write it. */
static inline void frame_resize(uint8_t *f, unsigned int len)
{
	frame_be16(f + FRAME_IP + 2, len - FRAME_IP);
	frame_be16(f + FRAME_UDP + 4, len - FRAME_UDP);
	frame_ip_checksum(f);
	frame_be16(f + FRAME_UDP + 6, frame_sum(f + FRAME_IP + 12, 8, 17 + len - FRAME_UDP));
}

#endif /* SAINA_TEST_FRAME_H */
