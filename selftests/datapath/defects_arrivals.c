// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Arrival times: the values, which the oracle does not model.  The slot is made to have opened
 * so long ago (its opened_at is set back), so a test of seconds takes none.  The clock is read
 * before and after the packet: what the program notes must lie between the two.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "monotonic.h"
#include "test_job.h"

#define MS	1000000ull

struct slot {
	struct saina_slot_meta meta;
	int32_t sum[JOB_ELEMS];
};

static struct job job(unsigned int workers, unsigned int segments, struct saina_policy p)
{
	static uint32_t generations;
	struct job j = job_create(5, workers, segments, p);

	j.conf.generation += ++generations << 23;
	job_publish(&j);
	return j;
}

/* Entry @i of the @map of the job opened at @at. */
static bool opened(const struct job *j, const char *map, uint32_t i, uint64_t at)
{
	int fd = harness_inner(&harness, map, j->conf.job);
	struct slot s;
	bool ok = fd >= 0 && !bpf_map_lookup_elem(fd, &i, &s);

	s.meta.opened_at = at;
	ok = ok && !bpf_map_update_elem(fd, &i, &s, BPF_EXIST);
	if (fd >= 0)
		close(fd);
	if (!ok)
		tap_note("%s %u: %s", map, i, strerror(errno));
	return ok;
}

static struct saina_arrival noted(const struct job *j, unsigned int w)
{
	__u32 key = j->conf.job * SAINA_WORKERS_MAX + w;
	int fd = harness_map(&harness, "saina_arrival");
	struct saina_arrival a = {};

	if (bpf_map_lookup_elem(fd, &key, &a) || a.generation != j->conf.generation)
		memset(&a, 0, sizeof(a));
	close(fd);
	return a;
}

/* As uapi/saina/bpf.h says it: [0] 0 us, [i] from 2^(i-1) to less than 2^i, the last all above. */
static unsigned int bucket(uint64_t us)
{
	unsigned int i = 0;

	while (i < SAINA_ARRIVAL_BUCKETS - 1 && us >= saina_arrival_end_us(i))
		i++;
	return i;
}

struct between {
	uint64_t begin, end;	/* the packet was handled between the two */
};

static struct between grad(const struct job *j, unsigned int w, uint32_t round, uint32_t segment)
{
	struct between b = { .begin = monotonic_ns() };

	send_grad(j, w, round, segment, 1);
	b.end = monotonic_ns();
	return b;
}

/* Was worker @w, alone in its bucket, as much later as a slot of @opened_at says? */
static bool was_late(const struct job *j, unsigned int w, uint32_t round, uint64_t opened_at,
		     struct between b)
{
	struct saina_arrival a = noted(j, w);
	uint64_t least = (b.begin - opened_at) / 1000, most = (b.end - opened_at) / 1000;

	if (a.round == round + 1 && a.last_us >= least && a.last_us <= most)
		return true;
	tap_note("worker %u round %u: %llu us (of round %u), want %llu to %llu", w, round,
		 (unsigned long long)a.last_us, a.round - 1, (unsigned long long)least,
		 (unsigned long long)most);
	return false;
}

/* The first of all is as late as the program took to open its slot. */
static bool was_first(const struct job *j, unsigned int w, struct between b)
{
	return noted(j, w).last_us <= (b.end - b.begin) / 1000;
}

static void test_values(void)
{
	struct job j = job(3, 2, policy_bsp());
	uint64_t hist[SAINA_ARRIVAL_BUCKETS] = {}, sum = 0;
	struct saina_arrival a;
	uint32_t round = 0;
	bool ok = true;

	/* in the middle of each bucket, as far as they go, and beyond the last one's beginning */
	for (unsigned int i = 2; i <= SAINA_ARRIVAL_BUCKETS; i++, round++) {
		uint64_t at = monotonic_ns() - 750 * saina_arrival_end_us(i);
		struct between b;

		b = grad(&j, 0, round, 0);
		ok &= was_first(&j, 0, b);
		ok &= opened(&j, "saina_hot_64", 0, at);
		b = grad(&j, 1, round, 0);
		ok &= was_late(&j, 1, round, at, b);
		a = noted(&j, 1);
		hist[bucket(a.last_us)]++;
		sum += a.last_us;
		ok &= a.n == round + 1 && a.sum_us == sum && !memcmp(a.hist, hist, sizeof(hist));
		/* all of the round, or the next one does not open */
		send_grad(&j, 2, round, 0, 1);
		for (unsigned int w = 0; w < 3; w++)
			send_grad(&j, w, round, 1, 1);
	}
	ok &= hist[SAINA_ARRIVAL_BUCKETS - 1] >= 2 && !hist[0];
	a = noted(&j, 0);
	ok &= a.n == round;
	job_verdict(&j, ok, "arrivals: a gradient is noted as late as it was after the first of its round");
}

static void test_edges(void)
{
	struct job j = job(2, 1, policy_bsp());
	uint32_t round = 0;
	bool ok = true;

	/* a clock that another processor read a moment later */
	send_grad(&j, 0, round, 0, 1);
	ok &= opened(&j, "saina_hot_64", 0, monotonic_ns() + 1000000 * MS);
	grad(&j, 1, round, 0);
	ok &= noted(&j, 1).last_us == 0 && noted(&j, 1).hist[0] == 1 && noted(&j, 1).n == 1;
	job_verdict(&j, ok, "arrivals: a gradient is never noted as earlier than the first one");
}

static void test_once(void)
{
	struct job j = job(4, 2, policy_fastest(2));
	struct saina_arrival before;
	struct between b;
	uint64_t at;
	bool ok = true;

	b = grad(&j, 0, 0, 0);
	at = monotonic_ns() - 300 * MS;
	ok &= opened(&j, "saina_hot_64", 0, at);
	send_grad(&j, 0, 0, 0, 1);			/* a duplicate */
	ok &= noted(&j, 0).n == 1 && was_first(&j, 0, b);
	send_pull(&j, 2, 0, 0);				/* no gradient */
	ok &= noted(&j, 2).n == 0;
	b = grad(&j, 1, 0, 0);
	ok &= got_broadcast(3, 2) && was_late(&j, 1, 0, at, b);
	send_grad(&j, 1, 0, 0, 1);			/* it wants the result again */
	ok &= noted(&j, 1).n == 1;
	/* too late, of which the result in the ring tells, not the hot slot */
	ok &= opened(&j, "saina_hot_64", 0, monotonic_ns() - 3000 * MS);
	b = grad(&j, 2, 0, 0);
	ok &= got_unicast(&j, 2, SAINA_F_LATE, 3, 2) && was_late(&j, 2, 0, at, b);
	before = noted(&j, 2);
	ok &= before.n == 1 && before.hist[bucket(before.last_us)] == 1 && before.sum_us == before.last_us;
	send_grad(&j, 2, 0, 0, 1);
	ok &= noted(&j, 2).n == 1;
	/* another segment is not looked at */
	send_grad(&j, 3, 0, 1, 1);
	send_grad(&j, 2, 0, 1, 1);
	ok &= noted(&j, 3).n == 0 && noted(&j, 2).n == 1;
	job_verdict(&j, ok, "arrivals: each worker is noted once a round, by segment 0, also when it is too late");
}

static void test_generation(void)
{
	struct job j = job(2, 1, policy_bsp());
	struct between b;
	bool ok;

	send_grad(&j, 0, 0, 0, 1);
	ok = opened(&j, "saina_hot_64", 0, monotonic_ns() - 40 * MS);
	send_grad(&j, 1, 0, 0, 1);
	ok &= noted(&j, 1).n == 1 && noted(&j, 1).sum_us >= 40000;
	j.conf.generation++;
	job_publish(&j);
	ok &= noted(&j, 1).n == 0;
	b = grad(&j, 1, 0, 0);
	ok &= noted(&j, 1).n == 1 && was_first(&j, 1, b) && noted(&j, 1).sum_us == noted(&j, 1).last_us;
	job_verdict(&j, ok, "arrivals: a restarted job has none of its former arrivals");
}

/* With groups: how much later than the first of its group a worker finishes a step. */
static void test_groups(void)
{
	struct job j = job(4, 1, policy_grouped(2));	/* 0 and 2, 1 and 3 */
	__u32 number = j.conf.job;
	struct saina_clock k;
	int fd = harness_map(&harness, "saina_clock");
	struct between b;
	uint64_t at = monotonic_ns() - 500 * MS;
	bool ok;

	send_step(&j, 0, 0);
	ok = noted(&j, 0).n == 1 && noted(&j, 0).last_us == 0;
	ok &= !bpf_map_lookup_elem(fd, &number, &k);
	k.first_at[0] = at;
	ok &= !bpf_map_update_elem(fd, &number, &k, BPF_EXIST);
	send_step(&j, 1, 0);				/* the first of the other group */
	ok &= noted(&j, 1).n == 1 && noted(&j, 1).last_us == 0;
	send_message(&j, SAINA_MSG_INC, 2, 0, 0, 1);		/* a push is no end of a step */
	ok &= noted(&j, 2).n == 0;
	b.begin = monotonic_ns();
	send_message(&j, SAINA_MSG_CLOCK, 2, 0, 0, 0);
	b.end = monotonic_ns();
	ok &= was_late(&j, 2, 0, at, b) && noted(&j, 2).hist[bucket(noted(&j, 2).last_us)] == 1;
	send_message(&j, SAINA_MSG_CLOCK, 2, 0, 0, 0);	/* again: it asks whether it may go on */
	ok &= noted(&j, 2).n == 1 && noted(&j, 0).n == 1;
	close(fd);
	job_verdict(&j, ok, "arrivals: with groups a step is noted as late as it was after the first of its group");
}

void defects_arrivals(void)
{
	test_values();
	test_edges();
	test_once();
	test_generation();
	test_groups();
}
