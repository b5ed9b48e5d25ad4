// SPDX-License-Identifier: GPL-2.0-or-later
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "harness_jobs.h"
#include "harness_shm.h"
#include "harness_state.h"

static bool same_counters(struct harness *r, int job, int worker, const struct saina_counters *want)
{
	struct saina_counters got;
	bool same = true;

	if (job < 0 ? saina_dp_counters(r->dp, -1, -1, &got) : harness_counters(r, job, worker, &got))
		return harness_differs(r, "counters of job %d worker %d: %s\n", job, worker,
				       saina_dp_error(r->dp));
	for (int i = 0; i < SAINA_C_N; i++)
		if (got.c[i] != want->c[i])
			same = harness_differs(r, "counter %s of job %d worker %d: want %llu got %llu\n",
					       saina_counter_info[i].name, job, worker, want->c[i],
					       got.c[i]);
	return same;
}

bool harness_check_global(struct harness *r)
{
	r->diff[0] = 0;
	return same_counters(r, -1, -1, &r->o.gcount);
}

static bool same_rt(struct harness *r, unsigned int job)
{
	const struct saina_job_rt *want = &r->o.job[job].rt;
	struct saina_job_rt got;
	bool same = true;

	if (saina_dp_job_rt(r->dp, job, &got))
		return harness_differs(r, "rt of job %u: %s\n", job, saina_dp_error(r->dp));
#define SAME(field) \
	if (got.field != want->field) \
		same = harness_differs(r, "job %u rt." #field ": want %llu got %llu\n", job, \
				   (unsigned long long)want->field, (unsigned long long)got.field)
	SAME(generation);
	SAME(next_round);
	SAME(open_slots);
	SAME(segs_done);
	SAME(k);
	SAME(k_next);
	SAME(primed);
	SAME(mode);
	SAME(base);
	SAME(members);
	SAME(policy.seq);
	SAME(policy.mode);
	SAME(converged);
	SAME(last_round);
	SAME(flips);
	SAME(observed);
	SAME(last_flips);
	SAME(last_observed);
	SAME(asked);
	SAME(happened);
	SAME(resumed);
	SAME(behind);
#define SAME_COUNT(id, name, text)						\
	if (got.count[SAINA_JC_##id] != want->count[SAINA_JC_##id])		\
		same = harness_differs(r, "job %u counter " name ": want %llu got %llu\n", job,	\
				       (unsigned long long)want->count[SAINA_JC_##id],			\
				       (unsigned long long)got.count[SAINA_JC_##id]);
	SAINA_JOB_COUNTER_LIST(SAME_COUNT)
#undef SAME_COUNT
	for (int w = 0; w < SAINA_WORKERS_MAX; w++)
		SAME(at[w]);
#undef SAME
	if (memcmp(&got.policy, &want->policy, sizeof(got.policy)))
		same = harness_differs(r, "job %u rt.policy is not the one adopted\n", job);
	return same;
}

/* saina.ko's sums of floats have another use for the bytes of the weight. */
static bool same_weight(const struct saina_job_conf *c, const struct oracle_slot *slot, const struct saina_slot_meta *got)
{
	return !SAINA_ELEM_IS_INT(c->elem) || slot->weight == got->weight;
}

/* Flags of an OPEN slot are not modelled, of one that is AWAY those that the relay reads. */
static unsigned int known_flags(unsigned int state)
{
	return state == SAINA_SLOT_DONE ? 0xff : state == SAINA_SLOT_AWAY ? SAINA_F_TYPES : 0;
}

static bool same_meta(struct harness *r, const struct saina_job_conf *c, const char *what, unsigned int i,
		      const struct oracle_slot *slot, const struct saina_slot_meta *got)
{
	const struct saina_slot_meta *want = &slot->meta;

	if (want->state == got->state && want->round == got->round &&
	    want->segment == got->segment && want->k == got->k && want->count == got->count &&
	    want->exponent == got->exponent && want->policy == got->policy &&
	    want->seen == got->seen && want->members == got->members &&
	    want->k_min == got->k_min && want->parts == got->parts &&
	    !want->deadline == !got->deadline && same_weight(c, slot, got) &&
	    !((want->flags ^ got->flags) & known_flags(want->state)))
		return true;
	return harness_differs(r, "%s %u: want round %u segment %u state %u k %u count %u exponent %d "
			       "policy %u seen %llx members %llx flags %x weight %u\n"
			       "   got round %u segment %u state %u k %u count %u exponent %d "
			       "policy %u seen %llx members %llx flags %x weight %u\n", what, i,
			       want->round, want->segment, want->state, want->k, want->count,
			       want->exponent, want->policy, want->seen, want->members, want->flags, slot->weight,
			       got->round, got->segment, got->state, got->k, got->count,
			       got->exponent, got->policy, got->seen, got->members, got->flags, got->weight);
}

/* The oracle models the number of arrivals, not their times. */
static bool same_arrivals(struct harness *r, unsigned int job)
{
	const struct oracle_job *j = &r->o.job[job];
	int fd = harness_map(r, "saina_arrival");
	struct saina_arrival got;
	bool same = true;

	for (__u32 w = 0; w < SAINA_WORKERS_MAX; w++) {
		const struct saina_arrival *want = &j->arrival[w];
		__u32 key = job * SAINA_WORKERS_MAX + w;
		__u64 n = 0;

		if (bpf_map_lookup_elem(fd, &key, &got))
			return harness_differs(r, "saina_arrival of job %u worker %u: %s\n", job, w,
					       strerror(errno));
		if (got.generation != j->conf.generation)
			memset(&got, 0, sizeof(got));
		for (int b = 0; b < SAINA_ARRIVAL_BUCKETS; b++)
			n += got.hist[b];
		if (got.n != want->n || got.round != want->round || n != want->n)
			same = harness_differs(r, "arrivals of job %u worker %u: want %llu, last of round "
					   "%u - 1, got %llu (%llu in buckets) and %u\n", job, w,
					       want->n, want->round, got.n, n, got.round);
	}
	close(fd);
	return same;
}

/* OPEN or AWAY */
static bool is_in_use(const struct saina_slot_meta *m)
{
	return m->state == SAINA_SLOT_OPEN || m->state == SAINA_SLOT_AWAY;
}

/* Compares the sums that are on their way to the parent. */
static bool same_away(struct harness *r, unsigned int job)
{
	const struct oracle_job *j = &r->o.job[job];
	static struct saina_slot_2048 got;
	char name[32];
	int fd = -1;
	bool same = true;

	snprintf(name, sizeof(name), "saina_hot_%u", j->conf.payload);
	for (unsigned int i = 0; i < j->conf.pool && same; i++) {
		const struct oracle_slot *h = &j->hot[i];

		if (h->meta.state != SAINA_SLOT_AWAY || h->meta.exponent == SAINA_EXPONENT_NAN)
			continue;
		if (fd < 0)
			fd = harness_inner(r, name, job);
		if (fd < 0 || bpf_map_lookup_elem(fd, &i, &got) || memcmp(got.sum, h->sum, 4 * j->conf.payload))
			same = harness_differs(r, "job %u: other sums of segment %u, round %u, which is AWAY\n", job,
					       h->meta.segment, h->meta.round);
	}
	if (fd >= 0)
		close(fd);
	return same;
}

static bool same_slots(struct harness *r, unsigned int job)
{
	const struct oracle_job *j = &r->o.job[job];
	struct saina_slot_meta m;
	bool same = true;
	int err;

	for (unsigned int i = 0; i < j->conf.pool; i++) {
		const struct saina_slot_meta *want = &j->hot[i].meta;

		if (saina_dp_slot(r->dp, job, i, &m))
			return harness_differs(r, "slots of job %u: %s\n", job, saina_dp_error(r->dp));
		if (!is_in_use(want) && !is_in_use(&m))
			continue;
		same &= same_meta(r, &j->conf, "open slot", i, &j->hot[i], &m);
	}
	err = saina_dp_slot(r->dp, job, j->conf.pool, &m);
	if (err != -ENOENT)
		return harness_differs(r, "job %u: a slot beyond the pool: %d\n", job, err);
	return same;
}

static bool same_array(struct harness *r, const char *map, unsigned int job, unsigned int n,
		       const void *want, size_t size)
{
	uint8_t value[sizeof(struct saina_counted)];
	int fd = harness_inner(r, map, job);
	bool same = true;

	if (fd < 0)
		return harness_differs(r, "map %s of job %u: %s\n", map, job, strerror(-fd));
	for (unsigned int i = 0; i < n && same; i++)
		if (bpf_map_lookup_elem(fd, &i, value) ||
		    memcmp(value, (const uint8_t *)want + i * size, size))
			same = harness_differs(r, "%s of job %u: entry %u differs\n", map, job, i);
	close(fd);
	return same;
}

static bool same_signs(struct harness *r, unsigned int job)
{
	const struct oracle_job *j = &r->o.job[job];
	size_t n = (size_t)j->conf.segments * j->conf.sign_words;
	uint64_t *want = malloc(n * sizeof(*want));
	bool same;

	if (!want)
		abort();
	for (size_t i = 0; i < n; i++)
		want[i] = oracle_sign_word(j, i);
	same = same_array(r, "saina_signs", job, n, want, sizeof(*want));
	free(want);
	return same;
}

static bool same_ring(struct harness *r, unsigned int job)
{
	struct oracle_job *j = &r->o.job[job];
	const struct saina_job_conf *c = &j->conf;
	int32_t sums[SAINA_ELEMS_MAX];
	struct saina_slot_meta got;

	for (uint32_t s = 0; s < c->segments; s++) {
		for (uint32_t i = 0; i < c->ring; i++) {
			const struct oracle_slot *e = &j->ring[(size_t)s * c->ring + i];
			int err;

			if (e->meta.state != SAINA_SLOT_DONE) {
				if (saina_dp_result(r->dp, job, s, i, &got, sums) != -ENOENT)
					return harness_differs(r, "job %u segment %u: a result of round %u\n",
							       job, s, i);
				continue;
			}
			err = saina_dp_result(r->dp, job, s, e->meta.round, &got, sums);
			if (err)
				return harness_differs(r, "job %u: no result of segment %u round %u: %s\n",
						       job, s, e->meta.round, strerror(-err));
			if (!same_meta(r, c, "ring entry", i, e, &got))
				return false;
			if (memcmp(sums, e->sum, oracle_bytes(c, c->payload)))
				return harness_differs(r, "job %u segment %u round %u: other sums\n", job, s,
						       e->meta.round);
		}
	}
	return true;
}

static bool same_output(struct harness *r, unsigned int job)
{
	for (uint32_t i = 0; i < r->o.job[job].conf.ring; i++)
		for (uint32_t s = 0; s < r->o.job[job].conf.segments; s++)
			if (!harness_check_output(r, job, i, s))
				return false;
	return true;
}

static bool same_clock(struct harness *r, unsigned int job)
{
	const struct saina_clock *want = &r->o.job[job].clock;
	struct saina_clock got;
	bool same = true;

	if (saina_dp_job_clock(r->dp, job, &got))
		return harness_differs(r, "clock of job %u: %s\n", job, saina_dp_error(r->dp));
#define SAME(field) \
	if (got.field != want->field) \
		same = harness_differs(r, "job %u clock." #field ": want %llx got %llx\n", job, \
				   (unsigned long long)want->field, (unsigned long long)got.field)
	SAME(generation);
	SAME(low);
	SAME(base);
	SAME(fence);
	SAME(members);
	SAME(going);
	SAME(waiting);
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++) {
		SAME(session[w]);
		SAME(done[w]);
		SAME(begun[w]);
	}
#undef SAME
	return same;
}

/* Compares the sums of PS mode: one ring entry of each segment. */
static bool same_ps_sums(struct harness *r, unsigned int job)
{
	const struct oracle_job *j = &r->o.job[job];
	const struct saina_job_conf *c = &j->conf;
	static struct saina_slot_2048 got;
	char name[32];
	bool same = true;
	int fd;

	snprintf(name, sizeof(name), "saina_ring_%u", c->payload);
	fd = harness_inner(r, name, job);
	if (fd < 0)
		return harness_differs(r, "map %s of job %u: %s\n", name, job, strerror(-fd));
	for (uint32_t s = 0; s < c->segments && same; s++) {
		uint32_t at = j->clock.base % c->ring, entry = at * c->segments + s;
		const struct oracle_slot *t = &j->ring[(size_t)s * c->ring + at];

		if (t->meta.state != SAINA_SLOT_PS)
			continue;
		if (bpf_map_lookup_elem(fd, &entry, &got) ||
		    got.meta.state != SAINA_SLOT_PS || got.meta.segment != s ||
		    got.meta.round != t->meta.round ||
		    got.meta.exponent != t->meta.exponent || got.meta.sum_tag != t->meta.sum_tag ||
		    memcmp(got.sum, t->sum, 4 * c->payload))
			same = harness_differs(r, "PS sums of job %u: segment %u differs\n", job, s);
	}
	close(fd);
	return same;
}

/* Compares the views of groups; those from before PS mode began are not in use. */
static bool same_views(struct harness *r, unsigned int job)
{
	const struct oracle_job *j = &r->o.job[job];
	const struct saina_job_conf *c = &j->conf;
	static struct saina_slot_2048 got;
	char name[32];
	bool same = true;

	snprintf(name, sizeof(name), "saina_view_%u", c->payload);
	for (unsigned int g = 0; g < SAINA_WORKERS_MAX && same; g++) {
		int fd = -1;

		for (uint32_t s = 0; s < c->segments && same; s++) {
			const struct oracle_slot *v = &j->view[s][g];

			if (v->meta.state != SAINA_SLOT_PS || v->meta.policy != j->clock.base ||
			    j->rt.mode != SAINA_RT_PS)
				continue;
			if (fd < 0)
				fd = harness_inner(r, name, job * SAINA_WORKERS_MAX + g);
			if (fd < 0 || bpf_map_lookup_elem(fd, &s, &got) ||
			    got.meta.state != SAINA_SLOT_PS || got.meta.segment != s ||
			    got.meta.round != v->meta.round || got.meta.policy != v->meta.policy ||
			    got.meta.exponent != v->meta.exponent ||
			    got.meta.sum_tag != v->meta.sum_tag ||
			    memcmp(got.sum, v->sum, 4 * c->payload))
				same = harness_differs(r, "job %u: what group %u sees of segment %u differs\n",
						       job, g, s);
		}
		if (fd >= 0)
			close(fd);
	}
	return same;
}

bool harness_check_job(struct harness *r, unsigned int job, bool deep)
{
	struct oracle_job *j = &r->o.job[job];
	bool same;

	r->diff[0] = 0;
	same = same_rt(r, job) && same_clock(r, job);
	for (unsigned int w = 0; w < SAINA_WORKERS_MAX; w++)
		if (j->conf.worker[w].flags & SAINA_BIND_BOUND)
			same &= same_counters(r, job, w, &j->wcount[w]);
	same &= same_slots(r, job) && same_away(r, job);
	if (same && deep)
		same = same_arrivals(r, job);
	if (same && deep)
		same = same_array(r, "saina_counted", job, j->conf.segments, j->last,
				  sizeof(*j->last)) &&
		       same_signs(r, job) && same_ring(r, job) && same_output(r, job) && same_ps_sums(r, job) && same_views(r, job);
	return same;
}
