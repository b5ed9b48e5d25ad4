/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The shared-memory transport: arrays that this worker shares with the aggregator on the same host
 * (uapi/saina/shm.h).
 */
#ifndef SAINA_LIB_SHM_H
#define SAINA_LIB_SHM_H

#include "wire/job.h"
#include "saina/shm.h"

/**
 * struct saina_shm
 * @path: of the agent's socket; NULL: this worker sends its gradients in messages
 * @fd: connection on which the agent's reply is awaited, or -1
 * @again_ns: when to ask (again)
 * @tries: requests since the arrays were mapped last
 * @why: why the last one has failed
 * @session: that @input belongs to
 * @output_id: of the output array that is mapped; 0: none is
 * @wanted_id: of the output array that STATUS named last; 0: all workers use messages
 * @input: this worker's input array
 * @output: the job's output array
 * @input_len: bytes mapped
 * @output_len: bytes mapped
 * @entry: bytes of an entry of either
 * @segments: of the job
 * @ring: rounds that @output keeps
 * @pool: of the job
 */
struct saina_shm {
	const char *path;
	int	 fd;
	uint64_t again_ns;
	unsigned int tries;
	char	 why[SAINA_TEXT_LEN + 80];
	uint64_t session;
	uint32_t output_id, wanted_id;
	uint8_t	 *input;
	const uint8_t *output;
	size_t	 input_len, output_len, entry;
	uint32_t segments, ring, pool;
};

/* @path: as in struct saina_opts, or NULL */
void saina_shm_init(struct saina_shm *s, const char *path);
void saina_shm_exit(struct saina_shm *s);
/* Asks the agent for the arrays of @job's session, if they are not mapped.  When to call again. */
uint64_t saina_shm_run(struct saina_shm *s, const struct saina_job *job, uint64_t now);
/* Why this worker cannot take part in a job with shared memory only; NULL: it can, or may yet. */
const char *saina_shm_failure(const struct saina_shm *s, const struct saina_job *job);
/* @fd is readable: maps the arrays, or notes why not. */
void saina_shm_receive(struct saina_shm *s, const struct saina_job *job,
		       struct saina_notes *notes);

/* May gradients be put into the input array now? */
static inline bool saina_shm_ready(const struct saina_shm *s, const struct saina_job *job)
{
	return s->output_id && s->output_id == s->wanted_id && s->session == job->session;
}

/* The entry of @segment in the input array; its elements follow. */
static inline struct saina_input_head *saina_shm_input(const struct saina_shm *s,
							 uint32_t segment)
{
	return (void *)(s->input + (segment & (s->pool - 1)) * s->entry);
}

/* From here on the aggregator takes nothing from the entry, ... */
static inline void saina_shm_write_begin(struct saina_input_head *in)
{
	__atomic_store_n(&in->session, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* ... until here. */
static inline void saina_shm_write_end(struct saina_input_head *in, uint64_t session)
{
#if defined(__x86_64__)
	__builtin_ia32_sfence(); /* of stores that go around the caches */
#endif
	__atomic_store_n(&in->session, session, __ATOMIC_RELEASE);
}

/* The entry of @segment in the output array; its sums follow. */
static inline const struct saina_output_head *saina_shm_output(const struct saina_shm *s,
								uint32_t round, uint32_t segment)
{
	return (const void *)(s->output + ((size_t)(round & (s->ring - 1)) * s->segments +
					segment) * s->entry);
}

/* Does the entry hold the result of @round and @segment, and has it since the last call? */
static inline bool saina_shm_holds(const struct saina_output_head *b, uint32_t round,
				   uint32_t segment)
{
	bool holds;

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	holds = __atomic_load_n(&b->state, __ATOMIC_ACQUIRE) == SAINA_OUTPUT_VALID &&
		__atomic_load_n(&b->round, __ATOMIC_RELAXED) == round &&
		__atomic_load_n(&b->segment, __ATOMIC_RELAXED) == segment;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return holds;
}

#endif /* SAINA_LIB_SHM_H */
