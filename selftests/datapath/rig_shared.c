// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "rig_shared.h"

static size_t entry_size(const struct rig *r, unsigned int job)
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

int rig_share(struct rig *r, unsigned int job, unsigned int w, bool there)
{
	struct rig_shared *s = &r->shared[job];
	const struct saina_job_conf *c = &r->o.job[job].conf;
	uint32_t number;
	int fd[2], err;

	s->input_len = pages(c->pool * entry_size(r, job));
	s->board_len = pages(c->segments * SAINA_OUTPUT_ROUNDS * entry_size(r, job));
	if (!there) {
		if (!s->input[w])
			return 0;
		oracle_share(&r->o, job, w, NULL);
		unmap(&s->input[w], s->input_len);
		unmap(&s->board, s->board_len);
		err = saina_dp_shm_revoke(r->dp, job, w);
		oracle_board_new(&r->o, job);
		/* map the new board: by sharing again with another worker */
		for (w = 0; !err && w < SAINA_WORKERS_MAX; w++)
			if (s->input[w])
				return rig_share(r, job, w, true);
		return err;
	}
	err = saina_dp_shm_grant(r->dp, job, w, fd, &number);
	if (err)
		return err;
	if (!r->o.job[job].board)
		oracle_board_new(&r->o, job);
	unmap(&s->input[w], s->input_len);
	unmap(&s->board, s->board_len);
	s->input[w] = map(s->input_len, PROT_READ | PROT_WRITE, fd[0]);
	s->board = map(s->board_len, PROT_READ, fd[1]);
	if (!s->input[w] || !s->board)
		return -ENOMEM;
	oracle_share(&r->o, job, w, s->input[w]);
	return 0;
}

void rig_unshare_all(struct rig *r, unsigned int job)
{
	struct rig_shared *s = &r->shared[job];

	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++)
		unmap(&s->input[w], s->input_len);
	unmap(&s->board, s->board_len);
}

struct saina_input_head *rig_input(struct rig *r, unsigned int job, unsigned int w,
				   uint32_t segment)
{
	uint8_t *input = r->shared[job].input[w];

	return input ? (void *)(input + segment % r->o.job[job].conf.pool * entry_size(r, job)) : NULL;
}

const struct saina_output_head *rig_board(struct rig *r, unsigned int job, uint32_t round,
					 uint32_t segment)
{
	uint32_t i = (round % SAINA_OUTPUT_ROUNDS) * r->o.job[job].conf.segments + segment;
	const uint8_t *board = r->shared[job].board;

	return board ? (const void *)(board + i * entry_size(r, job)) : NULL;
}

bool rig_check_board(struct rig *r, unsigned int job, uint32_t round, uint32_t segment)
{
	const struct oracle_job *j = &r->o.job[job];
	const struct saina_output_head *got = rig_board(r, job, round, segment);
	const struct oracle_board *want;

	if (!got || !j->board)
		return true;
	want = &j->board[(round % SAINA_OUTPUT_ROUNDS) * j->conf.segments + segment];
	if (got->tag != want->tag)
		return rig_differs(r, "board of job %u, segment %u: want tag %llu, got %llu\n", job,
				   segment, (unsigned long long)want->tag, got->tag);
	if (!want->tag)
		return true;
	if (got->mask != want->meta.seen || got->contributors != want->meta.count ||
	    got->k != want->meta.k || got->exponent != want->meta.exponent ||
	    got->policy != want->meta.policy || got->flags != want->meta.flags)
		return rig_differs(r, "board of job %u, segment %u, round %llu: mask %llx contributors %u k %u exponent %d policy %u flags %x\n",
				   job, segment, got->tag - 1, got->mask, got->contributors, got->k,
				   got->exponent, got->policy, got->flags);
	if (memcmp(got + 1, want->sum, 4 * j->conf.payload))
		return rig_differs(r, "board of job %u, segment %u, round %llu: other sums\n", job,
				   segment, got->tag - 1);
	return true;
}
