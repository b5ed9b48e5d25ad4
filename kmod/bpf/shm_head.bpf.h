/* SPDX-License-Identifier: GPL-2.0 */
/*
 * By reference: what workers and the data path write into the memory they share.
 * Documentation/datapath.rst section 8.2.
 */
#ifndef SAINA_OUTPUT_BPF_H
#define SAINA_OUTPUT_BPF_H

#include "ctx.bpf.h"

/* Is that what the doorbell is about?  Under the slot's lock, for the worker may write there. */
static __always_inline bool shm_input_matches(const struct saina_input_head *s,
					      const struct ctx_in *in)
{
	return s->session == in->session && s->round == in->round && s->segment == in->segment;
}

/* One read: the worker may write there. */
static __always_inline __s32 shm_input_exponent(const struct saina_input_head *s)
{
	return *(const volatile __s8 *)&s->exponent;
}

/* Under the slot's lock: is the input what the doorbell is about, with an exponent that can be?
 * Then c->in has it, else c->out says why not.
 */
static __always_inline bool shm_take_input(const struct saina_input_head *s, struct saina_ctx *c)
{
	c->in.exponent = shm_input_exponent(s);
	c->out.verdict = VERDICT_DROP;
	if (!shm_input_matches(s, &c->in)) {
		c->out.reason = SAINA_C_STAMP;
		return false;
	}
	c->out.reason = SAINA_C_EXPONENT;
	return slot_is_exponent(c->in.exponent);
}

/* From here to shm_publish() nobody reads the entry.  Exchanges keep the order that readers
 * need.
 */
static __always_inline void shm_unpublish(struct saina_output_head *b)
{
	__sync_lock_test_and_set(&b->tag, 0);
}

static __always_inline void shm_publish(struct saina_output_head *b,
					const struct saina_slot_meta *m)
{
	b->mask = m->seen;
	b->policy = m->policy;
	b->k = m->k;
	b->contributors = m->count;
	b->exponent = m->exponent;
	b->flags = m->flags;
	__sync_lock_test_and_set(&b->tag, m->round + 1ull);
}

#endif /* SAINA_OUTPUT_BPF_H */
