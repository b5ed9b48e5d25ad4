/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Slots that have become AWAY, for the relay of a job with an uplink.
 * Documentation/datapath.rst section 12.
 */
#ifndef SAINA_AWAY_BPF_H
#define SAINA_AWAY_BPF_H

#include "ctx.bpf.h"
#include "maps.bpf.h"

/*
 * The slot of the message has become AWAY.  Without room there is no record: the relay reads the
 * heads of the slots, too.  A global function, which the verifier walks once.
 */
__noinline int away_note(struct saina_ctx *c)
{
	struct saina_away away;
	void *ring;
	__u32 job;

	if (!c)
		return 0;
	/* a DOORBELL's next segment may do nothing */
	c->latch.away = 0;
	away.round = c->in.round;
	away.segment = c->in.segment;
	job = c->in.job;
	ring = bpf_map_lookup_elem(&saina_away, &job);
	if (ring)
		bpf_ringbuf_output(ring, &away, sizeof(away), 0);
	return 0;
}

#endif /* SAINA_AWAY_BPF_H */
