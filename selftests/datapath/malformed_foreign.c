// SPDX-License-Identifier: GPL-2.0-or-later
/* Foreign traffic on the bridge, some of it similar to ours. */
#include <arpa/inet.h>
#include <stdio.h>
#include "malformed.h"
#include "sim_channel.h"

/* Starts from a worker's gradient; where there is no job, from random bytes. */
static void plausible(struct sim *w, struct malformed *s)
{
	struct sim_job *j = &w->job[rng_below(&w->rng, SIM_JOBS)];
	struct message m = { .type = SAINA_MSG_GRAD };

	for (unsigned int i = 0; i < FRAME_PAYLOAD + 64; i += 8) {
		uint64_t x = rng_u64(&w->rng);

		memcpy(s->frame + i, &x, 8);
	}
	s->len = rng_range(&w->rng, FRAME_HDR, FRAME_PAYLOAD + 64);
	s->ifindex = w->harness->port[rng_below(&w->rng, HARNESS_PORTS)];
	if (!j->present)
		return;
	m.job = j->conf.job;
	m.worker = rng_below(&w->rng, j->workers);
	m.session = j->conf.worker[m.worker].session;
	m.round = w->harness->o.job[m.job].rt.next_round;
	s->len = sim_frame(w, &m, s->frame);
	s->ifindex = j->conf.worker[m.worker].ifindex;
}

void malformed_foreign(struct sim *w, struct malformed *s)
{
	struct rng *r = &w->rng;
	uint8_t *f = s->frame;
	const char *what;

	plausible(w, s);
	switch (rng_below(r, 17)) {
	case 0:
		what = "ARP";
		frame_be16(f + 12, 0x0806);
		s->len = 60;
		break;
	case 1:
		what = "IPv6";
		frame_be16(f + 12, 0x86dd);
		f[14] = 0x60;
		break;
	case 2:
		what = "TCP to our port";
		f[FRAME_IP + 9] = 6;
		break;
	case 3:
		what = "ICMP";
		f[FRAME_IP + 9] = 1;
		break;
	case 4:
		what = "a gradient in a VLAN";
		memmove(f + 16, f + 12, s->len - 12);
		frame_be16(f + 12, 0x8100);
		frame_be16(f + 14, rng_below(r, 4096));
		s->len += 4;
		break;
	case 5:
		what = "a gradient in 802.1ad";
		memmove(f + 16, f + 12, s->len - 12);
		frame_be16(f + 12, 0x88a8);
		frame_be16(f + 14, 7);
		s->len += 4;
		break;
	case 6:
		what = "UDP to another port of ours";
		frame_be16(f + FRAME_UDP + 2, rng_chance(r, 500) ? 53 : SAINA_PORT_RESULT);
		frame_be16(f + FRAME_UDP, 1234);
		break;
	case 7:
		what = "UDP to our port of another address";
		f[FRAME_IP + 19] ^= 1 << rng_below(r, 8);
		break;
	case 8:
		what = "a later fragment to our address";
		frame_be16(f + FRAME_IP + 6, rng_range(r, 1, 0x1fff) | rng_below(r, 2) << 13);
		break;
	case 9:
		what = "IP options";
		memmove(f + FRAME_IP + 24, f + FRAME_IP + 20, s->len - FRAME_IP - 20);
		f[FRAME_IP] = 0x46;
		memset(f + FRAME_IP + 20, 1, 4);
		s->len += 4;
		break;
	case 10:
		what = "IHL below 5";
		f[FRAME_IP] = 0x40 | rng_below(r, 5);
		break;
	case 11:
		what = "IP version not 4";
		f[FRAME_IP] = 0x65;
		break;
	case 12:
		what = "a frame that ends within its headers";
		s->len = rng_range(r, 14, FRAME_HDR - 1);
		break;
	case 13:
		what = "noise";
		for (unsigned int i = 0; i < 128; i++)
			f[i] = rng_u64(r);
		s->len = rng_range(r, 14, 128);
		break;
	case 14:
		what = "UDP from our address, other ports";
		memcpy(f + FRAME_IP + 12, &w->harness->g.ip, 4);
		frame_be16(f + FRAME_UDP, 999);
		frame_be16(f + FRAME_UDP + 2, 999);
		break;
	case 15:
		what = "RESULT port of a group that is not ours";
		frame_be16(f + FRAME_UDP + 2, SAINA_PORT_RESULT);
		f[FRAME_IP + 16] = 239;
		f[FRAME_IP + 17] = rng_chance(r, 500) ? 189 : 191;
		break;
	default:
		what = "our ports between other hosts";
		frame_be16(f + FRAME_UDP, SAINA_PORT_DATA);
		f[FRAME_IP + 12] = 192;
		f[FRAME_IP + 16] = 192;
		break;
	}
	snprintf(s->what, sizeof(s->what), "foreign: %s", what);
}
