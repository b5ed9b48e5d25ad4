// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * All ranks join the job, or none does.  Each step that can fail at one rank is followed
 * by a collective of MPI's own, so that all take the same way.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "shim.h"

#define MIN_DEFAULT	(64 << 10)	/* see libsaina-mpi(7) */
#define START_MS	10000		/* all ranks are running: only a failure takes longer */

void shim_say(const char *fmt, ...)
{
	char line[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fprintf(stderr, "libsaina-mpi: %s\n", line);
}

static bool is_set(const char *name)
{
	const char *text = getenv(name);

	return text && text[0] && strcmp(text, "0");
}

/* Rank 0's environment; false if it makes no sense. */
static bool read_conf(struct shim_conf *c)
{
	const char *min = getenv("SAINA_MPI_MIN");
	char *end;

	*c = (struct shim_conf){
		.min = MIN_DEFAULT,
		.on = is_set("SAINA_AGGREGATOR"),
		.lossy = is_set("SAINA_MPI_LOSSY"),
		.partial = is_set("SAINA_MPI_PARTIAL"),
		.verbose = is_set("SAINA_MPI_VERBOSE"),
	};
	if (!c->on) {
		shim_say("SAINA_AGGREGATOR is not set: all all-reduces go through MPI");
		return true;
	}
	if (!min || !min[0])
		return true;
	errno = 0;
	c->min = strtoll(min, &end, 10);
	if (*end || errno || c->min < 0) {
		shim_say("SAINA_MPI_MIN=%s: must be a number of bytes, 0 or more", min);
		return false;
	}
	return true;
}

/* 0 if all ranks pass true, else the number of those that do not. */
static int count_missing(const struct shim *m, bool ready)
{
	int mine = ready, sum = 0;

	PMPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	return m->ranks - sum;
}

/* Are all ranks at the same round of the same job?  Not if workers of an earlier run are left. */
static bool is_same_round(const struct shim *m)
{
	/* in a tree each host's job has a number of its own */
	int64_t job = (int)m->info.ranks == m->info.workers ? m->info.job : -1;
	int64_t mine[6] = { m->info.round, -(int64_t)m->info.round, job, -job, m->info.elements,
			    -(int64_t)m->info.elements };
	int64_t least[6];

	PMPI_Allreduce(mine, least, 6, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
	return least[0] == -least[1] && least[2] == -least[3] && least[4] == -least[5];
}

static int open_job(struct shim *m, const struct saina_opts *opts)
{
	int ret = saina_open(&m->s, opts);

	if (!ret) {
		m->info.size = sizeof(m->info);
		ret = saina_info(m->s, &m->info);
	}
	if (!ret)
		ret = shim_helper_start();
	if (ret) {
		shim_say("rank %d cannot join: %s", m->rank,
			 m->s ? strerror(-ret) : saina_strerror(NULL, ret));
		saina_close(m->s);
		m->s = NULL;
	}
	return ret;
}

static void close_job(struct shim *m)
{
	if (!m->s)
		return;
	shim_helper_stop();
	saina_close(m->s);
	m->s = NULL;
}

void shim_join(struct shim *m, int thread_level)
{
	struct saina_opts opts = { .size = sizeof(opts) };
	bool fits = true;
	int ret, missing;

	PMPI_Comm_rank(MPI_COMM_WORLD, &m->rank);
	PMPI_Comm_size(MPI_COMM_WORLD, &m->ranks);
	m->world_only = thread_level == MPI_THREAD_MULTIPLE;
	if (!m->rank)
		fits = read_conf(&m->conf);
	PMPI_Bcast(&m->conf, sizeof(m->conf) / sizeof(int64_t), MPI_INT64_T, 0, MPI_COMM_WORLD);
	if (!m->conf.on)
		return;

	ret = saina_opts_env(&opts);
	if (ret)
		shim_say("rank %d: %s", m->rank, saina_strerror(NULL, ret));
	missing = count_missing(m, fits && !ret);
	if (missing)
		goto fall_back;
	opts.worker = m->rank;
	opts.workers = m->ranks;
	opts.start_timeout_ms = START_MS;
	missing = count_missing(m, !open_job(m, &opts));
	if (missing)
		goto close;
	if (!is_same_round(m)) {
		missing = m->ranks;
		if (!m->rank)
			shim_say("the ranks are not at the same round of the same job: is a worker of an earlier run still alive?");
		goto close;
	}
	PMPI_Comm_dup(MPI_COMM_WORLD, &m->progress);
	m->active = true;
	if (!m->rank && m->conf.verbose)
		shim_say("%d ranks are the workers of job %d: sums of %" PRId64 " bytes and more go through the aggregator",
			 m->ranks, m->info.job, m->conf.min);
	return;
close:
	close_job(m);
fall_back:
	if (!m->rank)
		shim_say("%d of %d ranks cannot join: all all-reduces of this run go through MPI",
			 missing, m->ranks);
}

void shim_leave(struct shim *m)
{
	if (m->conf.verbose && !m->rank)
		shim_say("%" PRIu64 " all-reduces (%" PRIu64 " bytes) went through the aggregator, %" PRIu64 " through MPI",
			 m->taken, m->taken_bytes, (uint64_t)m->passed);
	if (m->s)
		PMPI_Comm_free(&m->progress);
	close_job(m);
	m->active = false;
	free(m->saved);
	m->saved = NULL;
}
