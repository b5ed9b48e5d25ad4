// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Steps with the parameter server: updates into messages, sums into the trainer's elements. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "ps.h"
#include "round.h"

void saina_ps_exit(struct saina_ps *p)
{
	saina_steps_exit(&p->steps);
	free(p->seen);
	free(p->exponent);
}

/* A step begins. */
static void reset_step_stats(struct saina_ps *p)
{
	p->version_min = p->updates_min = UINT64_MAX;
	p->version_max = p->updates_max = 0;
	p->closed_ns = p->wait_ns = 0;
}

/* All that was submitted in the round is pushed in the step. */
static uint32_t segments_submitted(const struct saina_round *r)
{
	uint32_t n = 0;

	for (const struct saina_req *q = r->reqs; q; q = q->next)
		n += q->segments;
	return n;
}

static void fail_step(struct saina_round *r, uint64_t now)
{
	struct saina_ps *p = &r->ps;

	/* An update that was refused stays with the trainer. */
	bool refused = p->steps.err == -EDOM || p->steps.err == -EPROTO;

	for (uint32_t i = 0; !refused && i < p->steps.n; i++)
		if (!p->steps.seg[i].counted)
			saina_round_keep(r, i);
	saina_round_fail(r, p->steps.err);
	p->steps.over = true;
	p->fresh = false;
}

size_t saina_ps_finite(const struct saina_round *r, const struct saina_tensor *t)
{
	const float *f = t->buf;
	size_t i = 0;

	if (t->type != SAINA_FLOAT32 ||
	    saina_quant_largest(r->grad.quant, f, NULL, t->n) < SAINA_QUANT_INFINITY)
		return t->n;
	while (isfinite(f[i]))
		i++;
	return i;
}

/* The server would keep what is not finite for ever: the step fails if @q holds such an element. */
static bool refuse_not_finite(struct saina_ps *p, const struct saina_round *r,
			      const struct saina_req *q)
{
	p->bad = saina_ps_finite(r, &q->t);
	if (p->bad == q->t.n)
		return false;
	p->steps.err = -EDOM;
	p->steps.phase = SAINA_STEPS_FAILED;
	return true;
}

/* The aggregator has steps: what was submitted in the round is pushed.  0 or -ENOMEM */
static int ps_enter(struct saina_round *r, uint32_t base, uint64_t now)
{
	struct saina_ps *p = &r->ps;
	const struct saina_job *job = r->job;

	if (!p->seen) {
		p->seen = calloc((size_t)job->segments * job->payload, 4);
		p->exponent = calloc(job->segments, 1);
		if (!p->seen || !p->exponent ||
		    saina_steps_init(&p->steps, job->segments, job->per_batch))
			return -ENOMEM;
	}
	/* The server is empty, and the model holds all earlier rounds. */
	memset(p->seen, 0, 4ull * job->segments * job->payload);
	for (uint32_t i = 0; i < job->segments; i++)
		p->steps.seg[i].version = 0;
	memset(p->exponent, SAINA_EXPONENT_NAN, job->segments);
	p->on = true;
	p->noted = p->epoch_known = p->steps.leaves = p->steps.begun = false;
	p->steps.base = base;
	p->steps.err = 0;
	reset_step_stats(p);
	saina_steps_next(&p->steps);
	saina_steps_ask(&p->steps);
	saina_steps_add(&p->steps, segments_submitted(r));
	if (r->closed)
		saina_ps_close(r, now);
	/* The transport of rounds only has to know how many segments are assigned. */
	saina_flow_round(&r->flow, r->flow.round);
	saina_flow_add(&r->flow, p->steps.n);
	for (const struct saina_req *q = r->reqs; q; q = q->next)
		if (refuse_not_finite(p, r, q)) {
			fail_step(r, now);
			break;
		}
	return 0;
}

/* The job has rounds again: what was submitted and not counted in a step is in the first of them. */
static void ps_leave(struct saina_round *r, uint64_t now)
{
	struct saina_ps *p = &r->ps;

	p->on = false;
	p->first_round = p->steps.step;
	saina_flow_begin(&r->flow, p->steps.step, true, now);
	for (struct saina_req *q = r->reqs; q; q = q->next) {
		q->call.round = r->flow.round;
		for (uint32_t i = q->t.first; i < q->t.first + q->segments; i++)
			r->grad.state[i].chosen = false;
		saina_round_assign(r, q);
	}
}

/* The step is over: finishes its requests. */
static void finish_step(struct saina_round *r, uint64_t now)
{
	struct saina_ps *p = &r->ps;

	if (p->closed_ns)
		p->wait_ns = now - p->closed_ns;
	p->fresh = false;
	for (uint32_t i = 0; i < p->steps.n; i++)
		saina_round_segment_over(r, i, now);
}

/* Are the parameters, as other workers have pushed them, of another type than @q? */
static bool types_differ(const struct saina_req *q, const struct saina_hdr *h)
{
	return (q->t.type == SAINA_INT32) != (h->exponent == SAINA_EXPONENT_INT);
}

/* Gives the trainer the difference between the server's sums and those that the model holds. */
static void take_diff(struct saina_round *r, uint32_t segment, const struct saina_hdr *h,
		      uint64_t was, bool more)
{
	struct saina_ps *p = &r->ps;
	struct saina_req *q = saina_round_request(r, segment);
	struct saina_call *c = &q->call;
	uint32_t *seen = p->seen + (size_t)segment * r->job->payload, diff[SAINA_ELEMS_MAX];
	uint64_t version = le64toh(h->mask), updates = version - was;
	const uint32_t *sums = (const void *)(h + 1);
	size_t n;
	void *out = saina_gradient_data(&r->grad, segment, &n);

	for (uint32_t i = 0; i < r->job->payload; i++) {
		uint32_t v;

		memcpy(&v, sums + i, 4);
		diff[i] = p->fresh ? 0 : v - seen[i];
		seen[i] = v;
	}
	if (p->fresh)
		updates = 0;
	if (version && types_differ(q, h)) {
		q->err = -EPROTO;
	} else if (q->t.type == SAINA_FLOAT32) {
		float had[SAINA_ELEMS_MAX], *o = out;

		if (updates >= SAINA_PS_UPDATES)
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
	if (version < p->version_min)
		p->version_min = version;
	if (version > p->version_max)
		p->version_max = version;
	if (updates < p->updates_min)
		p->updates_min = updates;
	if (updates > p->updates_max)
		p->updates_max = updates;
	r->stats.results++;
	r->stats.results_bytes += r->job->msglen;
}

static void sum_rx(struct saina_round *r, const struct saina_hdr *h, uint64_t now)
{
	uint32_t segment = le32toh(h->segment);
	struct saina_ps *p = &r->ps;
	uint64_t was = segment < p->steps.segments ? p->steps.seg[segment].version : 0;
	unsigned int what;

	/* Of an earlier server, or of a step that the trainer has given up. */
	if (!p->epoch_known || le16toh(h->policy) != p->epoch || segment >= p->steps.n)
		return;
	what = saina_steps_sum(&p->steps, h, now);
	if (what & SAINA_STEPS_COUNTED)
		saina_round_saturated(r, segment,
				      saina_residual_stepped(&r->grad, segment,
							     p->exponent[segment], SAINA_PS_LIMIT));
	if (what & SAINA_STEPS_LOST)
		saina_round_keep(r, segment);
	if (le64toh(h->mask)) /* some worker has pushed the segment */
		p->exponent[segment] = h->exponent;
	if (what & SAINA_STEPS_TAKE)
		take_diff(r, segment, h, was, what & SAINA_STEPS_MORE);
}

/* False: the server was restarted since the model was brought up to date. */
static bool is_same_epoch(struct saina_ps *p, const struct saina_hdr *h)
{
	uint16_t epoch = le16toh(h->policy);

	if (p->epoch_known)
		return epoch == p->epoch;
	p->epoch_known = true;
	p->epoch = epoch;
	return true;
}

/* False: the step fails. */
static bool nak_exponent_rx(struct saina_round *r, const struct saina_hdr *h)
{
	struct saina_ps *p = &r->ps;
	uint32_t segment = le32toh(h->segment);

	if (!p->epoch_known || le16toh(h->policy) != p->epoch || segment >= p->steps.n)
		return true;
	if (types_differ(saina_round_request(r, segment), h))
		return false;
	/* Another worker pushed the segment first, and chose its exponent. */
	p->exponent[segment] = h->exponent;
	saina_steps_again(&p->steps, h);
	return true;
}

int saina_ps_input(struct saina_round *r, const struct saina_hdr *h, uint64_t now)
{
	struct saina_ps *p = &r->ps;
	bool over = p->steps.over;

	if (!p->on) {
		/* An answer to a message about the present or the previous round: the job has
		 * steps from now on.  An answer from before the rounds began is ignored, and any
		 * in a job that cannot have steps.
		 */
		if (r->job->elem != SAINA_ELEM_INT32 || h->type != SAINA_MSG_NAK || h->k != SAINA_NAK_MODE ||
		    r->flow.round - le32toh(h->round) > 1 ||
		    le32toh(h->slot_round) < p->first_round)
			return 0;
		return ps_enter(r, le32toh(h->slot_round), now);
	}
	switch (h->type) {
	case SAINA_MSG_SUM:
		sum_rx(r, h, now);
		break;
	case SAINA_MSG_NAK:
		if (h->k != SAINA_NAK_EXPONENT || !nak_exponent_rx(r, h))
			saina_steps_nak(&p->steps, h);
		break;
	case SAINA_MSG_GO:
		if (!is_same_epoch(p, h)) {
			/* The server was restarted while this worker was away. */
			p->epoch_known = false;
			p->steps.err = -ESTALE;
			p->steps.phase = SAINA_STEPS_FAILED;
			break;
		}
		saina_steps_go(&p->steps, h, r->job->worker);
		break;
	}
	if (p->steps.phase == SAINA_STEPS_FAILED)
		fail_step(r, now);
	else if (p->steps.phase == SAINA_STEPS_LEFT)
		ps_leave(r, now);
	else if (!over && p->steps.over)
		finish_step(r, now);
	return 0;
}

void saina_ps_start(struct saina_round *r, struct saina_req *q)
{
	saina_steps_add(&r->ps.steps, q->segments);
	if (r->ps.steps.phase == SAINA_STEPS_FAILED)
		fail_step(r, 0);
}

void saina_ps_close(struct saina_round *r, uint64_t now)
{
	if (r->ps.steps.closed)
		return;
	r->ps.closed_ns = now;
	saina_steps_close(&r->ps.steps);
}

void saina_ps_next(struct saina_round *r, uint64_t now)
{
	struct saina_ps *p = &r->ps;

	if (p->steps.leaves) {
		ps_leave(r, now);
		return;
	}
	if (p->steps.phase == SAINA_STEPS_FAILED) {
		/* The trainer gets its model from another worker, and that holds all updates.
		 * If its own update was refused (-EDOM), it keeps its model.
		 */
		p->fresh = p->steps.err != -EDOM;
		saina_steps_ask(&p->steps);
	}
	reset_step_stats(p);
	saina_steps_next(&p->steps);
	saina_flow_round(&r->flow, p->steps.step);
}

void saina_ps_rejoin(struct saina_round *r)
{
	if (!r->ps.steps.over)
		saina_steps_ask(&r->ps.steps);
}

/* The exponent of a segment is the one that the first push of any worker has chosen. */
static int choose_exponent(struct saina_round *r, uint32_t segment)
{
	struct saina_ps *p = &r->ps;
	const void *data, *res = saina_gradient_residual(&r->grad, segment);
	uint32_t largest;
	size_t n;
	int e;

	if (saina_round_request(r, segment)->t.type != SAINA_FLOAT32)
		return SAINA_EXPONENT_INT;
	if (p->exponent[segment] != SAINA_EXPONENT_NAN)
		return p->exponent[segment];
	e = r->job->exponent0;
	data = saina_gradient_data(&r->grad, segment, &n);
	largest = saina_quant_largest(r->grad.quant, data, res, n);
	if (largest >= SAINA_QUANT_INFINITY)
		largest = SAINA_QUANT_INFINITY - 1;
	if (largest && saina_quant_finest(largest, SAINA_PS_LIMIT) < e)
		e = saina_quant_finest(largest, SAINA_PS_LIMIT >> SAINA_PS_ROOM);
	p->exponent[segment] = e < SAINA_EXPONENT_MIN ? SAINA_EXPONENT_MIN : e;
	return p->exponent[segment];
}

/* Tells the user once that elements do not fit: later updates will not fit either. */
static void note_too_large(struct saina_round *r, uint32_t segment, size_t many, int e)
{
	const void *data, *res = saina_gradient_residual(&r->grad, segment);
	uint32_t largest;
	size_t n;

	if (r->ps.noted || !r->notes)
		return;
	r->ps.noted = true;
	data = saina_gradient_data(&r->grad, segment, &n);
	largest = saina_quant_largest(r->grad.quant, data, res, n);
	if (largest >= SAINA_QUANT_INFINITY)
		largest = SAINA_QUANT_INFINITY - 1;
	saina_note(r->notes,
		   "job %u: %zu elements of segment %u of this step are beyond %g, which is what "
		   "exponent %d holds in one update: the rest of them goes with the next updates.  "
		   "Push smaller updates, or create the job with `exponent %d'",
		   r->job->id, many, segment, SAINA_PS_LIMIT * quant_unit(e),
		   e + SAINA_EXPONENT_BIAS,
		   saina_quant_finest(largest, SAINA_PS_LIMIT >> SAINA_PS_ROOM) + SAINA_EXPONENT_BIAS);
}

static void put_message(struct saina_round *r, void *buf, const struct saina_steps_act *a)
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
	h->count = htole16(saina_job_count(r->job));
	if (a->type == SAINA_MSG_READ) {
		memset(h + 1, 0, r->job->wire);
		return;
	}
	h->exponent = choose_exponent(r, a->segment);
	cut = saina_gradient_encode_step(&r->grad, a->segment, h + 1, h->exponent, SAINA_PS_LIMIT);
	if (cut)
		note_too_large(r, a->segment, cut, h->exponent);
}

unsigned int saina_ps_output(struct saina_round *r, uint64_t now, uint8_t *buf, size_t *len,
			     uint64_t *when)
{
	struct saina_steps_act act[SAINA_ASK_SEGMENTS];
	size_t n = saina_steps_run(&r->ps.steps, now, act, r->job->per_batch, when);

	*len = n && act[0].type == SAINA_MSG_CLOCK ? sizeof(struct saina_hdr) : r->job->msglen;
	for (size_t i = 0; i < n; i++)
		put_message(r, buf + *len * i, &act[i]);
	return n;
}
