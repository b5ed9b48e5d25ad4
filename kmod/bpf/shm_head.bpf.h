/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Head of an entry of a worker's input array (saina/shm.h).
 * Documentation/datapath.rst section 8.3.
 */
#ifndef SAINA_SHM_HEAD_BPF_H
#define SAINA_SHM_HEAD_BPF_H

#include "ctx.bpf.h"

/* Is the input of the message's session, round and segment?  The worker may be writing: under
 * the slot's lock, once.
 */
static __always_inline bool shm_input_matches(const struct saina_input_head *s,
					      const struct ctx_in *in)
{
	return s->session == in->session && s->round == in->round && s->segment == in->segment;
}

/* Reads once: the worker may be writing. */
static __always_inline __s32 shm_input_exponent(const struct saina_input_head *s)
{
	return *(const volatile __s8 *)&s->exponent;
}

/* Checks 20 and 21 of what the uplink worker has written; of others neither is looked at. */
static __always_inline bool shm_take_weight(const struct saina_input_head *s, struct saina_ctx *c)
{
	c->in.flags = *(const volatile __u8 *)&s->flags;
	c->in.weight = *(const volatile __u32 *)&s->weight;
	c->out.reason = SAINA_C_WEIGHT;
	return !c->in.weight || c->in.weight < c->max_weight;
}

/* Under the slot's lock: takes a valid exponent of a matching input into c->in, else sets the
 * reason in c->out.
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
	if (!exponent_is_valid(c->in.elem, c->in.exponent))
		return false;
	return !(c->in.uplink & UPLINK_SENDER) || shm_take_weight(s, c);
}

#endif /* SAINA_SHM_HEAD_BPF_H */
