/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * By reference: memory that this worker shares with the aggregator on the same host
 * (uapi/saina/shm.h), once it has been lent.
 */
#ifndef SAINA_LENT_H
#define SAINA_LENT_H

#include "job.h"
#include "saina/shm.h"

/**
 * struct saina_lent
 * @path: of the agent's socket, NULL: this worker sends its gradients in messages
 * @fd: where the answer is to come, -1: nothing has been asked
 * @again_ns: when to ask (again)
 * @session: that @input is of
 * @board: number of the board that is mapped, 0: none is
 * @wanted: the one that STATUS has named last, 0: all workers use messages
 * @input, @results: the arrays
 * @input_len, @results_len: bytes mapped
 * @entry: bytes of an entry of either
 * @segments, @pool: of the job
 */
struct saina_lent {
	const char *path;
	int	 fd;
	uint64_t again_ns;
	uint64_t session;
	uint32_t board, wanted;
	uint8_t	 *input;
	const uint8_t *results;
	size_t	 input_len, results_len, entry;
	uint32_t segments, pool;
};

void saina_lent_init(struct saina_lent *s, const char *path);
void saina_lent_exit(struct saina_lent *s);
/* Asks for the memory of @job's session, if that is not there.  When to come back. */
uint64_t saina_lent_run(struct saina_lent *s, const struct saina_job *job, uint64_t now);
/* The answer to that is there; notes what people should know. */
void saina_lent_receive(struct saina_lent *s, const struct saina_job *job,
			 struct saina_notes *notes);

/* May gradients be put into the array now? */
static inline bool saina_lent_ready(const struct saina_lent *s, const struct saina_job *job)
{
	return s->board && s->board == s->wanted && s->session == job->session;
}

/* A segment's place in the array, its elements behind it. */
static inline struct saina_input_head *saina_lent_input(const struct saina_lent *s,
							 uint32_t segment)
{
	return (void *)(s->input + (segment & (s->pool - 1)) * s->entry);
}

/* Nobody takes what is there from here ... */
static inline void saina_lent_begin(struct saina_input_head *in)
{
	__atomic_store_n(&in->session, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* ... to here. */
static inline void saina_lent_end(struct saina_input_head *in, uint64_t session)
{
#if defined(__x86_64__)
	__builtin_ia32_sfence(); /* of stores that go around the caches */
#endif
	__atomic_store_n(&in->session, session, __ATOMIC_RELEASE);
}

static inline const struct saina_output_head *saina_lent_result(const struct saina_lent *s,
								uint32_t round, uint32_t segment)
{
	return (const void *)(s->results + ((round & (SAINA_OUTPUT_ROUNDS - 1)) * s->segments +
					    segment) * s->entry);
}

/* Is, and was since it was asked before, the result of @round there? */
static inline bool saina_lent_holds(const struct saina_output_head *b, uint32_t round)
{
	bool holds;

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	holds = __atomic_load_n(&b->tag, __ATOMIC_RELAXED) == round + 1ull;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return holds;
}

#endif /* SAINA_LENT_H */
