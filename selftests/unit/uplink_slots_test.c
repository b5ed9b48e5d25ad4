// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The relay reads sums that are frozen from a BPF array that others write.
 *
 * A second thread is the data path: it opens slots, adds in several steps, makes them AWAY, and
 * opens them for the next round when the reader has said that it has the result.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include "lib/tap.h"
#include "uplink/slots.h"

#define PAYLOAD	 64
#define POOL	 8
#define SEGMENTS 20
#define ROUNDS	 20000

static struct saina_slot_64 *hot; /* written here */
static struct uplink_slots slots; /* read */

static int sum_of(uint32_t round, uint32_t segment, uint32_t i)
{
	return round * 1000003 + segment * 101 + i;
}

static struct saina_slot_64 *slot_of(uint32_t segment)
{
	return &hot[segment % POOL];
}

/* As the data path does it: round and segment while the state is that of before, the state last. */
static void put(uint32_t round, uint32_t segment, int state)
{
	struct saina_slot_64 *s = slot_of(segment);

	s->meta.round = round;
	s->meta.segment = segment;
	s->meta.count = 3;
	__atomic_store_n(&s->meta.state, SAINA_SLOT_OPEN, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < PAYLOAD; i++)
		*(volatile int *)&s->sum[i] = sum_of(round, segment, i) - 1;
	sched_yield(); /* also on one processor the reader sees the half of it */
	for (uint32_t i = 0; i < PAYLOAD; i++)
		*(volatile int *)&s->sum[i] += 1;
	__atomic_store_n(&s->meta.state, state, __ATOMIC_RELEASE);
}

/* Is it AWAY, with the whole sum? */
static bool reads(uint32_t round, uint32_t segment)
{
	struct saina_slot_meta meta;
	int sum[PAYLOAD];

	if (!uplink_slots_read(&slots, round, segment, &meta, sum))
		return false;
	for (uint32_t i = 0; i < PAYLOAD; i++)
		if (sum[i] != sum_of(round, segment, i))
			return false;
	return meta.round == round && meta.segment == segment && meta.count == 3;
}

static void check_states(void)
{
	uint32_t round;

	tap_ok(uplink_slots_where(&slots, 0, 0) == UPLINK_NOT_YET && !uplink_slots_scan(&slots, &round),
	       "slots: an empty one has nothing");
	put(4, 1, SAINA_SLOT_OPEN);
	tap_ok(uplink_slots_where(&slots, 4, 1) == UPLINK_NOT_YET && !reads(4, 1),
	       "slots: the sum of an open one is not read");
	put(4, 1, SAINA_SLOT_AWAY);
	tap_ok(uplink_slots_where(&slots, 4, 1) == UPLINK_AWAY && reads(4, 1),
	       "slots: the sum of one that is AWAY is read");
	tap_ok(!reads(5, 1) && !reads(3, 1) && !reads(4, 1 + POOL),
	       "slots: it is not taken for that of another round or segment");
	tap_ok(uplink_slots_where(&slots, 5, 1) == UPLINK_NOT_YET &&
		       uplink_slots_where(&slots, 4, 1 + POOL) == UPLINK_NOT_YET,
	       "slots: what it will be used for later has not come yet");
	tap_ok(uplink_slots_where(&slots, 3, 1 + POOL) == UPLINK_OVER,
	       "slots: what it was used for before is over");
	put(4, 1, SAINA_SLOT_DONE);
	tap_ok(uplink_slots_where(&slots, 4, 1) == UPLINK_OVER && !reads(4, 1),
	       "slots: the sum of one with a result is not read");
	put(6, 2, SAINA_SLOT_AWAY);
	put(7, 3, SAINA_SLOT_AWAY);
	put(8, 4, SAINA_SLOT_OPEN);
	tap_ok(uplink_slots_scan(&slots, &round) && round == 7, "slots: the newest round that is AWAY is found");
}

static uint32_t taken; /* rounds that the reader has taken */

static void *data_path(void *arg)
{
	for (uint32_t r = 100; r < 100 + ROUNDS; r++) {
		put(r, 5, SAINA_SLOT_AWAY);
		while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) != r)
			sched_yield();
		__atomic_store_n(&slot_of(5)->meta.state, SAINA_SLOT_DONE, __ATOMIC_RELEASE);
	}
	return arg;
}

static void check_race(void)
{
	unsigned int torn = 0;
	pthread_t thread;

	pthread_create(&thread, NULL, data_path, NULL);
	for (uint32_t r = 100; r < 100 + ROUNDS; r++) {
		while (uplink_slots_where(&slots, r, 5) != UPLINK_AWAY)
			sched_yield();
		torn += !reads(r, 5);
		__atomic_store_n(&taken, r, __ATOMIC_RELEASE);
	}
	pthread_join(thread, NULL);
	tap_ok(!torn, "slots: %u sums were read while another thread wrote, %u of them torn", ROUNDS, torn);
}

static int make_map(uint32_t value, uint32_t entries)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY, "hot", 4, value, entries, &opts);
}

int main(void)
{
	int fd, wrong;

	if (geteuid())
		tap_skip_all("only root may make BPF maps");
	fd = make_map(sizeof(*hot), POOL);
	wrong = make_map(sizeof(*hot) + 8, POOL);
	if (fd < 0 || wrong < 0)
		tap_bail("cannot make a map");
	tap_ok(uplink_slots_map(&slots, wrong, PAYLOAD, POOL, SEGMENTS) == -EINVAL &&
		       uplink_slots_map(&slots, fd, PAYLOAD, 2 * POOL, SEGMENTS) == -EINVAL,
	       "slots: a map of another job is refused");
	if (uplink_slots_map(&slots, fd, PAYLOAD, POOL, SEGMENTS))
		tap_bail("cannot map the slots");
	hot = mmap(NULL, sizeof(*hot) * POOL, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (hot == MAP_FAILED)
		tap_bail("cannot map the slots to write");
	check_states();
	check_race();
	uplink_slots_unmap(&slots);
	return tap_done();
}
