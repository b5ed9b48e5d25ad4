// SPDX-License-Identifier: GPL-2.0-or-later
/* Reading the hot slots of a job while the data path writes them. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <bpf/bpf.h>
#include "slots.h"

int uplink_slots_map(struct uplink_slots *s, int fd, uint32_t payload, uint32_t pool, uint32_t segments)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	void *base;

	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		return -errno;
	s->wire = 4ul * payload;
	if (info.type != BPF_MAP_TYPE_ARRAY || info.max_entries != pool || pool & (pool - 1) ||
	    info.value_size != sizeof(struct saina_slot_meta) + s->wire)
		return -EINVAL;
	/* The kernel rounds values up to 8 bytes. */
	s->stride = (info.value_size + 7) & ~7ul;
	s->bytes = s->stride * pool;
	s->pool = pool;
	s->segments = segments;
	base = mmap(NULL, s->bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	s->base = base;
	return 0;
}

void uplink_slots_unmap(struct uplink_slots *s)
{
	if (s->base)
		munmap((void *)s->base, s->bytes);
	s->base = NULL;
}

static const struct saina_slot_meta *slot_of(const struct uplink_slots *s, uint32_t segment)
{
	return (const void *)(s->base + s->stride * (segment & (s->pool - 1)));
}

/*
 * What a slot is used for, as far as that decides where a segment is.  The state is read before and
 * after round and segment.  AWAY is exact: the data path sets it last, and it stays until this process
 * has given the result.  DONE is of these, or, in the moment in which a slot is opened, of what the
 * slot was used for before.
 */
static inline uint8_t use_of(const struct saina_slot_meta *m, uint32_t *round, uint32_t *segment)
{
	uint8_t before, after;

	do {
		before = __atomic_load_n(&m->state, __ATOMIC_ACQUIRE);
		*round = __atomic_load_n(&m->round, __ATOMIC_RELAXED);
		*segment = __atomic_load_n(&m->segment, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		after = __atomic_load_n(&m->state, __ATOMIC_RELAXED);
	} while (before != after);
	return before;
}

/* Slots are used for ever later segments, so a slot that is used for a later one says: over. */
enum uplink_where uplink_slots_where(const struct uplink_slots *s, uint32_t round, uint32_t segment)
{
	uint32_t r, g;
	uint8_t state = use_of(slot_of(s, segment), &r, &g);

	if (state == SAINA_SLOT_EMPTY || r < round || (r == round && g < segment))
		return UPLINK_NOT_YET;
	if (r > round || g > segment || state == SAINA_SLOT_DONE)
		return UPLINK_OVER;
	return state == SAINA_SLOT_AWAY ? UPLINK_AWAY : UPLINK_NOT_YET;
}

bool uplink_slots_read(const struct uplink_slots *s, uint32_t round, uint32_t segment,
		       struct saina_slot_meta *meta, void *sum)
{
	const struct saina_slot_meta *m = slot_of(s, segment);

	if (uplink_slots_where(s, round, segment) != UPLINK_AWAY)
		return false;
	memcpy(meta, m, sizeof(*meta));
	if (sum)
		memcpy(sum, m + 1, s->wire);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return uplink_slots_where(s, round, segment) == UPLINK_AWAY;
}

bool uplink_slots_scan(const struct uplink_slots *s, uint32_t *round)
{
	bool found = false;

	for (uint32_t i = 0; i < s->pool; i++) {
		uint32_t r, g;

		if (use_of(slot_of(s, i), &r, &g) == SAINA_SLOT_AWAY && (!found || r > *round)) {
			*round = r;
			found = true;
		}
	}
	return found;
}
