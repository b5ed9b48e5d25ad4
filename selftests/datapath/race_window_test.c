// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A late gradient, or a PULL, for a slot that others open, complete and leave behind after it has
 * left the slot's lock and before it takes the round's (a PULL looks at the round without a lock).
 * race_test meets that window by chance; the program of window.bpf.c holds the message there.
 *
 *	worker 2			workers 0 and 1
 *	GRAD or PULL(r, segment 1)
 *	  slot's lock: not open, no
 *	  result
 *					complete (r, 1), (r, 0), (r + 1, 0); open (r + 2, 0)
 *	  round's lock: r is over
 *
 * Its answer is the result of (r, 1), if there is one, else STALE.
 *
 * And a gradient whose slot becomes coarser after the fast path has compared exponents:
 *
 *	worker 2			worker 1
 *	GRAD(0, segment 1), exponent 8
 *	  the slot has 8, too
 *					GRAD(0, segment 1), exponent 0
 *	  slot's lock: it has 0 now
 *
 * It is shifted before it is added.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "lib/beside.h"
#include "lib/cpus.h"
#include "lib/tap.h"
#include "harness.h"
#include "window.h"

#define ELEMS	64
#define WORKERS 3
#define K	2
#define LATE	2  /* the worker whose gradient is held */
#define TRIES	20 /* of a packet that was held for so long that it went on by itself */

static struct harness harness;
static struct saina_job_conf conf, mixed;
static volatile struct window *window;

struct late {
	pthread_t thread;
	int cpu;
	uint32_t round;
	int type;
	bool coarser;	/* its slot becomes coarser, meanwhile */
	int err, verdict;
	bool ended;
	uint8_t out[FRAME_MAX];
};

/* A GRAD of worker @w, all elements w + 1, or a PULL; its verdict, or -errno. */
static int message(int type, unsigned int w, uint32_t round, uint32_t segment, uint8_t *out)
{
	const struct saina_hdr h = {
		.type = type, .count = ELEMS, .worker = w, .round = round, .segment = segment,
	};
	int32_t v[ELEMS];

	for (int i = 0; i < ELEMS; i++)
		v[i] = w + 1;
	return harness_exchange(&harness, &conf, h, v, sizeof(v), out);
}

static int grad(unsigned int w, uint32_t round, uint32_t segment, uint8_t *out)
{
	return message(SAINA_MSG_GRAD, w, round, segment, out);
}

/* A gradient of segment 1 of job `mixed`. */
static int grad_of(unsigned int w, uint32_t round, int exponent, int32_t value, uint8_t *out)
{
	const struct saina_hdr h = {
		.type = SAINA_MSG_GRAD, .count = ELEMS, .worker = w, .round = round, .segment = 1,
		.exponent = exponent,
	};
	int32_t v[ELEMS];

	for (int i = 0; i < ELEMS; i++)
		v[i] = value;
	return harness_exchange(&harness, &mixed, h, v, sizeof(v), out);
}

static void *send_late(void *arg)
{
	struct late *l = arg;

	cpus_pin(l->cpu);
	window->worker = 1 + (l->coarser ? WINDOW_CPU + l->cpu : LATE);
	l->verdict = l->coarser ? grad_of(LATE, l->round, 8, 3 << 8, l->out) :
				  message(l->type, LATE, l->round, 1, l->out);
	window->worker = 0;
	__atomic_store_n(&l->ended, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Workers 0 and 1 make the result of a segment. */
static bool complete(uint32_t round, uint32_t segment)
{
	uint8_t out[FRAME_MAX];

	return grad(0, round, segment, out) == XDP_DROP &&
	       grad(1, round, segment, out) == XDP_REDIRECT;
}

/* What they do while the message of worker 2 is held. */
static bool overtake(uint32_t r, bool with_result)
{
	uint8_t out[FRAME_MAX];

	return (!with_result || complete(r, 1)) && complete(r, 0) && complete(r + 1, 0) &&
	       grad(0, r + 2, 0, out) == XDP_DROP;
}

/* Rounds @round to @round + 2; false if it was not held until the others were done. */
static bool run(struct late *l, int type, int cpu, uint32_t round, bool with_result, bool coarser)
{
	const struct timespec pause = {.tv_nsec = 50000};
	bool overtaken = false;

	*l = (struct late){.cpu = cpu, .round = round, .type = type, .coarser = coarser};
	window->inside = window->release = window->expired = 0;
	if (pthread_create(&l->thread, NULL, send_late, l))
		tap_bail("no thread");
	while (!window->inside && !__atomic_load_n(&l->ended, __ATOMIC_ACQUIRE))
		nanosleep(&pause, NULL);
	if (window->inside)
		overtaken = coarser ? grad_of(1, round, 0, 2, (uint8_t[FRAME_MAX]){}) == XDP_DROP :
				      overtake(round, with_result);
	window->release = 1;
	pthread_join(l->thread, NULL);
	if (l->verdict < 0)
		tap_bail("BPF_PROG_TEST_RUN: %s", strerror(-l->verdict));
	if (!overtaken && !window->expired)
		tap_bail("%s", window->inside ? "workers 0 and 1 did not get through" :
						"the packet was not held");
	return !window->expired;
}

static void check_late(int type, int cpu, uint32_t *round, bool with_result)
{
	const char *name = type == SAINA_MSG_PULL ? "PULL" : "late gradient";
	int32_t sum[ELEMS];
	struct saina_hdr h;
	struct late l;
	int tries = 0;
	bool right;

	/* three rounds, the last of them completed for the next try */
	while (!run(&l, type, cpu, *round, with_result, false) && ++tries < TRIES) {
		grad(1, *round + 2, 0, l.out);
		*round += 3;
	}
	grad(1, *round + 2, 0, (uint8_t[FRAME_MAX]){});
	memcpy(&h, l.out + FRAME_HDR, sizeof(h));
	memcpy(sum, l.out + FRAME_PAYLOAD, sizeof(sum));
	right = tries < TRIES && l.verdict == XDP_REDIRECT && h.round == *round && h.segment == 1;
	*round += 3;
	if (!with_result) {
		tap_ok(right && h.type == SAINA_MSG_STALE,
		       "window: a %s of a segment without a result gets STALE (got type %u)",
		       name, h.type);
		return;
	}
	right &= h.type == SAINA_MSG_RESULT && h.mask == 3 && h.flags & SAINA_F_LATE &&
		 !(h.flags & SAINA_F_PULLED) == (type == SAINA_MSG_GRAD);
	for (int i = 0; i < ELEMS && right; i++)
		right = sum[i] == 1 + 2;
	tap_ok(right,
	       "window: a %s gets the result that was made after it left the slot's lock (got type %u)",
	       name, h.type);
}

/* Exponents that differ only once the slot's lock is taken. */
static void check_coarser(int cpu)
{
	uint8_t out[FRAME_MAX];
	int32_t sum[ELEMS];
	struct saina_hdr h;
	struct late l;
	uint32_t round = 0;
	bool held = false, right;

	for (; !held && round < TRIES; round++) {
		grad_of(0, round, 8, 1 << 8, out);
		held = run(&l, SAINA_MSG_GRAD, cpu, round, true, true);
		right = grad_of(3, round, 0, 4, out) == XDP_REDIRECT;
		memcpy(&h, out + FRAME_HDR, sizeof(h));
		memcpy(sum, out + FRAME_PAYLOAD, sizeof(sum));
	}
	right &= held && l.verdict == XDP_DROP && h.type == SAINA_MSG_RESULT && !h.exponent && h.mask == 15;
	for (int i = 0; i < ELEMS; i++)
		right &= sum[i] == 1 + 2 + 3 + 4;
	tap_ok(right, "window: a gradient whose slot becomes coarser before it takes the lock is shifted (sum %d)",
	       sum[0]);
}

/* The program is window.bpf.o, unless SAINA_BPF_OBJECT names another build of it. */
static void window_open(void)
{
	char path[PATH_MAX];

	setenv("SAINA_BPF_OBJECT", path_beside(path, "window.bpf.o"), 0);
	harness_open(&harness);
	window = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED,
		      harness_map(&harness, "window"), 0);
	if (window == MAP_FAILED)
		tap_bail("cannot map the window: %m");
}

static void make_jobs(void)
{
	conf = (struct saina_job_conf){
		.generation = 1,
		.job = 1,
		.state = SAINA_JOB_RUNNING,
		.elem = SAINA_ELEM_INT32,
		.payload = ELEMS,
		.segments = 2,
		.pool = 2,
		.ring = 4,
		.sign_words = SAINA_SIGN_WORDS(ELEMS, 1),
		.group = harness_group(1),
		.policy = {.seq = 1, .mode = SAINA_POLICY_FASTEST, .late = 1, .k = K, .lead = SAINA_LEAD_NONE},
	};
	mixed = conf;
	mixed.job = 2;
	mixed.group = harness_group(2);
	mixed.policy = (struct saina_policy){.seq = 1, .mode = SAINA_POLICY_BSP, .lead = SAINA_LEAD_NONE};
	harness_bind_all(&harness, &conf, WORKERS, 1);
	harness_bind_all(&harness, &mixed, WORKERS + 1, 1);
	if (saina_dp_job_publish(harness.dp, &conf, 0) || saina_dp_job_publish(harness.dp, &mixed, 0))
		tap_bail("%s", saina_dp_error(harness.dp));
}

int main(void)
{
	uint32_t round = 0;
	int cpu[2];

	cpus_find_two(cpu, 2);
	window_open();
	make_jobs();
	cpus_pin(cpu[0]);
	for (int i = 0; i < 2; i++) {
		check_late(i ? SAINA_MSG_PULL : SAINA_MSG_GRAD, cpu[1], &round, true);
		check_late(i ? SAINA_MSG_PULL : SAINA_MSG_GRAD, cpu[1], &round, false);
	}
	check_coarser(cpu[1]);
	harness_close(&harness);
	return tap_done();
}
