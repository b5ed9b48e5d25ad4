// SPDX-License-Identifier: GPL-2.0
/* Section 12: weight, AWAY, and results that the uplink worker brings: cases worked out by hand. */
#include "lib/tap.h"
#include "harness.h"

#define U	5	/* the uplink worker */
#define TREE	40	/* workers in the whole tree */

static const struct saina_policy bsp = { .seq = 1, .mode = SAINA_POLICY_BSP, .late = 1 };

static uint64_t counted(unsigned int w, int counter)
{
	return o.job[3].wcount[w].c[counter];
}

static const struct saina_slot_meta *slot(void)
{
	return &o.job[3].hot[0].meta;
}

/* A job of @workers of one segment, whose results worker U brings; binds U, but not as a member. */
static void job_with_uplink(struct saina_job_conf *c, unsigned int workers, const struct saina_policy *p)
{
	job_make(c, U + 1, 1, p);
	c->active = (1ull << workers) - 1;
	c->uplink = 1ull << U;
	c->worker[U].max_weight = TREE + 1;
	oracle_job_publish(&o, c, 0);
}

/* A GRAD of @w that stands for @weight workers more. */
static int send(const struct saina_job_conf *c, unsigned int w, uint32_t round, unsigned int flags, uint32_t weight,
		int exponent, int32_t v)
{
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION, .type = SAINA_MSG_GRAD, .flags = flags, .elem = SAINA_ELEM_INT32,
		.job = c->job, .session = c->worker[w].session, .round = round, .count = E, .worker = w,
		.exponent = exponent, .slot_round = weight,
	};
	int32_t payload[E];
	uint8_t f[FRAME_MAX];

	for (int i = 0; i < E; i++)
		payload[i] = v;
	oracle_packet(&o, f, frame_make(f, &g, &c->worker[w], &h, payload, sizeof(payload)), 1, &out);
	return out.verdict;
}

/* The state of the job's only segment in @round, as worker @w hears. */
static const struct saina_ask *ask(const struct saina_job_conf *c, unsigned int w, uint32_t round)
{
	struct saina_ask body = {};
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION, .type = SAINA_MSG_ASK, .elem = SAINA_ELEM_INT32,
		.job = c->job, .session = c->worker[w].session, .round = round, .worker = w,
	};
	uint8_t f[FRAME_MAX];

	oracle_packet(&o, f, frame_make(f, &g, &c->worker[w], &h, &body, sizeof(body)), 1, &out);
	return (void *)(answer() + 1);
}

static bool is_dropped(int verdict, int reason)
{
	return verdict == ORACLE_DROP && out.reason == reason;
}

/* Consumed without a reason, and the slot is AWAY since then. */
static bool is_frozen(int verdict, unsigned int aways)
{
	return is_dropped(verdict, -1) && !out.answer && slot()->state == SAINA_SLOT_AWAY && o.aways == aways;
}

/* A result of @n of the job's own workers and @weight others, sent to all. */
static bool is_result(int verdict, uint64_t mask, uint32_t weight, int32_t sum)
{
	return verdict == ORACLE_REDIRECT && answered(verdict, answer()->flags, mask, sum) && out.multicast &&
	       answer()->slot_round == weight;
}

static void test_weight(void)
{
	struct saina_job_conf c;

	job_make(&c, 3, 1, &bsp);
	c.worker[0].max_weight = 8;
	c.worker[1].max_weight = 1;
	oracle_job_publish(&o, &c, 0);
	tap_ok(is_dropped(send(&c, 0, 0, 0, 8, 7, 1), SAINA_C_WEIGHT) && is_dropped(send(&c, 1, 0, 0, 1, 7, 1), SAINA_C_WEIGHT) &&
	       is_dropped(send(&c, 2, 0, 0, 1, 7, 1), SAINA_C_WEIGHT) && slot()->state == SAINA_SLOT_EMPTY &&
	       counted(0, SAINA_C_WEIGHT) == 1, "weight: a gradient of more workers than the sender may stand for is dropped");
	send(&c, 0, 0, 0, 7, 7, 5);
	send(&c, 1, 0, 0, 0, 7, 6);
	tap_ok(is_result(send(&c, 2, 0, 0, 0, 7, 7), 7, 7, 18), "weight: a result says how many workers are in it besides contributors");
	tap_ok(answered(send(&c, 0, 0, SAINA_F_RETRANSMIT, 7, 7, 5), SAINA_F_RESEND, 7, 18) && answer()->slot_round == 7,
	       "weight: so does a repetition");
	for (unsigned int w = 0; w < 3; w++)
		send(&c, w, 1, 0, w ? 0 : 2, 7, 1);
	tap_ok(answer()->slot_round == 2, "weight: the next round's begins anew");
}

static void test_away(void)
{
	struct saina_job_conf c;

	job_with_uplink(&c, 3, &bsp);
	oracle_events_clear(&o);
	send(&c, 0, 0, 0, 0, 7, 1);
	send(&c, 1, 0, 0, 0, 6, 2);
	tap_ok(is_frozen(send(&c, 2, 0, 0, 0, 7, 4), 1) && o.away[0].job == 3 && !o.away[0].round && !o.away[0].segment,
	       "away: a complete slot has no result, and is on record");
	tap_ok(slot()->seen == 7 && slot()->exponent == 6 && !counted(2, SAINA_C_COMPLETED) && o.job[3].rt.open_slots == 1 &&
	       !o.job[3].rt.segs_done && o.job[3].ring[0].meta.state == SAINA_SLOT_EMPTY, "away: it counts as open");
	c.active |= 8;
	oracle_job_publish(&o, &c, 0);
	tap_ok(is_dropped(send(&c, 1, 0, 0, 0, 6, 2), SAINA_C_DUPLICATE) && is_dropped(send(&c, 3, 0, 0, 0, 7, 8), SAINA_C_AWAY) &&
	       slot()->count == 3 && o.job[3].hot[0].sum[0] == 5, "away: no gradient changes it");
	tap_ok(is_dropped(send_msg(&c, SAINA_MSG_PULL, 0, 0, 0, 0), SAINA_C_PULL_EARLY) && o.aways == 1, "away: PULL is early");
	tap_ok(ask(&c, 1, 0)->counted == 1 && !ask(&c, 1, 0)->done && !ask(&c, 1, 0)->due && answer()->flags == SAINA_F_AWAY &&
	       !ask(&c, 3, 0)->counted && answer()->flags == SAINA_F_AWAY && (ask(&c, 1, 1), !answer()->flags),
	       "away: ASK hears that it is, and who is counted");
	tap_ok(is_dropped(grad(&c, 0, 1, 0, 1), SAINA_C_ROUND_BUSY), "away: the next round does not open");
	tap_ok(is_dropped(grad(&c, 0, 0, 0, 1), SAINA_C_DUPLICATE) && slot()->state == SAINA_SLOT_AWAY,
	       "away: a duplicate does not complete it again");
}

/* Slots that a death or a time-out has completed become AWAY by a message that says nothing new. */
static void test_away_later(void)
{
	struct saina_policy timeout = { .seq = 1, .mode = SAINA_POLICY_TIMEOUT, .late = 1, .k_min = 1, .timeout_us = 1000 };
	struct saina_job_conf c;

	job_with_uplink(&c, 3, &bsp);
	oracle_events_clear(&o);
	grad(&c, 0, 0, 0, 1);
	grad(&c, 1, 0, 0, 2);
	c.active = 3;
	oracle_job_publish(&o, &c, 0);
	tap_ok(ask(&c, 0, 0)->due == 1 && !answer()->flags && is_frozen(send_msg(&c, SAINA_MSG_PULL, 0, 0, 0, 0), 1) && !ask(&c, 0, 0)->due,
	       "away: after a death by PULL");
	tap_ok(answered(send(&c, U, 0, 0, 8, 7, 9), SAINA_F_DEGRADED, 3, 9), "away: the result is degraded, as without an uplink");
	job_with_uplink(&c, 3, &timeout);
	oracle_events_clear(&o);
	grad(&c, 0, 0, 0, 1);
	o.now += 1000000;
	tap_ok(is_frozen(grad(&c, 0, 0, 0, 1), 1), "away: after the time-out by a duplicate");
}

/* Is the answer that there is no sum, because those in @ints sent integers, of those in @mask? */
static bool names(uint32_t mask, uint64_t ints)
{
	return answer()->flags == SAINA_F_TYPES && answer()->exponent == SAINA_EXPONENT_NAN && answer()->mask == mask &&
	       !memcmp(answer() + 1, &ints, sizeof(ints));
}

static void test_types_above(void)
{
	struct saina_job_conf c;

	job_with_uplink(&c, 3, &bsp);
	send(&c, 0, 0, 0, 0, SAINA_EXPONENT_INT, 1);
	grad(&c, 1, 0, 0, 1);
	grad(&c, 2, 0, 0, 1);
	tap_ok(slot()->flags == SAINA_F_TYPES, "types: the relay sees that a slot has integers and floats");
	tap_ok(is_dropped(send(&c, U, 0, SAINA_F_TYPES, 9, 7, 1), SAINA_C_FLAGS), "types: no sum can be of integers and floats");
	send(&c, U, 0, SAINA_F_TYPES, 9, SAINA_EXPONENT_NAN, 1);
	tap_ok(names(7, 1), "types: the result names those of this switch that sent integers");
	for (unsigned int w = 0; w < 3; w++)
		send(&c, w, 1, 0, 0, SAINA_EXPONENT_INT, 1);
	send(&c, U, 1, SAINA_F_TYPES, 9, SAINA_EXPONENT_NAN, 1);
	tap_ok(names(7, 7), "types: all of them, where the floats are elsewhere");
	for (unsigned int w = 0; w < 3; w++)
		grad(&c, w, 2, 0, 1);
	send(&c, U, 2, SAINA_F_TYPES, 9, SAINA_EXPONENT_NAN, 1);
	tap_ok(names(7, 0), "types: nobody, where the integers are elsewhere");
	for (unsigned int w = 0; w < 3; w++)
		send(&c, w, 3, 0, 0, SAINA_EXPONENT_INT, 1);
	send(&c, U, 3, SAINA_F_TYPES | SAINA_F_LATE, 9, SAINA_EXPONENT_NAN, 1);
	tap_ok(answer()->flags == (SAINA_F_TYPES | SAINA_F_DEGRADED) && !answer()->mask && !*(const uint64_t *)(answer() + 1),
	       "types: nobody, where the parent did not count this switch");
}

/* Worker 1 is a node. */
static void test_types_below(void)
{
	struct saina_job_conf c;

	job_make(&c, 3, 1, &bsp);
	c.worker[1].max_weight = 3;
	oracle_job_publish(&o, &c, 0);
	tap_ok(is_dropped(send(&c, 0, 0, SAINA_F_TYPES, 0, SAINA_EXPONENT_NAN, 1), SAINA_C_FLAGS) &&
	       is_dropped(send(&c, 1, 0, SAINA_F_TYPES, 0, 7, 1), SAINA_C_FLAGS) && slot()->state == SAINA_SLOT_EMPTY,
	       "types: only a node's sum that is none can be of integers and floats");
	/* whoever is first */
	for (uint32_t round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < 3; i++) {
			unsigned int w = (i + round) % 3;

			send(&c, w, round, w == 1 ? SAINA_F_TYPES : 0, w == 1 ? 2 : 0, w == 1 ? SAINA_EXPONENT_NAN : 7, 1);
		}
		tap_ok(names(7, 0) && answer()->slot_round == 2, "types: of a node, beside floats, round %u", round);
	}
	send(&c, 0, 3, 0, 0, SAINA_EXPONENT_INT, 1);
	send(&c, 1, 3, SAINA_F_TYPES, 0, SAINA_EXPONENT_NAN, 1);
	send(&c, 2, 3, 0, 0, SAINA_EXPONENT_INT, 1);
	tap_ok(names(7, 5), "types: of a node, beside integers");
	send(&c, 1, 4, SAINA_F_TYPES, 0, SAINA_EXPONENT_NAN, 1);
	send(&c, 0, 4, 0, 0, SAINA_EXPONENT_NAN, 1);
	send(&c, 2, 4, 0, 0, SAINA_EXPONENT_NAN, 1);
	tap_ok(names(7, 0), "types: of a node, beside NaN");
	send(&c, 1, 5, 0, 0, SAINA_EXPONENT_NAN, 1);
	send(&c, 0, 5, 0, 0, SAINA_EXPONENT_NAN, 1);
	send(&c, 2, 5, 0, 0, 7, 1);
	tap_ok(!answer()->flags, "types: NaN of a node alone has none");
}

static void test_result(void)
{
	struct saina_job_conf c;

	job_with_uplink(&c, 3, &bsp);
	for (unsigned int w = 0; w < 3; w++)
		grad(&c, w, 0, 0, 1);
	tap_ok(is_result(send(&c, U, 0, 0, TREE - 3, 5, 77), 7, TREE - 3, 77) && answer()->exponent == 5 && answer()->flags == 0 &&
	       answer()->contributors == 3 && out.to == 7, "uplink: its gradient is the result, with its scale and weight");
	tap_ok(counted(U, SAINA_C_COMPLETED) == 1 && !counted(U, SAINA_C_STORED) && !counted(U, SAINA_C_ADDED) &&
	       !counted(U, SAINA_C_COARSENED) && !counted(2, SAINA_C_COARSENED) && !o.job[3].arrival[U].n &&
	       !o.job[3].last[0][U] && !o.job[3].rt.open_slots && o.job[3].rt.segs_done == 1, "uplink: it is no contribution");
	tap_ok(answered(grad(&c, 1, 0, 0, 1), SAINA_F_RESEND, 7, 77) && answer()->slot_round == TREE - 3 && answer()->aux == 1,
	       "uplink: contributors hear that they are counted");
	tap_ok(answered(send(&c, U, 0, 0, 0, 5, 1), SAINA_F_LATE, 7, 77), "uplink: a second result changes nothing");
	for (unsigned int w = 0; w < 3; w++)
		grad(&c, w, 1, 0, 1);
	tap_ok(is_dropped(send(&c, U, 1, 0, TREE + 1, 5, 1), SAINA_C_WEIGHT) && slot()->state == SAINA_SLOT_AWAY,
	       "uplink: not more workers than the tree has");
	tap_ok(is_result(send(&c, U, 1, SAINA_F_DEGRADED | SAINA_F_DROP_LATE | SAINA_F_RETRANSMIT, 3, SAINA_EXPONENT_NAN, 1), 7, 3, 0) &&
	       answer()->exponent == SAINA_EXPONENT_NAN && answer()->flags == (SAINA_F_DEGRADED | SAINA_F_DROP_LATE) &&
	       !counted(U, SAINA_C_NONFINITE) && counted(U, SAINA_C_DEGRADED) == 1, "uplink: the parent's flags and NaN are the result's");
	tap_ok(is_dropped(send(&c, 0, 2, SAINA_F_LATE, 0, 7, 1), SAINA_C_FLAGS) && is_dropped(send(&c, 0, 2, SAINA_F_DEGRADED, 0, 7, 1), SAINA_C_FLAGS) &&
	       is_dropped(send(&c, 0, 2, SAINA_F_DROP_LATE, 0, 7, 1), SAINA_C_FLAGS) &&
	       is_dropped(send(&c, U, 2, SAINA_F_RESEND, 0, 7, 1), SAINA_C_FLAGS) && counted(0, SAINA_C_FLAGS) == 3,
	       "uplink: no other worker's gradient may have such flags");
	/* integers and floats of its workers */
	send(&c, 0, 2, 0, 0, SAINA_EXPONENT_INT, 1);
	grad(&c, 1, 2, 0, 1);
	grad(&c, 2, 2, 0, 1);
	tap_ok(slot()->exponent == SAINA_EXPONENT_NAN && is_result(send(&c, U, 2, 0, 9, SAINA_EXPONENT_NAN, 1), 7, 9, 0) &&
	       answer()->flags == 0, "uplink: a slot of integers and floats is NaN for the parent, and the result has no types");
	/* integers, one of them of a node of three */
	c.worker[1].max_weight = 3;
	oracle_job_publish(&o, &c, 0);
	for (unsigned int w = 0; w < 3; w++)
		send(&c, w, 3, 0, w == 1 ? 2 : 0, SAINA_EXPONENT_INT, 1);
	tap_ok(is_result(send(&c, U, 3, 0, 6, SAINA_EXPONENT_INT, 9), 7, 6, 9) && answer()->flags == 0 &&
	       answer()->exponent == SAINA_EXPONENT_INT, "uplink: the weight is the result's, whatever the slot's was");
}

static void test_late(void)
{
	struct saina_job_conf c;
	bool ok;

	job_with_uplink(&c, 3, &bsp);
	for (unsigned int w = 0; w < 3; w++)
		grad(&c, w, 0, 0, 1);
	tap_ok(is_result(send(&c, U, 0, SAINA_F_LATE, TREE, 5, 77), 0, TREE, 77) && answer()->flags == SAINA_F_DEGRADED,
	       "late: the parent's result is that of all but this switch's workers");
	ok = !o.job[3].last[0][0] && !o.job[3].last[0][1] && !o.job[3].last[0][2];
	tap_ok(ok && answered(grad(&c, 1, 0, 0, 1), SAINA_F_LATE | SAINA_F_DEGRADED, 0, 77) && !answer()->aux, "late: nobody here is counted, nor is told so later");
	/* open: two of three */
	grad(&c, 0, 1, 0, 1);
	grad(&c, 1, 1, 0, 1);
	ok = o.job[3].last[0][0] == 2;
	tap_ok(is_result(send(&c, U, 1, 0, TREE - 2, 5, 7), 0, TREE - 2, 7) && ok && !o.job[3].last[0][0],
	       "late: the result of a slot that is not away cannot have its gradients");
	/* nothing yet: the result opens the round */
	ask(&c, 2, 1);
	tap_ok(is_result(send(&c, U, 2, 0, 4, 5, 8), 0, 4, 8) && o.job[3].rt.next_round == 3 && !o.job[3].rt.open_slots,
	       "late: a result may open a round");
	tap_ok(answered(grad(&c, 0, 2, 0, 1), SAINA_F_LATE | SAINA_F_DEGRADED, 0, 8) && !answer()->aux && o.job[3].last[0][0] == 0,
	       "late: a gradient of that round comes after it");
	for (unsigned int w = 0; w < 3; w++)
		ask(&c, w, 2);
	for (unsigned int w = 0; w < 3; w++)
		grad(&c, w, 3, 0, 1);
	send(&c, U, 3, 0, 9, 5, 1);
	send(&c, U, 4, SAINA_F_LATE, 9, 5, 1);
	tap_ok(o.job[3].last[0][0] == 4 && o.job[3].last[0][2] == 4, "late: what was counted in the round before stays counted");
}

/* U's result by reference: weight and flags are those of its input array. */
static void test_doorbell(void)
{
	static uint64_t input[(sizeof(struct saina_input_head) + 4 * E) * 4 / 8];
	struct saina_input_head *in = (void *)input;
	struct saina_doorbell doorbell = { .posted = 1 };
	struct saina_job_conf c;
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION, .type = SAINA_MSG_DOORBELL, .elem = SAINA_ELEM_INT32, .worker = U, .slot_round = 4,
	};
	uint8_t f[FRAME_MAX];
	unsigned int len;

	job_with_uplink(&c, 2, &bsp);
	oracle_input_set(&o, c.job, U, (uint8_t *)input);
	h.job = c.job;
	h.session = c.worker[U].session;
	*in = (struct saina_input_head){ .session = h.session, .exponent = 7, .flags = SAINA_F_LATE, .weight = 12 };
	for (int i = 0; i < E; i++)
		((int32_t *)(in + 1))[i] = 55;
	len = frame_make(f, &g, &c.worker[U], &h, &doorbell, sizeof(doorbell));
	grad(&c, 0, 0, 0, 1);
	grad(&c, 1, 0, 0, 1);
	oracle_packet(&o, f, len, 1, &out);
	tap_ok(answer()->type == SAINA_MSG_COMPLETION && out.multicast && !answer()->slot_round &&
	       answered(grad(&c, 0, 0, 0, 1), SAINA_F_LATE | SAINA_F_DEGRADED, 0, 55) && answer()->slot_round == 12,
	       "uplink: a result by reference has weight and flags beside it");
	/* as a worker: neither is looked at */
	oracle_input_set(&o, c.job, 0, (uint8_t *)input);
	in->session = h.session = c.worker[0].session;
	in->round = h.round = 1;
	h.worker = 0;
	len = frame_make(f, &g, &c.worker[0], &h, &doorbell, sizeof(doorbell));
	oracle_packet(&o, f, len, 1, &out);
	tap_ok(slot()->round == 1 && slot()->seen == 1 && !o.job[3].hot[0].weight, "weight: by reference a worker has none");
}

/* Section 1.1: HEARTBEAT in the name of U from another port. */
static void test_spoofed(void)
{
	struct saina_hdr h = { .version = SAINA_PROTO_VERSION, .type = SAINA_MSG_HEARTBEAT, .worker = U };
	struct saina_job_conf c;
	uint8_t f[FRAME_MAX];
	unsigned int len;

	job_with_uplink(&c, 2, &bsp);
	h.job = c.job;
	len = frame_make(f, &g, &c.worker[U], &h, NULL, 0);
	f[36] = SAINA_PORT_CTRL >> 8;
	f[37] = SAINA_PORT_CTRL & 255;
	oracle_packet(&o, f, len, 1, &out);
	tap_ok(out.verdict == ORACLE_PASS, "uplink: its control messages pass");
	oracle_packet(&o, f, len, 2, &out);
	tap_ok(is_dropped(out.verdict, SAINA_C_BAD_PORT), "uplink: control messages in its name from another port do not");
}

static void test_lead(void)
{
	struct saina_job_conf c;
	bool ok;

	job_with_uplink(&c, 2, &bsp);
	ok = is_result(send(&c, U, 0, 0, 4, 5, 8), 0, 4, 8) && is_result(send(&c, U, 1, 0, 4, 5, 8), 0, 4, 8);
	tap_ok(ok && is_dropped(send(&c, U, 2, 0, 4, 5, 8), SAINA_C_LEAD) && o.job[3].rt.behind == 3,
	       "lead: results lead a job with BSP by no more than its ring keeps");
	ask(&c, 0, 1);
	ask(&c, 1, 1);
	tap_ok(is_result(send(&c, U, 2, 0, 4, 5, 8), 0, 4, 8), "lead: workers that ask are there");
	c.uplink = 0;
	oracle_job_publish(&o, &c, 0);
	tap_ok(is_dropped(grad(&c, 0, 3, 0, 1), -1) && slot()->state == SAINA_SLOT_OPEN, "lead: without an uplink BSP has none");
}

static void test_inactive(void)
{
	struct saina_job_conf c;

	job_with_uplink(&c, 2, &bsp);
	c.worker[0].max_weight = 4;
	c.active = 2;
	oracle_job_publish(&o, &c, 0);
	tap_ok(is_dropped(grad(&c, 0, 0, 0, 1), SAINA_C_INACTIVE) && is_dropped(send_msg(&c, SAINA_MSG_PULL, 0, 0, 0, 0), SAINA_C_PULL_EARLY) &&
	       (ask(&c, 0, 0), answer()->type == SAINA_MSG_ASK_REPLY), "nodes: one that has no workers may ask and pull");
	c.active = 1;
	oracle_job_publish(&o, &c, 0);
	tap_ok(is_dropped(send_msg(&c, SAINA_MSG_PULL, 1, 0, 0, 0), SAINA_C_INACTIVE), "nodes: a worker may not");
	tap_ok((ask(&c, U, 0), answer()->type == SAINA_MSG_ASK_REPLY) && out.to == 1 << U, "uplink: it is answered without being active");
}

void oracle_test_uplink(void)
{
	test_weight();
	test_away();
	test_away_later();
	test_result();
	test_types_above();
	test_types_below();
	test_late();
	test_doorbell();
	test_spoofed();
	test_lead();
	test_inactive();
}
