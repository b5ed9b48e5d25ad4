// SPDX-License-Identifier: GPL-2.0-or-later
/* Workers of the stand-in aggregator's job 20, for tests that step them by hand. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "saina.h"
#include "lib_member.h"
#include "../lib/statement.h"

char member_lines[4096];

static void collect(void *arg, const char *line)
{
	size_t used = strlen(member_lines);

	snprintf(member_lines + used, sizeof(member_lines) - used, "%s\n", line);
}

struct agg_conf member_conf(unsigned int workers, unsigned int k)
{
	return (struct agg_conf){ .job = 20, .workers = workers, .payload = 64, .pool = 8, .ring = 4,
				  .k = k, .elements = N, .exponent = 20, .fast = true, .seed = 5 };
}

struct saina_opts member_opts(struct agg *a, int worker)
{
	member_lines[0] = 0;
	return (struct saina_opts){ .size = sizeof(struct saina_opts),
				    .aggregator = agg_address(a), .job = 20, .worker = worker,
				    .log = collect, .join_timeout_ms = 20000 };
}

struct opener {
	pthread_t t;
	struct saina_opts o;
	struct saina *s;
	int ret;
};

static void *open_it(void *arg)
{
	struct opener *p = arg;

	p->ret = saina_open(&p->s, &p->o);
	return NULL;
}

void member_open_all(struct agg *a, struct saina **s, int n)
{
	struct opener p[8];

	for (int i = 0; i < n; i++) {
		p[i].o = member_opts(a, i);
		p[i].o.join_timeout_ms = 20000;
		assert_int_equal(pthread_create(&p[i].t, NULL, open_it, &p[i]), 0);
	}
	for (int i = 0; i < n; i++) {
		pthread_join(p[i].t, NULL);
		if (p[i].ret)
			print_error("worker %d: %s\n", i, member_lines);
		assert_int_equal(p[i].ret, 0);
		s[i] = p[i].s;
	}
}

struct agg *member_job(struct saina **s, int workers, unsigned int k)
{
	struct agg_conf c = member_conf(workers, k);
	struct agg *a = agg_start(&c);

	member_open_all(a, s, workers);
	return a;
}

void member_close_all(struct agg *a, struct saina **s, int n)
{
	for (int i = 0; i < n; i++)
		saina_close(s[i]);
	agg_stop(a);
}

void member_fill(int32_t *buf, int worker, int round)
{
	for (int i = 0; i < N; i++)
		buf[i] = (worker + 1) * 1000000 + round * 1000 + i;
}

int member_start(struct saina *s, int32_t *buf, int worker, int round, struct saina_req **r)
{
	member_fill(buf, worker, round);
	return saina_allreduce_start(s, buf, N, SAINA_INT32, SAINA_SUM, r);
}

int member_reduce(struct saina *s, int32_t *buf, int worker, int round, struct saina_call *call)
{
	member_fill(buf, worker, round);
	return saina_allreduce(s, buf, N, SAINA_INT32, SAINA_SUM, call);
}
