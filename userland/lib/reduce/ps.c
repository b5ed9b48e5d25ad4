// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "round.h"

void saina_table_exit(struct saina_table *t)
{
	saina_steps_exit(&t->steps);
	free(t->seen);
	free(t->exponent);
}

/* Of the step that begins. */
static void reset(struct saina_table *t)
{
	t->version_min = t->updates_min = UINT64_MAX;
	t->version_max = t->updates_max = 0;
	t->closed_ns = t->wait_ns = 0;
}

/* All that was started in the round is (to be) pushed in the step. */
static uint32_t started(const struct saina_round *r)
{
	uint32_t n = 0;

	for (const struct saina_req *q = r->reqs; q; q = q->next)
		n += q->segments;
	return n;
}

static void failed(struct saina_round *r, uint64_t now)
{
	struct saina_table *t = &r->table;

	/* what was refused is still the trainer's */
	for (uint32_t i = 0; t->steps.err != -EDOM && i < t->steps.n; i++)
		if (!t->steps.seg[i].counted)
			saina_round_keep(r, i);
	saina_round_fail(r, t->steps.err);
	t->steps.over = true;
	t->fresh = false;
}

size_t saina_table_finite(const struct saina_round *r, const struct saina_tensor *t)
{
	const float *f = t->buf;
	size_t i = 0;

	if (t->type != SAINA_FLOAT32 || r->grad.quant->largest(f, NULL, t->n) < SAINA_QUANT_INFINITY)
		return t->n;
	while (isfinite(f[i]))
		i++;
	return i;
}

/* A table would keep what is not finite for ever: the step fails if @q holds such a thing. */
static bool refused(struct saina_table *t, const struct saina_round *r, const struct saina_req *q)
{
	t->bad = saina_table_finite(r, &q->t);
	if (t->bad == q->t.n)
		return false;
	t->steps.err = -EDOM;
	t->steps.phase = SAINA_STEPS_FAILED;
	return true;
}

/* The aggregator has steps: what of the round is started is pushed.  0 or -ENOMEM */
static int turn_on(struct saina_round *r, uint32_t base, uint64_t now)
{
	struct saina_table *t = &r->table;
	const struct saina_job *job = r->job;

	if (!t->seen) {
		t->seen = calloc((size_t)job->segments * job->payload, 4);
		t->exponent = calloc(job->segments, 1);
		if (!t->seen || !t->exponent || saina_steps_init(&t->steps, job->segments, job->train))
			return -ENOMEM;
	}
	/* an empty table, and the model holds all rounds before it */
	memset(t->seen, 0, 4ull * job->segments * job->payload);
	for (uint32_t i = 0; i < job->segments; i++)
		t->steps.seg[i].version = 0;
	memset(t->exponent, SAINA_EXPONENT_NAN, job->segments);
	t->on = true;
	t->said = t->known = t->steps.leaves = t->steps.begun = false;
	t->steps.base = base;
	t->steps.err = 0;
	reset(t);
	saina_steps_next(&t->steps);
	saina_steps_ask(&t->steps);
	saina_steps_add(&t->steps, started(r));
	if (r->closed)
		saina_table_close(r, now);
	/* the flow machine only knows what is assigned */
	saina_flow_round(&r->flow, r->flow.round);
	saina_flow_add(&r->flow, t->steps.n);
	for (const struct saina_req *q = r->reqs; q; q = q->next)
		if (refused(t, r, q)) {
			failed(r, now);
			break;
		}
	return 0;
}

/* It has rounds: what is started, and was not counted in a step, belongs to the first of them. */
static void turn_off(struct saina_round *r, uint64_t now)
{
	struct saina_table *t = &r->table;

	t->on = false;
	t->off = t->steps.step;
	saina_flow_begin(&r->flow, t->steps.step, true, now);
	for (struct saina_req *q = r->reqs; q; q = q->next) {
		q->call.round = r->flow.round;
		for (uint32_t i = q->t.first; i < q->t.first + q->segments; i++)
			r->grad.share[i].chosen = false;
		saina_round_assign(r, q);
	}
}

/* What is here of the step is all there will be. */
static void step_over(struct saina_round *r, uint64_t now)
{
	struct saina_table *t = &r->table;

	if (t->closed_ns)
		t->wait_ns = now - t->closed_ns;
	t->fresh = false;
	for (uint32_t i = 0; i < t->steps.n; i++)
		saina_round_segment_over(r, i, now);
}

/* The difference between the table's sums and those that the model holds, for the trainer. */
static void take(struct saina_round *r, uint32_t segment, const struct saina_hdr *h, uint64_t was,
		 bool more)
{
	struct saina_table *t = &r->table;
	struct saina_req *q = saina_round_request(r, segment);
	struct saina_call *c = &q->call;
	uint32_t *seen = t->seen + (size_t)segment * r->job->payload, diff[SAINA_ELEMS_MAX];
	uint64_t version = le64toh(h->mask), updates = version - was;
	const uint32_t *sums = (const void *)(h + 1);
	size_t n;
	void *out = saina_gradient_data(&r->grad, segment, &n);

	for (uint32_t i = 0; i < r->job->payload; i++) {
		uint32_t v;

		memcpy(&v, sums + i, 4);
		diff[i] = t->fresh ? 0 : v - seen[i];
		seen[i] = v;
	}
	if (t->fresh)
		updates = 0;
	if (q->t.type == SAINA_INT32 && h->exponent)
		q->err = -EPROTO;	/* other workers push float32 */
	if (q->t.type == SAINA_FLOAT32) {
		float had[SAINA_ELEMS_MAX], *o = out;

		if (updates >= SAINA_TABLE_UPDATES)
			q->err = -ESTALE;
		if (more)
			memcpy(had, out, 4 * n);
		r->grad.quant->decode(out, diff, n, h->exponent,
				      q->op == SAINA_MEAN ? r->job->workers : 1);
		for (size_t i = 0; more && i < n; i++)
			o[i] += had[i];
	} else if (more) {
		r->grad.quant->add(out, out, diff, n);
	} else {
		memcpy(out, diff, 4 * n);
	}
	c->mask_all = 0;
	if (!c->count_max || updates < c->count_min)
		c->count_min = updates;
	if (updates > c->count_max)
		c->count_max = updates;
	if (version < t->version_min)
		t->version_min = version;
	if (version > t->version_max)
		t->version_max = version;
	if (updates < t->updates_min)
		t->updates_min = updates;
	if (updates > t->updates_max)
		t->updates_max = updates;
	r->stats.results++;
	r->stats.results_bytes += r->job->msglen;
}

static void sum(struct saina_round *r, const struct saina_hdr *h, uint64_t now)
{
	uint32_t segment = le32toh(h->segment);
	struct saina_table *t = &r->table;
	uint64_t was = segment < t->steps.segments ? t->steps.seg[segment].version : 0;
	unsigned int what;

	/* of another table, or of a step that the trainer has given up */
	if (!t->known || le16toh(h->policy) != t->epoch || segment >= t->steps.n)
		return;
	what = saina_steps_sum(&t->steps, h, now);
	if (what & SAINA_STEPS_COUNTED)
		saina_round_saturated(r, segment, saina_residual_stepped(&r->grad, segment, t->exponent[segment],
									 SAINA_PS_LIMIT));
	if (what & SAINA_STEPS_LOST)
		saina_round_keep(r, segment);
	if (le64toh(h->mask)) /* it is begun */
		t->exponent[segment] = h->exponent;
	if (what & SAINA_STEPS_TAKE)
		take(r, segment, h, was, what & SAINA_STEPS_MORE);
}

/* Which table is it?  False: another one than that which the model holds. */
static bool is_same_table(struct saina_table *t, const struct saina_hdr *h)
{
	uint16_t epoch = le16toh(h->policy);

	if (t->known)
		return epoch == t->epoch;
	t->known = true;
	t->epoch = epoch;
	return true;
}

/* False: it fails. */
static bool nak_exponent(struct saina_round *r, const struct saina_hdr *h)
{
	struct saina_table *t = &r->table;
	uint32_t segment = le32toh(h->segment);

	if (!t->known || le16toh(h->policy) != t->epoch || segment >= t->steps.n)
		return true;
	if (saina_round_request(r, segment)->t.type != SAINA_FLOAT32)
		return false;
	/* another worker began the segment, with its own */
	t->exponent[segment] = h->exponent;
	saina_steps_again(&t->steps, h);
	return true;
}

int saina_table_input(struct saina_round *r, const struct saina_hdr *h, uint64_t now)
{
	struct saina_table *t = &r->table;
	bool over = t->steps.over;

	if (!t->on) {
		/* of a gradient or question of the present round, or one about that before: there
		 * are steps from now on, unless it is an answer of before the rounds
		 */
		if (h->type != SAINA_MSG_NAK || h->k != SAINA_NAK_MODE ||
		    r->flow.round - le32toh(h->round) > 1 || le32toh(h->slot_round) < t->off)
			return 0;
		return turn_on(r, le32toh(h->slot_round), now);
	}
	switch (h->type) {
	case SAINA_MSG_SUM:
		sum(r, h, now);
		break;
	case SAINA_MSG_NAK:
		if (h->k != SAINA_NAK_EXPONENT || !nak_exponent(r, h))
			saina_steps_nak(&t->steps, h);
		break;
	case SAINA_MSG_GO:
		if (!is_same_table(t, h)) {
			/* while nobody heard of this worker its table came to an end */
			t->known = false;
			t->steps.err = -ESTALE;
			t->steps.phase = SAINA_STEPS_FAILED;
			break;
		}
		saina_steps_go(&t->steps, h, r->job->worker);
		break;
	}
	if (t->steps.phase == SAINA_STEPS_FAILED)
		failed(r, now);
	else if (t->steps.phase == SAINA_STEPS_LEFT)
		turn_off(r, now);
	else if (!over && t->steps.over)
		step_over(r, now);
	return 0;
}

void saina_table_start(struct saina_round *r, struct saina_req *q)
{
	saina_steps_add(&r->table.steps, q->segments);
	if (r->table.steps.phase == SAINA_STEPS_FAILED)
		failed(r, 0);
}

void saina_table_close(struct saina_round *r, uint64_t now)
{
	r->closed = true;
	if (!r->table.on || r->table.steps.closed)
		return;
	r->table.closed_ns = now;
	saina_steps_close(&r->table.steps);
}

void saina_table_next(struct saina_round *r, uint64_t now)
{
	struct saina_table *t = &r->table;

	if (t->steps.leaves) {
		turn_off(r, now);
		return;
	}
	if (t->steps.phase == SAINA_STEPS_FAILED) {
		/* the trainer gets its model from somewhere else: that holds all.  Not if its own
		 * update was refused
		 */
		t->fresh = t->steps.err != -EDOM;
		saina_steps_ask(&t->steps);
	}
	reset(t);
	saina_steps_next(&t->steps);
	saina_flow_round(&r->flow, t->steps.step);
}

void saina_table_again(struct saina_round *r)
{
	if (!r->table.steps.over)
		saina_steps_ask(&r->table.steps);
}

/* The exponent of a segment in the table: what the first push of any worker has chosen. */
static int exponent(struct saina_round *r, uint32_t segment)
{
	struct saina_table *t = &r->table;
	const void *data, *res = saina_residual_of(&r->grad, segment);
	uint32_t largest;
	size_t n;
	int e;

	if (saina_round_request(r, segment)->t.type != SAINA_FLOAT32)
		return 0;
	if (t->exponent[segment] != SAINA_EXPONENT_NAN)
		return t->exponent[segment];
	e = r->job->exponent0;
	data = saina_gradient_data(&r->grad, segment, &n);
	largest = r->grad.quant->largest(data, res, n);
	if (largest >= SAINA_QUANT_INFINITY)
		largest = SAINA_QUANT_INFINITY - 1;
	if (largest && saina_quant_finest(largest, SAINA_PS_LIMIT) < e)
		e = saina_quant_finest(largest, SAINA_PS_LIMIT >> SAINA_TABLE_ROOM);
	t->exponent[segment] = e < SAINA_EXPONENT_MIN ? SAINA_EXPONENT_MIN : e;
	return t->exponent[segment];
}

/* Some elements do not fit: so it is, more or less, with all updates to come. */
static void say(struct saina_round *r, uint32_t segment, size_t many, int e)
{
	const void *data, *res = saina_residual_of(&r->grad, segment);
	uint32_t largest;
	size_t n;

	if (r->table.said || !r->notes)
		return;
	r->table.said = true;
	data = saina_gradient_data(&r->grad, segment, &n);
	largest = r->grad.quant->largest(data, res, n);
	if (largest >= SAINA_QUANT_INFINITY)
		largest = SAINA_QUANT_INFINITY - 1;
	saina_note(r->notes,
		   "job %u: %zu elements of segment %u of this step are beyond %g, which is what exponent "
		   "%d holds in one update: the rest of them goes with the next updates.  Push smaller "
		   "updates, or create the job with `exponent %d'",
		   r->job->id, many, segment, ldexp(SAINA_PS_LIMIT, -e), e,
		   saina_quant_finest(largest, SAINA_PS_LIMIT >> SAINA_TABLE_ROOM));
}

static void put(struct saina_round *r, void *buf, const struct saina_steps_act *a)
{
	struct saina_hdr *h = buf;
	size_t cut;

	saina_job_header(r->job, h, a->type);
	h->elem = r->job->elem;
	h->flags = a->again ? SAINA_F_RETRANSMIT : 0;
	h->round = htole32(a->round);
	if (a->type == SAINA_MSG_CLOCK)
		return;
	h->segment = htole32(a->segment);
	h->count = htole16(r->job->payload);
	if (a->type == SAINA_MSG_READ) {
		memset(h + 1, 0, r->job->wire);
		return;
	}
	h->exponent = exponent(r, a->segment);
	cut = saina_gradient_encode_step(&r->grad, a->segment, h + 1, h->exponent, SAINA_PS_LIMIT);
	if (cut)
		say(r, a->segment, cut, h->exponent);
}

unsigned int saina_table_output(struct saina_round *r, uint64_t now, uint8_t *buf, size_t *len,
				uint64_t *when)
{
	struct saina_steps_act act[SAINA_ASK_SEGMENTS];
	size_t n = saina_steps_run(&r->table.steps, now, act, r->job->train, when);

	*len = n && act[0].type == SAINA_MSG_CLOCK ? sizeof(struct saina_hdr) : r->job->msglen;
	for (size_t i = 0; i < n; i++)
		put(r, buf + *len * i, &act[i]);
	return n;
}
