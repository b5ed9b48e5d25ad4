// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina_dp_touch() reads every page of a new generation's maps, in parts, and none twice.
 *
 *	payloads of 64 (many entries in a page) and 2048 elements (an entry takes pages)
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <sched.h>
#include "lib/beside.h"
#include "lib/tap.h"
#include "harness.h"

#define JOB	1
#define PAGE	4096
#define AT_ONCE 64
#define MAPS	8

static struct saina_dp *dp;
static struct harness harness;

/* What has been read of a map. */
static struct seen {
	char name[BPF_OBJ_NAME_LEN];
	uint32_t value, entries;
	uint32_t reads, last, gap;	/* the largest distance between two reads, bytes */
	bool again;			/* an entry was read twice, or not in order */
} seen[MAPS];
static unsigned int reads;
static bool recording;

int __real_bpf_map_lookup_elem(int fd, const void *key, void *value);
int __wrap_bpf_map_lookup_elem(int fd, const void *key, void *value);

static void record(int fd, uint32_t at)
{
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info);
	struct seen *s = seen;

	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		return;
	while (s < seen + MAPS - 1 && *s->name && strcmp(s->name, info.name))
		s++;
	strcpy(s->name, info.name);
	s->value = info.value_size;
	s->entries = info.max_entries;
	s->again |= s->reads && at <= s->last;
	if ((at - s->last) * s->value > s->gap)
		s->gap = (at - s->last) * s->value;
	s->last = at;
	s->reads++;
	reads++;
}

int __wrap_bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	if (recording)
		record(fd, *(const uint32_t *)key);
	return __real_bpf_map_lookup_elem(fd, key, value);
}

static bool publish(uint32_t generation, uint16_t payload, uint32_t segments)
{
	struct saina_job_conf conf = {
		.generation = generation, .job = JOB, .state = SAINA_JOB_RUNNING, .elem = SAINA_ELEM_INT32,
		.payload = payload, .segments = segments, .pool = 128, .ring = 4,
		.sign_words = SAINA_SIGN_WORDS(payload, 1), .group = harness_group(JOB),
		.policy = { .seq = 1, .mode = SAINA_POLICY_BSP, .late = 1 },
	};

	harness_bind_all(&harness, &conf, 2, 1);
	return !saina_dp_job_publish(dp, &conf, 0);
}

/* Reads all in parts.  Returns false if a part was too large, or nothing was read in one. */
static bool touch_all(void)
{
	bool more = true, good = true;
	unsigned int before;

	memset(seen, 0, sizeof(seen));
	reads = 0;
	recording = true;
	for (int i = 0; more && i < 100000; i++) {
		before = reads;
		more = saina_dp_touch(dp, AT_ONCE);
		good &= reads > before && reads - before <= AT_ONCE;
	}
	recording = false;
	return good && !more;
}

/* Every page of the map has been read, and no entry twice. */
static bool is_whole(const char *name)
{
	for (const struct seen *s = seen; s < seen + MAPS; s++) {
		uint32_t step = s->value < PAGE ? PAGE : s->value;

		if (strcmp(s->name, name))
			continue;
		tap_note("%s: %u of %u entries of %u bytes", name, s->reads, s->entries, s->value);
		return s->gap <= step && (s->entries - s->last) * s->value <= step && !s->again;
	}
	return false;
}

static void check_payload(uint32_t generation, uint16_t payload, uint32_t segments)
{
	static const char *const name[] = { "saina_hot1", "saina_coun1", "saina_sign1", "saina_ring1" };
	bool good;

	good = publish(generation, payload, segments);
	tap_ok(good && saina_dp_touch(dp, 0), "touch: a new generation of %u elements is to be read%s%s",
	       payload, good ? "" : ": ", good ? "" : saina_dp_error(dp));
	tap_ok(touch_all(), "touch: %u elements: at most %u entries are read at once", payload, AT_ONCE);
	for (unsigned int i = 0; i < sizeof(name) / sizeof(*name); i++)
		tap_ok(is_whole(name[i]), "touch: %u elements: each page of %s is read", payload, name[i]);
	tap_ok(publish(generation, payload, segments) && !saina_dp_touch(dp, 0),
	       "touch: %u elements: the same generation is not read again", payload);
}

/* Another ring takes the place of the first when the memory of a worker is taken away. */
static void check_ring(void)
{
	uint32_t output;
	int fd[2];
	bool good;

	good = !saina_dp_shm_grant(dp, JOB, 0, fd, &output);
	if (good) {
		close(fd[0]);
		close(fd[1]);
		good = !saina_dp_shm_revoke(dp, JOB, 1);
	}
	tap_ok(good && saina_dp_touch(dp, 0), "touch: a ring that has been replaced is to be read%s%s",
	       good ? "" : ": ", good ? "" : saina_dp_error(dp));
	tap_ok(touch_all() && is_whole("saina_ring1") && !strcmp(seen[0].name, "saina_ring1") && !*seen[1].name,
	       "touch: each page of it is read, and no other map");
}

int main(void)
{
	const struct saina_dp_opts opts = { 0 };
	char path[PATH_MAX];

	setenv("SAINA_BPF_OBJECT", path_beside(path, "../saina_xdp.bpf.o"), 0);
	if (geteuid())
		tap_skip_all("only root may load BPF programs");
	if (unshare(CLONE_NEWNET))
		tap_skip_all("cannot make a network namespace");
	if (saina_dp_open(&dp, &opts))
		tap_bail("saina_dp_open: %s", saina_dp_error(dp));
	harness.g.ip = htonl(0x0abe0001);
	harness.port[0] = 1;
	if (saina_dp_global_set(dp, &harness.g))
		tap_bail("saina_dp_global_set: %s", saina_dp_error(dp));
	tap_ok(!saina_dp_touch(dp, 0), "touch: without a job there is nothing to read");
	check_payload(1, 64, 1000);
	check_payload(2, 2048, 200);
	check_ring();
	saina_dp_close(dp, true);
	return tap_done();
}
