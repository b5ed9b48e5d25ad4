// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "harness_shm.h"

static size_t entry_size(const struct harness *r, unsigned int job)
{
	return sizeof(struct saina_input_head) + 4 * r->o.job[job].conf.payload;
}

static size_t pages(size_t bytes)
{
	return (bytes + 4095) & ~4095ul;
}

static void *map(size_t len, int prot, int fd)
{
	void *p = mmap(NULL, len, prot, MAP_SHARED, fd, 0);

	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

static void unmap(uint8_t **p, size_t len)
{
	if (*p)
		munmap(*p, len);
	*p = NULL;
}

int harness_shm_set(struct harness *r, unsigned int job, unsigned int w, bool there)
{
	struct harness_shm *s = &r->shm[job];
	const struct saina_job_conf *c = &r->o.job[job].conf;
	uint32_t number;
	int fd[2], err;

	s->input_len = pages(c->pool * entry_size(r, job));
	s->output_len = pages(c->segments * SAINA_OUTPUT_ROUNDS * entry_size(r, job));
	if (!there) {
		if (!s->input[w])
			return 0;
		oracle_input_set(&r->o, job, w, NULL);
		unmap(&s->input[w], s->input_len);
		unmap(&s->output, s->output_len);
		err = saina_dp_shm_revoke(r->dp, job, w);
		oracle_output_reset(&r->o, job);
		/* map the new output array, which comes with any worker's input array */
		for (w = 0; !err && w < SAINA_WORKERS_MAX; w++)
			if (s->input[w])
				return harness_shm_set(r, job, w, true);
		return err;
	}
	err = saina_dp_shm_grant(r->dp, job, w, fd, &number);
	if (err)
		return err;
	if (!r->o.job[job].output)
		oracle_output_reset(&r->o, job);
	unmap(&s->input[w], s->input_len);
	unmap(&s->output, s->output_len);
	s->input[w] = map(s->input_len, PROT_READ | PROT_WRITE, fd[0]);
	s->output = map(s->output_len, PROT_READ, fd[1]);
	if (!s->input[w] || !s->output)
		return -ENOMEM;
	oracle_input_set(&r->o, job, w, s->input[w]);
	return 0;
}

void harness_shm_unmap(struct harness *r, unsigned int job)
{
	struct harness_shm *s = &r->shm[job];

	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++)
		unmap(&s->input[w], s->input_len);
	unmap(&s->output, s->output_len);
}

struct saina_input_head *harness_shm_input(struct harness *r, unsigned int job, unsigned int w,
					   uint32_t segment)
{
	uint8_t *input = r->shm[job].input[w];

	return input ? (void *)(input + segment % r->o.job[job].conf.pool * entry_size(r, job)) : NULL;
}

const struct saina_output_head *harness_shm_output(struct harness *r, unsigned int job, uint32_t round,
					 uint32_t segment)
{
	uint32_t i = (round % SAINA_OUTPUT_ROUNDS) * r->o.job[job].conf.segments + segment;
	const uint8_t *output = r->shm[job].output;

	return output ? (const void *)(output + i * entry_size(r, job)) : NULL;
}

static bool same_result(struct harness *r, unsigned int job, uint32_t segment,
			const struct saina_output_head *got, const struct oracle_output *want)
{
	if (got->tag != want->tag)
		return harness_differs(r, "output of job %u, segment %u: want tag %llu, got %llu\n", job,
				       segment, (unsigned long long)want->tag, got->tag);
	if (!want->tag)
		return true;
	if (got->mask != want->meta.seen || got->contributors != want->meta.count ||
	    got->k != want->meta.k || got->exponent != want->meta.exponent ||
	    got->policy != want->meta.policy || got->flags != want->meta.flags || got->segment != segment || got->no_round != ~0u)
		return harness_differs(r, "output of job %u, segment %u, round %llu: mask %llx contributors %u k %u exponent %d policy %u flags %x segment %u, %x in the place of a round\n",
				   job, segment, got->tag - 1, got->mask, got->contributors, got->k,
				       got->exponent, got->policy, got->flags, got->segment, got->no_round);
	if (memcmp(got + 1, want->sum, 4 * r->o.job[job].conf.payload))
		return harness_differs(r, "output of job %u, segment %u, round %llu: other sums\n", job,
				       segment, got->tag - 1);
	return true;
}

bool harness_check_output(struct harness *r, unsigned int job, uint32_t round, uint32_t segment)
{
	const struct oracle_job *j = &r->o.job[job];
	const struct saina_output_head *got = harness_shm_output(r, job, round, segment);

	if (!got || !j->output)
		return true;
	return same_result(r, job, segment, got,
			   &j->output[(round % SAINA_OUTPUT_ROUNDS) * j->conf.segments + segment]);
}

const struct saina_output_head *harness_shm_fetched(struct harness *r, unsigned int job, unsigned int w,
						    uint32_t round, uint32_t segment)
{
	const struct oracle_output *want = r->o.job[job].fetched[w];

	want = want ? want + segment % r->o.job[job].conf.pool : NULL;
	return want && want->tag == round + 1ull && want->meta.segment == segment ?
		       (const void *)harness_shm_input(r, job, w, segment) : NULL;
}

bool harness_check_fetched(struct harness *r, unsigned int job, unsigned int w, uint32_t round,
			   uint32_t segment)
{
	const struct saina_output_head *got = harness_shm_fetched(r, job, w, round, segment);

	return !got || same_result(r, job, segment, got, r->o.job[job].fetched[w] +
							 segment % r->o.job[job].conf.pool);
}

void harness_shm_before(struct harness *r, const uint8_t *frame, unsigned int len, unsigned int size)
{
	struct saina_hdr h;

	for (unsigned int at = FRAME_HDR; at + sizeof(h) <= len; at += size ? size : len) {
		uint8_t **input, *copy;

		memcpy(&h, frame + at, sizeof(h));
		if (h.type != SAINA_MSG_FETCH || h.job >= SAINA_JOBS_MAX ||
		    h.worker >= SAINA_WORKERS_MAX || r->befores == HARNESS_BEFORES)
			continue;
		input = &r->o.job[h.job].input[h.worker];
		if (!*input || *input != r->shm[h.job].input[h.worker])
			continue;	/* none, or copied already */
		copy = malloc(r->shm[h.job].input_len);
		if (!copy)
			abort();
		memcpy(copy, *input, r->shm[h.job].input_len);
		r->before[r->befores++] = (struct harness_before){ input, *input };
		*input = copy;
	}
}

void harness_shm_after(struct harness *r)
{
	while (r->befores) {
		const struct harness_before *b = &r->before[--r->befores];

		free(*b->input);
		*b->input = b->mapped;
	}
}
