// SPDX-License-Identifier: GPL-2.0-or-later
#include <bpf/libbpf.h>
#include <stdlib.h>
#include <unistd.h>
#include "harness_events.h"

#define EVENTS_DUE	256	/* drained when so many are waiting */
#define AWAYS_DUE	64	/* a job's ring has room for 256, and a frame may have as many as the pool */

static uint32_t relay_sum(const uint8_t *p, uint32_t len, uint32_t sum)
{
	for (uint32_t i = 0; i + 4 <= len; i += 4) {
		uint32_t v;

		memcpy(&v, p + i, 4);
		sum = (sum ^ v) * 0x01000193u;
		sum ^= sum >> 15;
	}
	return sum;
}

void harness_relay_expect(struct harness *r)
{
	struct harness_relay *e = &r->relay[r->relays++];

	e->workers = r->want.relayed;
	e->len = r->want.len - FRAME_HDR;
	e->sum = relay_sum(r->want.frame + FRAME_HDR, e->len, 0);
	e->packet = r->packets;
}

bool harness_drain_due(const struct harness *r)
{
	return r->relays == HARNESS_RELAYS || r->o.events >= EVENTS_DUE || r->o.aways >= AWAYS_DUE;
}

static void got_event(void *arg, const struct saina_event *ev)
{
	struct harness *r = arg;

	if (r->events == r->events_room) {
		r->events_room = r->events_room ? 2 * r->events_room : 512;
		r->event = realloc(r->event, r->events_room * sizeof(*r->event));
		if (!r->event)
			abort();
	}
	r->event[r->events++] = *ev;
}

static void got_relay(void *arg, const struct saina_relay_msg *m)
{
	struct harness *r = arg;
	struct harness_relay *e = &r->relay[r->relays_got];

	if (r->relays_got++ >= r->relays)
		return;
	if (e->workers != m->workers || e->len != m->len)
		harness_differs(r, "relay of packet %llu: want workers %llx, %u bytes; got %llx, %u\n",
			    (unsigned long long)e->packet, (unsigned long long)e->workers, e->len,
				m->workers, m->len);
	else if (relay_sum(m->payload, m->len - sizeof(m->hdr),
			   relay_sum((const uint8_t *)&m->hdr, sizeof(m->hdr), 0)) != e->sum)
		harness_differs(r, "relay of packet %llu carries something else\n",
				(unsigned long long)e->packet);
}

static bool same_events(struct harness *r)
{
	bool same = r->events == r->o.events;

	for (unsigned int i = 0; same && i < r->events; i++) {
		struct saina_event a = r->event[i], b = r->o.event[i];

		a.time = b.time = 0;
		same = !memcmp(&a, &b, sizeof(a));
		if (!same)
			harness_differs(r, "event %u: want type %u job %u worker %u k %u round %u a %llu b %llu\n"
				    "          got type %u job %u worker %u k %u round %u a %llu b %llu\n",
					i, b.type, b.job, b.worker, b.k, b.round, b.a, b.b,
					a.type, a.job, a.worker, a.k, a.round, a.a, a.b);
	}
	if (r->events != r->o.events)
		harness_differs(r, "events: want %u, got %u\n", r->o.events, r->events);
	return same;
}

/* Records of a job's ring against those of the oracle, in order. */
struct away_check {
	struct harness *r;
	unsigned int job, at;		/* @at: in the oracle's list of all jobs */
};

static const struct oracle_away *next_away(struct away_check *c)
{
	while (c->at < c->r->o.aways && c->r->o.away[c->at].job != c->job)
		c->at++;
	return c->at < c->r->o.aways ? &c->r->o.away[c->at++] : NULL;
}

static int got_away(void *arg, void *data, size_t len)
{
	struct away_check *c = arg;
	const struct oracle_away *want = next_away(c);
	const struct saina_away *got = data;

	if (len < sizeof(*got) || !want || want->round != got->round || want->segment != got->segment)
		harness_differs(c->r, "AWAY in job %u: want round %u segment %u%s, got round %u segment %u\n", c->job,
				want ? want->round : 0, want ? want->segment : 0, want ? "" : " (nothing)", got->round,
				got->segment);
	return 0;
}

static void check_aways(struct harness *r, unsigned int job)
{
	struct away_check c = { .r = r, .job = job };
	struct ring_buffer *rb;
	int fd[2];

	if (saina_dp_uplink_grant(r->dp, job, fd)) {
		harness_differs(r, "%s\n", saina_dp_error(r->dp));
		return;
	}
	rb = ring_buffer__new(fd[1], got_away, &c, NULL);
	if (!rb || ring_buffer__consume(rb) < 0)
		harness_differs(r, "ring of AWAY slots of job %u cannot be read\n", job);
	else if (next_away(&c))
		harness_differs(r, "AWAY in job %u: records are missing\n", job);
	ring_buffer__free(rb);
	close(fd[0]);
	close(fd[1]);
}

bool harness_drain(struct harness *r)
{
	struct saina_dp_cb cb = { .event = got_event, .relay = got_relay, .arg = r };
	bool same;

	r->diff[0] = 0;
	saina_dp_event_dispatch(r->dp, &cb);
	if (r->relays != r->relays_got)
		harness_differs(r, "relays: want %u, got %u\n", r->relays, r->relays_got);
	for (unsigned int job = 0; job < SAINA_JOBS_MAX; job++)
		if (r->o.job[job].present && r->o.job[job].conf.uplink)
			check_aways(r, job);
	same = same_events(r) && !r->diff[0];
	r->events = 0;
	r->relays = r->relays_got = 0;
	oracle_events_clear(&r->o);
	return same;
}
