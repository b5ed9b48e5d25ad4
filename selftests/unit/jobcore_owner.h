/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The job core's owner in its unit tests: a fake that records what is published
 * and refuses on demand; and requests as people make them.
 */
#ifndef JOBCORE_OWNER_H
#define JOBCORE_OWNER_H

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "ctl/policy_text.h"
#include "../lib/rng.h"
#include "../lib/statement.h"

#define BIT_OF(a) (1ull << (a))
#define SEEN_MAX  4096

struct owner {
	struct saina_core *core;
	struct saina_core_err err; /* of the last request that was refused */
	int refuse; /* errno publish answers with */
	int published;
	int gone;
	struct saina_job_conf last; /* snapshot last published */
	__u32 last_first_round;
	/* number of the policy that the data path has in force, in the generation of last */
	__u32 adopted;
	int notes, note[SEEN_MAX]; /* commands of notifications */
	int events;
	struct saina_event event[SEEN_MAX];
	long live; /* allocations not freed */
	unsigned long bytes; /* allocated, ever */
};

extern const struct saina_core_ops owner_ops;

/* For each test: *state is the owner of an empty core; freed, with all memory back. */
int owner_setup(void **state);
int owner_teardown(void **state);

#define TEST(what, f) statement_with(what, f, owner_setup, owner_teardown)

/* Requests, and what tests do all the time */
struct saina_job_attrs job_req(const char *name, unsigned long long elements, int workers);
int job_new(struct owner *o, const struct saina_job_attrs *r, const struct saina_job **job);
int job_set(struct owner *o, const struct saina_job_attrs *r);
int worker_set(struct owner *o, const struct saina_worker_attrs *r);
void with_policy(struct saina_job_attrs *r, const char *policy);
const struct saina_job *add(struct owner *o, const char *name, int workers, const char *policy);
struct saina_worker_attrs join_req(const struct saina_job *job, int w, __u32 round);
int try_join(struct owner *o, const struct saina_job *job, int w, __u32 round);
void join_all(struct owner *o, const struct saina_job *job);
/* Job "a", with all its workers. */
const struct saina_job *add_all(struct owner *o, int workers, const char *policy);
int set_state(struct owner *o, const struct saina_job *job, int w, int state);
int set_job_state(struct owner *o, const struct saina_job *job, int state);
int set_policy(struct owner *o, const struct saina_job *job, const char *policy);

/* A refusal must come with the errno, the attribute and one whole sentence. */
void assert_refused(struct owner *o, int ret, int error, int attr);

#endif /* JOBCORE_OWNER_H */
