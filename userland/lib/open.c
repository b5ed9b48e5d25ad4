// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Opening and closing a handle. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base.h"
#include "env.h"
#include "progress/progress.h"
#include "reduce/round.h"
#include "session/session.h"

#define JOIN_MS	     5000
#define SILENCE_MS   60000
#define LEAVE_MS     300 /* or 4 round trips, where those are longer */
#define LEAVE_MS_MAX 2000
#define CANCEL_MS    50 /* between looks at opts.cancel */

/* Without a token in the options: from a file, or the environment. */
static int find_token(struct saina *s, char *buf, int size)
{
	struct saina_opts *o = &s->opts;
	const char *path = o->token_file;
	struct stat st;
	FILE *f;

	if (o->token)
		return 0;
	if (!path) {
		o->token = saina_env("SAINA_TOKEN");
		path = saina_env("SAINA_TOKEN_FILE");
		if (o->token || !path)
			return 0;
	}
	f = fopen(path, "re");
	if (!f)
		return saina_error(s, -EINVAL, "token file %s cannot be read: %s", path,
				   strerror(errno));
	if (!fstat(fileno(f), &st) && S_ISREG(st.st_mode) && (st.st_mode & S_IROTH)) {
		fclose(f);
		return saina_error(
			s, -EINVAL,
			"token file %s can be read by everybody (mode %04o): `chmod o= %s`, "
			"and give the job another token if others could have seen it",
			path, st.st_mode & 07777, path);
	}
	if (!fgets(buf, size, f))
		buf[0] = 0;
	fclose(f);
	buf[strcspn(buf, "\r\n")] = 0;
	o->token = buf;
	return buf[0] ? 0
		      : saina_error(s, -EINVAL,
				    "token file %s: the first line must be the token, and is empty", path);
}

/* The job's name, which is sent with JOIN, or its number. */
static int check_job(struct saina *s)
{
	const struct saina_opts *o = &s->opts;

	if (!o->job_name) {
		if (o->job < 0 || o->job >= SAINA_JOBS_MAX)
			return saina_error(s, -EINVAL, "job %d: allowed are 0..%d", o->job,
					   SAINA_JOBS_MAX - 1);
		s->session.job.id = o->job;
		return 0;
	}
	if (!o->job_name[0] || strlen(o->job_name) >= SAINA_NAME_LEN)
		return saina_error(s, -EINVAL, "job \"%s\": a name has 1..%d characters",
				   o->job_name, SAINA_NAME_LEN - 1);
	strcpy(s->session.named, o->job_name);
	return 0;
}

static int check_opts(struct saina *s, const struct saina_opts *opts)
{
	struct saina_session *j = &s->session;
	struct saina_opts *o = &s->opts;
	char *name = j->body.name, token[SAINA_TOKEN_LEN + 3];

	if (!opts || opts->size < offsetof(struct saina_opts, log_arg) || opts->size > 4096)
		return saina_error(s, -EINVAL, "opts.size is not sizeof(struct saina_opts)");
	memcpy(o, opts, opts->size < sizeof(*o) ? opts->size : sizeof(*o));
	if (check_job(s))
		return -EINVAL;
	if (o->worker < -1 || o->worker >= (o->workers ? SAINA_RANKS_MAX : SAINA_WORKERS_MAX))
		return saina_error(s, -EINVAL, "worker %d: allowed are 0..%d, or -1 for any", o->worker,
				   (o->workers ? SAINA_RANKS_MAX : SAINA_WORKERS_MAX) - 1);
	if (find_token(s, token, sizeof(token)))
		return -EINVAL;
	if (o->token && strlen(o->token) > SAINA_TOKEN_LEN)
		return saina_error(s, -EINVAL, "the token is longer than %d bytes",
				   SAINA_TOKEN_LEN);
	j->job.worker = j->wanted = o->worker < 0 || o->worker >= SAINA_WORKERS_MAX ? SAINA_WORKER_ANY :
										     o->worker;
	j->wanted_rank = o->workers && o->worker >= 0 ? o->worker + 1 : 0;
	if (o->token)
		memcpy(j->body.token, o->token, strlen(o->token));
	if (o->name) {
		strncpy(name, o->name, sizeof(j->body.name) - 1);
	} else {
		char host[20] = "";

		gethostname(host, sizeof(host) - 1);
		snprintf(name, sizeof(j->body.name), "%s:%d", host, (int)getpid());
	}
	if (o->arrays > UINT16_MAX || o->per_worker > UINT16_MAX)
		return saina_error(s, -EINVAL, "%u arrays and %u elements per worker: allowed are 0..%d",
				   o->arrays, o->per_worker, UINT16_MAX);
	j->body.elements = htole64(o->elements);
	j->body.arrays = htole16(o->arrays);
	j->body.per_worker = htole16(o->per_worker);
	j->workers = o->workers;
	j->join_ms = o->join_timeout_ms ? o->join_timeout_ms : JOIN_MS;
	j->start_ms = o->start_timeout_ms;
	j->silence_ms = o->timeout_ms ? o->timeout_ms : SILENCE_MS;
	return 0;
}

/* Also frees a handle that saina_open() has opened in part. */
static void handle_free(struct saina *s)
{
	struct saina_req *r;

	saina_io_close(&s->io);
	saina_shm_exit(&s->shm);
	while ((r = s->round.reqs)) {
		s->round.reqs = r->next;
		free(r);
	}
	if (s->round.job)
		s->round.ops->exit(&s->round);
	free(s);
}

static struct saina *handle_new(void)
{
	struct saina *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;

	if (!s)
		return NULL;
	s->io.ucast = s->io.mcast = s->io.wake = s->io.timer = -1;
	s->io.shm = s->shm.fd = -1;
	s->pid = getpid();
	s->round.ops = &saina_rounds;
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
	ret = -pthread_create(&s->thread, NULL, saina_progress_thread, s);
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
	saina_wake(s);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	s->started = false;
}

/* How long LEAVE is repeated, in nanoseconds. */
static uint64_t leave_ns(const struct saina *s)
{
	uint64_t ns = 4 * s->round.flow.cwnd.srtt;

	if (ns < LEAVE_MS * MSEC)
		return LEAVE_MS * MSEC;
	return ns < LEAVE_MS_MAX * MSEC ? ns : LEAVE_MS_MAX * MSEC;
}

/* Caller holds s->lock.  Waits for s->cond, until the time @end at most.  False: it is over. */
static bool cond_wait_for(struct saina *s, uint64_t end)
{
	struct timespec until = {.tv_sec = end / 1000000000, .tv_nsec = end % 1000000000};

	return !pthread_cond_timedwait(&s->cond, &s->lock, &until);
}

/* Caller holds s->lock.  Leaves the job, and waits until the agent knows it, but not for long. */
static void leave_job(struct saina *s)
{
	uint64_t end;

	saina_session_leave(&s->session, saina_now());
	saina_wake(s);
	end = saina_now() + leave_ns(s);
	while (!s->session.gone && s->session.phase == PHASE_LEAVING)
		if (!cond_wait_for(s, end))
			break;
}

/*
 * Caller holds s->lock.  A JOIN may have arrived whose answer has not: the worker can leave once it
 * knows its session.
 */
static void cancel_join(struct saina *s)
{
	struct saina_session *j = &s->session;
	uint64_t end = saina_now() + leave_ns(s);

	while (j->phase == PHASE_JOINING)
		if (!cond_wait_for(s, end))
			break;
	if (j->phase == PHASE_FAILED)
		return;
	if (j->phase != PHASE_JOINING)
		leave_job(s);
	saina_session_fail(j, -ECANCELED, "cancelled before the job ran");
}

/* Caller holds s->lock.  The library's thread ends this wait at a time-out. */
static void wait_until_runs(struct saina *s)
{
	const int *cancel = s->opts.cancel;
	struct saina_session *j = &s->session;

	while (j->phase != PHASE_RUNNING && j->phase != PHASE_FAILED) {
		if (!cancel) {
			pthread_cond_wait(&s->cond, &s->lock);
			continue;
		}
		if (__atomic_load_n(cancel, __ATOMIC_RELAXED)) {
			cancel_join(s);
			return;
		}
		cond_wait_for(s, saina_now() + CANCEL_MS * MSEC);
	}
}

/* Errors: saina_open(3). */
int saina_open(struct saina **sp, const struct saina_opts *opts)
{
	struct saina_session *j;
	struct saina *s;
	int ret;

	saina_open_error(0, "%s", "");
	if (!sp)
		return -EINVAL;
	*sp = NULL;
	s = handle_new();
	if (!s)
		return -ENOMEM;
	j = &s->session;

	ret = check_opts(s, opts);
	if (ret)
		goto free;
	ret = saina_io_open(&s->io, opts->aggregator, s->opts.interface);
	if (ret) {
		saina_error(s, ret, "%s", s->io.error);
		goto free;
	}
	saina_shm_init(&s->shm, s->opts.share ? s->opts.share : secure_getenv("SAINA_SHARE"));
	s->opts.share = NULL;
	s->opts.interface = s->opts.aggregator = s->opts.token = s->opts.name = NULL;
	s->opts.token_file = s->opts.job_name = NULL;
	j->address = s->io.address;
	j->port = ntohs(s->io.ctrl.sin_port);
	j->ifname = s->io.ifname;
	j->mtu = s->io.mtu;
	saina_fill_nonce(j);
	saina_session_start(j, saina_now());
	ret = start_thread(s);
	if (ret)
		goto free;

	pthread_mutex_lock(&s->lock);
	wait_until_runs(s);
	s->opts.cancel = NULL;
	ret = saina_unlock(s, saina_session_error(s));
	if (ret)
		goto stop;
	*sp = s;
	return 0;
stop:
	stop_thread(s);
free:
	saina_open_error(ret, "%s", s->error);
	handle_free(s);
	return ret;
}

/*
 * Waits for the agent to acknowledge that we leave: at most 300 ms, or four of the round trips
 * measured if that is longer, and never more than 2 s.
 */
int saina_close(struct saina *s)
{
	if (!s)
		return -EINVAL;
	if (getpid() != s->pid)
		goto free;
	pthread_mutex_lock(&s->lock);
	leave_job(s);
	pthread_mutex_unlock(&s->lock);
	stop_thread(s);
free:
	handle_free(s);
	return 0;
}
