// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Jobs of two levels: libsaina's workers, the relay of its own (userland/lib/reduce/relay.h) and the
 * oracle as each switch, in steps of a clock of the test's own, with loss on every link.
 *
 *	worker .. worker -> leaf's switch <- down | relay | up -> root's switch
 *
 * In every run: all workers have the same bits; each result is the sum of what the workers have
 * contributed and not kept, and the weight of a result is their number; nothing is counted as lost
 * or taken for another size while a sum is with the parent.
 */
#include <stdlib.h>
#include <string.h>
#include "reduce/relay.h"
#include "reduce/round.h"
#include "reduce/size_mismatch.h"
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

/* A result of the parent's. */
struct result {
	struct saina_hdr h;
	int32_t sum[PAYLOAD];
	uint32_t own;		/* workers of the leaf in its own slot */
	bool have;
};

struct leaf {
	struct lib_switch sw;
	struct worker w[WORKERS];
	struct saina_job up_job, down_job;
	struct saina_round up, down;
	struct result result[SEGMENTS];
	uint32_t asked;		/* segments whose state was asked */
	uint64_t ask_ns, dead_until;
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
	unsigned int late, kills;
	uint32_t random;
	int32_t total[ELEMENTS], produced[ELEMENTS];	/* of all rounds */
	uint32_t (*seen)[ELEMENTS];			/* [round]: the result's bits */
	uint8_t *counted;				/* [round]: it was seen */
} s;

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

static void accept(struct saina_round *r, const struct saina_hdr *h)
{
	size_t len = h->type == SAINA_MSG_ASK_REPLY ? sizeof(struct saina_ask)
		     : h->type == SAINA_MSG_RESULT  ? 4 * PAYLOAD
						    : 0;

	assert_true(saina_check_answer(r->job, h, len));
	r->ops->input(r, h, s.now);
}

static void to_leaf(struct lib_switch *sw, unsigned int to, const struct saina_hdr *h)
{
	struct leaf *l = leaf_of(sw);

	if (to < WORKERS)
		accept(&l->w[to].r, h);
	else if (l->lives)
		accept(&l->down, h);
}

static void to_root(struct lib_switch *sw, unsigned int to, const struct saina_hdr *h)
{
	if (s.leaf[to].lives)
		accept(&s.leaf[to].up, h);
}

static void send(struct saina_round *r, struct lib_switch *sw, unsigned int w,
		 void (*deliver)(struct lib_switch *sw, unsigned int to, const struct saina_hdr *h))
{
	uint8_t buf[POOL * MSGLEN];
	unsigned int n;
	uint64_t when;
	size_t len;

	for (int left = 16; left && (n = r->ops->output(r, s.now, buf, &len, &when)); left--)
		for (unsigned int i = 0; i < n; i++)
			exchange(sw, w, buf + i * len, len, deliver);
}

/* --- the relay ------------------------------------------------------------------------------- */

static const struct oracle_slot *slot_of(const struct leaf *l, uint32_t segment)
{
	return &l->sw.oracle->job[l->sw.conf.job].hot[segment & (POOL - 1)];
}

static bool is_away(const struct leaf *l, uint32_t round, uint32_t segment)
{
	const struct saina_slot_meta *m = &slot_of(l, segment)->meta;

	return m->state == SAINA_SLOT_AWAY && m->round == round && m->segment == segment;
}

static void up_fill(void *arg, uint32_t segment, struct saina_relay_grad *g, void *sums)
{
	const struct leaf *l = arg;

	assert_true(is_away(l, l->up.flow.round, segment));
	g->exponent = slot_of(l, segment)->meta.exponent;
	g->slot_round = slot_of(l, segment)->meta.count - 1;
	memcpy(sums, slot_of(l, segment)->sum, 4 * PAYLOAD);
}

/* Has the leaf the result of @segment? */
static bool is_done(const struct leaf *l, uint32_t round, uint32_t segment)
{
	const struct saina_slot_meta *m =
		&l->sw.oracle->job[l->sw.conf.job].ring[segment * 4 + round % 4].meta;

	return m->state == SAINA_SLOT_DONE && m->round == round && m->segment == segment;
}

/* In the order of segments to the own job. */
static void go_down(struct leaf *l)
{
	const struct saina_flow *f = &l->down.flow;

	while (f->assigned < SEGMENTS) {
		struct result *r = &l->result[f->assigned];

		if (is_done(l, f->round, f->assigned)) {
			saina_relay_skip(&l->down, 1);
		} else if (r->have) {
			if (is_away(l, f->round, f->assigned))
				r->own = slot_of(l, f->assigned)->meta.count;
			saina_relay_submit(&l->down, 1);
		} else {
			return;
		}
	}
}

static void up_take(void *arg, const struct saina_hdr *h)
{
	struct leaf *l = arg;
	struct result *r = &l->result[le32toh(h->segment)];

	assert_false(r->have);
	r->h = *h;
	memcpy(r->sum, h + 1, sizeof(r->sum));
	r->have = true;
	go_down(l);
}

static void up_lost(void *arg, uint32_t round, uint32_t segment, bool counted)
{
	fail_msg("round %u, segment %u is lost", round, segment);
}

/* Results that are there and have not come: of segments that were not sent nobody else asks. */
static void up_asked(void *arg, const struct saina_hdr *h)
{
	const struct saina_ask *a = (const void *)(h + 1);
	struct leaf *l = arg;
	uint32_t first = le32toh(h->segment);

	if (le32toh(h->round) != l->up.flow.round)
		return;
	for (uint32_t i = first; i < SEGMENTS; i++)
		if (le64toh(a->done) >> (i - first) & 1 && i >= l->up.flow.assigned && !l->result[i].have)
			saina_relay_pull(&l->up, i);
}

static void down_fill(void *arg, uint32_t segment, struct saina_relay_grad *g, void *sums)
{
	const struct leaf *l = arg;
	const struct result *r = &l->result[segment];
	bool in = le64toh(r->h.mask) >> (l - s.leaf) & 1;

	s.late += !in;
	g->exponent = r->h.exponent;
	g->flags = (r->h.flags & (SAINA_F_DEGRADED | SAINA_F_DROP_LATE)) | (in ? 0 : SAINA_F_LATE);
	g->slot_round = r->h.contributors + le32toh(r->h.slot_round) - (in ? r->own : 0);
	memcpy(sums, r->sum, sizeof(r->sum));
}

static void down_take(void *arg, const struct saina_hdr *h)
{
}

static void down_lost(void *arg, uint32_t round, uint32_t segment, bool counted)
{
}

static void down_asked(void *arg, const struct saina_hdr *h)
{
}

static const struct saina_relay_calls up_calls = {up_fill, up_take, up_lost, up_asked};
static const struct saina_relay_calls down_calls = {down_fill, down_take, down_lost, down_asked};

static void relay_round(struct leaf *l, uint32_t round)
{
	memset(l->result, 0, sizeof(l->result));
	saina_relay_round(&l->down, round, s.now);
	saina_relay_round(&l->up, round, s.now);
	go_down(l);
}

/* It begins at the oldest round that is not over here, whatever it was that it knew. */
static void relay_start(struct leaf *l)
{
	uint32_t round = switch_next_round(&l->sw), over;

	memset(&l->up, 0, sizeof(l->up));
	memset(&l->down, 0, sizeof(l->down));
	assert_int_equal(saina_relay_init(&l->up, &l->up_job, 2, &up_calls, l), 0);
	assert_int_equal(saina_relay_init(&l->down, &l->down_job, 2, &down_calls, l), 0);
	l->lives = true;
	for (over = 0; round && over < SEGMENTS && is_done(l, round - 1, over);)
		over++;
	relay_round(l, round && over < SEGMENTS ? round - 1 : round);
}

static void relay_kill(struct leaf *l)
{
	l->up.ops->exit(&l->up);
	l->down.ops->exit(&l->down);
	l->lives = false;
	l->dead_until = s.now + 20 * MSEC;
	s.kills++;
}

static void relay_turn(struct leaf *l)
{
	struct saina_flow *f = &l->up.flow;
	uint32_t over = 0;

	if (!l->lives && s.now < l->dead_until)
		return;
	if (!l->lives)
		relay_start(l);
	while (over < SEGMENTS && saina_relay_over(&l->down, over))
		over++;
	if (over == SEGMENTS)
		relay_round(l, f->round + 1);
	go_down(l);
	while (f->assigned < SEGMENTS) {
		if (is_away(l, f->round, f->assigned))
			saina_relay_submit(&l->up, 1);
		else if (!l->result[f->assigned].have && is_done(l, f->round, f->assigned))
			saina_relay_skip(&l->up, 1);
		else
			break;
	}
	if (s.now >= l->ask_ns) {
		l->ask_ns = s.now + 5 * MSEC;
		saina_relay_ask(&l->up, 0);
	}
	send(&l->up, &s.root, l - s.leaf, to_root);
	send(&l->down, &l->sw, WORKERS, to_leaf);
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
	send(&w->r, &l->sw, w->job.worker, to_leaf);
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
	s.random = 12345;
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
	for (int i = 0; i < 4; i++) {
		begin(i * .06, SAINA_INT32, SAINA_SUM, 12);
		run(600000 * MSEC, 0);
		end();
	}
}

static void test_killed(void **state)
{
	for (unsigned int ms = 7; ms < 30; ms += 5) {
		begin(.05, SAINA_INT32, SAINA_SUM, 20);
		run(600000 * MSEC, ms);
		assert_true(s.kills > 5);
		end();
	}
}

static void test_mean(void **state)
{
	begin(.02, SAINA_FLOAT32, SAINA_MEAN, 12);
	run(600000 * MSEC, 0);
	end();
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
	end();
}

/* A root that does not wait for the last leaf: what its workers have produced is kept by them. */
static void test_late(void **state)
{
	begin(.05, SAINA_INT32, SAINA_SUM, 20);
	s.slow_ns = 12 * MSEC;
	switch_policy(&s.root, LEAVES - 1, false);
	run(600000 * MSEC, 0);
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		statement("sums of a tree are those of all workers, with up to 18 % of the messages lost", test_sum),
		statement("a relay that is killed goes on where the slots are", test_killed),
		statement("a mean in a tree is divided by the weight", test_mean),
		statement("a leaf that waits long for another one neither sends again nor gives up", test_waits),
		statement("a leaf that was not counted keeps its gradients", test_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
