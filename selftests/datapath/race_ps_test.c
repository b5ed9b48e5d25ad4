// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * race_test for PS mode: INC, READ and CLOCK from several CPUs at once, on the same segments.
 * Meanwhile the window and the members change.  Whatever the order:
 *
 *  - each (worker, step, segment) is counted once, also if two CPUs send it at once;
 *  - the sums are those of exactly the updates counted, and their versions count them;
 *  - every answer has the sums of one moment: as many updates as its version says;
 *  - versions, and what all have finished, never go back;
 *  - with groups all workers of a group get the same sums for a step;
 *  - steps make progress.
 *
 * With a window any CPU plays any worker; with groups each worker is one CPU's, and those of
 * a group are of different ones.
 */
#include <bpf/bpf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include "lib/cpus.h"
#include "lib/rng.h"
#include "lib/tap.h"
#include "harness.h"

#define ELEMS		352
#define SEGMENTS	2
#define WORKERS		8
#define STEPS_MAX	100000
#define THREADS_MAX	8
#define PACKETS		60000		/* of all, at least */
#define CHANGES		25		/* of window and members, at least */

struct player {
	pthread_t thread;
	int cpu;
	uint64_t workers;		/* mask of those it plays */
	struct rng rng;
	uint64_t version[WORKERS][SEGMENTS];	/* seen last: of the sums, or of a view */
	uint32_t low[WORKERS];
	uint64_t packets, errors, torn, back, twice, apart;
	uint64_t counted;
};

static struct harness harness;
static struct saina_job_conf conf;
static uint32_t first_step;		/* of this job */
static _Atomic uint8_t *counted;	/* [step][worker][segment]: acknowledged, so often */
static _Atomic uint64_t *view;		/* [step][group][segment]: 1 + version that its group was given */
static _Atomic uint32_t step[WORKERS];	/* that it is in */
static _Atomic uint8_t sent[WORKERS];	/* segments of it that were acknowledged */
static _Atomic bool stop;
static _Atomic uint64_t played;		/* packets */
static bool grouped;

static size_t at(uint32_t c, unsigned int w, uint32_t s)
{
	return ((size_t)c * WORKERS + w) * SEGMENTS + s;
}

/* The first element and the last one count the updates. */
static void make_update(int32_t *v, unsigned int w, uint32_t c, uint32_t segment)
{
	uint64_t x = rng_mix((uint64_t)c << 16 | segment << 8 | w);

	for (int i = 0; i < ELEMS; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		v[i] = x >> 32;
	}
	v[0] = v[ELEMS - 1] = 1;
}

static void receive_sum(struct player *p, unsigned int w, const struct saina_hdr *h, const uint8_t *frame)
{
	uint64_t none = 0, mine = h->mask + 1;
	int32_t sum[ELEMS];

	memcpy(sum, frame + FRAME_PAYLOAD, sizeof(sum));
	p->torn += (uint64_t)sum[0] != h->mask || (uint64_t)sum[ELEMS - 1] != h->mask;
	if (h->flags & SAINA_F_PULLED) {
		if (!grouped || h->slot_round != h->round || !(h->flags & SAINA_F_FRESH))
			return;
		if (!atomic_compare_exchange_strong(&view[at(h->round, w / 2, h->segment)], &none, mine))
			p->apart += none != mine;
		return;
	}
	p->back += h->mask < p->version[w][h->segment];
	p->version[w][h->segment] = h->mask;
	if (h->flags & SAINA_F_RESEND)
		return;
	p->counted++;
	p->twice += counted[at(h->round, w, h->segment)]++ != 0;
	if (h->round == step[w])
		sent[w] |= 1u << h->segment;
}

static void receive(struct player *p, unsigned int w, const uint8_t *frame)
{
	struct saina_hdr h;
	uint32_t seen;

	memcpy(&h, frame + FRAME_HDR, sizeof(h));
	if (h.type == SAINA_MSG_SUM)
		receive_sum(p, w, &h, frame);
	if (h.worker == 0xff || (h.type != SAINA_MSG_GO && h.type != SAINA_MSG_NAK))
		return;
	p->back += h.slot_round < p->low[w];
	p->low[w] = h.slot_round;
	/* aux: the step that it is in */
	for (seen = step[w]; h.aux > seen; )
		if (atomic_compare_exchange_weak(&step[w], &seen, h.aux))
			sent[w] = 0;
}

static void send_packet(struct player *p, unsigned int w)
{
	struct saina_hdr h = { .count = ELEMS, .worker = w, .round = step[w] };
	unsigned int what = rng_below(&p->rng, 100);
	uint8_t out[FRAME_MAX];
	int32_t v[ELEMS];
	int verdict;

	if (h.round >= STEPS_MAX) {
		stop = true;
		return;
	}
	h.segment = rng_below(&p->rng, SEGMENTS);
	if (what < 65)
		h.type = SAINA_MSG_INC;
	else if (what < 85)
		h.type = SAINA_MSG_READ;
	else
		h.type = SAINA_MSG_CLOCK;
	/* mostly in order, now and then too early, or repeated */
	if (h.type == SAINA_MSG_CLOCK && sent[w] != (1u << SEGMENTS) - 1 && rng_chance(&p->rng, 970))
		h.type = SAINA_MSG_INC;
	if (h.type != SAINA_MSG_READ && h.round > first_step && rng_chance(&p->rng, 30))
		h.round--;
	if (h.type == SAINA_MSG_CLOCK)
		h.count = 0;
	make_update(v, w, h.round, h.segment);
	verdict = harness_exchange(&harness, &conf, h, v, 4 * h.count, out);
	if (verdict < 0) {
		p->errors++;
		return;
	}
	p->packets++;
	played++;
	if (verdict != XDP_REDIRECT)
		return;
	/* a GO for all has no step of its receiver: ask for it */
	receive(p, w, out);
	memcpy(&h, out + FRAME_HDR, sizeof(h));
	if (h.type != SAINA_MSG_GO || h.worker != 0xff)
		return;
	h = (struct saina_hdr){ .type = SAINA_MSG_CLOCK, .worker = w, .round = SAINA_ROUND_ASK };
	if (harness_exchange(&harness, &conf, h, NULL, 0, out) == XDP_REDIRECT)
		receive(p, w, out);
}

static void *play(void *arg)
{
	struct player *p = arg;

	cpus_pin(p->cpu);
	while (!stop) {
		unsigned int w = rng_below(&p->rng, WORKERS);

		if (p->workers >> w & 1)
			send_packet(p, w);
	}
	return NULL;
}

static void publish(void)
{
	if (saina_dp_job_publish(harness.dp, &conf, first_step))
		tap_bail("%s", saina_dp_error(harness.dp));
}

static void make_job(unsigned int job)
{
	conf = (struct saina_job_conf){
		.generation = job, .job = job, .state = SAINA_JOB_RUNNING, .elem = SAINA_ELEM_INT32,
		.payload = ELEMS, .segments = SEGMENTS, .pool = 2, .ring = 2, .workers = WORKERS,
		.sign_words = SAINA_SIGN_WORDS(ELEMS, 1), .group = harness_group(job),
		.policy = { .seq = 1, .late = SAINA_LATE_RESIDUAL },
	};
	if (grouped) {
		conf.policy.mode = SAINA_POLICY_GROUPED;
		conf.policy.groups = WORKERS / 2;
		for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++)
			conf.policy.group[w] = w < WORKERS ? w / 2 : SAINA_GROUP_NONE;
	} else {
		conf.policy.mode = SAINA_POLICY_SSP;
		conf.policy.window = 3;
	}
	harness_bind_all(&harness, &conf, WORKERS, 1);
	for (unsigned int w = 0; w < WORKERS; w++) {
		step[w] = first_step;
		sent[w] = 0;
	}
	publish();
	memset((void *)counted, 0, STEPS_MAX * WORKERS * SEGMENTS);
	memset((void *)view, 0, STEPS_MAX * WORKERS * SEGMENTS * sizeof(*view));
}

/* Changes the window, or a member. */
static void change(struct rng *r)
{
	unsigned int w = rng_range(r, 1, WORKERS - 1);

	if (grouped || rng_chance(r, 700)) {
		conf.policy.seq++;	/* the same groups: at once, as another window */
		if (!grouped)
			conf.policy.window = rng_range(r, 1, 6);
	} else {
		conf.active ^= 1ull << w;
	}
	publish();
}

/* The sums in the ring entry of a segment.  @n: their version */
static bool read_sum(uint32_t segment, int32_t *sum, uint64_t *n)
{
	struct {
		struct saina_slot_meta meta;
		int32_t sum[ELEMS];
	} e;
	int fd = harness_inner(&harness, "saina_ring_352", conf.job);
	__u32 key = (first_step & (conf.ring - 1)) * conf.segments + segment;
	bool ok = fd >= 0 && !bpf_map_lookup_elem(fd, &key, &e) && e.meta.state == SAINA_SLOT_PS;

	close(fd);
	memcpy(sum, e.sum, sizeof(e.sum));
	*n = e.meta.sum_tag;
	return ok;
}

/* Segments whose sums are not those of the acknowledged updates. */
static unsigned int wrong_sums(uint64_t *updates)
{
	unsigned int wrong = 0;

	*updates = 0;
	for (uint32_t s = 0; s < SEGMENTS; s++) {
		int32_t sum[ELEMS] = {}, want[ELEMS] = {}, v[ELEMS];
		uint64_t n = 0, version;

		for (uint32_t c = 0; c < STEPS_MAX; c++) {
			for (unsigned int w = 0; w < WORKERS; w++) {
				if (!counted[at(c, w, s)])
					continue;
				n++;
				make_update(v, w, c, s);
				for (int i = 0; i < ELEMS; i++)
					want[i] = (uint32_t)want[i] + (uint32_t)v[i];
			}
		}
		*updates += n;
		wrong += !read_sum(s, sum, &version) || version != n || memcmp(sum, want, sizeof(sum));
	}
	return wrong;
}

static void race(unsigned int job, int cpus, const int *cpu, const char *what)
{
	const struct saina_dp_cb ignore = {};
	struct player player[THREADS_MAX] = {};
	uint64_t all = (1ull << WORKERS) - 1, inced = 0, clocked = 0, internal = 0, updates, steps = 0;
	struct player sum = {};
	unsigned int wrong;
	struct rng r;

	rng_seed(&r, 4711 + job);
	make_job(job);
	stop = false;
	played = 0;
	for (int t = 0; t < cpus; t++) {
		player[t].cpu = cpu[t];
		player[t].workers = grouped ? 0 : all;
		for (unsigned int w = t; grouped && w < WORKERS; w += cpus)
			player[t].workers |= 1ull << w;
		rng_seed(&player[t].rng, 100 * job + t);
		pthread_create(&player[t].thread, NULL, play, &player[t]);
	}
	for (int n = 0; (n < CHANGES || played < PACKETS) && !stop; n++) {
		change(&r);
		saina_dp_event_dispatch(harness.dp, &ignore);
	}
	stop = true;
	for (int t = 0; t < cpus; t++) {
		pthread_join(player[t].thread, NULL);
		sum.packets += player[t].packets;
		sum.errors += player[t].errors;
		sum.torn += player[t].torn;
		sum.back += player[t].back;
		sum.twice += player[t].twice;
		sum.apart += player[t].apart;
		sum.counted += player[t].counted;
	}
	for (unsigned int w = 0; w < WORKERS; w++) {
		struct saina_counters c;

		if (saina_dp_counters(harness.dp, conf.job, w, &c))
			tap_bail("%s", saina_dp_error(harness.dp));
		inced += c.c[SAINA_C_INCED];
		clocked += c.c[SAINA_C_CLOCKED];
		internal += c.c[SAINA_C_INTERNAL];
		steps += step[w] - first_step;
	}
	tap_note("%d CPUs, %llu packets, %llu updates, %llu steps", cpus, (unsigned long long)sum.packets,
		 (unsigned long long)sum.counted, (unsigned long long)clocked);
	tap_ok(!sum.errors && !sum.torn, "race, %s: each answer has as many updates as its version says (%llu have not)",
	       what, (unsigned long long)(sum.errors + sum.torn));
	tap_ok(!sum.twice, "race, %s: each update is counted once (%llu are not)", what,
	       (unsigned long long)sum.twice);
	/* every update in the sums was acknowledged, and every acknowledged one is in them */
	wrong = wrong_sums(&updates);
	tap_ok(!wrong && updates == sum.counted && inced == updates,
	       "race, %s: the sums are those of the %llu updates that were acknowledged", what,
	       (unsigned long long)updates);
	if (grouped)
		tap_ok(!sum.apart, "race, %s: the workers of a group get the same sums for a step (%llu do not)",
		       what, (unsigned long long)sum.apart);
	else
		tap_ok(!sum.back, "race, %s: versions and steps never go back (%llu did)", what,
		       (unsigned long long)sum.back);
	tap_ok(!internal, "race, %s: no internal error is counted (%llu)", what, (unsigned long long)internal);
	tap_ok(clocked > sum.packets / 1000 && steps >= clocked,
	       "race, %s: steps go on: %llu", what, (unsigned long long)clocked);
	saina_dp_job_remove(harness.dp, conf.job);
}

int main(void)
{
	int cpu[THREADS_MAX], cpus = cpus_find_two(cpu, THREADS_MAX);

	harness_open(&harness);
	counted = calloc(STEPS_MAX, WORKERS * SEGMENTS);
	view = calloc(STEPS_MAX, WORKERS * SEGMENTS * sizeof(*view));
	if (!counted || !view)
		abort();
	race(1, cpus, cpu, "ssp");
	grouped = true;
	race(2, cpus, cpu, "grouped");
	free((void *)counted);
	free((void *)view);
	harness_close(&harness);
	return tap_done();
}
