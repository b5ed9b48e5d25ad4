// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Pauses and waits of a run, and what it reports while it waits.
 */
#include <errno.h>
#include <time.h>
#include "allreduce.h"

#define WAIT_US 10000000ull /* between two messages about the workers that a round waits for */
#define LOOK_MS 100	    /* between two checks for a signal */

void run_pause(uint64_t us)
{
	struct timespec t = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };

	nanosleep(&t, NULL);
}

static void say_ranks(uint64_t ranks, const char *what)
{
	bool one = !(ranks & (ranks - 1));

	fprintf(stderr, "rank%s ", one ? "" : "s");
	for (int w = 0, n = 0; w < 64; w++)
		if (ranks >> w & 1)
			fprintf(stderr, "%s%d", n++ ? ", " : "", w);
	fprintf(stderr, " %s %s", one ? "is" : "are", what);
}

/*
 * Names the workers that the round waits for: live ones that keep it from beginning or are missing
 * in it, as the agent reports; else dead ones.
 */
static void say_waiting(struct run *r, uint32_t round)
{
	uint64_t all = r->info.workers == 64 ? ~0ull : (1ull << r->info.workers) - 1, missing;

	saina_info(r->s, &r->info);
	missing = all & ~r->info.active;
	fprintf(stderr, "saina-allreduce: waiting for round %u: ", round);
	if (r->info.behind)
		say_ranks(r->info.behind, "so many rounds behind that the round cannot begin (lead in saina-job(8))");
	else if (r->info.missing || missing)
		say_ranks(r->info.missing ?: missing, "missing");
	else if (!r->info.reason[0])
		fprintf(stderr, "all %d ranks are alive; to see which one is missing, run saina job show %d on the bridge's host",
			r->info.workers, r->info.job);
	fprintf(stderr, "%s%s\n", r->info.reason[0] && (r->info.behind || r->info.missing || missing) ? ": " : "",
		r->info.reason);
}

int run_wait(struct run *r, struct saina_req *req, uint32_t round, struct saina_call *call)
{
	uint64_t next = monotonic_us() + WAIT_US;

	while (!stop_asked() && !saina_poll(r->s, req, LOOK_MS)) {
		if (monotonic_us() < next)
			continue;
		say_waiting(r, round);
		next += WAIT_US;
	}
	return stop_wait(r->s, req, call, r->a->stop_ms);
}

const char *run_sentence(struct run *r, int err)
{
	return err == -EINTR ? "ended by a signal before the other workers finished it" :
			       saina_strerror(r->s, err);
}
