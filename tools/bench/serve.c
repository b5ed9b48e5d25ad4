// SPDX-License-Identifier: GPL-2.0-or-later
/* The contender's side of the protocol in serve.h. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "monotonic.h"
#include "serve.h"

static struct {
	const struct contender *c;
	int rank, ranks;
	FILE *out;
	float *buf;
	size_t n;
} self;

/*
 * Small integers: sums of float32, and of scaled integers, are exact in any order.
 */
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
	self.c->rest();
	free(self.buf);
	self.buf = NULL;
	self.n = 0;
}

static const char *prepare(const char *algorithm, size_t bytes)
{
	rest();
	self.n = bytes / sizeof(float);
	if (!self.n || posix_memalign((void **)&self.buf, 4096, bytes))
		return "no memory for the tensor";
	buffer_fill(0);
	return self.c->prepare(algorithm, self.buf, self.n);
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
		wrong = self.c->reduce(self.buf, self.n, OP_SUM);
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

static const char *rounds_time(unsigned int rounds, uint64_t *stamps)
{
	const char *wrong = NULL;

	stamps[0] = monotonic_ns();
	for (unsigned int r = 0; r < rounds && !wrong; r++) {
		wrong = self.c->reduce(self.buf, self.n, OP_TIMED);
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
	static uint64_t stamps[100002];
	char algorithm[32];
	size_t bytes;
	unsigned int rounds;

	if (sscanf(line, "prepare %31s %zu", algorithm, &bytes) == 2)
		reply_send(prepare(algorithm, bytes), NULL, 0);
	else if (sscanf(line, "verify %u", &rounds) == 1 && self.buf && rounds <= 100000)
		reply_send(verify(rounds, stamps), stamps, rounds + 2);
	else if (sscanf(line, "time %u", &rounds) == 1 && self.buf && rounds <= 100000)
		reply_send(rounds_time(rounds, stamps), stamps, rounds + 1);
	else if (!strcmp(line, "counts\n") && self.c->counts)
		self.c->counts(stamps), reply_send(NULL, stamps, 2);
	else if (!strcmp(line, "rest\n"))
		rest(), reply_send(NULL, NULL, 0);
	else
		reply_send("unknown command, or the command is not possible now", NULL, 0);
}

int serve(const struct contender *c, const char *socket_path, int rank, int ranks)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char line[100];
	FILE *in;

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", socket_path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a))) {
		fprintf(stderr, "bench: cannot reach the driver at %s: %s\n", socket_path, strerror(errno));
		return 1;
	}
	self.c = c;
	self.rank = rank;
	self.ranks = ranks;
	in = fdopen(fd, "r");
	self.out = fdopen(dup(fd), "w");
	if (!in || !self.out)
		return 1;
	fprintf(self.out, "hello %d %s\n", rank, c->hello);
	fflush(self.out);
	while (fgets(line, sizeof(line), in))
		command_handle(line);
	rest();
	fclose(in);
	fclose(self.out);
	return 0;
}
