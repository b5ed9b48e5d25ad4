// SPDX-License-Identifier: GPL-2.0-or-later
/* The state of the oracle: jobs and their memory, counters, events. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

void oracle_init(struct oracle *o, const struct saina_global *g)
{
	memset(o, 0, sizeof(*o));
	o->global = *g;
	o->linear = UINT_MAX;
}

static void job_free(struct oracle_job *j)
{
	free(j->hot);
	free(j->ring);
	free(j->last);
	free(j->sfcd.sign);
	free(j->sfcd.reached);
	free(j->view);
	free(j->sums);
	free(j->in);
	memset(j, 0, sizeof(*j));
}

void oracle_exit(struct oracle *o)
{
	for (int i = 0; i < SAINA_JOBS_MAX; i++)
		job_free(&o->job[i]);
	free(o->event);
	o->event = NULL;
	free(o->away);
	o->away = NULL;
}

static void *zalloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		abort();
	return p;
}

void oracle_job_publish(struct oracle *o, const struct saina_job_conf *conf,
			uint32_t first_round)
{
	struct oracle_job *j = &o->job[conf->job];
	size_t results = (size_t)conf->segments * conf->ring, views;

	if (j->present && j->conf.generation == conf->generation) {
		j->conf = *conf;
		return;
	}
	job_free(j);
	j->present = true;
	j->conf = *conf;
	j->rt.generation = conf->generation;
	j->rt.next_round = first_round;
	j->rt.base = first_round;
	j->clock.generation = conf->generation;
	j->clock.low = first_round;
	j->clock.base = first_round;
	j->hot = zalloc(conf->pool, sizeof(*j->hot));
	j->ring = zalloc(results, sizeof(*j->ring));
	j->last = zalloc(conf->segments, sizeof(*j->last));
	j->sfcd.sign = zalloc((size_t)conf->segments * conf->sign_words, 64);
	j->view = zalloc(conf->segments, sizeof(*j->view));
	views = (size_t)conf->segments * SAINA_WORKERS_MAX;
	j->sums = zalloc((conf->pool + results + views) * conf->payload, sizeof(*j->sums));
	for (size_t i = 0; i < views; i++)
		j->view[i / SAINA_WORKERS_MAX][i % SAINA_WORKERS_MAX].sum =
			 j->sums + (conf->pool + results + i) * conf->payload;
	j->in = zalloc(conf->pool + results, sizeof(*j->in));
	for (size_t i = 0; i < conf->pool + results; i++) {
		struct oracle_slot *s = i < conf->pool ? &j->hot[i] : &j->ring[i - conf->pool];

		s->sum = j->sums + i * conf->payload;
		s->in = &j->in[i];
	}
}

void oracle_job_remove(struct oracle *o, unsigned int job)
{
	job_free(&o->job[job]);
}

void oracle_input_set(struct oracle *o, unsigned int job, unsigned int w, uint8_t *input)
{
	o->job[job].input[w] = input;
}

void oracle_events_clear(struct oracle *o)
{
	o->events = 0;
	o->aways = 0;
}

void oracle_event(struct oracle *o, struct oracle_job *j, unsigned int type,
		  unsigned int worker, uint32_t round, uint64_t a, uint64_t b)
{
	struct saina_event *e;

	if (type == SAINA_EV_STALE || type == SAINA_EV_DEGRADED || type == SAINA_EV_TYPES) {
		unsigned int job = SAINA_WORKERS_MAX + (type == SAINA_EV_TYPES);
		struct oracle_event_seen *t = &j->event_seen[type == SAINA_EV_STALE ? worker : job];
		uint32_t next = type == SAINA_EV_STALE ? j->rt.next_round : round + 1;

		if (t->generation == j->conf.generation && t->next >= next)
			return;
		t->generation = j->conf.generation;
		t->next = next;
	}
	if (o->events == o->events_room) {
		o->events_room = o->events_room ? 2 * o->events_room : 64;
		o->event = realloc(o->event, o->events_room * sizeof(*o->event));
		if (!o->event)
			abort();
	}
	e = &o->event[o->events++];
	memset(e, 0, sizeof(*e));
	e->type = type;
	e->job = j->conf.job;
	e->worker = worker;
	e->k = j->rt.k;
	e->round = round;
	e->generation = j->conf.generation;
	e->a = a;
	e->b = b;
}

void oracle_note_away(struct oracle_msg *m)
{
	struct oracle *o = m->o;

	if (o->aways == o->aways_room) {
		o->aways_room = o->aways_room ? 2 * o->aways_room : 64;
		o->away = realloc(o->away, o->aways_room * sizeof(*o->away));
		if (!o->away)
			abort();
	}
	o->away[o->aways++] = (struct oracle_away){ m->j->conf.job, m->round, m->segment };
}

void oracle_count(struct oracle_msg *m, int counter)
{
	m->j->wcount[m->w].c[counter]++;
}

void oracle_drop(struct oracle_msg *m, int reason)
{
	oracle_count(m, reason);
	m->out->verdict = ORACLE_DROP;
	m->out->reason = reason;
}

void oracle_note_arrival(struct oracle_msg *m)
{
	struct saina_arrival *a = &m->j->arrival[m->w];

	if (a->round == m->round + 1)
		return;
	a->round = m->round + 1;
	a->n++;
}
