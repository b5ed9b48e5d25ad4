// SPDX-License-Identifier: GPL-2.0
/* Rounds open at most lead rounds ahead of the slowest live worker: cases worked out by hand. */
#include "lib/frame.h"
#include "lib/tap.h"
#include "harness.h"

/* Worker @w asks about round @round. */
static int send_ask(const struct saina_job_conf *c, unsigned int w, uint32_t round)
{
	struct saina_ask body = {};
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION, .type = SAINA_MSG_ASK, .elem = SAINA_ELEM_INT32,
		.job = c->job, .session = c->worker[w].session, .round = round, .worker = w,
	};
	uint8_t f[FRAME_MAX];
	unsigned int len = frame_make(f, &g, &c->worker[w], &h, &body, sizeof(body));

	oracle_packet(&o, f, len, 1, &out);
	return out.verdict;
}

/* Workers 0 and 1 of three do round @r, if that opens. */
static bool two_do(const struct saina_job_conf *c, uint32_t r)
{
	return grad(c, 0, r, 0, 1) == ORACLE_DROP && out.reason < 0 &&
	       answered(grad(c, 1, r, 0, 1), 0, 3, 2);
}

static bool is_held(const struct saina_job_conf *c, uint32_t r)
{
	return grad(c, 0, r, 0, 1) == ORACLE_DROP && out.reason == SAINA_C_LEAD &&
	       o.job[3].rt.next_round == r;
}

void oracle_test_lead(void)
{
	struct saina_policy p = { .seq = 1, .mode = SAINA_POLICY_FASTEST, .late = 1, .k = 2, .lead = 3 };
	const struct saina_job_rt *rt = &o.job[3].rt;
	struct saina_job_conf c;

	job_make(&c, 3, 1, &p);
	tap_ok(two_do(&c, 0) && two_do(&c, 1) && two_do(&c, 2) && two_do(&c, 3),
	       "lead: rounds open up to lead ahead of a worker that sends nothing");
	tap_ok(is_held(&c, 4) && rt->behind == 4 && o.job[3].wcount[0].c[SAINA_C_LEAD] == 1,
	       "lead: the next round does not open");
	tap_ok(send_ask(&c, 1, 4) == ORACLE_REDIRECT && answer()->mask == 4 &&
	       send_ask(&c, 1, 3) == ORACLE_REDIRECT && !answer()->mask, "lead: the answer to ASK names the worker, of that round only");
	grad(&c, 2, 1, 0, 1);
	tap_ok(answer()->type == SAINA_MSG_STALE && is_held(&c, 4), "lead: a stale gradient is no progress");
	grad(&c, 2, 2, 0, 1);
	tap_ok(answer()->flags & SAINA_F_LATE && two_do(&c, 4) && two_do(&c, 5) && !rt->behind,
	       "lead: with a late gradient of the worker the job goes on");
	tap_ok(is_held(&c, 6) && send_ask(&c, 2, 7) == ORACLE_REDIRECT && is_held(&c, 6) &&
	       send_ask(&c, 2, 5) == ORACLE_REDIRECT && two_do(&c, 6) && rt->at[2] == 5,
	       "lead: an ASK is progress, but of no round that cannot open yet");
	tap_ok(two_do(&c, 7) && two_do(&c, 8) && is_held(&c, 9) && grad(&c, 2, 9, 0, 1) == ORACLE_DROP &&
	       out.reason < 0, "lead: the worker that is behind may open the round itself");
	grad(&c, 0, 9, 0, 1);
	tap_ok(two_do(&c, 10) && two_do(&c, 11) && two_do(&c, 12) && is_held(&c, 13), "lead: and is waited for again");
	c.active = 3;
	oracle_job_publish(&o, &c, 0);
	tap_ok(two_do(&c, 13) && two_do(&c, 14), "lead: a dead worker holds nobody up");
	c.active = 7;
	oracle_job_publish(&o, &c, 0);
	tap_ok(two_do(&c, 15) && two_do(&c, 16) && two_do(&c, 17) && two_do(&c, 18) && is_held(&c, 19) &&
	       rt->at[2] == 15, "lead: a worker that joins begins with the next round");
	c.policy = p;
	c.policy.seq = 2;
	c.policy.lead = SAINA_LEAD_NONE;
	oracle_job_publish(&o, &c, 0);
	tap_ok(two_do(&c, 19) && two_do(&c, 20), "lead: none is no bound");
	c.policy.seq = 3;
	c.policy.lead = 0;
	oracle_job_publish(&o, &c, 0);
	send_ask(&c, 2, 20);
	tap_ok(two_do(&c, 21) && is_held(&c, 22), "lead: by default one round with a ring of two");
	c.policy.seq = 4;
	c.policy.mode = SAINA_POLICY_BSP;
	oracle_job_publish(&o, &c, 0);
	tap_ok(grad(&c, 0, 22, 0, 1) == ORACLE_DROP && out.reason < 0, "lead: BSP has none");
}
