// SPDX-License-Identifier: GPL-2.0-or-later
#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/tap.h"
#include "trace.h"

#define PROCESSES	3
#define SHARED_FROM	500000	/* packets or steps: fewer are run by one process */

struct trace trace;
static const char *program;
static const char *const *kinds;
static unsigned int kinds_n;

static const struct argp_option options[] = {
	{ "seed", 's', "N", 0, "first seed; each episode takes the next (default 1)", 0 },
	{ "packets", 'p', "N", 0, "packets in all (default 10 million)", 0 },
	{ "steps", 'S', "N", 0, "PS mode: until workers have made N steps, as many as can be in few packets, and no rounds", 0 },
	{ "check-every", 'c', "N", 0, "packets between comparisons of state", 0 },
	{ "episode", 'e', "N", 0, "packets of an episode", 0 },
	{ "module", 'm', NULL, 0, "jobs in saina.ko, and the programs that ask it", 0 },
	{ "counters", 'n', NULL, 0, "print how often each counter was hit", 0 },
	{ "policy", 'P', "NAME", 0, "policy that most rounds, or all steps, have (default: all)", 0 },
	{ "tc", 't', NULL, 0, "by the tc hook, many messages in a frame", 0 },
	{ "verbose", 'v', NULL, 0, "print every packet", 0 },
	{ }
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	uint64_t *number = key == 's' ? &opt.seed : key == 'p' ? &opt.packets :
			   key == 'S' ? &opt.steps : key == 'c' ? &opt.check_every :
			   key == 'e' ? &opt.episode : NULL;
	char *end;

	if (number) {
		*number = strtoull(arg, &end, 0);
		if (*end)
			argp_error(state, "'%s' is not a number", arg);
		if (!*number && number != &opt.seed)
			argp_error(state, "-%c must be 1 or more", key);
		return 0;
	}
	switch (key) {
	case 'm':
		opt.module = true;
		break;
	case 'n':
		opt.counters = true;
		break;
	case 'P':
		for (opt.kind = 0; opt.kind < kinds_n; opt.kind++)
			if (kinds[opt.kind] && !strcmp(arg, kinds[opt.kind]))
				return 0;
		argp_error(state, "'%s' is no policy of this test", arg);
		break;
	case 't':
		opt.tc = true;
		break;
	case 'v':
		opt.verbose = true;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

void trace_parse(int argc, char **argv, const char *doc, const char *const *names, unsigned int n)
{
	const struct argp argp = { options, parse, NULL, doc, NULL, NULL, NULL };

	program = basename(argv[0]);
	kinds = names;
	kinds_n = n;
	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (geteuid())
		tap_skip_all("only root may load BPF programs");
	if (opt.module)
		backend_choose();
}

/* The episodes of one process: of every @processes-th seed. */
static void episodes(bool (*episode)(uint64_t seed, uint64_t packets), uint64_t seed, unsigned int processes)
{
	uint64_t packets = (opt.packets + processes - 1) / processes;
	uint64_t steps = (opt.steps + processes - 1) / processes;
	struct trace_total *sum = trace.total;
	struct harness *r = &trace.harness;

	harness_open(r);
	if (opt.tc)
		harness_use_tc(r);
	if (opt.module)
		backend_open(r);
	sum->ok = true;
	while (sum->ok && (steps ? sum->n[TRACE_STEPS] < steps : r->packets < packets)) {
		uint64_t left = steps ? opt.episode : packets - r->packets;

		sum->ok = episode(seed, left < opt.episode ? left : opt.episode);
		seed += processes;
	}
	sum->packets = r->packets;
	sum->no_linear = r->no_linear;
	if (opt.module) {
		sum->requests = *backend_requests();
		backend_close(r);
	}
	harness_close(r);
}

static void add(struct trace_total *sum, const struct trace_total *one)
{
	sum->ok &= one->ok;
	sum->no_linear |= one->no_linear;
	sum->packets += one->packets;
	if (one->requests.refused >= sum->requests.refused)
		strcpy(sum->requests.last, one->requests.last);
	sum->requests.made += one->requests.made;
	sum->requests.refused += one->requests.refused;
	for (int i = 0; i < SAINA_C_N; i++)
		sum->counter[i] += one->counter[i];
	for (int i = 0; i < TRACE_NUMBERS; i++)
		sum->n[i] += one->n[i];
}

struct trace_total trace_run(bool (*episode)(uint64_t seed, uint64_t packets))
{
	unsigned int processes = (opt.steps ? opt.steps : opt.packets) < SHARED_FROM ? 1 : opt.module ? 2 : PROCESSES;
	struct trace_total *shared, sum = { .ok = true };
	int status;

	shared = mmap(NULL, processes * sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		abort();
	fflush(stdout);
	for (unsigned int i = 0; i < processes; i++) {
		pid_t pid = fork();

		if (pid < 0)
			abort();
		if (pid)
			continue;
		trace.total = &shared[i];
		episodes(episode, opt.seed + i, processes);
		fflush(stdout);
		_exit(0);
	}
	while (wait(&status) > 0) {
		if (WIFEXITED(status) && WEXITSTATUS(status) == TAP_SKIP_ALL)
			exit(TAP_SKIP_ALL);
		sum.ok &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	for (unsigned int i = 0; i < processes; i++)
		add(&sum, &shared[i]);
	munmap(shared, processes * sizeof(*shared));
	return sum;
}

bool trace_fail(const char *where, const char *why)
{
	tap_note("seed %llu, packet %llu (%s), %s:", u(trace.seed), u(trace.at), trace.what, where);
	for (const char *line = why; *line;) {
		int n = strcspn(line, "\n");

		tap_note("  %.*s", n, line);
		line += n + (line[n] == '\n');
	}
	/* with --steps one episode has more than one step */
	tap_note("replay: %s --seed %llu --%s %llu --check-every 1%s%s%s%s", program, u(trace.seed),
		 opt.steps ? "steps" : "packets", opt.steps ? 1 : u(trace.at), opt.tc ? " --tc" : "",
		 opt.module ? " --module" : "", opt.kind ? " --policy " : "",
		 opt.kind ? kinds[opt.kind] : "");
	return false;
}

void trace_check(const struct trace_total *sum, const char *name, const char *what)
{
	const struct backend_requests *r = &sum->requests;

	tap_ok(sum->ok, "%s: %s: %llu packets, seeds from %llu", name, what, u(sum->packets), u(opt.seed));
	if (opt.module)
		tap_ok(r->made > 10 * r->refused,
		       "%s: saina.ko refuses less than a tenth of its netlink requests: %llu made, %llu refused%s%s",
		       name, u(r->made), u(r->refused), r->refused ? ", the last one: " : "", r->last);
}
