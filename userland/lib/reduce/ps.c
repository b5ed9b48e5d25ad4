// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Steps with the parameter server: updates into messages, sums into the trainer's elements. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "transport/steps.h"
#include "ps.h"
#include "round.h"

/*
 * float32 is clipped at this many units of the exponent and the rest goes with the next update, so
 * that a difference of less than UPDATES updates fits in 32 bits.
 */
#define LIMIT	(1u << 20)
#define UPDATES	(1u << 11)
#define ROOM	4	/* bits by which later updates may be larger than the first */

/**
 * struct saina_ps
 * @rounds: what the job had before
 * @epoch_known: @epoch is known
 * @noted: the note that updates do not fit was given
 * @epoch: low 16 bits of the server's first step
 * @seen: [segments * payload]: the sums that the model holds
 * @exponent: [segments]; SAINA_EXPONENT_NAN: unknown, nothing was pushed yet
 * @bad: element that is not finite, of the update that cannot be pushed
 * @steps: what to send when
 * @closed_ns: when the trainer completed the step
 * @wait_ns: how long the trainer waited for the step
 * @version_min: updates that the server had summed, least over the segments of the step
 * @version_max: likewise, most
 * @updates_min: updates in the differences of the step, least over the segments
 * @updates_max: likewise, most
 */
struct saina_ps {
	const struct saina_reduce_ops *rounds;
	bool epoch_known, noted;
	uint16_t epoch;
	uint32_t *seen;
	int8_t *exponent;
	size_t bad;
	struct saina_steps steps;
	uint64_t closed_ns, wait_ns;
	uint64_t version_min, version_max;
	uint64_t updates_min, updates_max;
};

static struct saina_ps *ps_of(const struct saina_round *r)
{
	return r->mode;
}

/* Back to rounds. */
static void ps_free(struct saina_round *r)
{
	struct saina_ps *p = ps_of(r);

	r->ops = p->rounds;
	r->mode = NULL;
	saina_steps_exit(&p->steps);
	free(p->seen);
	free(p->exponent);
	free(p);
}

static void ps_exit(struct saina_round *r)
{
	ps_free(r);
	r->ops->exit(r);
}

/* A step begins. */
static void reset_step_stats(struct saina_ps *p)
{
	p->version_min = p->updates_min = UINT64_MAX;
	p->version_max = p->updates_max = 0;
	p->closed_ns = p->wait_ns = 0;
}

static void fail_step(struct saina_round *r)
{
	struct saina_ps *p = ps_of(r);

	/* An update that was refused stays with the trainer. */
	bool refused = p->steps.err == -EDOM || p->steps.err == -EPROTO;

	for (uint32_t i = 0; !refused && i < p->steps.n; i++)
		if (!p->steps.seg[i].counted)
			saina_round_keep(r, i);
	saina_round_fail(r, p->steps.err);
	p->steps.over = true;
	r->fresh = false;
}

/* Index of the first element of @t that is not finite; t->n if all are. */
static size_t find_not_finite(const struct saina_round *r, const struct saina_tensor *t)
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

/* @element of an update is not finite. */
static void put_not_finite(const struct saina_round *r, size_t element, char *text, size_t size)
{
	snprintf(text, size,
		 "step %u: element %zu is infinite or not a number, which the parameter server would "
		 "keep for ever: push finite updates, or zeros to leave a step out",
		 r->flow.round, element);
}

/* The server would keep what is not finite for ever: the step fails if @q holds such an element. */
static bool refuse_not_finite(struct saina_ps *p, const struct saina_round *r,
			      const struct saina_req *q)
{
	p->bad = find_not_finite(r, &q->t);
	if (p->bad == q->t.n)
		return false;
	p->steps.err = -EDOM;
	p->steps.phase = SAINA_STEPS_FAILED;
	return true;
}

/* The job has rounds again: what was submitted and not counted in a step is in the first of them. */
static void ps_leave(struct saina_round *r, uint64_t now)
{
	uint32_t round = ps_of(r)->steps.step;

	ps_free(r);
	saina_flow_begin(&r->flow, round, true, now);
	for (struct saina_req *q = r->reqs; q; q = q->next) {
		q->call.round = r->flow.round;
		for (uint32_t i = q->t.first; i < q->t.first + q->segments; i++)
			r->grad.state[i].chosen = false;
		saina_flow_add(&r->flow, q->segments);
	}
}

/* The step is over: finishes its requests. */
static void finish_step(struct saina_round *r, uint64_t now)
{
	struct saina_ps *p = ps_of(r);

	if (p->closed_ns)
		p->wait_ns = now - p->closed_ns;
	r->fresh = false;
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
	struct saina_ps *p = ps_of(r);
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
		diff[i] = r->fresh ? 0 : v - seen[i];
		seen[i] = v;
	}
	if (r->fresh)
		updates = 0;
	if (version && types_differ(q, h)) {
		q->err = -EPROTO;
	} else if (q->t.type == SAINA_FLOAT32) {
		float had[SAINA_ELEMS_MAX], *o = out;

		if (updates >= UPDATES)
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
	struct saina_ps *p = ps_of(r);
	uint64_t was = segment < p->steps.segments ? p->steps.seg[segment].version : 0;
	unsigned int what;

	/* Of an earlier server, or of a step that the trainer has given up. */
	if (!p->epoch_known || le16toh(h->policy) != p->epoch || segment >= p->steps.n)
		return;
	what = saina_steps_sum(&p->steps, h, now);
	if (what & SAINA_STEPS_COUNTED)
		saina_round_saturated(r, segment,
				      saina_residual_stepped(&r->grad, segment,
							     p->exponent[segment], LIMIT));
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
	struct saina_ps *p = ps_of(r);
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

static int ps_input(struct saina_round *r, const struct saina_hdr *h, uint64_t now)
{
	struct saina_ps *p = ps_of(r);
	bool over = p->steps.over;

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
	default:
		/* Of rounds that others are in already. */
		saina_round_input(r, h, now);
		r->newest_counted = 0;
		return 0;
	}
	if (p->steps.phase == SAINA_STEPS_FAILED)
		fail_step(r);
	else if (p->steps.phase == SAINA_STEPS_LEFT)
		ps_leave(r, now);
	else if (!over && p->steps.over)
		finish_step(r, now);
	return 0;
}

static int ps_check(const struct saina_round *r, const struct saina_tensor *t, char *text, size_t size)
{
	size_t bad = find_not_finite(r, t);

	if (t->once) {
		snprintf(text, size,
			 "the policy has steps (ssp, asp, grouped), and SAINA_SUM_ONCE needs rounds "
			 "(`saina job set JOB policy bsp')");
	} else if (r->closed) {
		snprintf(text, size,
			 "step %u is complete: with this policy (ssp, asp, grouped), start all "
			 "all-reduces of a step before you wait for one",
			 r->flow.round);
	} else if (bad < t->n) {
		put_not_finite(r, bad, text, size);
		return -EDOM;
	} else {
		return 0;
	}
	return -EINVAL;
}

static void ps_explain(const struct saina_round *r, const struct saina_req *q, int err, char *text,
		       size_t size)
{
	bool is_int = q && q->t.type == SAINA_INT32;

	if (err == -EDOM)
		put_not_finite(r, ps_of(r)->bad, text, size);
	else if (err == -ESTALE)
		snprintf(text, size,
			 "step %u: this worker has missed updates: more than %u since it last read, "
			 "or the parameter server was restarted or ended: get the model from "
			 "another worker and go on",
			 r->flow.round, UPDATES - 1);
	else
		snprintf(text, size,
			 "step %u: this worker pushes %s, and other workers have pushed %s: "
			 "all workers must push the same types and sizes in the same order",
			 r->flow.round, is_int ? "int32" : "float32", is_int ? "float32" : "int32");
}

static void ps_start(struct saina_round *r, struct saina_req *q, uint64_t now)
{
	saina_round_start(r, q, now);
	saina_steps_add(&ps_of(r)->steps, q->segments);
	if (ps_of(r)->steps.phase == SAINA_STEPS_FAILED)
		fail_step(r);
}

static void ps_close(struct saina_round *r, uint64_t now)
{
	struct saina_ps *p = ps_of(r);

	if (p->steps.closed)
		return;
	p->closed_ns = now;
	saina_steps_close(&p->steps);
}

static void ps_next(struct saina_round *r, uint64_t now)
{
	struct saina_ps *p = ps_of(r);

	if (p->steps.leaves) {
		ps_leave(r, now);
		return;
	}
	if (p->steps.phase == SAINA_STEPS_FAILED) {
		/* The trainer gets its model from another worker, and that holds all updates.
		 * If its own update was refused (-EDOM), it keeps its model.
		 */
		r->fresh = p->steps.err != -EDOM;
		saina_steps_ask(&p->steps);
	}
	reset_step_stats(p);
	saina_steps_next(&p->steps);
	saina_flow_round(&r->flow, p->steps.step);
}

static int ps_set(struct saina_round *r, uint32_t round, uint64_t now, char *text, size_t size)
{
	r->fresh = true;
	return 0;
}

static bool ps_again(struct saina_round *r, uint64_t now, char *text, size_t size)
{
	struct saina_ps *p = ps_of(r);

	if (r->job->formed) {
		snprintf(text, size,
			 "job %u was restarted, and its parameter server has lost the steps: join "
			 "it again, with the model of one of its workers",
			 r->job->id);
		return false;
	}
	if (!p->steps.over)
		saina_steps_ask(&p->steps);
	return true;
}

static void ps_status(struct saina_round *r, uint32_t next, uint64_t now)
{
	saina_steps_poke(&ps_of(r)->steps);
}

static bool ps_waits(const struct saina_round *r)
{
	const struct saina_steps *t = &ps_of(r)->steps;

	return t->flying || t->phase == SAINA_STEPS_ASKS || t->phase == SAINA_STEPS_CLOCKS;
}

static void ps_fill(const struct saina_round *r, struct saina_step *d)
{
	const struct saina_ps *p = ps_of(r);
	const struct saina_steps *t = &p->steps;

	d->step = t->pushed;
	d->low = t->low;
	d->window = t->window;
	d->staleness = t->step > t->low ? t->step - t->low : 0;
	d->version_min = p->version_min;
	d->version_max = p->version_max;
	d->updates_min = p->updates_min;
	d->updates_max = p->updates_max;
	d->wait_us = p->wait_ns / 1000;
}

/* The exponent of a segment is the one that the first push of any worker has chosen. */
static int choose_exponent(struct saina_round *r, uint32_t segment)
{
	struct saina_ps *p = ps_of(r);
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
	if (largest && saina_quant_finest(largest, LIMIT) < e)
		e = saina_quant_finest(largest, LIMIT >> ROOM);
	p->exponent[segment] = e < SAINA_EXPONENT_MIN ? SAINA_EXPONENT_MIN : e;
	return p->exponent[segment];
}

/* Tells the user once that elements do not fit: later updates will not fit either. */
static void note_too_large(struct saina_round *r, uint32_t segment, size_t many, int e)
{
	const void *data, *res = saina_gradient_residual(&r->grad, segment);
	uint32_t largest;
	size_t n;

	if (ps_of(r)->noted || !r->notes)
		return;
	ps_of(r)->noted = true;
	data = saina_gradient_data(&r->grad, segment, &n);
	largest = saina_quant_largest(r->grad.quant, data, res, n);
	if (largest >= SAINA_QUANT_INFINITY)
		largest = SAINA_QUANT_INFINITY - 1;
	saina_note(r->notes,
		   "job %u: %zu elements of segment %u of this step are beyond %g, which is what "
		   "exponent %d holds in one update: the rest of them goes with the next updates.  "
		   "Push smaller updates, or create the job with `exponent %d'",
		   r->job->id, many, segment, LIMIT * quant_unit(e),
		   e + SAINA_EXPONENT_BIAS,
		   saina_quant_finest(largest, LIMIT >> ROOM) + SAINA_EXPONENT_BIAS);
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
	cut = saina_gradient_encode_step(&r->grad, a->segment, h + 1, h->exponent, LIMIT);
	if (cut)
		note_too_large(r, a->segment, cut, h->exponent);
}

static unsigned int ps_output(struct saina_round *r, uint64_t now, uint8_t *buf, size_t *len,
			      uint64_t *when)
{
	struct saina_steps_act act[SAINA_ASK_SEGMENTS];
	size_t n = saina_steps_run(&ps_of(r)->steps, now, act, r->job->per_batch, when);

	*len = n && act[0].type == SAINA_MSG_CLOCK ? sizeof(struct saina_hdr) : r->job->msglen;
	for (size_t i = 0; i < n; i++)
		put_message(r, buf + *len * i, &act[i]);
	return n;
}

static const struct saina_reduce_ops ps_ops = {
	.input = ps_input,
	.output = ps_output,
	.waits = ps_waits,
	.status = ps_status,
	.again = ps_again,
	.exit = ps_exit,
	.fails_end = true,
	.check = ps_check,
	.start = ps_start,
	.close = ps_close,
	.next = ps_next,
	.set = ps_set,
	.fill = ps_fill,
	.explain = ps_explain,
};

/* The server is empty, and the model holds all earlier rounds.  What was submitted is pushed. */
int saina_ps_enter(struct saina_round *r, uint32_t base, uint64_t now)
{
	const struct saina_job *job = r->job;
	struct saina_ps *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->rounds = r->ops;
	r->ops = &ps_ops;
	r->mode = p;
	p->seen = calloc((size_t)job->segments * job->payload, 4);
	p->exponent = malloc(job->segments);
	if (!p->seen || !p->exponent || saina_steps_init(&p->steps, job->segments, job->per_batch)) {
		ps_free(r);
		return -ENOMEM;
	}
	memset(p->exponent, SAINA_EXPONENT_NAN, job->segments);
	p->steps.base = base;
	r->newest_counted = 0;
	reset_step_stats(p);
	saina_steps_next(&p->steps);
	saina_steps_ask(&p->steps);
	for (const struct saina_req *q = r->reqs; q; q = q->next)
		saina_steps_add(&p->steps, q->segments);
	if (r->closed)
		ps_close(r, now);
	/* The transport of rounds only has to know how many segments are assigned. */
	saina_flow_round(&r->flow, r->flow.round);
	saina_flow_add(&r->flow, p->steps.n);
	for (const struct saina_req *q = r->reqs; q; q = q->next)
		if (refuse_not_finite(p, r, q)) {
			fail_step(r);
			break;
		}
	return 0;
}
