// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names, and the parsers of jobs and workers on the command line.
 */
#include <stdio.h>
#include <string.h>

#include "ctl/policy_text.h"
#include "tool.h"

const char *backend_name(unsigned int backend)
{
	return backend == SAINA_BACKEND_KERNEL ? "kernel" : "agent";
}

const char *policy_name(const struct saina_policy_attrs *a)
{
	static char text[SAINA_POLICY_TEXT_LEN];
	struct saina_policy p;

	saina_policy_read(a, &p);
	saina_policy_format(&p, text, sizeof(text));
	return text;
}

int parse_job(const struct args *a, const char *word, __u64 *has, unsigned int attr_id,
	      unsigned int attr_name, __u16 *id, char *name)
{
	uint64_t v;

	if (!word)
		return args_error(a, "the job is missing: give its name or number");
	if (args_not_option(a, word))
		return EXIT_USAGE;
	if (strspn(word, "0123456789") == strlen(word) && *word) {
		if (!args_number(word, 0, SAINA_JOBS_MAX - 1, &v))
			return args_error(a, "\"%s\" is not a job number: must be 0 to %d", word,
					  SAINA_JOBS_MAX - 1);
		*id = (__u16)v;
		*has |= 1ull << attr_id;
		return 0;
	}
	if (!*word || strlen(word) >= SAINA_NAME_LEN)
		return args_error(a, "\"%s\" is not a job name: must have 1 to %d characters", word,
				  SAINA_NAME_LEN - 1);
	strcpy(name, word);
	*has |= 1ull << attr_name;
	return 0;
}

int parse_worker_id(const struct args *a, const char *word, __u8 *id)
{
	uint64_t v;

	if (!word)
		return args_error(a, "the worker is missing: give its number, 0 to %d",
				  SAINA_WORKERS_MAX - 1);
	if (!args_number(word, 0, SAINA_WORKERS_MAX - 1, &v))
		return args_error(a, "\"%s\" is not a worker number: must be 0 to %d", word,
				  SAINA_WORKERS_MAX - 1);
	*id = (__u8)v;
	return 0;
}
