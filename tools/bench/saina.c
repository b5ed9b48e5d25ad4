// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A rank of libsaina in `saina bench'.
 *
 *	bench-saina SOCKET RANK RANKS AGGREGATOR JOB RMEM_MAX
 *
 * RMEM_MAX stands for net.core.rmem_max: receive buffers get the size that an unprivileged process
 * gets with that limit, although this one is root.
 *
 * The driver (tools/bench/group.py) sends commands to each rank over a unix socket, so that
 * contenders can take turns; those that wait sleep in read().  peer.py answers the same ones.
 *
 *	hello RANK NAME=VALUE..	sent first
 *	prepare BYTES		-> ok
 *	verify ROUNDS		-> ok START END END .. SUMS	each sum compared with the exact one
 *	time ROUNDS		-> ok START END END ..	back to back, nothing but all-reduces
 *	rest			-> ok			memory is freed
 *
 * START and END are nanoseconds of CLOCK_MONOTONIC, one END for each round.  SUMS is the number of
 * elements that were compared and equal.  A command that fails is answered with "error SENTENCE".
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <saina/proto.h>
#include "monotonic.h"
#include "saina.h"

#define ROUNDS_MAX 100000

static struct {
	struct saina *saina;
	int rank, ranks;
	FILE *out;
	float *buf;
	size_t n;
} self;

static int rmem_max;

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);

/* Linked with -Wl,--wrap: tool.mk. */
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	int size;

	if (level != SOL_SOCKET || (name != SO_RCVBUF && name != SO_RCVBUFFORCE))
		return __real_setsockopt(fd, level, name, value, len);
	size = *(const int *)value < rmem_max ? *(const int *)value : rmem_max;
	return __real_setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
}

/* Small integers: sums of float32, and of scaled integers, are exact in any order. */
static float element(int rank, size_t i)
{
	return (int)(i * 5 % 17) - 8 + rank * ((int)(i % 5) - 2);
}

static float exact_sum(int ranks, size_t i)
{
	return ranks * ((int)(i * 5 % 17) - 8) + ranks * (ranks - 1) / 2 * ((int)(i % 5) - 2);
}

static void buffer_fill(int rank)
{
	for (size_t i = 0; i < self.n; i++)
		self.buf[i] = element(rank, i);
}

static void rest(void)
{
	free(self.buf);
	self.buf = NULL;
	self.n = 0;
}

static const char *prepare(size_t bytes)
{
	rest();
	self.n = bytes / sizeof(float);
	if (!self.n || posix_memalign((void **)&self.buf, 4096, bytes))
		return "no memory for the tensor";
	buffer_fill(0);
	return NULL;
}

static const char *reduce(enum saina_result_op op)
{
	int ret = saina_allreduce(self.saina, self.buf, self.n, SAINA_FLOAT32, op, NULL);

	return ret ? saina_strerror(self.saina, ret) : NULL;
}

/* @stamps: out: start, the end of each round, and the number of correct sums. */
static const char *verify(unsigned int rounds, uint64_t *stamps)
{
	static char text[120];
	uint64_t *right = &stamps[rounds + 1];
	const char *wrong;

	*right = 0;
	stamps[0] = monotonic_ns();
	for (unsigned int r = 0; r < rounds; r++) {
		buffer_fill(self.rank);
		wrong = reduce(SAINA_SUM);
		stamps[r + 1] = monotonic_ns();
		if (wrong)
			return wrong;
		for (size_t i = 0; i < self.n; i++) {
			if (self.buf[i] == exact_sum(self.ranks, i)) {
				++*right;
				continue;
			}
			snprintf(text, sizeof(text), "wrong sum: element %zu is %g, not %g", i,
				 self.buf[i], exact_sum(self.ranks, i));
			return text;
		}
	}
	return NULL;
}

/* The mean keeps the size of the numbers. */
static const char *rounds_time(unsigned int rounds, uint64_t *stamps)
{
	const char *wrong = NULL;

	stamps[0] = monotonic_ns();
	for (unsigned int r = 0; r < rounds && !wrong; r++) {
		wrong = reduce(SAINA_MEAN);
		stamps[r + 1] = monotonic_ns();
	}
	return wrong;
}

static void reply_send(const char *wrong, const uint64_t *stamps, unsigned int n)
{
	fputs(wrong ? "error " : "ok", self.out);
	if (wrong)
		fputs(wrong, self.out);
	for (unsigned int i = 0; !wrong && i < n; i++)
		fprintf(self.out, " %llu", (unsigned long long)stamps[i]);
	fputc('\n', self.out);
	fflush(self.out);
}

static void command_handle(char *line)
{
	static uint64_t stamps[ROUNDS_MAX + 2];
	size_t bytes;
	unsigned int rounds;

	if (sscanf(line, "prepare %zu", &bytes) == 1)
		reply_send(prepare(bytes), NULL, 0);
	else if (sscanf(line, "verify %u", &rounds) == 1 && self.buf && rounds <= ROUNDS_MAX)
		reply_send(verify(rounds, stamps), stamps, rounds + 2);
	else if (sscanf(line, "time %u", &rounds) == 1 && self.buf && rounds <= ROUNDS_MAX)
		reply_send(rounds_time(rounds, stamps), stamps, rounds + 1);
	else if (!strcmp(line, "rest\n"))
		rest(), reply_send(NULL, NULL, 0);
	else
		reply_send("unknown command, or the command is not possible now", NULL, 0);
}

/* Serves the driver until it closes the connection.  Returns the exit status. */
static int serve(const char *socket_path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct saina_job_info info = { .size = sizeof(info) };
	char line[100];
	FILE *in;

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", socket_path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a))) {
		fprintf(stderr, "bench-saina: cannot reach the driver at %s: %s\n", socket_path, strerror(errno));
		return 1;
	}
	in = fdopen(fd, "r");
	self.out = fdopen(dup(fd), "w");
	if (!in || !self.out)
		return 1;
	saina_info(self.saina, &info);
	fprintf(self.out, "hello %d payload=%zu header=%zu relayed=%d\n", self.rank, info.payload * sizeof(float),
		sizeof(struct saina_hdr), info.relayed);
	fflush(self.out);
	while (fgets(line, sizeof(line), in))
		command_handle(line);
	rest();
	fclose(in);
	fclose(self.out);
	return 0;
}

int main(int argc, char **argv)
{
	struct saina_opts opts = { .size = sizeof(opts) };
	int ret;

	if (argc != 7) {
		fprintf(stderr, "usage: bench-saina SOCKET RANK RANKS AGGREGATOR JOB RMEM_MAX (started by saina bench)\n");
		return 2;
	}
	self.rank = atoi(argv[2]);
	self.ranks = atoi(argv[3]);
	opts.aggregator = argv[4];
	opts.worker = self.rank;
	opts.job = atoi(argv[5]);
	rmem_max = atoi(argv[6]);
	ret = saina_open(&self.saina, &opts);
	if (ret) {
		fprintf(stderr, "bench-saina: %s\n", saina_strerror(NULL, ret));
		return 1;
	}
	ret = serve(argv[1]);
	saina_close(self.saina);
	return ret;
}
