/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The payload of a message through its slot or the parameter server: by the job's payload size
 * and element type, and by where the payload is.
 */
#ifndef SAINA_RUN_BPF_H
#define SAINA_RUN_BPF_H

#include "check.bpf.h"
#include "hook.bpf.h"
#include "ps.bpf.h"
#include "slot.bpf.h"

/* An INC or READ that the clock has admitted; as run_sized(). */
static __always_inline int run_sized_ps(struct saina_ctx *c, const struct saina_job_conf *conf,
					void *p, const void *end, bool bounded)
{
#define RUN_PS_CASE(E)								\
	case E:									\
		if (bounded && p + sizeof(struct payload_##E) > end)		\
			return VERDICT_MISS;					\
		if (c->in.pull && c->ps.view)					\
			return ps_view_##E(c, conf, p);				\
		return ps_run_##E(c, conf, p, p);

	switch (conf->payload) {
	SAINA_ELEMS_LIST(RUN_PS_CASE)
	}
	return VERDICT_DROP;
}

/**
 * run_sized() - a GRAD or PULL to its slot, an INC or READ to the parameter server
 * @c: the message, checked
 * @conf: its job's snapshot
 * @p: its payload, and room for the result; SHM_HEAD_LEN bytes before it are readable
 * @end: if @bounded, where its memory ends; else there is room for the largest payload
 * @bounded: a constant
 * @ps: a constant: INC or READ
 *
 * Return: enum verdict; VERDICT_MISS: @p has not all of the payload.
 */
static __always_inline int run_sized(struct saina_ctx *c, const struct saina_job_conf *conf,
				     void *p, const void *end, bool bounded, bool ps)
{
	if (ps)
		return run_sized_ps(c, conf, p, end, bounded);
#define RUN_CASE(E)								\
	case E:									\
		if (bounded && p + sizeof(struct payload_##E) > end)		\
			return VERDICT_MISS;					\
		return slot_run_##E(c, conf, p - SHM_HEAD_LEN, p - SHM_HEAD_LEN);
#ifdef SAINA_KMOD
#define RUN_HALF_CASE(E)							\
	case E:									\
		if (bounded && p + sizeof(struct payload_half_##E) > end)	\
			return VERDICT_MISS;					\
		return slot_run_half_##E(c, conf, p - SHM_HEAD_LEN, p - SHM_HEAD_LEN);

	if (conf->elem == SAINA_ELEM_BFLOAT16) {
		switch (conf->payload) {
		SAINA_ELEMS_LIST(RUN_HALF_CASE)
		}
		return VERDICT_DROP;
	}
#endif
	switch (conf->payload) {
	SAINA_ELEMS_LIST(RUN_CASE)
	}
	return VERDICT_DROP;
}

/* The fast path of a GRAD: enum slot_added.  @bounded, @end: as run_sized(). */
static __always_inline int run_add(struct message *m, const void *p, const void *end, bool bounded)
{
	if (m->type != SAINA_MSG_GRAD || slot_is_deferred(&m->in))
		return SLOT_NOT_ADDED;
	switch (m->conf->payload) {
#define RUN_ADD_CASE(E)								\
	case E:									\
		if (bounded && p + sizeof(struct payload_##E) > end)		\
			return SLOT_NOT_ADDED;					\
		return slot_add_##E(&m->in, p);
	SAINA_ELEMS_LIST(RUN_ADD_CASE)
	}
	return SLOT_NOT_ADDED;
}

#ifdef SAINA_HOOK_TC
/* As run_sized(); the whole payload is at @p. */
static __always_inline int run_payload(HOOK_CTX *ctx, struct saina_ctx *c,
				       const struct saina_job_conf *conf, void *p, bool ps)
{
	return run_sized(c, conf, p, NULL, false, ps);
}
#else
/* A non-linear payload is copied to scratch memory and back: no helper may be called under
 * the slot's lock.
 */
static __always_inline int run_nonlinear(struct xdp_md *ctx, struct saina_ctx *c,
					 const struct saina_job_conf *conf, bool ps)
{
	struct ctx_scratch *scratch = ctx_scratch();
	__u32 len = config_bytes(conf, conf->payload);
	int verdict;

	/* for the verifier: the bounds of what the helpers get */
	asm volatile("" : "+r"(len));
	if (!scratch || len < 4 || len > sizeof(scratch->payload) ||
	    (!c->in.pull && bpf_xdp_load_bytes(ctx, SAINA_DATA_OFF, scratch->payload, len)))
		return VERDICT_DROP;
	verdict = run_sized(c, conf, scratch->payload, NULL, false, ps);
	if ((verdict == VERDICT_RESULT_ALL || verdict == VERDICT_RESULT ||
	     verdict == VERDICT_SUM) &&
	    bpf_xdp_store_bytes(ctx, SAINA_DATA_OFF, scratch->payload, len)) {
		c->out.reason = SAINA_C_INTERNAL;
		return VERDICT_DROP;
	}
	return verdict;
}

static __noinline int run_slot_nonlinear(struct xdp_md *ctx, struct saina_ctx *c,
					 const struct saina_job_conf *conf)
{
	return run_nonlinear(ctx, c, conf, false);
}

static __noinline int run_ps_nonlinear(struct xdp_md *ctx, struct saina_ctx *c,
				       const struct saina_job_conf *conf)
{
	return run_nonlinear(ctx, c, conf, true);
}

/* As run_sized(); the payload is in the frame. */
static __always_inline int run_payload(HOOK_CTX *ctx, struct saina_ctx *c,
				       const struct saina_job_conf *conf, void *p, bool ps)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	int verdict = run_sized(c, conf, data + SAINA_DATA_OFF, end, true, ps);

	if (verdict != VERDICT_MISS)
		return verdict;
	return ps ? run_ps_nonlinear(ctx, c, conf) : run_slot_nonlinear(ctx, c, conf);
}
#endif

#endif /* SAINA_RUN_BPF_H */
