// SPDX-License-Identifier: GPL-2.0
/* An oracle, a job in it, messages of its workers, and what is answered. */
#include <arpa/inet.h>
#include "harness.h"

struct oracle o;
struct oracle_out out;
struct saina_global g = { .mac = { 2, 0, 0, 0, 0, 1 } };

void job_make(struct saina_job_conf *c, unsigned int workers, unsigned int segments,
	      const struct saina_policy *p)
{
	static uint32_t generation;

	memset(c, 0, sizeof(*c));
	c->generation = ++generation;
	c->job = 3;
	c->state = SAINA_JOB_RUNNING;
	c->elem = SAINA_ELEM_INT32;
	c->payload = E;
	c->segments = segments;
	c->pool = 4;
	c->ring = 2;
	c->sign_words = SAINA_SIGN_WORDS(E, 1);
	c->group = htonl(SAINA_GROUP_BASE | 3);
	c->policy = *p;
	for (unsigned int w = 0; w < workers; w++) {
		struct saina_binding *b = &c->worker[w];

		c->active |= 1ull << w;
		b->ifindex = 1;
		b->ip = htonl(0x0a000101 + w);
		b->udp_port = htons(5000 + w);
		b->session = 100 + w;
		b->mac[5] = w;
		b->mac[0] = 2;
		b->flags = SAINA_BIND_BOUND;
	}
	oracle_job_publish(&o, c, 0);
}

struct saina_hdr *answer(void)
{
	return (struct saina_hdr *)(out.frame + FRAME_HDR);
}

static int32_t answer_elem(unsigned int i)
{
	int32_t v;

	memcpy(&v, out.frame + FRAME_PAYLOAD + 4 * i, 4);
	return v;
}

/* Worker @w sends a message; @v is in every element. */
int send_msg_at(const struct saina_job_conf *c, int type, unsigned int w, uint32_t round,
		uint32_t segment, int exponent, int32_t v)
{
	uint8_t f[FRAME_MAX];
	int32_t payload[E];
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION, .type = type, .elem = SAINA_ELEM_INT32,
		.job = c->job, .session = c->worker[w].session, .round = round,
		.segment = segment, .count = E, .worker = w, .exponent = exponent,
	};
	unsigned int len;

	for (int i = 0; i < E; i++)
		payload[i] = v;
	len = frame_make(f, &g, &c->worker[w], &h, payload, sizeof(payload));
	oracle_packet(&o, f, len, 1, &out);
	return out.verdict;
}

int send_msg(const struct saina_job_conf *c, int type, unsigned int w, uint32_t round,
	     uint32_t segment, int32_t v)
{
	return send_msg_at(c, type, w, round, segment, 7, v);
}

int grad(const struct saina_job_conf *c, unsigned int w, uint32_t r, uint32_t s, int32_t v)
{
	return send_msg(c, SAINA_MSG_GRAD, w, r, s, v);
}

bool answered(int verdict, uint8_t flags, uint64_t mask, int32_t sum)
{
	return verdict == ORACLE_REDIRECT && answer()->type == SAINA_MSG_RESULT &&
	       answer()->flags == flags && answer()->mask == mask &&
	       answer()->contributors == oracle_popcount(mask) && answer_elem(0) == sum &&
	       answer_elem(E - 1) == sum && frame_udp_sum(out.frame) == 0xffff &&
	       frame_sum(out.frame + FRAME_IP, 20, 0) == 0xffff;
}
