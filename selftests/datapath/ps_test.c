// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * PS mode: random traces through the real programs and through the oracle at once, as
 * in trace_test, with the invariants checked after each packet.  An episode is one seed; the same
 * seed is the same trace.
 */
#include <stdio.h>
#include <string.h>
#include "lib/tap.h"
#include "harness_events.h"
#include "harness_packets.h"
#include "harness_state.h"
#include "ps_sim.h"
#include "trace.h"

struct trace_opts opt = { .seed = 1, .packets = 10000000, .check_every = 2000, .episode = 20000 };

static const char *const policies[] = {
	[SAINA_POLICY_SSP] = "ssp", [SAINA_POLICY_ASP] = "asp", [SAINA_POLICY_GROUPED] = "grouped",
};

/* Numbers of trace_total: @VIEWS: sums that were compared with those that others of a group got. */
enum { STEPS = TRACE_STEPS, CHANGES, SWAPS, ROUNDS, VIEWS, DEATHS, WINDOWS };

static struct ps_sim sim;

static bool check_state(bool deep)
{
	struct harness *r = &trace.harness;

	return (harness_drain(r) && harness_check_global(r) &&
		harness_check_job(r, sim.conf.job, deep)) || trace_fail("state", r->diff);
}

/* Appends messages of the same worker to the one in @f; returns the length of the frame. */
static unsigned int batch(const struct ps_message *first, uint8_t *f, unsigned int len)
{
	unsigned int size = len - FRAME_HDR, n;
	struct ps_message m;
	uint8_t one[FRAME_MAX];

	while (len + size < HARNESS_SKB_MAX && ps_sim_more(&sim, first, &m)) {
		n = ps_sim_frame(&sim, &m, one) - FRAME_HDR;
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
	struct ps_sim *w = &sim;
	uint8_t f[FRAME_MAX];
	struct ps_message m;
	unsigned int len, ifindex, size = 0;
	bool same;

	if (rng_chance(&w->rng, w->swapping ? 8 : 4)) {
		trace.total->n[CHANGES]++;
		return !ps_sim_job_change(w) || trace_fail("publish", trace.harness.diff);
	}
	if (!ps_sim_next(w, &m))
		return true;
	trace.at++;
	snprintf(trace.what, sizeof(trace.what), "worker %u type %u step %u segment %u", m.worker, m.type,
		 m.round, m.segment);
	len = ps_sim_frame(w, &m, f);
	ifindex = w->conf.worker[m.worker].ifindex;
	trace.harness.linear = rng_chance(&w->rng, 50) ? rng_range(&w->rng, FRAME_PAYLOAD, 1600) : 0;
	if (opt.tc && len < HARNESS_SKB_MAX && rng_chance(&w->rng, 700)) {
		size = len - FRAME_HDR;
		len = batch(&m, f, len);
		same = harness_batch(&trace.harness, f, len, size, ifindex);
	} else {
		same = harness_packet(&trace.harness, f, len, ifindex);
	}
	if (opt.verbose)
		tap_note("%llu %s: answer %d, reason %d", u(trace.at), trace.what,
			 trace.harness.want.answer, trace.harness.want.reason);
	if (!same)
		return trace_fail("program and oracle differ", trace.harness.diff);
	if (!ps_sim_deliver(w))
		return trace_fail("an invariant is broken", w->error);
	return trace.at % opt.check_every || check_state(false);
}

static bool episode(uint64_t seed, uint64_t packets)
{
	static const unsigned int payload[] = { 64, 64, 64, 128, 256, 352, 1024, 2048 };
	struct ps_sim *w = &sim;
	bool ok;

	trace.seed = seed;
	trace.at = 0;
	snprintf(trace.what, sizeof(trace.what), "start");
	if (ps_sim_init(w, &trace.harness, seed, opt.steps ? 64 : payload[seed % (opt.tc ? 6 : 8)], opt.kind,
			opt.steps))
		return trace_fail("publish", trace.harness.diff);
	/* a turn in which nothing arrives is no packet, so bound the turns, too */
	ok = true;
	for (uint64_t turn = 0; ok && trace.at < packets && turn < 8 * packets; turn++)
		ok = step();
	ok = ok && check_state(true);
	for (unsigned int i = 0; i < SAINA_WORKERS_MAX; i++)
		for (int n = 0; n < SAINA_C_N; n++)
			trace.total->counter[n] += trace.harness.o.job[w->conf.job].wcount[i].c[n];
	trace.total->n[STEPS] += w->steps;
	trace.total->n[SWAPS] += w->swaps;
	trace.total->n[ROUNDS] += w->rounds;
	trace.total->n[VIEWS] += w->views;
	trace.total->n[DEATHS] += w->deaths;
	trace.total->n[WINDOWS] += w->windows;
	ps_sim_exit(w);
	return ok;
}

/* Every counter of PS mode must have been hit: else the traces leave out what it counts. */
static void coverage(const struct trace_total *sum)
{
	char missing[256] = "";

	for (int n = SAINA_C_INCED; n <= SAINA_C_MODE; n++)
		if (!sum->counter[n] && n != SAINA_C_FORGED)
			strcat(strcat(missing, " "), saina_counter_info[n].name);
	if (!sum->counter[SAINA_C_RESENT])
		strcat(missing, " resent");
	if (!sum->counter[SAINA_C_EXPONENT])
		strcat(missing, " exponent");
	tap_ok(!missing[0], "ps: every counter of PS mode was hit%s%s",
	       missing[0] ? ", but not:" : "", missing);
}

int main(int argc, char **argv)
{
	struct trace_total sum;

	trace_parse(argc, argv,
		    "Random traces of PS mode through the XDP or tc program and the oracle.  Policies: ssp, asp, grouped.",
		    policies, sizeof(policies) / sizeof(policies[0]));
	sum = trace_run(episode);
	trace_check(&sum, "ps", "program and oracle agree and no invariant of PS mode is broken");
	tap_note("%llu steps, %llu rounds, %llu changes of mode, %llu changes", u(sum.n[STEPS]), u(sum.n[ROUNDS]),
		 u(sum.n[SWAPS]), u(sum.n[CHANGES]));
	if (!sum.ok || sum.packets < 10 * opt.episode || sum.packets < 50000)
		return tap_done();
	coverage(&sum);
	if (!opt.kind || opt.kind == SAINA_POLICY_GROUPED)
		tap_ok(sum.n[VIEWS] > sum.packets / 1000,
		       "ps: workers of a group get the same sums for a step: %llu compared", u(sum.n[VIEWS]));
	tap_ok(sum.n[STEPS] > sum.packets / (opt.steps ? 5 : 200), "ps: workers make steps: %llu", u(sum.n[STEPS]));
	if (opt.steps)
		tap_ok(sum.n[DEATHS] > sum.n[STEPS] / 1000 && sum.n[WINDOWS] > sum.n[STEPS] / 1000,
		       "ps: workers die and the policy changes while steps are made: %llu deaths, %llu changes",
		       u(sum.n[DEATHS]), u(sum.n[WINDOWS]));
	else
		tap_ok(sum.n[SWAPS] > sum.packets / 10000 && sum.n[ROUNDS] > sum.n[SWAPS],
		       "ps: jobs change between steps and rounds: %llu changes, %llu rounds",
		       u(sum.n[SWAPS]), u(sum.n[ROUNDS]));
	return tap_done();
}
