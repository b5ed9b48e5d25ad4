// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Is the oracle itself right?  Cases small enough to be worked out by hand,
 * and proof that the ledger notices what it is there to notice.
 */
#include <arpa/inet.h>
#include "lib/frame.h"
#include "lib/tap.h"
#include "oracle.h"
#include "ledger.h"
#include "recompute.h"

#define E	64	/* elements */

static struct oracle o;
static struct oracle_out out;
static struct saina_global g = { .mac = { 2, 0, 0, 0, 0, 1 } };

static void job_make(struct saina_job_conf *c, unsigned int workers, unsigned int segments,
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

static struct saina_hdr *answer(void)
{
	return (struct saina_hdr *)(out.frame + FRAME_HDR);
}

static int32_t answer_elem(unsigned int i)
{
	int32_t v;

	memcpy(&v, out.frame + FRAME_PAYLOAD + 4 * i, 4);
	return v;
}

/* Worker @w says @v in every element. */
static int say(const struct saina_job_conf *c, int type, unsigned int w, uint32_t round,
	       uint32_t segment, int32_t v)
{
	uint8_t f[FRAME_MAX];
	int32_t payload[E];
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION, .type = type, .elem = SAINA_ELEM_INT32,
		.job = c->job, .session = c->worker[w].session, .round = round,
		.segment = segment, .count = E, .worker = w, .exponent = 7,
	};
	unsigned int len;

	for (int i = 0; i < E; i++)
		payload[i] = v;
	len = frame_make(f, &g, &c->worker[w], &h, payload, sizeof(payload));
	oracle_packet(&o, f, len, 1, &out);
	return out.verdict;
}

static int grad(const struct saina_job_conf *c, unsigned int w, uint32_t r, uint32_t s, int32_t v)
{
	return say(c, SAINA_MSG_GRAD, w, r, s, v);
}

static bool answered(int verdict, uint8_t flags, uint64_t mask, int32_t sum)
{
	return verdict == ORACLE_REDIRECT && answer()->type == SAINA_MSG_RESULT &&
	       answer()->flags == flags && answer()->mask == mask &&
	       answer()->contributors == oracle_popcount(mask) && answer_elem(0) == sum &&
	       answer_elem(E - 1) == sum && frame_udp_sum(out.frame) == 0xffff &&
	       frame_sum(out.frame + FRAME_IP, 20, 0) == 0xffff;
}

static void test_fastest(void)
{
	struct saina_policy p = { .seq = 1, .mode = SAINA_POLICY_FASTEST, .late = 1, .k = 2 };
	struct saina_job_conf c;

	job_make(&c, 3, 1, &p);
	tap_ok(grad(&c, 0, 0, 0, 5) == ORACLE_DROP && out.reason < 0, "slot: the first gradient is stored and not answered");
	tap_ok(grad(&c, 0, 0, 0, 9) == ORACLE_DROP && out.reason == SAINA_C_DUPLICATE,
	       "slot: a duplicate is dropped");
	tap_ok(answered(grad(&c, 1, 0, 0, 6), 0, 3, 11) && out.multicast && out.to == 7 &&
	       answer()->k == 2 && answer()->worker == 0xff, "slot: the k-th gradient makes the result");
	tap_ok(answered(grad(&c, 2, 0, 0, 100), SAINA_F_LATE, 3, 11) && answer()->aux == 0 &&
	       out.to == 4, "slot: a late gradient gets the result and is not added");
	tap_ok(answered(grad(&c, 0, 0, 0, 5), SAINA_F_RESEND, 3, 11) && answer()->aux == 1,
	       "slot: a contributor that sends again gets the result again");
	tap_ok(answered(say(&c, SAINA_MSG_PULL, 2, 0, 0, 0), SAINA_F_PULLED | SAINA_F_LATE, 3, 11),
	       "slot: PULL gets the result");
	tap_ok(grad(&c, 0, 2, 0, 1) == ORACLE_DROP && out.reason == SAINA_C_FUTURE,
	       "rounds: a gradient two rounds ahead is refused");
	grad(&c, 2, 1, 0, -4);
	tap_ok(grad(&c, 2, 2, 0, 1) == ORACLE_DROP && out.reason == SAINA_C_ROUND_BUSY,
	       "rounds: the next round does not open while a slot is open");
	tap_ok(answered(grad(&c, 1, 1, 0, 3), 0, 6, -1), "slot: its next use begins with a store");
	grad(&c, 0, 2, 0, 1);
	tap_ok(answered(grad(&c, 1, 0, 0, 1), SAINA_F_RESEND, 3, 11),
	       "ring: a round is kept until its entry is used again");
	grad(&c, 2, 2, 0, 1);
	tap_ok(grad(&c, 1, 0, 0, 1) == ORACLE_REDIRECT && answer()->type == SAINA_MSG_STALE &&
	       answer()->slot_round == 3 && answer()->aux == 2 && out.len == FRAME_PAYLOAD,
	       "ring: a round whose entry was used again is stale");
	tap_ok(answered(grad(&c, 0, 1, 0, 1), SAINA_F_LATE, 6, -1), "ring: the round before is there");
}

static void test_death(void)
{
	struct saina_policy p = { .seq = 1, .mode = SAINA_POLICY_BSP, .late = 1 };
	struct saina_job_conf c;

	job_make(&c, 3, 1, &p);
	grad(&c, 0, 0, 0, 1);
	grad(&c, 1, 0, 0, 2);
	c.active = 3;
	oracle_job_publish(&o, &c, 0);
	tap_ok(grad(&c, 2, 0, 0, 4) == ORACLE_DROP && out.reason == SAINA_C_INACTIVE,
	       "members: a dead worker's gradient is dropped");
	tap_ok(answered(grad(&c, 0, 0, 0, 1), SAINA_F_DEGRADED, 3, 3) && answer()->k == 3,
	       "members: after a death a duplicate completes the slot");
	tap_ok(answered(grad(&c, 0, 1, 0, 1) == ORACLE_DROP ? grad(&c, 1, 1, 0, 1) : -1, 0, 3, 2) &&
	       answer()->k == 2, "members: the next round waits for the live workers");
	tap_ok(oracle_popcount(o.job[3].rt.members) == 2 && o.job[3].rt.k == 2, "members: members and k follow a death");
}

static void test_sfcd(void)
{
	struct saina_policy p = { .seq = 1, .mode = SAINA_POLICY_SFCD, .late = 1, .k = 1,
				  .k_min = 1, .s_th = 500, .c_th = 2, .stride = 1 };
	struct saina_job_conf c;
	unsigned int k[8];

	job_make(&c, 4, 2, &p);
	for (uint32_t r = 0; r < 8; r++) {
		grad(&c, 0, r, 0, r & 1 ? 1 : -1);	/* all its signs flip each round */
		k[r] = o.job[3].rt.k;
		for (unsigned int w = 1; w < k[r]; w++)
			grad(&c, w, r, 0, 0);
		for (unsigned int w = 0; w < k[r]; w++)
			grad(&c, w, r, 1, 1);		/* these never flip */
	}
	/* round 0 primes; 64 of 128 flip from then on: k rises every 2 rounds */
	tap_ok(k[0] == 1 && k[1] == 1 && k[2] == 1 && k[3] == 2 && k[4] == 2 && k[5] == 3 &&
	       k[6] == 3 && k[7] == 4, "SFCD: k rises every c_th rounds at s_th");
	tap_ok(o.job[3].rt.last_flips == 64 && o.job[3].rt.last_observed == 128, "SFCD: flips are counted");
}

static const int32_t *said(void *arg, unsigned int w, uint32_t r, uint32_t s, int variant)
{
	static int32_t v[SAINA_WORKERS_MAX][E];

	if (variant)
		return NULL;
	for (int i = 0; i < E; i++)
		v[w][i] = 10 * w + r;
	return v[w];
}

static void test_ledger(void)
{
	struct saina_hdr h = { .version = 1, .type = SAINA_MSG_RESULT, .count = E, .worker = 0xff,
			       .contributors = 2, .mask = 3, .round = 1 };
	struct saina_hdr one = h;
	struct ledger l;
	int32_t sum[E];

	for (int i = 0; i < E; i++)
		sum[i] = 12;
	ledger_init(&l, E, 1, 0, said, NULL);
	sum[17]++;
	tap_ok(!ledger_answer(&l, &h, (uint8_t *)sum), "ledger: a wrong sum is found");
	sum[17]--;
	h.mask = 5;
	tap_ok(!ledger_answer(&l, &h, (uint8_t *)sum), "ledger: a wrong mask is found");
	h.mask = 3;
	tap_ok(ledger_answer(&l, &h, (uint8_t *)sum), "ledger: a right result is accepted");
	tap_ok(!ledger_answer(&l, &h, (uint8_t *)sum), "ledger: a second result is found");
	one.worker = 1;
	one.flags = SAINA_F_LATE;
	one.aux = 2;
	tap_ok(!ledger_answer(&l, &one, (uint8_t *)sum), "ledger: a wrong late flag is found");
	one.flags = SAINA_F_RESEND;
	tap_ok(ledger_answer(&l, &one, (uint8_t *)sum), "ledger: a right RESEND is accepted");
	one.aux = 1;
	tap_ok(!ledger_answer(&l, &one, (uint8_t *)sum), "ledger: a wrong aux is found");
	one.aux = 2;
	sum[0] = 1;
	tap_ok(!ledger_answer(&l, &one, (uint8_t *)sum), "ledger: a RESEND with another sum is found");
	ledger_exit(&l);
}

static void test_recompute(void)
{
	struct saina_policy p = { .seq = 1, .mode = SAINA_POLICY_SFCD, .k = 1, .k_min = 1,
				  .s_th = 500, .c_th = 2, .stride = 1 };
	struct saina_hdr h = { .type = SAINA_MSG_RESULT, .worker = 0xff, .policy = 1, .k = 1 };
	struct saina_job_rt rt = { .members = 3, .k_next = 1, .last_observed = E };
	int32_t v[E] = {};
	struct recompute c;
	bool ok;

	recompute_init(&c, E, 1);
	recompute_policy(&c, &p);
	ok = recompute_result(&c, &h, (uint8_t *)v, &rt);
	memset(v, 0xff, sizeof(v) / 2);
	h.round = rt.last_round = 1;
	rt.last_flips = E / 2;
	rt.converged = 1;
	ok &= recompute_result(&c, &h, (uint8_t *)v, &rt);
	memset(v, 0, sizeof(v));
	h.round = rt.last_round = 2;
	rt.converged = 0;
	rt.k_next = 2;
	ok &= recompute_result(&c, &h, (uint8_t *)v, &rt);
	tap_ok(ok && c.decisions == 2, "recomputation: k of SFCD is the same");
	h.round = rt.last_round = 3;
	h.k = 2;
	rt.last_flips = 0;
	ok = recompute_result(&c, &h, (uint8_t *)v, &rt);
	h.round = rt.last_round = 4;
	rt.last_flips = 1;
	tap_ok(ok && !recompute_result(&c, &h, (uint8_t *)v, &rt), "recomputation: miscounted flips are found");
	h.round = rt.last_round = 5;
	rt.last_flips = 0;
	rt.k_next = 3;
	recompute_result(&c, &h, (uint8_t *)v, &rt);
	h.round = rt.last_round = 6;
	tap_ok(!recompute_result(&c, &h, (uint8_t *)v, &rt), "recomputation: a wrong k is found");
	recompute_exit(&c);
}

int main(void)
{
	g.ip = htonl(0x0a000001);
	oracle_init(&o, &g);
	test_fastest();
	test_death();
	test_sfcd();
	test_ledger();
	test_recompute();
	oracle_exit(&o);
	return tap_done();
}
