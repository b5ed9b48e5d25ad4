/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hot slots of the own job, mapped to read.  A slot that is AWAY is frozen until this process
 * gives it a result, so its sum can be read without the slot's lock.  The data path sets the state
 * after the last addition, and the reader reads it before the sum: the barriers are a pair.
 */
#ifndef SAINA_UPLINK_SLOTS_H
#define SAINA_UPLINK_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "saina/bpf.h"

/**
 * struct uplink_slots
 * @base: of the mapped array
 * @bytes: mapped
 * @stride: bytes from a slot to the next one
 * @wire: bytes of a sum
 * @pool: slots, a power of two
 * @segments: of a round
 */
struct uplink_slots {
	const uint8_t *base;
	size_t	bytes, stride, wire;
	uint32_t pool, segments;
};

/* Where a segment of a round is, as its slot says. */
enum uplink_where {
	UPLINK_NOT_YET,		/* its sum is not complete */
	UPLINK_AWAY,		/* it waits for the parent's result */
	UPLINK_OVER,		/* it has a result */
};

/**
 * uplink_slots_map() - map the hot slots
 * @fd: of the array; stays open
 * @payload: elements of a segment, of 4 bytes
 * @pool: slots that it must have
 * @segments: of a round
 * Return: 0; -EINVAL: the map is not of such a job; -errno of mmap()
 */
int uplink_slots_map(struct uplink_slots *s, int fd, uint32_t payload, uint32_t pool, uint32_t segments);
void uplink_slots_unmap(struct uplink_slots *s);

/*
 * Heads are asked for in the order of segments, and were written by other processors or long ago: so
 * the head of one a few segments on is fetched meanwhile.
 */
#define UPLINK_SLOTS_AHEAD 8
static inline void uplink_slots_ahead(const struct uplink_slots *s, uint32_t segment)
{
	__builtin_prefetch(s->base + s->stride * ((segment + UPLINK_SLOTS_AHEAD) & (s->pool - 1)));
}

enum uplink_where uplink_slots_where(const struct uplink_slots *s, uint32_t round, uint32_t segment);

/**
 * uplink_slots_read() - copy the frozen sum of a segment
 * @meta: out, the slot's head
 * @sum: out, @s->wire bytes; NULL: only the head is wanted
 * Return: false if the slot is not, or no longer, AWAY with this segment of this round.  Then @meta
 *	and @sum mean nothing
 */
bool uplink_slots_read(const struct uplink_slots *s, uint32_t round, uint32_t segment,
		       struct saina_slot_meta *meta, void *sum);

/**
 * uplink_slots_scan() - the newest round of which a slot is AWAY
 * @round: out
 * Return: false if no slot is
 */
bool uplink_slots_scan(const struct uplink_slots *s, uint32_t *round);

#endif /* SAINA_UPLINK_SLOTS_H */
