/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Snapshots of jobs: from maps that a process fills or, with SAINA_KMOD, from saina.ko by kfunc.
 */
#ifndef SAINA_CONFIG_BPF_H
#define SAINA_CONFIG_BPF_H

#include "hook.bpf.h"
#include "maps.bpf.h"

/* The snapshot of a job, NULL if there is none; valid to the packet's end. */
#ifdef SAINA_KMOD
extern const __u8 *hook_job(HOOK_CTX *ctx, __u32 job, const __u32 rdonly_buf_size) __ksym;

static __always_inline const struct saina_job_conf *config_job(HOOK_CTX *ctx, __u32 job)
{
	return (const void *)hook_job(ctx, job, sizeof(struct saina_job_conf));
}

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct saina_job_conf);
} saina_plain SEC(".maps");

/* A writable copy of the snapshot, without bindings: the verifier passes no read-only memory
 * to global functions.
 */
static __always_inline const struct saina_job_conf *config_plain(const struct saina_job_conf *conf)
{
	const __u64 *from = (const void *)conf;
	__u32 zero = 0;
	__u64 *to = bpf_map_lookup_elem(&saina_plain, &zero);

	if (!to)
		return NULL;
#pragma unroll
	for (int i = 0; i < (int)offsetof(struct saina_job_conf, worker) / 8; i++)
		to[i] = from[i];
	return (const void *)to;
}

/* Bytes that @count elements take in a message. */
static __always_inline __u32 config_bytes(const struct saina_job_conf *conf, __u32 count)
{
	return count << (conf->elem == SAINA_ELEM_BFLOAT16 ? 1 : 2);
}
#else
static __always_inline const struct saina_job_conf *config_job(HOOK_CTX *ctx, __u32 job)
{
	__u32 zero = 0;
	void *inner = bpf_map_lookup_elem(&saina_jobs, &job);

	return inner ? bpf_map_lookup_elem(inner, &zero) : NULL;
}

static __always_inline const struct saina_job_conf *config_plain(const struct saina_job_conf *conf)
{
	return conf;
}

/* Bytes of the payload.  Without the module all words have 4: int32, or a pair of int16. */
static __always_inline __u32 config_bytes(const struct saina_job_conf *conf, __u32 count)
{
	return 4 * count;
}
#endif

#endif /* SAINA_CONFIG_BPF_H */
