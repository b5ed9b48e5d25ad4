// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Results of the parent to the own job.  A result is kept until its slot is DONE, which the slot's
 * head says, so nobody is asked.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>
#include "relay.h"

#define AGAIN_NS (2 * MSEC) /* a GRAD to the own port has arrived or is lost after this */
#define DOUBLED	 4	    /* this grows so often, twofold */
#define LOST_MAX 8	    /* batches in a row, until none is sent as one any more */

int down_init(struct relay *r)
{
	struct down *d = &r->down;

	d->msglen = sizeof(struct saina_hdr) + r->slots.wire;
	d->msg = aligned_alloc(64, (r->conf.pool * d->msglen + 63) & ~63ul);
	d->result = calloc(r->conf.pool, sizeof(*d->result));
	return d->msg && d->result ? 0 : -ENOMEM;
}

void down_exit(struct relay *r)
{
	if (r->down.open) {
		r->down.member.io.buf = NULL; /* is in msg */
		saina_io_close(&r->down.member.io);
	}
	free(r->down.msg);
	free(r->down.result);
}

static void event(struct member *m, enum saina_session_event event, uint64_t now)
{
}

/* Results that the own job's workers get are of no use here. */
static void input(struct member *m, const struct saina_hdr *h, uint64_t now)
{
}

static const struct member_ops ops = {event, input};

/* Opens the sockets in the namespace of the port, and comes back from it. */
static int open_at_port(struct relay *r, const struct member_conf *conf, uint64_t now)
{
	struct member *m = &r->down.member;
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), ret;

	if (home < 0 || setns(r->netns, CLONE_NEWNET)) {
		ret = -errno;
		snprintf(m->error, sizeof(m->error), "cannot enter the network namespace of the uplink's port: %s",
			 strerror(errno));
	} else {
		ret = member_open(m, conf, now);
		/* no error is left: it was entered from there */
		setns(home, CLONE_NEWNET);
	}
	if (home >= 0)
		close(home);
	return ret;
}

int down_open(struct relay *r, uint64_t now)
{
	const struct uplink_handover *c = &r->conf;
	struct member *m = &r->down.member;
	struct member_conf conf = {
		.ip.s_addr = c->ip,
		.port = c->udp_port,
		.job = c->job,
		.worker = c->worker,
		.job_name = "",
		.name = c->node,
		.token = c->token,
		.elements = c->elements,
	};

	m->ops = &ops;
	m->arg = r;
	m->what = "own job";
	r->down.open = true;
	return open_at_port(r, &conf, now);
}

static void set_waits(struct down *d, uint32_t slot, bool on)
{
	uint64_t bit = 1ull << slot % 64;

	d->waits[slot / 64] = (d->waits[slot / 64] & ~bit) | (on ? bit : 0);
}

/*
 * The parent's result as a gradient of the uplink worker.  slot_round is the number of workers in
 * the parent's sum without those of the own slot, since the data path adds these.
 */
void down_put(struct relay *r, const struct saina_hdr *h)
{
	uint32_t segment = le32toh(h->segment), round = le32toh(h->round), slot, all, own;
	bool in = le64toh(h->mask) >> r->conf.parent_worker & 1;
	struct down *d = &r->down;
	struct saina_slot_meta meta;
	struct saina_hdr *grad;

	uplink_slots_ahead(&r->slots, segment);
	if (!uplink_slots_read(&r->slots, round, segment, &meta, NULL))
		return; /* an earlier relay has brought it */
	slot = segment & (r->conf.pool - 1);
	all = h->contributors + le32toh(h->slot_round);
	own = in ? meta.count : 0;
	if (all < own) {
		relay_end(r, UPLINK_ENDED,
			  "the parent's sum of round %u, segment %u has %u workers, %u of them are this "
			  "job's: the parent's job is not the one that `uplink' names",
			  round, segment, all, own);
		return;
	}
	grad = (void *)(d->msg + slot * d->msglen);
	saina_job_header(&d->member.session.job, grad, SAINA_MSG_GRAD);
	grad->elem = r->conf.elem;
	grad->flags = (h->flags & (SAINA_F_DEGRADED | SAINA_F_DROP_LATE | SAINA_F_TYPES)) |
		      (in ? 0 : SAINA_F_LATE);
	grad->round = h->round;
	grad->segment = h->segment;
	grad->count = htole16(r->conf.payload);
	grad->exponent = h->exponent;
	grad->slot_round = htole32(all - own);
	memcpy(grad + 1, h + 1, r->slots.wire);
	d->result[slot] = (struct down_result){round, segment, 0, 0};
	set_waits(d, slot, true);
	d->taken++;
}

/* Is the result of @slot to be sent now?  Else @when says when. */
static bool is_due(struct relay *r, uint32_t slot, uint64_t now, uint64_t *when)
{
	struct down *d = &r->down;
	const struct down_result *t = &d->result[slot];

	if (!(d->waits[slot / 64] >> slot % 64 & 1))
		return false;
	if (t->due_ns > now) {
		earliest(when, t->due_ns);
		return false;
	}
	if (t->tries && uplink_slots_where(&r->slots, t->round, t->segment) == UPLINK_OVER) {
		set_waits(d, slot, false);
		if (t->tries == 1 && d->lost < LOST_MAX)
			d->lost = 0;
		return false;
	}
	return true;
}

/*
 * Sends the results of @n slots from @first on, which lie together.  No answer to a probe can say
 * whether the port takes batches (not with generic XDP), so the third time they go one by one.
 */
static void send_slots(struct relay *r, uint32_t first, unsigned int n, uint64_t now)
{
	struct down *d = &r->down;
	struct member *m = &d->member;
	bool lost = false;

	m->io.buf = d->msg + first * d->msglen;
	for (uint32_t i = first; i < first + n; i++) {
		struct down_result *t = &d->result[i];
		struct saina_hdr *h = (void *)(d->msg + i * d->msglen);

		h->session = htole64(m->session.job.session);
		if (t->tries)
			h->flags |= SAINA_F_RETRANSMIT;
		lost |= t->tries >= 2;
		t->due_ns = now + (AGAIN_NS << (t->tries < DOUBLED ? t->tries : DOUBLED));
		t->tries++;
	}
	d->lost += lost;
	m->io.segment = !lost && d->lost < LOST_MAX;
	member_send(m, n, d->msglen, now);
}

uint64_t down_run(struct relay *r, uint64_t now)
{
	struct down *d = &r->down;
	struct member *m = &d->member;
	uint32_t most = saina_job_per_batch(d->msglen, r->conf.pool);
	uint64_t when;

	if (!d->open)
		return NEVER;
	when = member_run(m, now);
	if (member_failed(m))
		relay_end(r, UPLINK_ENDED, "%s", m->error);
	if (!member_admitted(m))
		return when;
	for (uint32_t i = 0, n; i < r->conf.pool; i += n) {
		if (!(i % 64) && !d->waits[i / 64]) {
			n = 64;
			continue;
		}
		/* The buffer of what could not be sent is the slots' own. */
		if (saina_io_pending(&m->io)) {
			earliest(&when, now + MSEC);
			break;
		}
		for (n = 0; n < most && i + n < r->conf.pool && is_due(r, i + n, now, &when);)
			n++;
		if (n)
			send_slots(r, i, n, now);
		else
			n = 1;
	}
	return when;
}
