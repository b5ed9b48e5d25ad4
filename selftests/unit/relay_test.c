// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Jobs of two levels: libsaina's workers, both sides of saina-uplink (userland/uplink/relay.h) and the
 * oracle as each switch, in steps of a clock of the test's own, with loss on every link.  Sessions and
 * sockets (member.h) are the test's.
 *
 *	worker .. worker -> leaf's switch <- down | relay | up -> root's switch
 *
 * In every run: all workers have the same bits; each result is the sum of what the workers have
 * contributed and not kept, and the weight of a result is their number; nothing is counted as lost
 * or taken for another size while a sum is with the parent.
 */
#include <stdlib.h>
#include <string.h>
#include "reduce/round.h"
#include "reduce/size_mismatch.h"
#include "uplink/relay.h"
#include "wire/check.h"
#include "lib_switch.h"
#include "../lib/statement.h"

#define LEAVES	 3
#define WORKERS	 4		/* of a leaf */
#define W	 (LEAVES * WORKERS)
#define PAYLOAD	 64
#define SEGMENTS 12
#define ELEMENTS (SEGMENTS * PAYLOAD)
#define POOL	 8
#define MSGLEN	 (sizeof(struct saina_hdr) + 4 * PAYLOAD)
#define STEP	 (MSEC / 5)

struct worker {
	struct saina_job job;
	struct saina_round r;
	struct saina_req req;
	union {
		int32_t i[ELEMENTS];
		float f[ELEMENTS];
	} buf;
	uint32_t rounds;	/* whose results it has */
	uint64_t think_ns;	/* begins its next round then */
};

/* @hot: the slots as the data path has them in memory */
struct leaf {
	struct lib_switch sw;
	struct worker w[WORKERS];
	struct saina_job up_job, down_job;
	struct relay relay;
	struct {
		struct saina_slot_meta meta;
		int32_t sum[PAYLOAD];
	} hot[POOL];
	uint64_t dead_until;
	bool lives;
};

static struct {
	struct lib_switch root;
	struct leaf leaf[LEAVES];
	uint64_t now;
	double loss;
	enum saina_type type;
	enum saina_result_op op;
	uint32_t rounds;
	uint64_t slow_ns;	/* of leaf 0's workers, for each round */
	unsigned int kills, brought, late;	/* results to a leaf; of sums without it */
	uint32_t random;
	int32_t total[ELEMENTS], produced[ELEMENTS];	/* of all rounds */
	uint32_t (*seen)[ELEMENTS];			/* [round]: the result's bits */
	uint8_t *counted;				/* [round]: it was seen */
} s;

static unsigned int seed, seeds = 1;	/* relay_test [SEEDS] */

static uint32_t draw(void)
{
	s.random = s.random * 1664525 + 1013904223;
	return s.random >> 8;
}

static bool lost(void)
{
	return draw() < s.loss * (1 << 24);
}

static int value(unsigned int rank, uint32_t round, unsigned int i)
{
	return (int)((rank * 7919u + round * 104729u + i * 31u) % 2001) - 1000;
}

/* What was sent has come to the switch, and its answer to those that it is for. */
static void exchange(struct lib_switch *sw, unsigned int w, const uint8_t *msg, size_t len,
		     void (*deliver)(struct lib_switch *sw, unsigned int to, const struct saina_hdr *h))
{
	struct saina_hdr *answer;
	uint64_t to;

	if (lost() || !switch_message(sw, w, msg, len, &to, (void **)&answer))
		return;
	for (unsigned int i = 0; i < SAINA_WORKERS_MAX; i++)
		if (to >> i & 1 && !lost())
			deliver(sw, i, answer);
}

static struct leaf *leaf_of(struct lib_switch *sw)
{
	return (struct leaf *)((char *)sw - offsetof(struct leaf, sw));
}

static void check_answer(const struct saina_job *job, const struct saina_hdr *h)
{
	size_t len = h->type == SAINA_MSG_ASK_REPLY ? sizeof(struct saina_ask)
		     : h->type == SAINA_MSG_RESULT  ? 4 * PAYLOAD
						    : 0;

	assert_true(saina_check_answer(job, h, len));
}

static void to_leaf(struct lib_switch *sw, unsigned int to, const struct saina_hdr *h)
{
	struct leaf *l = leaf_of(sw);

	/* the relay has no use for what comes to its uplink worker */
	if (to < WORKERS) {
		check_answer(&l->w[to].job, h);
		l->w[to].r.ops->input(&l->w[to].r, h, s.now);
	}
}

static void to_root(struct lib_switch *sw, unsigned int to, const struct saina_hdr *h)
{
	struct member *m = &s.leaf[to].relay.up.member;

	if (!s.leaf[to].lives)
		return;
	check_answer(&m->session.job, h);
	m->ops->input(m, h, s.now);
}

static void worker_send(struct leaf *l, struct worker *w)
{
	uint8_t buf[POOL * MSGLEN];
	unsigned int n;
	uint64_t when;
	size_t len;

	for (int left = 16; left && (n = w->r.ops->output(&w->r, s.now, buf, &len, &when)); left--)
		for (unsigned int i = 0; i < n; i++)
			exchange(&l->sw, w->job.worker, buf + i * len, len, to_leaf);
}

/* --- the relay ------------------------------------------------------------------------------- */

static struct leaf *leaf_of_relay(struct relay *r)
{
	return (struct leaf *)((char *)r - offsetof(struct leaf, relay));
}

/* The relay reads what the data path has mapped. */
static void map_slots(struct leaf *l)
{
	for (unsigned int i = 0; i < POOL; i++) {
		const struct oracle_slot *o = &l->sw.oracle->job[l->sw.conf.job].hot[i];

		l->hot[i].meta = o->meta;
		memcpy(l->hot[i].sum, o->sum, sizeof(l->hot[i].sum));
	}
}

static void no_sockets(struct saina_io *io)
{
	io->ucast = io->mcast = io->wake = io->timer = io->shm = -1;
}

/* Is admitted at once, in the parent's present round if that needs it. */
int member_open(struct member *m, const struct member_conf *c, uint64_t now)
{
	const struct saina_job_rt *rt = &s.root.oracle->job[s.root.conf.job].rt;
	struct saina_session *j = &m->session;

	no_sockets(&m->io);
	j->job = leaf_of_relay(m->arg)->up_job;
	j->phase = PHASE_RUNNING;
	if (rt->next_round) {
		j->job.formed = false;
		j->job.first_round = rt->next_round - (rt->segs_done < SEGMENTS);
	}
	return 0;
}

uint64_t member_run(struct member *m, uint64_t now)
{
	return NEVER;
}

bool member_admitted(const struct member *m)
{
	return true;
}

bool member_failed(const struct member *m)
{
	return false;
}

void member_send(struct member *m, unsigned int n, size_t len, uint64_t now)
{
	struct relay *r = m->arg;
	struct leaf *l = leaf_of_relay(r);

	for (unsigned int i = 0; i < n; i++) {
		const uint8_t *msg = m->io.buf + i * len;

		if (m == &r->up.member) {
			exchange(&s.root, l - s.leaf, msg, len, to_root);
		} else {
			s.brought++;
			if (((const struct saina_hdr *)msg)->flags & SAINA_F_LATE)
				s.late++;
			exchange(&l->sw, WORKERS, msg, len, to_leaf);
		}
	}
}

static void check_relay(const struct leaf *l)
{
	if (l->relay.error[0])
		fail_msg("relay %zu: %s", l - s.leaf, l->relay.error);
}

static void look_for_sums(struct leaf *l)
{
	uint32_t round;

	map_slots(l);
	if (uplink_slots_scan(&l->relay.slots, &round))
		up_away(&l->relay, round);
}

/* Whatever the one before knew. */
static void relay_start(struct leaf *l)
{
	struct relay *r = &l->relay;

	*r = (struct relay){
		.conf = { .worker = WORKERS, .max_weight = WORKERS, .elem = SAINA_ELEM_INT32,
			  .payload = PAYLOAD, .segments = SEGMENTS, .pool = POOL, .ring = 4,
			  .elements = ELEMENTS, .parent_worker = l - s.leaf },
		.netns = -1,
		.slots = { (void *)l->hot, sizeof(l->hot), sizeof(l->hot[0]), 4 * PAYLOAD, POOL,
			   SEGMENTS },
		.had = calloc(SEGMENTS, 1),
	};
	assert_int_equal(down_init(r), 0);
	look_for_sums(l);
	assert_int_equal(up_open(r, s.now), 0);
	r->up.member.ops->event(&r->up.member, SAINA_SESSION_BEGINS, s.now);
	r->down.member.session.job = l->down_job;
	r->down.member.arg = r;
	no_sockets(&r->down.member.io);
	r->down.open = true;
	l->lives = true;
	check_relay(l);
}

static void relay_kill(struct leaf *l)
{
	up_close(&l->relay);
	down_exit(&l->relay);
	free(l->relay.had);
	l->lives = false;
	l->dead_until = s.now + 20 * MSEC;
	s.kills++;
}

static void relay_turn(struct leaf *l)
{
	if (!l->lives && s.now < l->dead_until)
		return;
	if (!l->lives)
		relay_start(l);
	look_for_sums(l);
	up_run(&l->relay, s.now);
	map_slots(l);
	down_run(&l->relay, s.now);
	check_relay(l);
}

/* --- the workers ----------------------------------------------------------------------------- */

static void start(struct worker *w)
{
	for (unsigned int i = 0; i < ELEMENTS; i++) {
		int v = value(w->job.rank, w->rounds, i);

		s.produced[i] += v;
		if (s.type == SAINA_INT32)
			w->buf.i[i] = v;
		else
			w->buf.f[i] = v;
	}
	memset(&w->req, 0, sizeof(w->req));
	w->req.t = (struct saina_tensor){.buf = &w->buf, .n = ELEMENTS, .type = s.type};
	w->req.op = s.op;
	w->r.ops->start(&w->r, &w->req, s.now);
}

/* All workers must have the same bits, and where all are counted these are the sum, or the mean. */
static void check_result(const struct worker *w)
{
	uint32_t round = w->rounds, *bits = s.seen[round];

	assert_int_equal(w->req.err, 0);
	if (s.counted[round])
		assert_memory_equal(bits, &w->buf, sizeof(s.seen[round]));
	memcpy(bits, &w->buf, sizeof(s.seen[round]));
	for (unsigned int i = 0; !s.counted[round] && i < ELEMENTS; i++)
		s.total[i] += w->buf.i[i];
	s.counted[round] = 1;
	if (s.slow_ns)
		return;
	assert_int_equal(w->req.call.count_min, W);
	assert_int_equal(w->req.call.count_max, W);
	for (unsigned int i = 0; i < ELEMENTS; i++) {
		int sum = 0;

		for (unsigned int rank = 0; rank < W; rank++)
			sum += value(rank, round, i);
		if (s.type == SAINA_INT32)
			assert_int_equal(w->buf.i[i], sum);
		else
			assert_true(w->buf.f[i] == (float)((double)sum / W));
	}
}

static void worker_turn(struct leaf *l, struct worker *w)
{
	char text[256];

	if (!w->r.reqs && w->rounds < s.rounds && s.now >= w->think_ns)
		start(w);
	assert_false(saina_size_mismatch(&w->r, l->sw.conf.active, s.now, s.now, text, sizeof(text)));
	worker_send(l, w);
	if (!w->req.finished || !w->r.reqs)
		return;
	check_result(w);
	saina_round_forget(&w->r, &w->req);
	w->r.ops->next(&w->r, s.now);
	w->rounds++;
	w->think_ns = s.now + (l == s.leaf && s.slow_ns ? s.slow_ns : draw() % (2 * MSEC));
}

/* --- runs ------------------------------------------------------------------------------------ */

static struct saina_job make_job(unsigned int id, unsigned int worker, unsigned int workers)
{
	return (struct saina_job){
		.id = id, .session = 100 + worker, .worker = worker, .workers = workers, .tree = true,
		.weight = W, .elem = SAINA_ELEM_INT32, .elements = ELEMENTS, .segments = SEGMENTS,
		.payload = PAYLOAD, .pool = POOL, .ring = 4, .wire = 4 * PAYLOAD, .msglen = MSGLEN,
		.per_batch = 4, .heartbeat_ms = 500, .dead_ms = 2000, .formed = true,
	};
}

static void begin_leaf(unsigned int n)
{
	struct leaf *l = &s.leaf[n];

	switch_init(&l->sw, 20 + n, PAYLOAD, ELEMENTS, POOL, 4);
	for (unsigned int i = 0; i < WORKERS; i++) {
		struct worker *w = &l->w[i];

		w->job = make_job(20 + n, i, WORKERS);
		w->job.rank = n * WORKERS + i;
		switch_bind(&l->sw, i, w->job.session);
		assert_int_equal(saina_round_init(&w->r, &w->job, 2, 0, 0), 0);
		w->r.ops = &saina_rounds;
		saina_flow_begin(&w->r.flow, 0, true, s.now);
	}
	l->down_job = make_job(20 + n, WORKERS, WORKERS);
	l->up_job = make_job(7, n, LEAVES);
	switch_bind(&l->sw, WORKERS, l->down_job.session);
	l->sw.conf.active &= ~(1ull << WORKERS);
	l->sw.conf.uplink = 1ull << WORKERS;
	l->sw.conf.worker[WORKERS].max_weight = W + 1;
	l->sw.conf.state = SAINA_JOB_RUNNING;
	switch_publish(&l->sw);
	switch_bind(&s.root, n, l->up_job.session);
	s.root.conf.worker[n].max_weight = WORKERS;
	relay_start(l);
}

static void begin(double loss, enum saina_type type, enum saina_result_op op, uint32_t rounds)
{
	memset(&s, 0, sizeof(s));
	s.now = 1000 * MSEC;
	s.loss = loss;
	s.type = type;
	s.op = op;
	s.rounds = rounds;
	s.random = 12345 + seed;
	s.seen = calloc(rounds, sizeof(*s.seen));
	s.counted = calloc(rounds, 1);
	switch_init(&s.root, 7, PAYLOAD, ELEMENTS, POOL, 4);
	for (unsigned int n = 0; n < LEAVES; n++)
		begin_leaf(n);
	s.root.conf.state = SAINA_JOB_RUNNING;
	switch_publish(&s.root);
}

static void end(void)
{
	for (unsigned int n = 0; n < LEAVES; n++) {
		struct leaf *l = &s.leaf[n];

		for (unsigned int i = 0; i < WORKERS; i++)
			l->w[i].r.ops->exit(&l->w[i].r);
		if (l->lives)
			relay_kill(l);
		switch_exit(&l->sw);
	}
	switch_exit(&s.root);
	free(s.seen);
	free(s.counted);
}

static bool is_over(void)
{
	for (unsigned int n = 0; n < LEAVES; n++)
		for (unsigned int i = 0; i < WORKERS; i++)
			if (s.leaf[n].w[i].rounds < s.rounds)
				return false;
	return true;
}

/* With @kill_ms the relays are killed one after the other, so often. */
static void run(uint64_t limit_ns, unsigned int kill_ms)
{
	uint64_t kill_ns = s.now + kill_ms * MSEC;

	for (uint64_t until = s.now + limit_ns; !is_over(); s.now += STEP) {
		if (s.now >= until)
			fail_msg("round %u has not ended", s.leaf[0].w[0].rounds);
		for (unsigned int n = 0; n < LEAVES; n++) {
			for (unsigned int i = 0; i < WORKERS; i++)
				worker_turn(&s.leaf[n], &s.leaf[n].w[i]);
			relay_turn(&s.leaf[n]);
		}
		if (kill_ms && s.now >= kill_ns && s.leaf[s.kills % LEAVES].lives) {
			kill_ns = s.now + kill_ms * MSEC;
			relay_kill(&s.leaf[s.kills % LEAVES]);
		}
	}
}

static void test_sum(void **state)
{
	for (unsigned int i = 0; i < 4 * seeds; i++) {
		seed = i / 4;
		begin(i % 4 * .06, SAINA_INT32, SAINA_SUM, 12);
		run(60000 * MSEC, 0);
		end();
	}
}

static void test_killed(void **state)
{
	for (unsigned int i = 0; i < 5 * seeds; i++) {
		seed = i / 5;
		begin(.05, SAINA_INT32, SAINA_SUM, 20);
		run(60000 * MSEC, 7 + i % 5 * 5);
		assert_true(s.kills > 5);
		end();
	}
}

static void test_mean(void **state)
{
	for (seed = 0; seed < seeds; seed++) {
		begin(.02, SAINA_FLOAT32, SAINA_MEAN, 12);
		run(60000 * MSEC, 0);
		end();
	}
}

/* Nothing is lost, but leaf 0 is far behind, so the other leaves' sums are long with the parent. */
static void test_waits(void **state)
{
	begin(0, SAINA_INT32, SAINA_SUM, 2);
	for (unsigned int i = 0; i < WORKERS; i++)
		s.leaf[0].w[i].think_ns = s.now + 25000 * MSEC;
	run(60000 * MSEC, 0);
	for (unsigned int i = 0; i < WORKERS; i++) {
		assert_int_equal(s.leaf[1].w[i].r.flow.lost, 0);
		assert_int_equal(s.leaf[1].w[i].r.stats.resent, 0);
	}
	assert_int_equal(s.brought, s.rounds * LEAVES * SEGMENTS);
	end();
}

/* A root that does not wait for the last leaf: what its workers have produced is kept by them. */
static void run_late(void)
{
	begin(.05, SAINA_INT32, SAINA_SUM, 20);
	s.slow_ns = 12 * MSEC;
	switch_policy(&s.root, LEAVES - 1, false);
	/* with none its sums could be older than the ring */
	switch_lead(&s.root, 2);
	run(60000 * MSEC, 0);
	assert_true(s.late > SEGMENTS);
	for (unsigned int n = 0; n < LEAVES; n++)
		for (unsigned int w = 0; w < WORKERS; w++) {
			int32_t kept[ELEMENTS];
			uint32_t at;

			assert_int_equal(saina_residual_get(&s.leaf[n].w[w].r.grad, 0, ELEMENTS, SAINA_INT32,
							    (uint32_t *)kept, &at), 0);
			for (unsigned int i = 0; i < ELEMENTS; i++)
				s.total[i] += kept[i];
		}
	assert_memory_equal(s.total, s.produced, sizeof(s.total));
	end();
}

static void test_late(void **state)
{
	for (seed = 0; seed < seeds; seed++)
		run_late();
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		statement("sums of a tree are those of all workers, with up to 18 % of the messages lost", test_sum),
		statement("a relay that is killed goes on where the slots are", test_killed),
		statement("a mean in a tree is divided by the weight", test_mean),
		statement("a leaf that waits long for another one neither gives up nor sends anything again", test_waits),
		statement("a leaf that was not counted keeps its gradients", test_late),
	};

	if (argc > 1)
		seeds = strtoul(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
