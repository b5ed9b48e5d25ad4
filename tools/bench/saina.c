// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libsaina as a contender of `make bench'.
 *
 *	bench-saina SOCKET RANK RANKS AGGREGATOR JOB RMEM_MAX
 *
 * RMEM_MAX replaces net.core.rmem_max, which cannot be set for one process or namespace:
 * receive buffers get the size that an unprivileged process gets with that limit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <saina/proto.h>
#include "saina.h"
#include "serve.h"

static struct saina *saina;
static int rmem_max;

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);

/* Linked with -Wl,--wrap: build.mk. */
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	int size;

	if (level != SOL_SOCKET || (name != SO_RCVBUF && name != SO_RCVBUFFORCE))
		return __real_setsockopt(fd, level, name, value, len);
	size = *(const int *)value < rmem_max ? *(const int *)value : rmem_max;
	return __real_setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
}

static const char *prepare(const char *algorithm, float *buf, size_t n)
{
	return NULL;
}

static const char *reduce(float *buf, size_t n, enum op op)
{
	int ret = saina_allreduce(saina, buf, n, SAINA_FLOAT32, op == OP_SUM ? SAINA_SUM : SAINA_MEAN,
				  NULL);

	return ret ? saina_strerror(saina, ret) : NULL;
}

static void rest(void)
{
}

static void counts(uint64_t count[2])
{
	struct saina_stats stats = { .size = sizeof(stats) };

	saina_get_stats(saina, &stats);
	count[0] = stats.sent;
	count[1] = stats.resent;
}

int main(int argc, char **argv)
{
	struct saina_opts opts = { .size = sizeof(opts) };
	struct saina_job_info info = { .size = sizeof(info) };
	struct contender c = { prepare, reduce, rest, NULL, counts };
	char hello[60];
	int ret;

	if (argc != 7) {
		fprintf(stderr, "usage: bench-saina SOCKET RANK RANKS AGGREGATOR JOB RMEM_MAX (started by saina bench)\n");
		return 2;
	}
	opts.aggregator = argv[4];
	opts.worker = atoi(argv[2]);
	opts.job = atoi(argv[5]);
	rmem_max = atoi(argv[6]);
	ret = saina_open(&saina, &opts);
	if (ret) {
		fprintf(stderr, "bench-saina: %s\n", saina_strerror(NULL, ret));
		return 1;
	}
	saina_info(saina, &info);
	snprintf(hello, sizeof(hello), "payload=%zu header=%zu relayed=%d", info.payload * sizeof(float),
		 sizeof(struct saina_hdr), info.relayed);
	c.hello = hello;
	ret = serve(&c, argv[1], atoi(argv[2]), atoi(argv[3]));
	saina_close(saina);
	return ret;
}
