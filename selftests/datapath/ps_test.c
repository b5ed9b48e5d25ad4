// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * PS mode: random traces through the real programs and through the oracle at once, as
 * in trace_test, with the rules that hold whatever happens checked after each packet.  An
 * episode is one seed; the same seed is the same trace.
 */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/tap.h"
#include "module/backend.h"
#include "harness_events.h"
#include "harness_packets.h"
#include "harness_state.h"
#include "ps_sim.h"

static struct {
	uint64_t seed, packets, steps, check_every, episode;
	unsigned int mode;
	bool tc, module, verbose;
} opt = { .seed = 1, .packets = 10000000, .check_every = 2000, .episode = 20000 };

static const struct argp_option options[] = {
	{ "seed", 's', "N", 0, "first seed; each episode takes the next (default 1)", 0 },
	{ "packets", 'p', "N", 0, "packets in all (default 10 million)", 0 },
	{ "steps", 'S', "N", 0, "until workers have made N steps, in traces with as many steps as can be and no rounds", 0 },
	{ "check-every", 'c', "N", 0, "packets between comparisons of state (default 2000)", 0 },
	{ "episode", 'e', "N", 0, "packets of an episode (default 20000)", 0 },
	{ "module", 'm', NULL, 0, "jobs in saina.ko, and the programs that ask it", 0 },
	{ "policy", 'P', "NAME", 0, "policy that all steps have: ssp, asp or grouped (default: all)", 0 },
	{ "tc", 't', NULL, 0, "by the tc hook, many messages in a frame", 0 },
	{ "verbose", 'v', NULL, 0, "print every packet", 0 },
	{ }
};

static const char *const policies[] = { "ssp", "asp", "grouped" };

static error_t parse(int key, char *arg, struct argp_state *state)
{
	char *end = arg;

	switch (key) {
	case 's':
		opt.seed = strtoull(arg, &end, 0);
		break;
	case 'p':
		opt.packets = strtoull(arg, &end, 0);
		break;
	case 'S':
		opt.steps = strtoull(arg, &end, 0);
		break;
	case 'c':
		opt.check_every = strtoull(arg, &end, 0);
		if (!opt.check_every)
			argp_error(state, "--check-every must be 1 or more");
		break;
	case 'P':
		for (opt.mode = SAINA_POLICY_SSP; opt.mode <= SAINA_POLICY_GROUPED; opt.mode++)
			if (!strcmp(arg, policies[opt.mode - SAINA_POLICY_SSP]))
				return 0;
		argp_error(state, "'%s' is no policy that has steps", arg);
		return 0;
	case 'e':
		opt.episode = strtoull(arg, &end, 0);
		if (!opt.episode)
			argp_error(state, "--episode must be 1 or more");
		break;
	case 'm':
		opt.module = true;
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
	if (arg && *end)
		argp_error(state, "'%s' is not a number", arg);
	return 0;
}

static struct {
	struct harness harness;
	struct ps_sim sim;
	uint64_t seed, at;
	char what[128];
	uint64_t counter[SAINA_C_N], steps, widest, changes, swaps, rounds, views,
		 deaths, windows;
} t;

static bool fail(const char *where, const char *why)
{
	char what[64];

	/* with --steps one episode has more than one step */
	snprintf(what, sizeof(what), opt.steps ? "steps 1" : "packets %llu", (unsigned long long)t.at);
	tap_note("seed %llu, packet %llu (%s), %s: %s", (unsigned long long)t.seed,
		 (unsigned long long)t.at, t.what, where, why);
	tap_note("replay: ps_test --seed %llu --%s --check-every 1%s%s%s%s",
		 (unsigned long long)t.seed, what, opt.tc ? " --tc" : "", opt.module ? " --module" : "",
		 opt.mode ? " --policy " : "", opt.mode ? policies[opt.mode - SAINA_POLICY_SSP] : "");
	return false;
}

static bool check_state(bool deep)
{
	struct harness *r = &t.harness;

	return (harness_drain(r) && harness_check_global(r) &&
		harness_check_job(r, t.sim.conf.job, deep)) || fail("state", r->diff);
}

/* Appends messages of the same worker to the one in @f; returns the length of the frame. */
static unsigned int batch(const struct ps_message *first, uint8_t *f, unsigned int len)
{
	unsigned int size = len - FRAME_HDR, n;
	struct ps_message m;
	uint8_t one[FRAME_MAX];

	while (len + size < HARNESS_SKB_MAX && ps_sim_more(&t.sim, first, &m)) {
		n = ps_sim_frame(&t.sim, &m, one) - FRAME_HDR;
		if (n > size)
			continue;
		memcpy(f + len, one + FRAME_HDR, n);
		len += n;
		if (n < size)
			break;
	}
	frame_resize(f, len);
	return len;
}

static bool step(void)
{
	struct ps_sim *w = &t.sim;
	uint8_t f[FRAME_MAX];
	struct ps_message m;
	unsigned int len, ifindex, size = 0;
	bool same;

	if (rng_chance(&w->rng, w->swapping ? 8 : 4)) {
		t.changes++;
		return !ps_sim_job_change(w) || fail("publish", t.harness.diff);
	}
	if (!ps_sim_next(w, &m))
		return true;
	t.at++;
	snprintf(t.what, sizeof(t.what), "worker %u type %u step %u segment %u", m.worker, m.type,
		 m.round, m.segment);
	len = ps_sim_frame(w, &m, f);
	ifindex = w->conf.worker[m.worker].ifindex;
	t.harness.linear = rng_chance(&w->rng, 50) ? rng_range(&w->rng, FRAME_PAYLOAD, 1600) : 0;
	if (opt.tc && len < HARNESS_SKB_MAX && rng_chance(&w->rng, 700)) {
		size = len - FRAME_HDR;
		len = batch(&m, f, len);
		same = harness_batch(&t.harness, f, len, size, ifindex);
	} else {
		same = harness_packet(&t.harness, f, len, ifindex);
	}
	if (opt.verbose)
		tap_note("%llu %s: answer %d, reason %d", (unsigned long long)t.at, t.what,
			 t.harness.want.answer, t.harness.want.reason);
	if (!same)
		return fail("program and oracle differ", t.harness.diff);
	if (!ps_sim_deliver(w))
		return fail("a rule is broken", w->error);
	return t.at % opt.check_every || check_state(false);
}

static bool episode(uint64_t seed, uint64_t packets)
{
	static const unsigned int payload[] = { 64, 64, 64, 128, 256, 352, 1024, 2048 };
	struct ps_sim *w = &t.sim;
	bool ok;

	t.seed = seed;
	t.at = 0;
	snprintf(t.what, sizeof(t.what), "start");
	if (ps_sim_init(w, &t.harness, seed, opt.steps ? 64 : payload[seed % (opt.tc ? 6 : 8)], opt.mode,
			opt.steps))
		return fail("publish", t.harness.diff);
	/* a turn in which nothing arrives is no packet, so bound the turns, too */
	ok = true;
	for (uint64_t turn = 0; ok && t.at < packets && turn < 8 * packets; turn++)
		ok = step();
	ok = ok && check_state(true);
	for (unsigned int i = 0; i < SAINA_WORKERS_MAX; i++)
		for (int n = 0; n < SAINA_C_N; n++)
			t.counter[n] += t.harness.o.job[w->conf.job].wcount[i].c[n];
	t.steps += w->steps;
	t.swaps += w->swaps;
	t.rounds += w->rounds;
	t.views += w->views;
	t.deaths += w->deaths;
	t.windows += w->windows;
	if (w->constant && w->conf.policy.window != SAINA_WINDOW_NONE && w->widest > t.widest)
		t.widest = w->widest;
	ps_sim_exit(w);
	return ok;
}

/* Every counter of PS mode must have been hit: else the traces leave out what it counts. */
static void coverage(void)
{
	char missing[256] = "";

	for (int n = SAINA_C_INCED; n <= SAINA_C_MODE; n++)
		if (!t.counter[n] && n != SAINA_C_FORGED)
			strcat(strcat(missing, " "), saina_counter_info[n].name);
	if (!t.counter[SAINA_C_RESENT])
		strcat(missing, " resent");
	if (!t.counter[SAINA_C_EXPONENT])
		strcat(missing, " exponent");
	tap_ok(!missing[0], "ps: every counter of PS mode was hit%s%s",
	       missing[0] ? ", but not:" : "", missing);
}

/* Are more packets, or steps, to come after @done packets? */
static bool goes_on(uint64_t done)
{
	return opt.steps ? t.steps < opt.steps : done < opt.packets;
}

/* Reports progress every 500 episodes: a run may take hours. */
static void progress(uint64_t done, uint64_t seed)
{
	if (!opt.steps || seed % 500)
		return;
	tap_note("seed %llu: %llu steps, %llu packets", (unsigned long long)seed,
		 (unsigned long long)t.steps, (unsigned long long)done);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const struct argp argp = { options, parse, NULL,
		"Random traces of PS mode through the XDP or tc program and the oracle.",
		NULL, NULL, NULL };
	uint64_t seed, done = 0;
	bool ok = true;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (geteuid())
		tap_skip_all("only root may load BPF programs");
	if (opt.module)
		backend_choose();
	harness_open(&t.harness);
	if (opt.tc)
		harness_use_tc(&t.harness);
	if (opt.module)
		backend_open(&t.harness);
	for (seed = opt.seed; ok && goes_on(done); seed++) {
		uint64_t left = opt.steps ? opt.episode : opt.packets - done;

		ok = episode(seed, left < opt.episode ? left : opt.episode);
		done += t.at;
		progress(done, seed);
	}
	tap_ok(ok, "ps: program and oracle agree and no invariant of PS mode is broken: %llu packets, seeds %llu to %llu",
	       (unsigned long long)done, (unsigned long long)opt.seed, (unsigned long long)seed - 1);
	tap_note("%llu steps, %llu rounds, %llu changes of mode, %llu changes, largest lead in a window that never changed %llu",
		 (unsigned long long)t.steps, (unsigned long long)t.rounds,
		 (unsigned long long)t.swaps, (unsigned long long)t.changes,
		 (unsigned long long)t.widest);
	if (opt.module)
		tap_ok(backend_requests()->made > 10 * backend_requests()->refused,
		       "ps: saina.ko refuses less than a tenth of its netlink requests: %llu made, %llu refused%s%s",
		       (unsigned long long)backend_requests()->made,
		       (unsigned long long)backend_requests()->refused,
		       backend_requests()->refused ? ", the last one: " : "", backend_requests()->last);
	if (ok && done >= 10 * opt.episode && done >= 50000) {
		coverage();
		if (!opt.mode || opt.mode == SAINA_POLICY_GROUPED)
			tap_ok(t.views > done / 1000,
			       "ps: workers of a group get the same sums for a step: %llu compared",
			       (unsigned long long)t.views);
		tap_ok(t.steps > done / (opt.steps ? 5 : 200), "ps: workers make steps: %llu",
		       (unsigned long long)t.steps);
		if (opt.steps)
			tap_ok(t.deaths > t.steps / 1000 && t.windows > t.steps / 1000,
			       "ps: workers die and the policy changes while steps are made: %llu deaths, %llu changes",
			       (unsigned long long)t.deaths, (unsigned long long)t.windows);
		else
			tap_ok(t.swaps > done / 10000 && t.rounds > t.swaps,
			       "ps: jobs change between steps and rounds: %llu changes, %llu rounds",
			       (unsigned long long)t.swaps, (unsigned long long)t.rounds);
	}
	if (opt.module)
		backend_close(&t.harness);
	harness_close(&t.harness);
	return tap_done();
}
