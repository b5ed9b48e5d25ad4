// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include "lib/rng.h"
#include "lib_events.h"
#include "lib_link.h"
#include "lib_record.h"
#include "lib_sim.h"
#include "lib_switch.h"
#include "reduce/size_mismatch.h"

#define PAYLOAD	 SIM_PAYLOAD
#define WORKERS	 SAINA_WORKERS_MAX
#define BEAT_NS	 (50 * MSEC)
#define DEAD_NS	 (100 * MSEC)
#define DOWN_NS	 (100 * MSEC)	/* no message is under way that long */
#define HOLD_NS	 (50 * MSEC)	/* a kernel refuses no longer than that */
#define LIMIT_NS (300000 * MSEC)

struct worker {
	struct saina_job job;
	struct saina_round r;
	struct saina_req req[4];
	uint32_t *buf;			/* [segments * PAYLOAD] */
	uint32_t (*produced)[PAYLOAD];	/* [segments]: sum of all that was produced */
	unsigned int life;
	bool	 alive, done, busy, exact;
	uint32_t first, last;		/* rounds of this life */
	uint64_t wake, timer;		/* when the trainer, when the machine wants to go on */
	struct lib_link link;
	bool	 *open;			/* [segments]: sent in this round, no result came */
	uint64_t left[256];		/* messages of this life that left, by type */
	/* @n messages of a batch that the kernel does not take before @until */
	struct {
		uint64_t until;
		unsigned int n;
		size_t	 len;
		uint8_t	 buf[SAINA_ASK_SEGMENTS * SIM_MSGLEN];
	} held;
};

struct sim {
	const struct sim_conf *c;
	struct sim_result *out;
	struct lib_switch sw;
	struct events events;
	uint64_t now, rng, sessions;
	struct worker w[WORKERS];
	struct lib_record record;
	uint64_t budget;
	uint64_t host_free;		/* the processor of the switch's host */
	bool	 down;			/* the switch */
};

#define broken(s, ...) record_broken(&(s)->record, __VA_ARGS__)

static uint64_t draw(struct sim *s, uint64_t below)
{
	return rng_next_below(&s->rng, below);
}

static void later(struct sim *s, enum what what, unsigned int w, uint64_t ns)
{
	events_push(&s->events, (struct event){.at = s->now + ns, .what = what, .w = w,
					       .life = s->w[w].life});
}

/* --- the network ------------------------------------------------------------------------- */

static void carry(struct sim *s, enum what what, unsigned int i, const void *msg, unsigned int len)
{
	struct event e = {.what = what, .w = i, .life = s->w[i].life, .len = len};
	unsigned int copies;
	uint64_t arrive[2];

	copies = link_carry(&s->w[i].link, what == TO_WORKER ? LINK_IN : LINK_OUT, msg, len, s->now,
			    arrive);
	s->out->lost += !copies;
	for (unsigned int c = 0; c < copies; c++) {
		e.at = arrive[c];
		e.msg = malloc(len);
		memcpy(e.msg, msg, len);
		events_push(&s->events, e);
	}
}

/*
 * One processor serves all messages, and each takes longer the longer the host has been
 * overloaded; now and then it does something else.
 */
static void at_host(struct sim *s, struct event *e)
{
	const struct sim_conf *c = s->c;
	uint64_t ns = c->host_ns * (1 + s->now / (20 * MSEC));

	if (ns > 20ull * c->host_ns)
		ns = 20ull * c->host_ns;
	if (e->len < SIM_MSGLEN)
		ns /= 4;
	if (c->host_ns && !draw(s, 1000))
		ns += draw(s, 20 * MSEC);
	s->host_free = (s->host_free > s->now ? s->host_free : s->now) + ns;
	e->what = TO_SWITCH;
	e->at = s->host_free;
	events_push(&s->events, *e);
	e->msg = NULL;
}

/* --- workers ----------------------------------------------------------------------------- */

static void leave(struct sim *s, unsigned int i)
{
	struct worker *w = &s->w[i];

	if (!w->r.job)
		return;
	if (w->left[SAINA_MSG_GRAD] != w->r.stats.sent + w->r.stats.resent ||
	    w->left[SAINA_MSG_PULL] != w->r.stats.pulled || w->left[SAINA_MSG_ASK] != w->r.stats.asked)
		broken(s, "worker %u counts as sent what has not left, or less", i);
	memset(w->left, 0, sizeof(w->left));
	w->held.n = 0;
	s->out->sent += w->r.stats.sent;
	s->out->resent += w->r.stats.resent;
	s->out->pulled += w->r.stats.pulled;
	s->out->asked += w->r.stats.asked;
	s->out->late += w->r.stats.late_segments;
	s->out->results += w->r.stats.results;
	if (!w->done)
		record_astray(&s->record, i);
	saina_round_exit(&w->r);
	memset(&w->r, 0, sizeof(w->r));
	w->alive = w->busy = false;
	w->life++;
}

static void admit(struct sim *s, unsigned int i, uint32_t first, bool formed)
{
	const struct sim_conf *c = s->c;
	struct worker *w = &s->w[i];

	w->job = (struct saina_job){
		.id = 1, .worker = i, .workers = c->workers, .elem = SAINA_ELEM_INT32,
		.exponent0 = 20 - SAINA_EXPONENT_BIAS, .elements = (uint64_t)c->segments * PAYLOAD,
		.segments = c->segments, .payload = PAYLOAD, .pool = c->pool, .ring = c->ring,
		.wire = 4 * PAYLOAD, .msglen = SIM_MSGLEN,
		.per_batch = c->per_batch, .session = ++s->sessions,
	};
	switch_bind(&s->sw, i, w->job.session);
	if (saina_round_init(&w->r, &w->job, c->room, 0, 0))
		abort();
	saina_cwnd_sample(&w->r.flow.cwnd, 2 * c->delay_us * 1000 + 1000, s->now);
	saina_flow_begin(&w->r.flow, first, formed, s->now);
	memset(w->produced, 0, c->segments * sizeof(*w->produced));
	w->alive = w->exact = true;
	w->done = first >= c->rounds;
	w->first = first;
	w->wake = w->timer = s->now;
	later(s, TIMER, i, 0);
	later(s, BEAT, i, BEAT_NS);
}

static void start_round(struct sim *s, unsigned int i)
{
	const struct sim_conf *c = s->c;
	struct worker *w = &s->w[i];
	uint32_t each = (c->segments + c->buckets - 1) / c->buckets, round = w->r.flow.round;

	for (uint32_t j = 0; j < c->segments * PAYLOAD; j++) {
		w->buf[j] = record_fresh(c, i, round, j);
		w->produced[j / PAYLOAD][j % PAYLOAD] += w->buf[j];
	}
	for (unsigned int b = 0; b < c->buckets; b++) {
		uint32_t n = c->segments - b * each < each ? c->segments - b * each : each;

		memset(&w->req[b], 0, sizeof(w->req[b]));
		w->req[b].t = (struct saina_tensor){.buf = w->buf + b * each * PAYLOAD,
						    .n = (size_t)n * PAYLOAD, .type = c->type};
		w->req[b].op = c->type == SAINA_INT32 ? SAINA_SUM : SAINA_MEAN;
		saina_round_start(&w->r, &w->req[b], s->now);
	}
	w->busy = true;
	memset(w->open, 0, c->segments);
}

static uint64_t thinks(struct sim *s, unsigned int i)
{
	return 1000 * (draw(s, s->c->think_us + 1) + (i ? 0 : s->c->slow_us));
}

/*
 * The round that the model of the most advanced other worker is of; without one, or if its
 * trainer is careless, the next.  Whoever is waited for in the last round may not be done.
 */
static uint32_t model_from_peer(struct sim *s, unsigned int i)
{
	uint32_t own = s->w[i].r.flow.round, round = own, next = switch_next_round(&s->sw);

	if (next >= s->c->rounds)
		next = s->c->rounds - 1;
	if (!draw(s, 3))
		return next;
	for (unsigned int p = 0; p < s->c->workers; p++)
		if (s->w[p].alive && s->w[p].r.flow.round > round)
			round = s->w[p].r.flow.round;
	return round > own ? round : next;
}

/* All of the round is over: next. */
static void finish_round(struct sim *s, unsigned int i)
{
	struct worker *w = &s->w[i];
	bool stale = false;

	for (unsigned int b = 0; b < s->c->buckets; b++) {
		if (!w->req[b].finished)
			return;
		stale |= w->req[b].err != 0;
	}
	for (unsigned int b = 0; b < s->c->buckets; b++)
		saina_round_forget(&w->r, &w->req[b]);
	w->busy = false;
	if (stale) {
		s->out->stale++;
		record_astray(&s->record, i);
		saina_flow_set(&w->r.flow, model_from_peer(s, i), s->now);
	} else {
		record_results(&s->record, i, w->r.flow.round, w->buf);
		saina_flow_round(&w->r.flow, w->r.flow.round + 1);
	}
	if (w->exact)
		record_balance(&s->record, i, w->first, w->produced, &w->r.grad);
	w->done = w->r.flow.round >= s->c->rounds;
	if (w->done)
		record_residual(&s->record, i, &w->r.grad);
	w->wake = s->now + thinks(s, i);
}

/* A message leaves: no more batches in flight than the window says. */
static void note_sent(struct sim *s, unsigned int i, const struct saina_hdr *h)
{
	struct worker *w = &s->w[i];
	uint32_t batches = 0, n = s->c->segments, cut = w->job.per_batch;

	w->left[h->type]++;
	if (h->type == SAINA_MSG_GRAD)
		record_grad(&s->record, i, h);
	if (h->type == SAINA_MSG_ASK || h->round != w->r.flow.round || !w->busy)
		return;
	/* The result was quicker than the kernel. */
	if (s->c->refuse && !saina_flow_wants(&w->r.flow, h->round, h->segment))
		return;
	if (w->open[h->segment]) {
		if (!(h->flags & SAINA_F_RETRANSMIT))
			s->out->twice++;
		return;
	}
	w->open[h->segment] = true;
	/* The window of when it was to leave, which may have shrunk. */
	if (h->type != SAINA_MSG_GRAD || w->held.n)
		return;
	for (uint32_t g = 0; g < n; g = g / cut * cut + cut)
		for (; g < n; g++) {
			batches += w->open[g];
			if (w->open[g] || g % cut == cut - 1)
				break;
		}
	if (batches > w->r.flow.cwnd.size)
		broken(s, "worker %u has %u batches in flight, its window is %u", i, batches,
		       w->r.flow.cwnd.size);
}

/* A message on its way to the switch. */
static void send_one(struct sim *s, unsigned int i, struct saina_hdr *h, size_t len)
{
	note_sent(s, i, h);
	carry(s, TO_HOST, i, h, len);
	if (!s->budget--)
		broken(s, "more messages than a job of this size can need");
}

/* As many of @n messages as the kernel takes; the rest is held. */
static void send_batch(struct sim *s, unsigned int i, uint8_t *buf, unsigned int n, size_t len)
{
	struct worker *w = &s->w[i];
	unsigned int takes = n;

	if (s->c->refuse && rng_next_chance(&s->rng, s->c->refuse)) {
		takes = draw(s, n);
		w->held.until = s->now + 1 + draw(s, HOLD_NS);
		s->out->refused += n - takes;
	}
	for (unsigned int k = 0; k < takes; k++)
		send_one(s, i, (void *)(buf + k * len), len);
	saina_round_sent(&w->r, buf, takes, len);
	w->held.n = n - takes;
	w->held.len = len;
	memmove(w->held.buf, buf + takes * len, (n - takes) * len);
}

/* What is due is sent, after what was refused. */
static void send_due(struct sim *s, unsigned int i, uint64_t *when)
{
	struct worker *w = &s->w[i];
	uint8_t buf[SAINA_ASK_SEGMENTS * SIM_MSGLEN];
	unsigned int n;
	size_t len;

	if (w->held.n && s->now >= w->held.until)
		send_batch(s, i, w->held.buf, w->held.n, w->held.len);
	while (!w->held.n && !s->out->error[0] &&
	       (n = saina_round_output(&w->r, s->now, buf, &len, when)))
		send_batch(s, i, buf, n, len);
	if (w->held.n)
		*when = w->held.until;
}

/* What a thread of the library and a trainer would do now. */
static void step(struct sim *s, unsigned int i)
{
	struct worker *w = &s->w[i];
	uint64_t when = NEVER;
	char said[256];

	if (!w->alive)
		return;
	if (saina_size_mismatch(&w->r, s->sw.conf.active, s->now, s->now, said, sizeof(said)))
		broken(s, "worker %u reports a size mismatch: %s", i, said);
	if (w->busy)
		finish_round(s, i);
	if (!w->busy && !w->done && s->now >= w->wake)
		start_round(s, i);
	send_due(s, i, &when);
	if (s->out->error[0])
		return;
	if (w->busy && w->r.any_finished) {
		w->r.any_finished = false;
		finish_round(s, i);	/* an early result may have been the last */
	}
	if (!w->busy && !w->done && w->wake < when)
		when = w->wake;
	/* A timer that is set already will do. */
	if (when != NEVER && (w->timer <= s->now || when < w->timer)) {
		w->timer = when > s->now ? when : s->now + 1000;
		events_push(&s->events, (struct event){.at = w->timer, .what = TIMER, .w = i,
						       .life = w->life});
	}
}

/* --- the switch -------------------------------------------------------------------------- */

static void at_switch(struct sim *s, const struct event *e)
{
	struct saina_hdr *answer;
	unsigned int len;
	uint64_t to;

	len = switch_message(&s->sw, e->w, e->msg, e->len, &to, (void **)&answer);
	if (!len)
		return;
	if (answer->type == SAINA_MSG_RESULT)
		record_result(&s->record, answer);
	for (unsigned int i = 0; i < s->c->workers; i++)
		if (to >> i & 1)
			carry(s, TO_WORKER, i, answer, len);
}

/* The switch loses all it knows; whoever lives joins again with its round. */
static void restart(struct sim *s)
{
	uint32_t first = 0;

	for (unsigned int i = 0; i < s->c->workers; i++)
		if (s->w[i].alive && s->w[i].r.flow.round > first)
			first = s->w[i].r.flow.round;
	switch_restart(&s->sw, first);
	record_forget(&s->record, first);
	for (unsigned int i = 0; i < s->c->workers; i++)
		record_astray(&s->record, i);
	for (unsigned int i = 0; i < s->c->workers; i++) {
		struct worker *w = &s->w[i];

		if (!w->alive)
			continue;
		/* What was counted when nobody can tell any more is nobody's fault. */
		w->exact = w->r.flow.round == first;
		w->job.session = ++s->sessions;
		switch_bind(&s->sw, i, w->job.session);
		if (!saina_flow_again(&w->r.flow, first, true, s->now)) {
			leave(s, i);
			s->out->rejoined++;
			admit(s, i, first, true);
		}
	}
}

/*
 * Not before the round is over that waits for the life that has ended, or its slots would
 * wait for the new one, which begins with the next round.
 */
static void rejoin(struct sim *s, unsigned int i)
{
	const struct saina_job_rt *rt = &s->sw.oracle->job[s->sw.conf.job].rt;

	if (rt->segs_done < s->c->segments && (rt->members >> i & 1)) {
		later(s, REJOIN, i, DEAD_NS);
		return;
	}
	s->out->rejoined++;
	admit(s, i, switch_next_round(&s->sw), false);
}

static void handle(struct sim *s, struct event *e)
{
	struct worker *w = &s->w[e->w];
	const struct saina_hdr *h = (void *)e->msg;

	if (e->what == TO_HOST) {
		at_host(s, e);
		return;
	}
	if (e->what == TO_SWITCH) {
		if (!s->down)
			at_switch(s, e);
		return;
	}
	if (e->what == CRASH && !s->down) {
		s->down = true;
		later(s, RESTART, 0, DOWN_NS);
	} else if (e->what == RESTART) {
		s->down = false;
		restart(s);
	} else if (e->what == REJOIN) {
		rejoin(s, e->w);
	} else if (e->what == DEAD) {
		switch_alive(&s->sw, e->w, false);
	}
	if (e->life != w->life || !w->alive)
		return;
	if (e->what == BEAT && !w->done)
		later(s, BEAT, e->w, BEAT_NS);
	switch (e->what) {
	case TO_WORKER:
		/* As saina_session_check() does. */
		if (h->worker != SAINA_WORKER_ANY && h->session != w->job.session)
			break;
		if (h->type != SAINA_MSG_ASK_REPLY && h->round == w->r.flow.round)
			w->open[h->segment] = false;
		saina_round_input(&w->r, h, s->now);
		break;
	case BEAT:
		if (s->down || link_lost(&w->link, s->now))
			break;
		w->r.flow.no_peers = s->sw.conf.active == 1ull << e->w;
		saina_flow_next(&w->r.flow, switch_next_round(&s->sw), s->now);
		break;
	case KILL:
		leave(s, e->w);
		later(s, DEAD, e->w, DEAD_NS);
		later(s, REJOIN, e->w, 2 * DEAD_NS);
		break;
	case FORGET:
		w->job.session = ++s->sessions;
		switch_bind(&s->sw, e->w, w->job.session);
		saina_flow_again(&w->r.flow, switch_next_round(&s->sw), false, s->now);
		break;
	default:
		break;
	}
	step(s, e->w);
}

static bool all_done(const struct sim *s)
{
	for (unsigned int i = 0; i < s->c->workers; i++)
		if (!s->w[i].done)
			return false;
	return true;
}

static void begin(struct sim *s)
{
	const struct sim_conf *c = s->c;
	size_t n = (size_t)c->rounds * c->segments, elements = (size_t)c->segments * PAYLOAD;

	s->rng = c->seed;
	s->budget = 200ull * c->workers * n + 100000;
	record_init(&s->record, c, s->out->error);
	switch_init(&s->sw, 1, PAYLOAD, elements, c->pool, c->ring);
	switch_policy(&s->sw, c->k, c->drop_late);
	if (c->lead)
		switch_lead(&s->sw, 0);
	s->sw.conf.state = SAINA_JOB_RUNNING;
	for (unsigned int i = 0; i < c->workers; i++) {
		s->w[i].link = (struct lib_link){.c = c, .worker = i, .rng = &s->rng};
		s->w[i].buf = calloc(elements, 4);
		s->w[i].open = calloc(c->segments, sizeof(*s->w[i].open));
		s->w[i].produced = calloc(c->segments, sizeof(*s->w[i].produced));
		admit(s, i, 0, true);
	}
	for (unsigned int i = 0; i < c->kills; i++)
		later(s, KILL, 1 + draw(s, c->workers - 1), draw(s, 300 * MSEC));
	for (unsigned int i = 0; i < c->forgets; i++)
		later(s, FORGET, draw(s, c->workers), draw(s, 100 * MSEC));
	for (unsigned int i = 0; i < c->restarts; i++)
		later(s, CRASH, 0, draw(s, 100 * MSEC));
}

bool sim_run(const struct sim_conf *c, struct sim_result *r)
{
	struct sim *s = calloc(1, sizeof(*s));

	memset(r, 0, sizeof(*r));
	s->c = c;
	s->out = r;
	begin(s);
	while (!all_done(s) && !r->error[0]) {
		struct event e;

		if (!s->events.n || s->now > LIMIT_NS) {
			broken(s, "some worker does not come to the end");
			break;
		}
		e = events_pop(&s->events);
		s->now = e.at;
		handle(s, &e);
		free(e.msg);
	}
	r->ns = s->now;
	for (unsigned int i = 0; i < c->workers; i++)
		leave(s, i);
	if (c->lead && r->stale)
		broken(s, "%llu rounds were gone before a worker had them", (unsigned long long)r->stale);
	/* Nothing was lost, so nothing is to be sent again, however long it takes, but what was refused. */
	if (!c->lead && !r->lost && !c->dup && !c->reorder && !c->kills && !c->forgets && !c->restarts &&
	    r->resent * 20 > r->sent)
		broken(s, "nothing was lost, %llu of %llu gradients were sent again",
		       (unsigned long long)r->resent, (unsigned long long)r->sent);
	if (switch_malformed(&s->sw))
		broken(s, "a worker sent what no worker may send");
	if (!c->restarts && switch_count(&s->sw, SAINA_C_SLOT_BUSY))
		broken(s, "a worker did not keep to its window");
	if (!c->restarts && switch_count(&s->sw, SAINA_C_FUTURE))
		broken(s, "a worker ran ahead of the job");
	if (switch_count(&s->sw, SAINA_C_EXPONENT))
		broken(s, "a worker sent an exponent that no worker may send");
	r->mixed = s->record.mixed;
	r->nan = s->record.nan;
	while (s->events.n)
		free(events_pop(&s->events).msg);
	for (unsigned int i = 0; i < c->workers; i++) {
		free(s->w[i].buf);
		free(s->w[i].open);
		free(s->w[i].produced);
	}
	switch_exit(&s->sw);
	free(s->events.heap);
	record_exit(&s->record);
	free(s);
	return !r->error[0];
}
