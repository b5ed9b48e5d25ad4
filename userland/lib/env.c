// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Options from the environment: our own variables, and what launchers tell their processes. */
#include <errno.h>
#include <stdlib.h>
#include "base.h"
#include "env.h"

const char *saina_env(const char *name)
{
	const char *text = secure_getenv(name);

	return text && text[0] ? text : NULL;
}

/* A number from 0 to @max, or negative. */
static int parse_number(const char *text, int max)
{
	char *end;
	long n;

	if (text[0] < '0' || text[0] > '9')
		return -1;
	errno = 0;
	n = strtol(text, &end, 10);
	return *end || errno || n > max ? -1 : (int)n;
}

static int job_from_env(struct saina_opts *o)
{
	const char *text = saina_env("SAINA_JOB");

	if (!text)
		return 0;
	if (text[strspn(text, "0123456789")]) {
		o->job_name = text;
		return 0;
	}
	o->job = parse_number(text, SAINA_JOBS_MAX - 1);
	return o->job >= 0 ? 0
			   : saina_open_error(-EINVAL, "SAINA_JOB=%s: allowed are 0..%d, or a name",
					      text, SAINA_JOBS_MAX - 1);
}

/*
 * Which launcher started this process?  The innermost comes first: torchrun may have been
 * started by mpirun.  RANK is too common a word to be taken for torchrun's alone.
 */
static int rank_from_env(struct saina_opts *o)
{
	static const struct {
		const char *rank, *size;
	} launcher[] = {
		{"RANK", "WORLD_SIZE"},	  {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
		{"PMI_RANK", "PMI_SIZE"}, {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
		{"PMIX_RANK", NULL},
	};
	const char *rank = saina_env("SAINA_RANK"), *size;

	if (rank) {
		o->worker = strcmp(rank, "any") ? parse_number(rank, SAINA_WORKERS_MAX - 1) : -1;
		return o->worker >= 0 || !strcmp(rank, "any")
			       ? 0
			       : saina_open_error(-EINVAL,
						  "SAINA_RANK=%s: allowed are 0..%d, or any", rank,
						  SAINA_WORKERS_MAX - 1);
	}
	for (size_t i = 0; i < sizeof(launcher) / sizeof(launcher[0]); i++) {
		rank = saina_env(launcher[i].rank);
		size = launcher[i].size ? saina_env(launcher[i].size) : NULL;
		if (!rank || (launcher[i].size && !size))
			continue;
		if (size) {
			int n = parse_number(size, SAINA_RANKS_MAX);

			if (n < 1)
				return saina_open_error(-EINVAL, "%s=%s: a job has 1..%d workers",
							launcher[i].size, size, SAINA_RANKS_MAX);
			o->workers = n;
		}
		o->worker = parse_number(rank, (size ? (int)o->workers : SAINA_WORKERS_MAX) - 1);
		return o->worker >= 0
			       ? 0
			       : saina_open_error(-EINVAL,
						  "%s=%s: allowed are 0..%u",
						  launcher[i].rank, rank,
						  (size ? o->workers : SAINA_WORKERS_MAX) - 1);
	}
	return 0;
}

int saina_opts_env(struct saina_opts *opts)
{
	struct saina_opts o = {.worker = -1};
	int ret;

	saina_open_error(0, "%s", "");
	if (!opts || opts->size < offsetof(struct saina_opts, workers) + sizeof(opts->workers) ||
	    opts->size > 4096)
		return saina_open_error(-EINVAL, "opts.size is not sizeof(struct saina_opts)");
	o.aggregator = saina_env("SAINA_AGGREGATOR");
	ret = job_from_env(&o);
	if (!ret)
		ret = rank_from_env(&o);
	o.size = opts->size;
	memset(opts, 0, o.size);
	memcpy(opts, &o, o.size < sizeof(o) ? o.size : sizeof(o));
	return ret;
}
