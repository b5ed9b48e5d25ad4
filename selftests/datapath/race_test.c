// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The program on several CPUs at once (trace_test runs one packet at a time).
 * Each thread, pinned to a CPU, plays some workers of one job; they use the same
 * slots.  Meanwhile policies and members change.  The order of packets is
 * unknown, so there is no oracle, but in any order:
 *
 *  - at most one result of each (round, segment), and it is the sum of what
 *    exactly the workers in its mask sent, at the coarsest of their exponents;
 *  - every other answer repeats the result;
 *  - as long as all live, a result has as many contributors as its k says;
 *  - gradients counted in = gradients in results and in open slots;
 *  - open_slots is the number of open slots; no slot saw two policies;
 *  - rounds make progress.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>
#include "lib/cpus.h"
#include "lib/rng.h"
#include "lib/tap.h"
#include "oracle/ledger.h"
#include "harness.h"

#define ELEMS		64
#define SEGMENTS	6
#define WORKERS		8
#define ROUNDS_MAX	500000
#define THREADS_MAX	8
#define PACKETS		2000000		/* of each thread, at most */
#define CHANGES		200		/* of policy and members */
#define PACKETS_BETWEEN	50		/* packets of each thread between two changes, at least */

struct player {
	pthread_t thread;
	int cpu;
	uint64_t workers;	/* mask of those it plays */
	struct rng rng;
	uint32_t sent_round;
	uint8_t sent[WORKERS];	/* segments of that round */
	struct saina_hdr *answer;
	size_t answers, room;
	_Atomic uint64_t packets;
	uint64_t errors, wrong_sums;
};

static struct harness harness;
static struct saina_job_conf conf;
static _Atomic uint8_t *have;		/* [round][segment]: its result was seen */
static _Atomic uint32_t newest;		/* round of which something was seen */
static uint32_t steady = UINT32_MAX;	/* from this round on all workers live */
static _Atomic bool stop;
static _Atomic int playing;

/* In two segments all have one exponent and sums wrap; in one of the others some send NaN. */
static struct ledger_gradient gradient_of(int32_t *v, unsigned int w, uint32_t round, uint32_t segment)
{
	uint64_t x = rng_mix((uint64_t)round << 16 | segment << 8 | w);
	struct ledger_gradient all = { .v = v };
	unsigned int smaller = 0;

	if (segment >= 2) {
		all.exponent = x % 2 ? 0 : (int)(x >> 8) % 40 - 20;
		smaller = 3;
	}
	if (segment == 5 && x % 8 == 0)
		all.exponent = SAINA_EXPONENT_NAN;
	for (int i = 0; i < ELEMS; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		v[i] = (int32_t)(x >> 32) >> smaller;
	}
	return all;
}

static uint64_t digest(const uint8_t *payload)
{
	uint64_t d = 0, v;

	for (int i = 0; i < ELEMS / 2; i++) {
		memcpy(&v, payload + 8 * i, 8);
		d = rng_mix(d ^ v);
	}
	return d;
}

/* Is it the sum of the gradients in its mask?  Keeps its header, with a digest as session. */
static void keep_answer(struct player *p, const uint8_t *frame)
{
	struct ledger_gradient all[WORKERS];
	int32_t v[WORKERS][ELEMS];
	struct saina_hdr *h;
	unsigned int n = 0;

	if (p->answers == p->room) {
		p->room = p->room ? 2 * p->room : 4096;
		p->answer = realloc(p->answer, p->room * sizeof(*p->answer));
		if (!p->answer)
			abort();
	}
	h = &p->answer[p->answers++];
	memcpy(h, frame + FRAME_HDR, sizeof(*h));
	if (h->type != SAINA_MSG_RESULT)
		return;
	h->session = digest(frame + FRAME_PAYLOAD);
	for (unsigned int w = 0; w < WORKERS; w++)
		if (h->mask >> w & 1)
			all[n++] = gradient_of(v[w], w, h->round, h->segment);
	p->wrong_sums += !n || !ledger_is_sum(all, n, ELEMS, h->exponent, frame + FRAME_PAYLOAD);
}

static void send_packet(struct player *p, unsigned int w)
{
	uint32_t round = newest, segment, seen;
	struct saina_hdr h = { .type = SAINA_MSG_GRAD, .count = ELEMS, .worker = w };
	uint8_t out[FRAME_MAX];
	int32_t v[ELEMS];
	unsigned int n;
	int verdict;

	/*
	 * Of the newest round the first segment that has no result and that it
	 * has not sent; the next round if there is none; now and then any
	 * segment, or the round before.
	 */
	for (segment = 0; segment < SEGMENTS && have[round * SEGMENTS + segment]; segment++)
		;
	if (segment == SEGMENTS) {
		segment = 0;
		round++;
	}
	if (p->sent_round != round) {
		p->sent_round = round;
		memset(p->sent, 0, sizeof(p->sent));
	}
	while (segment < SEGMENTS && p->sent[w] >> segment & 1)
		segment++;
	if (segment == SEGMENTS || rng_chance(&p->rng, 100))
		segment = rng_below(&p->rng, SEGMENTS);
	p->sent[w] |= 1u << segment;
	if (round && rng_chance(&p->rng, 50))
		round--;
	if (round >= ROUNDS_MAX) {
		stop = true;
		return;
	}
	if (rng_chance(&p->rng, 60))
		h.type = SAINA_MSG_PULL;
	h.round = round;
	h.segment = segment;
	h.exponent = gradient_of(v, w, round, segment).exponent;
	verdict = harness_exchange(&harness, &conf, h, v, sizeof(v), out);
	if (verdict < 0) {
		p->errors++;
		stop = true;	/* else a change waits for packets that never come */
		return;
	}
	p->packets++;
	if (verdict != XDP_REDIRECT)
		return;
	keep_answer(p, out);
	memcpy(&h, out + FRAME_HDR, sizeof(h));
	n = h.round;
	if (h.type == SAINA_MSG_RESULT)
		have[h.round * SEGMENTS + h.segment] = 1;
	else if (h.slot_round)
		n = h.slot_round - 1;	/* others went on without it */
	for (seen = newest; n > seen && !atomic_compare_exchange_weak(&newest, &seen, n);)
		;
}

static void *play(void *arg)
{
	struct player *p = arg;

	cpus_pin(p->cpu);
	while (!stop && p->packets < PACKETS) {
		unsigned int w = rng_below(&p->rng, WORKERS);

		if (p->workers >> w & 1)
			send_packet(p, w);
	}
	playing--;
	return NULL;
}

/* By round and segment, the result before what repeats it. */
static int by_result(const void *a, const void *b)
{
	const struct saina_hdr *x = a, *y = b;

	if (x->round != y->round)
		return x->round < y->round ? -1 : 1;
	if (x->segment != y->segment)
		return x->segment < y->segment ? -1 : 1;
	return (y->worker == 0xff) - (x->worker == 0xff);
}

struct account {
	uint64_t results, contributions, answers;
	char error[128];
};

static void account_fail(struct account *a, const struct saina_hdr *h, const char *what)
{
	if (!a->error[0])
		snprintf(a->error, sizeof(a->error), "round %u segment %u: %s", h->round,
			 h->segment, what);
}

/* All answers of all threads. */
static void account(const struct player *p, int players, struct account *a)
{
	const struct saina_hdr *result = NULL;
	struct saina_hdr *all;
	size_t n = 0;

	for (int t = 0; t < players; t++)
		n += p[t].answers;
	all = malloc((n + 1) * sizeof(*all));
	if (!all)
		abort();
	n = 0;
	for (int t = 0; t < players; t++) {
		memcpy(all + n, p[t].answer, p[t].answers * sizeof(*all));
		n += p[t].answers;
	}
	qsort(all, n, sizeof(*all), by_result);
	for (size_t i = 0; i < n; i++) {
		const struct saina_hdr *h = &all[i];
		bool known = result && result->round == h->round && result->segment == h->segment;

		if (h->type != SAINA_MSG_RESULT)
			continue;
		a->answers++;
		if (h->contributors != __builtin_popcountll(h->mask) || !h->mask)
			account_fail(a, h, "contributors are not the bits of the mask");
		if (h->round >= steady && h->contributors != h->k)
			account_fail(a, h, "contributors are not k, and all live");
		if (h->worker != 0xff) {
			bool in = h->mask >> h->worker & 1;

			if (!known)
				account_fail(a, h, "repeats a result that was never made");
			else if (h->mask != result->mask || h->policy != result->policy ||
				 h->k != result->k || h->exponent != result->exponent ||
				 h->session != result->session)
				account_fail(a, h, "repeats another result");
			if (!(h->flags & SAINA_F_RESEND) == in || !(h->flags & SAINA_F_LATE) != in)
				account_fail(a, h, "is wrong about who was late");
			continue;
		}
		if (known)
			account_fail(a, h, "a second result");
		result = h;
		a->results++;
		a->contributions += h->contributors;
	}
	free(all);
}

static void make_job(void)
{
	conf = (struct saina_job_conf){
		.generation = 1, .job = 1, .state = SAINA_JOB_RUNNING, .elem = SAINA_ELEM_INT32,
		.payload = ELEMS, .segments = SEGMENTS, .pool = 4, .ring = 4,
		.sign_words = SAINA_SIGN_WORDS(ELEMS, 1), .group = harness_group(1),
		.policy = { .seq = 1, .mode = SAINA_POLICY_FASTEST, .late = 1, .k = 3 },
	};
	harness_bind_all(&harness, &conf, WORKERS, 1);
	if (saina_dp_job_publish(harness.dp, &conf, 0))
		tap_bail("%s", saina_dp_error(harness.dp));
}

/* Changes the policy and sometimes the members, but for those in @keep. */
static bool change(struct rng *r, uint64_t keep)
{
	struct saina_job_conf next = conf;
	unsigned int w = rng_below(r, WORKERS);

	if (!(keep >> w & 1))
		next.active ^= 1ull << w;
	next.policy.seq++;
	next.policy.k = rng_range(r, 1, 3);
	next.policy.mode = rng_range(r, SAINA_POLICY_BSP, SAINA_POLICY_SFCD);
	next.policy.k_min = 1;
	next.policy.s_th = 400;
	next.policy.c_th = 2;
	next.policy.stride = 1;
	if (saina_dp_job_publish(harness.dp, &next, 0))
		return false;
	/* the threads read only constant fields of it */
	conf.active = next.active;
	conf.policy = next.policy;
	return true;
}

/* Waits between two changes, so that their rate does not depend on the scheduler. */
static void wait_for_packets(const struct player *p, int players, uint64_t *seen)
{
	const struct timespec pause = { .tv_nsec = 50000 };

	for (int t = 0; t < players; t++) {
		while (playing == players && p[t].packets < seen[t] + PACKETS_BETWEEN)
			nanosleep(&pause, NULL);
		seen[t] = p[t].packets;
	}
}

int main(void)
{
	const struct saina_dp_cb ignore = {};
	struct player player[THREADS_MAX] = {};
	int cpu[THREADS_MAX], cpus = cpus_find_two(cpu, THREADS_MAX), changes = 0;
	uint64_t keep = 0, all = (1ull << WORKERS) - 1, open[2] = {}, packets = 0, bad = 0, counted = 0, internal = 0;
	uint64_t seen[THREADS_MAX] = {};
	struct account sum = {};
	struct saina_job_rt rt;
	struct saina_slot_meta slot;
	struct rng r;
	bool ok = true;

	harness_open(&harness);
	rng_seed(&r, 4711);
	have = calloc((size_t)(ROUNDS_MAX + 2) * SEGMENTS, 1);
	if (!have)
		abort();
	make_job();
	playing = cpus;
	for (int t = 0; t < cpus; t++) {
		for (unsigned int w = t; w < WORKERS; w += cpus)
			player[t].workers |= 1ull << w;
		keep |= 1ull << t;
		player[t].cpu = cpu[t];
		rng_seed(&player[t].rng, 100 + t);
		pthread_create(&player[t].thread, NULL, play, &player[t]);
	}
	while (ok && playing == cpus && changes < CHANGES) {
		wait_for_packets(player, cpus, seen);
		if (changes == CHANGES / 2)
			conf.active = keep = all;
		ok = change(&r, keep);
		if (++changes == CHANGES / 2 + 1)
			steady = newest + 2;
		saina_dp_event_dispatch(harness.dp, &ignore);
	}
	stop = true;
	for (int t = 0; t < cpus; t++) {
		pthread_join(player[t].thread, NULL);
		packets += player[t].packets;
		bad += player[t].errors + player[t].wrong_sums;
	}
	tap_ok(ok, "race: policies and members can be changed under traffic%s%s", ok ? "" : ": ",
	       ok ? "" : saina_dp_error(harness.dp));

	account(player, cpus, &sum);
	tap_note("%d CPUs, %llu packets, %llu answers, %d changes", cpus,
		 (unsigned long long)packets, (unsigned long long)sum.answers, changes);
	tap_ok(!bad, "race: every answer is the sum of the workers in its mask (%llu are not)",
	       (unsigned long long)bad);
	tap_ok(!sum.error[0], "race: each segment of a round has one result, and repeats equal it%s%s",
	       sum.error[0] ? ": " : "", sum.error);
	for (unsigned int w = 0; w < WORKERS; w++) {
		struct saina_counters c;

		if (!saina_dp_counters(harness.dp, conf.job, w, &c)) {
			counted += c.c[SAINA_C_STORED] + c.c[SAINA_C_ADDED];
			internal += c.c[SAINA_C_INTERNAL];
		}
	}
	for (__u32 i = 0; !saina_dp_slot(harness.dp, conf.job, i, &slot); i++) {
		if (slot.state != SAINA_SLOT_OPEN)
			continue;
		open[0]++;
		open[1] += slot.count;
	}
	saina_dp_job_rt(harness.dp, conf.job, &rt);
	tap_ok(counted == sum.contributions + open[1],
	       "race: of %llu counted gradients %llu are in results, %llu in open slots",
	       (unsigned long long)counted, (unsigned long long)sum.contributions,
	       (unsigned long long)open[1]);
	tap_ok(rt.open_slots == open[0], "race: open_slots is %u where %llu slots are open", rt.open_slots,
	       (unsigned long long)open[0]);
	tap_ok(!rt.count[SAINA_JC_POLICY_MIX] && !internal, "race: no slot saw two policies (%llu), no internal error was counted (%llu)",
	       rt.count[SAINA_JC_POLICY_MIX], (unsigned long long)internal);
	tap_ok(sum.results > packets / 200, "race: rounds go on: %u rounds, %llu results", rt.next_round,
	       (unsigned long long)sum.results);
	for (int t = 0; t < cpus; t++)
		free(player[t].answer);
	free((void *)have);
	harness_close(&harness);
	return tap_done();
}
