// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Options from the environment, jobs by name and tokens in files: what people
 * configure, against the stand-in aggregator.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "saina.h"
#include "lib_member.h"
#include "../lib/statement.h"

static const char *const variables[] = {
	"SAINA_AGGREGATOR", "SAINA_JOB", "SAINA_RANK", "SAINA_TOKEN", "SAINA_TOKEN_FILE",
	"RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK",
	"PMI_SIZE", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "PMIX_RANK",
};

/* No variable of ours or of a launcher is set. */
static int blank(void **state)
{
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
	return 0;
}

static struct saina_opts taken(void)
{
	struct saina_opts o;

	memset(&o, 0x55, sizeof(o));
	o.size = sizeof(o);
	assert_int_equal(saina_opts_env(&o), 0);
	assert_int_equal(o.size, sizeof(o));
	return o;
}

static void refused(const char *name, const char *text, const char *why)
{
	struct saina_opts o = { .size = sizeof(o) };

	setenv(name, text, 1);
	assert_int_equal(saina_opts_env(&o), -EINVAL);
	if (!strstr(saina_strerror(NULL, -EINVAL), why))
		fail_msg("%s=%s: \"%s\" does not say \"%s\"", name, text,
			 saina_strerror(NULL, -EINVAL), why);
	unsetenv(name);
}

static void test_ours(void **state)
{
	struct saina_opts o = taken();

	assert_null(o.aggregator);
	assert_null(o.job_name);
	assert_int_equal(o.job, 0);
	assert_int_equal(o.worker, -1);
	assert_int_equal(o.workers, 0);
	assert_null(o.token);
	assert_null(o.log);

	setenv("SAINA_AGGREGATOR", "192.0.2.1:5", 1);
	setenv("SAINA_JOB", "17", 1);
	setenv("SAINA_RANK", "63", 1);
	o = taken();
	assert_string_equal(o.aggregator, "192.0.2.1:5");
	assert_int_equal(o.job, 17);
	assert_null(o.job_name);
	assert_int_equal(o.worker, 63);

	setenv("SAINA_AGGREGATOR", "", 1);
	setenv("SAINA_JOB", "3rd-run", 1);
	setenv("SAINA_RANK", "any", 1);
	o = taken();
	assert_null(o.aggregator);
	assert_string_equal(o.job_name, "3rd-run");
	assert_int_equal(o.worker, -1);
}

static void test_launchers(void **state)
{
	struct saina_opts o;

	setenv("PMIX_RANK", "9", 1);
	o = taken();
	assert_int_equal(o.worker, 9);
	assert_int_equal(o.workers, 0);
	setenv("PMI_RANK", "1", 1);
	setenv("PMI_SIZE", "2", 1);
	o = taken();
	assert_int_equal(o.worker, 1);
	assert_int_equal(o.workers, 2);
	setenv("OMPI_COMM_WORLD_RANK", "2", 1);
	setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
	o = taken();
	assert_int_equal(o.worker, 2);
	assert_int_equal(o.workers, 3);
	setenv("RANK", "5", 1);			/* alone it is anybody's word */
	assert_int_equal(taken().worker, 2);
	setenv("WORLD_SIZE", "6", 1);
	o = taken();
	assert_int_equal(o.worker, 5);
	assert_int_equal(o.workers, 6);
	setenv("SAINA_RANK", "7", 1);
	o = taken();
	assert_int_equal(o.worker, 7);
	assert_int_equal(o.workers, 0);
}

static void test_wrong(void **state)
{
	struct saina_opts o = { .size = 8 };

	assert_int_equal(saina_opts_env(NULL), -EINVAL);
	assert_int_equal(saina_opts_env(&o), -EINVAL);
	refused("SAINA_JOB", "256", "SAINA_JOB=256: allowed are 0..255");
	refused("SAINA_JOB", "99999999999999999999", "0..255");
	refused("SAINA_RANK", "64", "SAINA_RANK=64: allowed are 0..63");
	refused("SAINA_RANK", "-1", "or any");
	refused("SAINA_RANK", "1x", "0..63");
	refused("PMIX_RANK", "64", "PMIX_RANK=64");
	setenv("RANK", "2", 1);
	refused("WORLD_SIZE", "2", "RANK=2: allowed are 0..1");
	refused("WORLD_SIZE", "65536", "WORLD_SIZE=65536: a job has 1..65535");
	refused("WORLD_SIZE", "0", "1..65535");
}

/* Opens and closes a worker, which ends in @err and with a sentence that has @why. */
static void opened(const struct saina_opts *o, int err, const char *why)
{
	struct saina *s;
	int ret = saina_open(&s, o);

	if (ret != err || (ret && !strstr(saina_strerror(NULL, ret), why)))
		fail_msg("%d: \"%s\" instead of %d: \"%s\"", ret,
			 ret ? saina_strerror(NULL, ret) : "", err, why);
	if (!ret)
		saina_close(s);
}

static void test_name(void **state)
{
	struct agg_conf c = member_conf(1, 1);
	struct saina_job_info info = { .size = sizeof(info) };
	struct saina_opts o;
	struct saina *s;
	struct agg *a;
	int32_t buf[N];

	c.name = "vision";
	a = agg_start(&c);
	o = member_opts(a, -1);
	o.job = 99;				/* not looked at */
	o.job_name = "vision";
	assert_int_equal(saina_open(&s, &o), 0);
	assert_int_equal(saina_info(s, &info), 0);
	assert_int_equal(info.job, 20);
	assert_int_equal(member_reduce(s, buf, 0, 0, NULL), 0);
	agg_forget(a, 0);			/* joins again, by its number */
	assert_int_equal(member_reduce(s, buf, 0, 1, NULL), 0);
	saina_close(s);

	o.job_name = "speech";
	opened(&o, -ENOENT, "no such job");
	o.job_name = "";
	opened(&o, -EINVAL, "1..31");
	o.job_name = "a-name-of-more-than-31-characters";
	opened(&o, -EINVAL, "1..31");
	agg_stop(a);
}

static void test_size(void **state)
{
	struct agg_conf c = member_conf(1, 1);
	struct agg *a = agg_start(&c);
	struct saina_opts o = member_opts(a, -1);

	o.workers = 4;
	opened(&o, -EINVAL, "job 20 has 1 workers, there are 4 here");
	/* another one: if it answers late, this one still has a worker, which has left unheard */
	agg_stop(a);
	a = agg_start(&c);
	o = member_opts(a, -1);
	o.workers = 1;
	opened(&o, 0, "");
	agg_stop(a);
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(chmod(path, mode), 0);
}

static void test_token(void **state)
{
	struct agg_conf c = member_conf(1, 1);
	char dir[] = "/tmp/saina-env.XXXXXX", path[64], other[64];
	struct saina_opts o;
	struct agg *a;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/token", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	write_file(path, "secret\r\nnot this\n", 0640);
	c.token = "secret";
	a = agg_start(&c);
	o = member_opts(a, -1);
	opened(&o, -EACCES, "token");
	o.token_file = path;
	opened(&o, 0, "");
	chmod(path, 0604);
	opened(&o, -EINVAL, "can be read by everybody (mode 0604)");
	chmod(path, 0400);
	write_file(other, "", 0600);
	o.token_file = other;
	opened(&o, -EINVAL, "the first line must be the token");
	unlink(other);
	opened(&o, -EINVAL, "cannot be read: No such file");

	/* What is given goes before the environment, and there the token before the file. */
	o.token_file = NULL;
	setenv("SAINA_TOKEN_FILE", other, 1);
	opened(&o, -EINVAL, "cannot be read: No such file");
	setenv("SAINA_TOKEN_FILE", path, 1);
	opened(&o, 0, "");
	setenv("SAINA_TOKEN", "wrong", 1);
	opened(&o, -EACCES, "token");
	o.token_file = path;
	opened(&o, 0, "");
	o.token = "wrong, too";
	opened(&o, -EACCES, "token");
	agg_stop(a);
	unlink(path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement_with("environment: aggregator, job and rank are taken, the rest is 0", test_ours, blank, NULL),
		statement_with("environment: rank and size of torchrun and mpirun are understood", test_launchers, blank, NULL),
		statement_with("environment: what cannot be is refused with the variable's name", test_wrong, blank, NULL),
		statement_with("join: a job is joined by name, and an older agent asks for the number", test_name, blank, NULL),
		statement_with("join: a job of another number of workers is refused", test_size, blank, NULL),
		statement_with("join: a token file that is missing, empty or readable by everybody is refused", test_token, blank, NULL),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
