// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Results in the ring that workers have mapped: one CPU makes rounds by doorbells, another one
 * reads entries by libsaina's own function while they are overwritten.
 *
 *	CPU 0			program			CPU 1
 *	DOORBELL(r) of two	entry r % 2: not valid	saina_shm_result(r - 2)
 *	of three workers	  sums of r
 *				entry r % 2: valid
 *
 * Whatever the reader accepts is one round: every element, the mask and the exponent.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include "lib/cpus.h"
#include "lib/tap.h"
#include "reduce/reduce_shm.h"
#include "harness.h"
#include "harness_shm.h"

#define ELEMS	SAINA_ELEMS_MAX	/* the longest entries: most of the time one is being written */
#define WORKERS 3
#define RING	2
#define RACES	200	/* entries that are overwritten within a reading */
#define SECONDS 60	/* at most */

static struct harness harness;
static struct saina_job_conf conf;
static _Atomic uint32_t newest;	/* round that has its result */
static _Atomic bool stop;

struct reader {
	pthread_t thread;
	int cpu;
	uint64_t accepted;
	_Atomic unsigned int races, torn;
	char first[160];
};

/* Two workers are in a round, not always the same two; in every other one exponents differ. */
static unsigned int absent(uint32_t round)
{
	return round % WORKERS;
}

static int exponent_of(unsigned int w, uint32_t round)
{
	return round / RING % 2 && w == (absent(round) + 1) % WORKERS ? 1 : 0;
}

static int32_t value_of(uint32_t round)
{
	return (int32_t)(round << 4);
}

/* Verdict of the program, or -errno. */
static int doorbell(unsigned int w, uint32_t round)
{
	struct saina_input_head *head = harness_shm_input(&harness, conf.job, w, 0);
	int32_t *v = (int32_t *)(head + 1);
	struct saina_doorbell body = { .posted = 1 };
	const struct saina_hdr h = { .type = SAINA_MSG_DOORBELL, .worker = w, .round = round };
	uint8_t out[FRAME_MAX];

	head->session = conf.worker[w].session;
	head->round = round;
	head->exponent = exponent_of(w, round);
	for (int i = 0; i < ELEMS; i++)
		v[i] = value_of(round) << head->exponent;
	return harness_exchange(&harness, &conf, h, &body, sizeof(body), out);
}

static bool make_round(uint32_t round)
{
	return doorbell((absent(round) + 1) % WORKERS, round) == XDP_DROP &&
	       doorbell((absent(round) + 2) % WORKERS, round) == XDP_REDIRECT;
}

/* What is wrong with an accepted result, if anything. */
static void check(struct reader *r, const struct saina_hdr *h, uint32_t round)
{
	const int32_t *v = (const int32_t *)(h + 1), want = 2 * value_of(round);
	uint64_t mask = ((1u << WORKERS) - 1) & ~(1u << absent(round));
	int i = 0;

	/* fast, to be back at the entry soon: all are like their neighbours */
	if (v[0] == want && !memcmp(v, v + 1, 4 * (ELEMS - 1)) && le64toh(h->mask) == mask &&
	    !h->exponent && h->contributors == 2)
		return;
	while (i < ELEMS - 1 && v[i] == want)
		i++;
	if (!r->torn++)
		snprintf(r->first, sizeof(r->first),
			 ", but not: round %u, mask %llx, exponent %d, element %d is %d, not %d", round,
			 (unsigned long long)le64toh(h->mask), h->exponent, i, v[i],
			 want);
}

/* As a worker that has mapped the ring, and submits nothing: it takes any result. */
static void *read_results(void *arg)
{
	const struct saina_job job = {
		.id = conf.job, .session = 1, .workers = WORKERS, .elem = SAINA_ELEM_INT32,
		.elements = ELEMS, .segments = 1, .payload = ELEMS, .pool = 1, .ring = RING,
		.wire = 4 * ELEMS, .msglen = sizeof(struct saina_hdr) + 4 * ELEMS,
		.per_batch = 1, .heartbeat_ms = 500, .dead_ms = 5000, .by_reference = true,
	};
	const struct saina_shm shm = {
		.session = 1, .output_id = 1, .wanted_id = 1, .segments = 1, .ring = RING, .pool = 1,
		.output = harness.shm[conf.job].output,
		.entry = sizeof(struct saina_output_head) + 4 * ELEMS,
	};
	struct saina_round reader;
	struct reader *r = arg;

	cpus_pin(r->cpu);
	if (saina_round_init(&reader, &job, 1, 1, 0))
		abort();
	reader.shm = &shm;
	while (!stop) {
		/* the next one takes its entry */
		uint32_t round = newest + 1 - RING;
		const struct saina_output_head *e = saina_shm_output(&shm, round, 0);

		if (!saina_shm_holds(e, round, 0))
			continue;
		if (!saina_shm_result(&reader, round, 0, 0, 0)) {
			r->races++;
			continue;
		}
		r->accepted++;
		check(r, reader.copy, round);
	}
	saina_round_exit(&reader);
	return NULL;
}

static void make_job(void)
{
	conf = (struct saina_job_conf){
		.generation = 1, .job = 1, .state = SAINA_JOB_RUNNING, .elem = SAINA_ELEM_INT32,
		.payload = ELEMS, .segments = 1, .pool = 1, .ring = RING,
		.sign_words = SAINA_SIGN_WORDS(ELEMS, 1), .group = harness_group(1),
		.policy = { .seq = 1, .mode = SAINA_POLICY_FASTEST, .late = 1, .k = 2,
			    .lead = SAINA_LEAD_NONE },
	};
	harness_bind_all(&harness, &conf, WORKERS, 1);
	if (saina_dp_job_publish(harness.dp, &conf, 0))
		tap_bail("%s", saina_dp_error(harness.dp));
	harness.o.job[conf.job].conf = conf;
	for (unsigned int w = 0; w < WORKERS; w++)
		if (harness_shm_set(&harness, conf.job, w, true))
			tap_bail("%s", saina_dp_error(harness.dp));
}

int main(void)
{
	struct reader r = {};
	int cpu[2];
	time_t end = time(NULL) + SECONDS;
	uint32_t round = 0;
	bool made = true;

	cpus_find_two(cpu, 2);
	harness_open(&harness);
	make_job();
	r.cpu = cpu[1];
	cpus_pin(cpu[0]);
	for (; made && round < RING; round++)
		made = make_round(round);
	newest = round - 1;
	if (made && pthread_create(&r.thread, NULL, read_results, &r))
		abort();
	for (; made && r.races < RACES && !r.torn && time(NULL) < end; round++) {
		made = make_round(round);
		newest = round;
	}
	stop = true;
	tap_ok(made, "shm race: two of three workers make each round by doorbells (%u rounds)", round);
	if (r.thread)
		pthread_join(r.thread, NULL);
	tap_ok(r.races >= RACES || r.torn, "shm race: entries are overwritten while they are read (%u, %llu were read whole)",
	       r.races, (unsigned long long)r.accepted);
	tap_ok(!r.torn, "shm race: every result that a worker accepts is of one round%s", r.first);
	harness_shm_unmap(&harness, conf.job);
	harness_close(&harness);
	return tap_done();
}
