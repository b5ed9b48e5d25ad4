// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * When a job's relay runs: while the job has workers that are heard, or some have just been refused
 * because there was no relay.  So a job without workers is no node of its parent, whose rounds would
 * wait for it.  A job that begins a new generation gets a new relay.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>

#include "agent/backend/backend.h"
#include "agent/uplink/internal.h"

#define TICK_MS	   50
#define ASKED_NS   (20 * NSEC_PER_SEC)	/* libsaina repeats a JOIN that was refused so, sooner */
#define STOP_MS	   1000
#define BACKOFF_NS (100 * NSEC_PER_MSEC)
#define BACKOFF_MOST 6			/* 100 ms * 2^6 */
#define STEADY_NS  (10 * NSEC_PER_SEC)	/* ran for so long: the next end counts as the first */

struct uplinks {
	struct source tick;
	struct uplink *of[SAINA_JOBS_MAX];
	int n;
};

static struct uplink *uplink_of(struct agent *a, const struct saina_job *job)
{
	return a->uplinks && saina_job_has_uplink(job) ? a->uplinks->of[job->id] : NULL;
}

/* What admission knows of the relay. */
static struct job_place *place_of(struct uplink *u)
{
	struct job_aux *aux = u->a->jobs->aux[u->job];

	return aux ? &aux->place : NULL;
}

static void place_text(struct uplink *u, const char *text)
{
	struct job_place *p = place_of(u);

	if (p)
		snprintf(p->text, sizeof(p->text), "%s", text);
}

/* Those that an earlier agent knew may have ended with the host. */
static bool is_heard(struct agent *a, const struct saina_job *job)
{
	for (uint64_t live = job->active; live; live &= live - 1)
		if (!jobs_worker(a, job, __builtin_ctzll(live))->restored)
			return true;
	return false;
}

static bool is_wanted(struct uplink *u, const struct saina_job *job)
{
	const struct job_place *p = place_of(u);

	if (!job || job->state == SAINA_JOB_STOPPED || !job->segments || !p)
		return false;
	return is_heard(u->a, job) || (p->asked_at && loop_now() - p->asked_at < ASKED_NS);
}

/* The relay's session with the own job ends with it. */
static void end_session(struct uplink *u)
{
	const struct saina_job *job = saina_core_job_find(u->a->jobs->core, 1, u->job, NULL, NULL);

	if (job && saina_job_has_uplink(job) && jobs_alive(job, job->workers))
		backend_worker_end(u->a, job, job->workers, SAINA_WORKER_STATE_LEFT,
				   "is the relay, which has ended");
}

/* It ended, or could not be started: the next one later. */
static void back_off(struct uplink *u)
{
	uint64_t now = loop_now();

	if (now - u->started_at > STEADY_NS)
		u->failures = 0;
	u->start_at = now + (BACKOFF_NS << (u->failures < BACKOFF_MOST ? u->failures : BACKOFF_MOST));
	u->failures++;
}

/*
 * Members of the job began rounds whose sums the parent does not have any more.  A job ends with its last
 * worker, but not with its last node, which might come back with a sum of the present round.
 */
static void begin_anew(struct uplink *u)
{
	const struct saina_job *job;

	for (int w = 0; w < SAINA_WORKERS_MAX; w++) {
		job = saina_core_job_find(u->a->jobs->core, 1, u->job, NULL, NULL);
		if (job && w < job->workers && jobs_alive(job, w))
			backend_worker_end(u->a, job, w, SAINA_WORKER_STATE_LEFT,
					   "has to join again: the parent's job has gone on without it");
	}
	job = saina_core_job_find(u->a->jobs->core, 1, u->job, NULL, NULL);
	if (job && job->weight[0])
		backend_job_anew(u->a, u->job);
}

/* The place is known: its workers may join. */
static void take_report(struct uplink *u, const struct saina_job *job)
{
	const struct uplink_report *r = &u->report;
	struct job_place *p = place_of(u);

	if (!p || u->stop_at)
		return;
	p->admitted = (r->state == UPLINK_ADMITTED || r->state == UPLINK_RUNNING) &&
		      u->generation == job->generation;
	p->weight = r->workers;
	p->rank0 = r->rank0;
	p->depth = r->depth;
	p->quorum = r->quorum;
	p->first_round = r->first_round;
	if (p->admitted && job->elem == SAINA_ELEM_INT16 && r->workers > SAINA_INT16_MOST) {
		p->admitted = false;
		snprintf(p->text, sizeof(p->text),
			 "sums of int16 have room for %d workers, and the tree has %u: use int32",
			 SAINA_INT16_MOST, r->workers);
	} else {
		snprintf(p->text, sizeof(p->text), "%s",
			 r->error[0]			 ? r->error :
			 r->state == UPLINK_RUNNING	 ? "admitted by the parent" :
			 p->admitted			 ? "admitted by the parent, joins its own job" :
							   "asks the parent to admit it");
	}
}

/* Return: 1: a report was taken; 0: there is none; -1: closed, or not of this build. */
static int report_read(struct uplink *u)
{
	const struct saina_job *job = saina_core_job_find(u->a->jobs->core, 1, u->job, NULL, NULL);
	struct uplink_report r;
	ssize_t n = recv(u->socket.fd, &r, sizeof(r), MSG_DONTWAIT);
	__u32 before = u->report.state;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n != (ssize_t)sizeof(r) || r.version != UPLINK_VERSION)
		return -1;
	r.error[sizeof(r.error) - 1] = 0;
	u->report = r;
	if (job)
		take_report(u, job);
	if (job && r.state != before && r.state == UPLINK_RUNNING)
		log_info("job %s: its relay is admitted by the parent: %u workers, ranks from %u, depth %u",
			 job->name, r.workers, r.rank0, r.depth);
	return 1;
}

static void relay_ended(struct uplink *u)
{
	bool stale, asked = u->stop_at;
	struct job_place *p = place_of(u);

	/* its last words may not have been read yet */
	while (u->socket.fd >= 0 && report_read(u) > 0)
		;
	stale = u->report.state == UPLINK_STALE;
	log_info("job %u: its relay has ended%s%s", u->job, u->report.error[0] ? ": " : "",
		 u->report.error);
	place_text(u, u->report.error[0] ? u->report.error : "the relay has ended");
	relay_reap(u);
	u->stop_at = 0;
	if (p) {
		p->admitted = false;
		p->ifindex = 0;
	}
	end_session(u);
	if (stale)
		begin_anew(u);
	if (!asked)
		back_off(u);
}

static void process_ready(struct source *s, uint32_t events)
{
	relay_ended(s->arg);
}

static void socket_ready(struct source *s, uint32_t events)
{
	struct uplink *u = s->arg;

	if (report_read(u) >= 0)
		return;
	/* its end comes from @process */
	loop_del(&u->a->loop, s);
	close(s->fd);
	s->fd = -1;
	kill(u->pid, SIGTERM);
}

static void start(struct uplink *u, const struct saina_job *job)
{
	struct job_place *p = place_of(u);
	char why[SAINA_TEXT_LEN] = "";

	if (!u->incarnation || (u->generation != job->generation && u->used))
		u->incarnation = saina_dp_uplink_incarnation(u->a->dp, job->id);
	p->incarnation = u->incarnation;
	u->generation = job->generation;
	u->parent = job->uplink;
	u->used = job->state == SAINA_JOB_RUNNING;
	u->started_at = loop_now();
	memset(&u->report, 0, sizeof(u->report));
	if (relay_start(u, job, why, sizeof(why))) {
		log_error("job %s: its relay cannot start: %s", job->name, why);
		place_text(u, why);
		back_off(u);
		return;
	}
	p->ifindex = u->link.ifindex;
	place_text(u, "the relay is started");
	log_debug("job %s: its relay is process %d", job->name, u->pid);
}

/* @leave: the parent is not to wait for this job. */
static void stop(struct uplink *u, bool leave)
{
	struct job_place *p = place_of(u);
	uint64_t now = loop_now();

	/* the next relay will say which round is the first */
	if (p)
		p->admitted = false;
	if (u->stop_at && now >= u->stop_at)
		kill(u->pid, SIGKILL);
	if (u->stop_at)
		return;
	kill(u->pid, leave ? SIGTERM : SIGKILL);
	u->stop_at = now + STOP_MS * NSEC_PER_MSEC;
	place_text(u, "the relay is stopped");
}

/* Does what is due for one job; false: nothing is left of its uplink. */
static bool step(struct uplink *u)
{
	const struct saina_job *job = saina_core_job_find(u->a->jobs->core, 1, u->job, NULL, NULL);

	if (job && !saina_job_has_uplink(job))
		job = NULL;
	if (u->pid && (u->stop_at || !is_wanted(u, job) || job->generation != u->generation ||
		       memcmp(&u->parent, &job->uplink, sizeof(u->parent))))
		stop(u, !is_wanted(u, job) || job->generation == u->generation || u->used);
	else if (!u->pid && is_wanted(u, job) && loop_now() >= u->start_at)
		start(u, job);
	else if (!u->pid && !is_wanted(u, job))
		link_remove(u->a, &u->link);
	return job || u->pid;
}

static void tick(struct source *s, uint32_t events)
{
	struct agent *a = s->arg;
	struct uplinks *all = a->uplinks;

	loop_timer_ack(s);
	for (int i = 0; i < SAINA_JOBS_MAX; i++) {
		if (!all->of[i] || step(all->of[i]))
			continue;
		free(all->of[i]);
		all->of[i] = NULL;
		if (!--all->n)
			loop_timer_set(s, 0, 0);
	}
}

void uplinks_job_changed(struct agent *a, int cmd, const struct saina_job *job)
{
	struct uplinks *all = a->uplinks;
	struct uplink *u;

	if (!all || !job || !saina_job_has_uplink(job) || cmd != SAINA_CMD_JOB_NTF)
		return;
	u = all->of[job->id];
	if (u) {
		/* whoever asked is in */
		if (job->active)
			a->jobs->aux[job->id]->place.asked_at = 0;
		u->used |= job->state == SAINA_JOB_RUNNING && job->generation == u->generation;
		/* who joins now is not to begin where the last generation did */
		if (job->generation != u->generation)
			a->jobs->aux[job->id]->place.admitted = false;
		return;
	}
	u = calloc(1, sizeof(*u));
	if (!u) {
		log_error("job %s: out of memory for its uplink", job->name);
		return;
	}
	u->a = a;
	u->job = job->id;
	u->link.netns = -1;
	u->process = (struct source){ .fd = -1, .ready = process_ready, .arg = u };
	u->socket = (struct source){ .fd = -1, .ready = socket_ready, .arg = u };
	all->of[job->id] = u;
	if (!all->n++)
		loop_timer_set(&all->tick, TICK_MS, TICK_MS);
}

/* The relay of an earlier agent has run on; so the host was up, and its workers are taken to be alive. */
static void adopted(struct uplink *u, const struct saina_job *job)
{
	struct job_place *p = place_of(u);

	if (p) {
		p->incarnation = u->incarnation;
		p->ifindex = u->link.ifindex;
	}
	u->parent = job->uplink;
	u->started_at = loop_now();
	for (uint64_t live = job->active; live; live &= live - 1)
		jobs_worker(u->a, job, __builtin_ctzll(live))->restored = false;
	log_info("job %s: its relay, process %d, has run on", job->name, u->pid);
}

/*
 * A relay of an earlier agent may run; its maps may have sums that the parent counts.  If it has ended
 * its port may be left over.
 */
static void take_over(struct uplink *u, const struct saina_job *job)
{
	bool same_maps = saina_dp_taken_over(u->a->dp);

	if (same_maps)
		u->incarnation = jobs_worker(u->a, job, job->workers)->incarnation;
	u->generation = job->generation;
	u->used = job->state == SAINA_JOB_RUNNING;
	if (relay_adopt(u, job, same_maps)) {
		adopted(u, job);
		return;
	}
	if (u->incarnation) {
		link_name(&u->link, job->id, u->incarnation);
		link_remove(u->a, &u->link);
	}
	end_session(u);
}

int uplinks_init(struct agent *a)
{
	const struct saina_job *job;
	int ret, id;

	a->uplinks = calloc(1, sizeof(*a->uplinks));
	if (!a->uplinks)
		return -ENOMEM;
	a->uplinks->tick = (struct source){ .fd = -1, .ready = tick, .arg = a };
	ret = loop_timer_add(&a->loop, &a->uplinks->tick);
	if (ret) {
		free(a->uplinks);
		a->uplinks = NULL;
		return ret;
	}
	for (id = 0; (job = saina_core_job_next(a->jobs->core, id)); id = job->id + 1) {
		uplinks_job_changed(a, SAINA_CMD_JOB_NTF, job);
		if (a->uplinks->of[job->id])
			take_over(a->uplinks->of[job->id], job);
	}
	return 0;
}

void uplinks_uninit(struct agent *a)
{
	struct uplinks *all = a->uplinks;

	if (!all)
		return;
	/* a parent need not wait for jobs that have ended; where the data path stays, so does the relay */
	for (int i = 0; i < SAINA_JOBS_MAX; i++)
		if (all->of[i] && all->of[i]->pid && !a->cfg.keep)
			kill(all->of[i]->pid, SIGTERM);
	for (int i = 0; i < SAINA_JOBS_MAX; i++) {
		if (all->of[i] && all->of[i]->pid && a->cfg.keep) {
			relay_leave(all->of[i]);
			free(all->of[i]);
			continue;
		}
		if (all->of[i] && all->of[i]->pid) {
			struct pollfd end = { .fd = all->of[i]->process.fd, .events = POLLIN };

			if (poll(&end, 1, STOP_MS) < 1)
				kill(all->of[i]->pid, SIGKILL);
			relay_reap(all->of[i]);
		}
		if (all->of[i])
			link_remove(a, &all->of[i]->link);
		free(all->of[i]);
	}
	loop_timer_del(&a->loop, &all->tick);
	free(all);
	a->uplinks = NULL;
}

const struct uplink_report *uplink_report(struct agent *a, const struct saina_job *job)
{
	const struct uplink *u = uplink_of(a, job);

	return u && u->report.version ? &u->report : NULL;
}

void uplink_show(struct agent *a, const struct saina_job *job, struct saina_uplink_attrs *o)
{
	const struct uplink_report *r = uplink_report(a, job);
	const struct uplink *u = uplink_of(a, job);

	if (!u || !place_of((struct uplink *)u))
		return;
	SAINA_PUT_TEXT(o, SAINA_A_UPLINK_TEXT, text,
		       u->pid || u->failures ? place_of((struct uplink *)u)->text :
					       "waits for workers: the parent is asked when the first joins");
	if (!r)
		return;
	SAINA_PUT(o, SAINA_A_UPLINK_BYTES_UP, bytes_up, r->bytes_up);
	SAINA_PUT(o, SAINA_A_UPLINK_BYTES_DOWN, bytes_down, r->bytes_down);
	if (r->workers) {
		SAINA_PUT(o, SAINA_A_UPLINK_WEIGHT, weight, r->workers);
		SAINA_PUT(o, SAINA_A_UPLINK_RANK, rank, r->rank0);
		SAINA_PUT(o, SAINA_A_UPLINK_DEPTH, depth, r->depth);
	}
	if (r->away_since) {
		SAINA_PUT(o, SAINA_A_UPLINK_AWAY_ROUND, away_round, r->away_round);
		SAINA_PUT(o, SAINA_A_UPLINK_AWAY_MS, away_ms,
			  (loop_now() - r->away_since) / NSEC_PER_MSEC);
	}
}
