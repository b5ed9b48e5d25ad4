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
	s->output_len = pages((size_t)c->segments * c->ring * entry_size(r, job));
	if (!there) {
		if (!s->input[w])
			return 0;
		oracle_input_set(&r->o, job, w, NULL);
		unmap(&s->input[w], s->input_len);
		unmap(&s->output, s->output_len);
		err = saina_dp_shm_revoke(r->dp, job, 1ull << w);
		/* map the new ring, which comes with any worker's input array */
		for (w = 0; !err && w < SAINA_WORKERS_MAX; w++)
			if (s->input[w])
				return harness_shm_set(r, job, w, true);
		return err;
	}
	err = saina_dp_shm_grant(r->dp, job, w, fd, &number);
	if (err)
		return err;
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
	const struct saina_job_conf *c = &r->o.job[job].conf;
	size_t i = (size_t)(round % c->ring) * c->segments + segment;
	const uint8_t *output = r->shm[job].output;

	return output ? (const void *)(output + i * entry_size(r, job)) : NULL;
}

bool harness_check_output(struct harness *r, unsigned int job, uint32_t round, uint32_t segment)
{
	const struct saina_job_conf *c = &r->o.job[job].conf;
	const struct oracle_slot *want = &r->o.job[job].ring[(size_t)segment * c->ring + round % c->ring];
	const struct saina_output_head *got = harness_shm_output(r, job, round, segment);

	if (!got || want->meta.state != SAINA_SLOT_DONE)
		return !got || got->state != SAINA_OUTPUT_VALID ||
		       harness_differs(r, "job %u, segment %u: workers see a result of round %u\n", job, segment,
				       got->round);
	if (got->state != SAINA_OUTPUT_VALID || got->round != want->meta.round || got->segment != segment)
		return harness_differs(r, "job %u, segment %u: workers see no result of round %u: state %u, round %u, segment %u\n",
				       job, segment, want->meta.round, got->state, got->round, got->segment);
	if (got->mask != want->meta.seen || got->contributors != want->meta.count ||
	    got->k != want->meta.k || got->exponent != want->meta.exponent ||
	    got->policy != want->meta.policy || got->flags != want->meta.flags ||
	    (SAINA_ELEM_IS_INT(c->elem) && got->weight != want->weight))
		return harness_differs(r, "job %u, segment %u, round %u: workers see mask %llx contributors %u k %u exponent %d policy %u flags %x weight %u\n",
				       job, segment, got->round, got->mask, got->contributors, got->k,
				       got->exponent, got->policy, got->flags, got->weight);
	if (memcmp(got + 1, want->sum, 4 * c->payload))
		return harness_differs(r, "job %u, segment %u, round %u: workers see other sums\n", job, segment,
				       got->round);
	return true;
}
