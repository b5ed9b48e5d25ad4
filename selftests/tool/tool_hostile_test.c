// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The whole tool, built with sanitizers, against a mock that sends damaged replies: errors are
 * allowed, crashes are not.
 *
 * 	tool_hostile_test [SEED [RUNS]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "linux/saina.h"
#include "lib/rng.h"
#include "lib/tap.h"
#include "tool/mock_replies.h"
#include "tool/mock_agent.h"

static const char *const lines[] = {
	"job show", "-p job show digits", "worker show", "port show", "-j port show",
	"slot show", "-j slot show", "stats show", "-p stats show all", "limits show",
	"-j job add d elements 1 workers 1",
};

static struct rng rng;

static void send_damaged(int fd, const struct nlmsghdr *req, void *arg)
{
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(req);
	unsigned char buf[4096] __attribute__((aligned(8)));
	struct nlmsghdr *nlh;

	for (int i = 0; (nlh = mock_reply((char *)buf, req, g->cmd, i)); i++) {
		size_t n = nlh->nlmsg_len;

		for (unsigned int j = rng_below(&rng, 6); j; j--) {
			/* mostly behind the header, or all replies would be dropped */
			unsigned int from = rng_chance(&rng, 900) ? 20 : 0;

			buf[from + rng_below(&rng, n - from)] = rng_u64(&rng);
		}
		if (rng_chance(&rng, 100))
			n = rng_below(&rng, n) + 1;
		send(fd, buf, n, MSG_NOSIGNAL);
	}
	mock_ack(fd, req, NULL);
}

int main(int argc, char **argv)
{
	unsigned long long seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20260102;
	int runs = argc > 2 ? atoi(argv[2]) : 330, bad = 0, failed = 0;
	static char out[1 << 18], err[1 << 16];
	struct mock_agent mock;

	tap_note("seed %llu", seed);
	rng_seed(&rng, seed);
	mock_start(&mock, "selftests/saina-sanitized", NULL);
	for (int i = 0; i < runs; i++) {
		const char *line = lines[i % (sizeof(lines) / sizeof(lines[0]))];
		int rc;

		mock_reset(&mock, send_damaged, NULL);
		rc = mock_run(&mock, line, out, sizeof(out), err, sizeof(err));
		failed += rc == 1;
		/* an error must be a message of the tool, not of a sanitizer */
		if (rc > 1 || (rc == 1 && strncmp(err, "saina: ", 7)) || strstr(err, "runtime error")) {
			if (!bad++)
				printf("# saina %s: exit %d\n%s", line, rc, err);
		}
	}
	tap_ok(!bad, "damaged answers: %d runs end with a result or a sentence (%d failed)", runs,
	       failed);
	tap_ok(failed > 0 && failed < runs, "damaged answers: some runs succeed and some fail");
	mock_stop(&mock);
	return tap_done();
}
