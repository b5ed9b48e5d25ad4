// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Opening, closing, and what a handle tells about itself. */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "private.h"

#define RTO_MIN_NS (4 * MSEC)
#define RTO_MAX_NS (60 * MSEC)

static __thread char open_error[256];

uint64_t saina_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

void saina_log(struct saina *s, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (s->opts.log)
		s->opts.log(s->opts.log_arg, line);
	else
		fprintf(stderr, "libsaina: %s\n", line);
}

static int set_error(struct saina *s, int err, const char *fmt, va_list ap)
{
	char text[sizeof(s->error)]; /* the old sentence may be an argument */

	vsnprintf(text, sizeof(text), fmt, ap);
	memcpy(s->error, text, sizeof(text));
	return err;
}

/* Notes the sentence of a failure; returns @err. */
int saina_error(struct saina *s, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	set_error(s, err, fmt, ap);
	va_end(ap);
	return err;
}

/* For good: all that is in flight and all calls to come end with @err. */
void saina_fail(struct saina *s, int err, const char *fmt, ...)
{
	va_list ap;

	if (s->phase == PHASE_FAILED)
		return;
	va_start(ap, fmt);
	set_error(s, err, fmt, ap);
	va_end(ap);
	s->phase = PHASE_FAILED;
	s->err = err;
	for (struct saina_req *r = s->reqs; r; r = r->next) {
		if (!r->finished) {
			r->finished = true;
			r->err = err;
		}
	}
	pthread_cond_broadcast(&s->cond);
}

static int parse_address(struct saina *s, const char *text)
{
	char host[64];
	const char *colon = text ? strchr(text, ':') : NULL;
	unsigned long port = SAINA_PORT_CTRL;
	size_t n = text ? colon ? (size_t)(colon - text) : strlen(text) : 0;
	char *end;

	if (!n || n >= sizeof(host))
		goto bad;
	memcpy(host, text, n);
	host[n] = 0;
	s->ctrl.sin_family = s->data.sin_family = AF_INET;
	if (inet_pton(AF_INET, host, &s->ctrl.sin_addr) != 1)
		goto bad;
	if (colon) {
		port = strtoul(colon + 1, &end, 10);
		if (end == colon + 1 || *end || !port || port > 65535)
			goto bad;
	}
	s->data.sin_addr = s->ctrl.sin_addr;
	s->ctrl.sin_port = htons(port);
	s->data.sin_port = htons(SAINA_PORT_DATA);
	return 0;
bad:
	return saina_error(s, -EINVAL,
			   "aggregator \"%s\": an IPv4 address is wanted, or ADDRESS:PORT",
			   text ? text : "");
}

static int check_opts(struct saina *s, const struct saina_opts *opts)
{
	struct saina_opts *o = &s->opts;

	if (!opts || opts->size < offsetof(struct saina_opts, log_arg) || opts->size > 4096)
		return saina_error(s, -EINVAL, "opts.size is not sizeof(struct saina_opts)");
	memcpy(o, opts, opts->size < sizeof(*o) ? opts->size : sizeof(*o));
	if (o->job < 0 || o->job >= SAINA_JOBS_MAX)
		return saina_error(s, -EINVAL, "job %d: allowed are 0..%d", o->job,
				   SAINA_JOBS_MAX - 1);
	if (o->worker < -1 || o->worker >= SAINA_WORKERS_MAX)
		return saina_error(s, -EINVAL, "worker %d: allowed are 0..%d, or -1 for any",
				   o->worker, SAINA_WORKERS_MAX - 1);
	if (o->token && strlen(o->token) > SAINA_TOKEN_LEN)
		return saina_error(s, -EINVAL, "the token is longer than %d bytes",
				   SAINA_TOKEN_LEN);
	s->job = o->job;
	s->worker = o->worker < 0 ? SAINA_WORKER_ANY : o->worker;
	if (o->token)
		memcpy(s->join.body.token, o->token, strlen(o->token));
	if (o->name) {
		strncpy(s->name, o->name, sizeof(s->name) - 1);
	} else {
		char host[20] = "";

		gethostname(host, sizeof(host) - 1);
		snprintf(s->name, sizeof(s->name), "%s:%d", host, (int)getpid());
	}
	memcpy(s->join.body.name, s->name, sizeof(s->name));
	s->join.body.elements = htole64(o->elements);
	return parse_address(s, o->aggregator);
}

static void handle_free(struct saina *s)
{
	struct saina_req *r;

	saina_socket_close(s);
	if (s->wake >= 0)
		close(s->wake);
	while ((r = s->reqs)) {
		s->reqs = r->next;
		free(r);
	}
	saina_kept_free(s);
	saina_recv_exit(s);
	saina_send_exit(s);
	free(s->seg);
	free(s->residual);
	pthread_cond_destroy(&s->cond);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static struct saina *handle_new(void)
{
	struct saina *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;

	if (!s)
		return NULL;
	s->ucast = s->mcast = s->wake = -1;
	s->quant = saina_quant_best();
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->cond, &attr);
	pthread_condattr_destroy(&attr);
	return s;
}

/* Signals are for the trainer's threads. */
static int start_thread(struct saina *s)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = -pthread_create(&s->thread, NULL, saina_recv_thread, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	s->started = !ret;
	return ret;
}

static void stop_thread(struct saina *s)
{
	if (!s->started)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	saina_recv_kick(s);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	s->started = false;
}

/**
 * saina_open() - join a job as a worker, and wait until it runs
 * @sp: out, the handle
 * @opts: see struct saina_opts
 *
 * Returns 0 or, with the sentence in saina_strerror(NULL, err):
 *	-EINVAL		an option is not valid
 *	-ENOENT		there is no such job
 *	-EACCES		wrong token
 *	-EUSERS		the job is full
 *	-EBUSY		another live worker has that identifier (tried for
 *			join_timeout_ms, since it may be our dead predecessor)
 *	-EMSGSIZE	more elements than the job has, or an MTU too small
 *	-ESHUTDOWN	the job is stopped
 *	-ENETUNREACH	no route, or not by a port of the aggregator's bridge
 *	-EPROTONOSUPPORT the aggregator speaks another version
 *	-ETIMEDOUT	no answer, or not all workers came
 *	-ENOMEM, -errno	of the system
 */
int saina_open(struct saina **sp, const struct saina_opts *opts)
{
	struct saina *s;
	uint64_t rto_min;
	int ret;

	open_error[0] = 0;
	if (!sp)
		return -EINVAL;
	*sp = NULL;
	s = handle_new();
	if (!s)
		return -ENOMEM;

	ret = check_opts(s, opts);
	if (ret)
		goto free;
	rto_min = s->opts.rto_min_us ? s->opts.rto_min_us * 1000ull : RTO_MIN_NS;
	saina_rto_init(&s->rto, rto_min, RTO_MAX_NS);
	s->rto_min = s->rto.min;
	s->rto_max = s->rto.max;
	ret = saina_socket_open(s);
	if (ret)
		goto free;
	s->opts.interface = s->opts.aggregator = s->opts.token = s->opts.name = NULL;
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->wake < 0) {
		ret = saina_error(s, -errno, "eventfd: %s", strerror(errno));
		goto free;
	}
	ret = saina_recv_init(s);
	if (ret)
		goto free;
	s->opened_ns = saina_now();
	saina_join_start(s);
	ret = start_thread(s);
	if (ret)
		goto free;

	/* All time-outs are the thread's. */
	pthread_mutex_lock(&s->lock);
	while (s->phase != PHASE_RUNNING && s->phase != PHASE_FAILED)
		pthread_cond_wait(&s->cond, &s->lock);
	ret = s->phase == PHASE_FAILED ? s->err : 0;
	pthread_mutex_unlock(&s->lock);
	if (ret)
		goto stop;
	*sp = s;
	return 0;
stop:
	stop_thread(s);
free:
	memcpy(open_error, s->error, sizeof(open_error));
	handle_free(s);
	return ret;
}

/**
 * saina_close() - leave the job and free the handle
 *
 * All-reduces in flight are given up; their requests are freed with the handle.
 * Waits at most 300 ms for the agent to acknowledge that we leave.
 */
int saina_close(struct saina *s)
{
	struct timespec until;
	uint64_t end;

	if (!s)
		return -EINVAL;
	pthread_mutex_lock(&s->lock);
	if (s->phase != PHASE_FAILED) {
		saina_join_leave(s);
		saina_recv_kick(s);
		end = saina_now() + 300 * MSEC;
		until.tv_sec = end / 1000000000;
		until.tv_nsec = end % 1000000000;
		while (!s->join.gone && s->phase == PHASE_LEAVING)
			if (pthread_cond_timedwait(&s->cond, &s->lock, &until))
				break;
	}
	pthread_mutex_unlock(&s->lock);
	stop_thread(s);
	handle_free(s);
	return 0;
}

/* Copies as much of a struct with a leading size field as the caller has. */
static int copy_out(void *to, const void *from, size_t known)
{
	size_t size = *(size_t *)to;

	if (size < sizeof(size_t) || size > 4096)
		return -EINVAL;
	memset(to, 0, size);
	memcpy(to, from, size < known ? size : known);
	*(size_t *)to = size;
	return 0;
}

int saina_info(struct saina *s, struct saina_job_info *info)
{
	struct saina_job_info i;
	int ret;

	if (!s || !info)
		return -EINVAL;
	pthread_mutex_lock(&s->lock);
	i = (struct saina_job_info){
		.job = s->job,
		.worker = s->worker,
		.workers = s->workers,
		.elements = s->elements,
		.segments = s->segments,
		.payload = s->payload,
		.pool = s->pool,
		.ring = s->ring,
		.round = s->round,
		.active = s->active,
		.relayed = s->relayed,
		.next_round = s->known_next,
		.type = (enum saina_type)s->elem,
	};
	ret = copy_out(info, &i, sizeof(i));
	if (ret)
		saina_error(s, ret, "info.size is not sizeof(struct saina_job_info)");
	pthread_mutex_unlock(&s->lock);
	return ret;
}

int saina_get_stats(struct saina *s, struct saina_stats *stats)
{
	int ret;

	if (!s || !stats)
		return -EINVAL;
	pthread_mutex_lock(&s->lock);
	s->stats.rtt_us = s->rto.srtt / 1000;
	s->stats.rto_us = s->rto.rto / 1000;
	s->stats.window = s->window;
	ret = copy_out(stats, &s->stats, sizeof(s->stats));
	if (ret)
		saina_error(s, ret, "stats.size is not sizeof(struct saina_stats)");
	pthread_mutex_unlock(&s->lock);
	return ret;
}

/**
 * saina_segment() - who was counted in a segment
 * @segment: 0..segments-1
 * @out: @out->size set by the caller
 *
 * Of the last result this worker has taken, which during a round may be that
 * of the round before; @out->round says.  -ENODATA if there is none yet.
 */
int saina_segment(struct saina *s, uint32_t segment, struct saina_segment *out)
{
	struct saina_segment g;
	int ret;

	if (!s || !out)
		return -EINVAL;
	pthread_mutex_lock(&s->lock);
	if (segment >= s->segments) {
		ret = saina_error(s, -EINVAL, "segment %u: the gradient has %u", segment,
				  s->segments);
		goto unlock;
	}
	if (!s->seg[segment].last.contributors) {
		ret = saina_error(s, -ENODATA, "segment %u has no result yet", segment);
		goto unlock;
	}
	g = (struct saina_segment){
		.round = s->seg[segment].last.round,
		.mask = s->seg[segment].last.mask,
		.contributors = s->seg[segment].last.contributors,
		.k = s->seg[segment].last.k,
		.exponent = s->seg[segment].last.exponent,
		.policy = s->seg[segment].last.policy,
		.flags = s->seg[segment].last.flags & (SAINA_F_DEGRADED | SAINA_F_DROP_LATE),
	};
	ret = copy_out(out, &g, sizeof(g));
	if (ret)
		saina_error(s, ret, "out->size is not sizeof(struct saina_segment)");
unlock:
	pthread_mutex_unlock(&s->lock);
	return ret;
}

const char *saina_strerror(const struct saina *s, int err)
{
	if (s && s->error[0])
		return s->error;
	if (!s && open_error[0])
		return open_error;
	return strerror(err < 0 ? -err : err);
}

const char *saina_version(void)
{
	return SAINA_VERSION;
}
