// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Random traces through the real XDP program and through the oracle at once.
 *
 *   1..4 simulated jobs --> channel --> frame --+--> BPF_PROG_TEST_RUN --+-- same?
 *   foreign, malformed, hostile frames ---------+--> oracle -------------+
 *          ^                                                             |
 *          +---------------------- answers, ledger <---------------------+
 *
 * Verdict and answer are compared at each packet, events and relayed answers
 * every few dozen, counters, rt and open slots every few thousand, all other
 * state at the end of an episode.  An episode is one seed; the same seed is
 * the same trace.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include "lib/tap.h"
#include "harness_events.h"
#include "harness_jobs.h"
#include "harness_packets.h"
#include "harness_state.h"
#include "malformed.h"
#include "sim_answers.h"
#include "sim_channel.h"
#include "sim_jobs.h"
#include "trace.h"

struct trace_opts opt = { .seed = 1, .packets = 10000000, .check_every = 5000, .episode = 50000 };

static const char *const kinds[] = {
	[SAINA_POLICY_BSP] = "bsp",		[SAINA_POLICY_FASTEST] = "fastest",
	[SAINA_POLICY_SFCD] = "sfcd",		[SAINA_POLICY_TIMEOUT] = "timeout",
	[SAINA_POLICY_EXTERNAL] = "external",	[SAINA_POLICY_CODED] = "coded",
	[SIM_FASTEST_TIMEOUT] = "fastest-timeout",	[SIM_SFCD_DOWN] = "sfcd-down",
};

/*
 * Numbers of trace_total: @MIXED, @NANS: results of several exponents, of NaN; @MIXED_PAIRS: of several
 * exponents, of int16; @FROM_PARENT: results that an uplink worker brought; @NOT_COUNTED: of them,
 * without a worker of the job; @TYPES_ABOVE: of them, of integers and floats; @COUNTED: by enum
 * saina_job_counter; @SIZED: results of each payload size; @KIND: of each kind of policy.
 */
enum {
	JOBS, RESULTS, CONTRIBUTIONS, STUCK, MIXED, NANS, MIXED_PAIRS, FROM_PARENT, NOT_COUNTED, TYPES_ABOVE,
	COUNTED, SIZED = COUNTED + SAINA_JC_N, KIND = SIZED + 6, NUMBERS = KIND + SIM_KINDS
};

_Static_assert(NUMBERS <= TRACE_NUMBERS, "TRACE_NUMBERS");

static struct {
	struct sim sim;
	struct malformed malformed;
} t;

static const unsigned int sizes[6] = { 64, 128, 256, 352, 1024, 2048 };

static bool check_state(bool deep)
{
	struct harness *r = &trace.harness;

	if (!harness_drain(r))
		return trace_fail("events", r->diff);
	if (!harness_check_global(r))
		return trace_fail("state", r->diff);
	for (unsigned int i = 0; i < SIM_JOBS; i++)
		if (t.sim.job[i].present &&
		    !harness_check_job(r, t.sim.job[i].conf.job, deep))
			return trace_fail("state", r->diff);
	return true;
}

/* Runs and checks one frame.  @size: of each message, if it has several; else 0. */
static bool frame(const uint8_t *frame, unsigned int len, unsigned int size, unsigned int ifindex)
{
	struct harness *r = &trace.harness;
	bool same;

	trace.at++;
	/* now and then a frame lies in pieces, cut anywhere behind its headers */
	r->linear = rng_chance(&t.sim.rng, 50) ? rng_range(&t.sim.rng, FRAME_PAYLOAD, 1600) : 0;
	same = size ? harness_batch(r, frame, len, size, ifindex) : harness_packet(r, frame, len, ifindex);
	if (opt.verbose)
		tap_note("%llu %s: %s", (unsigned long long)trace.at, trace.what,
			 r->want.verdict == ORACLE_PASS ? "pass" :
			 r->want.reason >= 0 ? saina_counter_info[r->want.reason].name :
			 r->want.answer == SAINA_MSG_STALE ? "STALE" :
			 r->want.answer ? "answer" : "consumed");
	if (!same) {
		char diff[sizeof(r->diff)];

		strcpy(diff, r->diff);
		trace_fail("program and oracle differ", diff);
		/* the counters usually tell why the program did that */
		check_state(false);
		return false;
	}
	if (!sim_deliver(&t.sim))
		return trace_fail("conservation", t.sim.error);
	if (trace.at % opt.check_every == 0)
		return check_state(false);
	return true;
}

static bool packet(const uint8_t *f, unsigned int len, unsigned int ifindex)
{
	return frame(f, len, 0, ifindex);
}

/* Appends messages to the one in t.malformed: of the same worker, now and then of any. */
static bool batch(const struct message *first)
{
	struct sim *w = &t.sim;
	struct malformed *s = &t.malformed;
	unsigned int size = s->len - FRAME_HDR, n, len = s->len;
	uint8_t one[FRAME_MAX];
	struct message m;

	while (len + size < HARNESS_SKB_MAX) {
		if (!(rng_chance(&w->rng, 50) ? sim_next(w, &m) : sim_more(w, first, &m)))
			break;
		n = sim_frame(w, &m, one) - FRAME_HDR;
		if (n > size)
			continue;
		memcpy(s->frame + len, one + FRAME_HDR, n);
		len += n;
		if (n < size || rng_chance(&w->rng, 50))
			break;
	}
	s->len = len;
	frame_resize(s->frame, len);
	if (rng_chance(&w->rng, 20))
		size = rng_range(&w->rng, 1, 2 * size);	/* wrong for all its messages */
	return frame(s->frame, s->len, size, s->ifindex);
}

/* Sends to a job while its snapshot has another generation than its state. */
static bool torn_job(void)
{
	struct sim_job *j = &t.sim.job[0];
	struct malformed *s = &t.malformed;
	/* saina.ko has the job's generation, so there the gradient is one like any other */
	struct message m = { .type = SAINA_MSG_GRAD, .job = j->conf.job,
			     .session = j->conf.worker[0].session,
			     .exponent = sim_gradient(j, 0, 0, 0, 0).exponent };
	bool ok;

	j->conf.generation ^= 0x80000000;
	harness_job_overwrite(&trace.harness, &j->conf);
	s->len = sim_frame(&t.sim, &m, s->frame);
	snprintf(trace.what, sizeof(trace.what), "job with another generation");
	ok = packet(s->frame, s->len, j->conf.worker[0].ifindex);
	j->conf.generation ^= 0x80000000;
	harness_job_overwrite(&trace.harness, &j->conf);
	return ok;
}

static bool step(void)
{
	struct sim *w = &t.sim;
	struct malformed *s = &t.malformed;
	unsigned int dice = rng_below(&w->rng, 10000);
	struct message m;

	if (dice < 200) {
		malformed_foreign(w, s);
		snprintf(trace.what, sizeof(trace.what), "%s", s->what);
		return packet(s->frame, s->len, s->ifindex);
	}
	if (dice < 900) {
		malformed_hostile(w, s);
		snprintf(trace.what, sizeof(trace.what), "%s", s->what);
		return frame(s->frame, s->len, opt.tc ? s->size : 0, s->ifindex);
	}
	if (dice < 940)
		return !sim_job_change(w) || trace_fail("publish", trace.harness.diff);
	if (dice < 942)
		return torn_job();
	if (w->paused && dice < 1100)
		return !sim_job_resume(w) || trace_fail("publish", trace.harness.diff);
	if (!sim_next(w, &m))
		return true;
	snprintf(trace.what, sizeof(trace.what), "job %u worker %u type %u round %u segment %u%s", m.job,
		 m.worker, m.type, m.round, m.segment, m.lie ? " (a lie)" : "");
	s->len = sim_frame(w, &m, s->frame);
	s->ifindex = 1;
	if (sim_job_find(w, m.job)) {
		s->ifindex = sim_job_find(w, m.job)->conf.worker[m.worker].ifindex;
		if (!s->ifindex)
			s->ifindex = 1;
	}
	if (opt.tc && s->len < HARNESS_SKB_MAX && sim_job_find(w, m.job) && rng_chance(&w->rng, 700))
		return batch(&m);
	return packet(s->frame, s->len, s->ifindex);
}

/* Checks at the end of an episode what holds after any trace; adds to the totals. */
static bool audit(void)
{
	struct harness *r = &trace.harness;
	bool ok = check_state(true);

	for (unsigned int i = 0; ok && i < SIM_JOBS; i++) {
		struct sim_job *j = &t.sim.job[i];
		const struct oracle_job *oj = &r->o.job[j->conf.job];
		uint64_t counted = 0, open = 0, made = 0;
		struct saina_job_rt rt;

		if (!j->present)
			continue;
		if (saina_dp_job_rt(r->dp, j->conf.job, &rt) || rt.count[SAINA_JC_POLICY_MIX])
			return trace_fail("policy_mix", "a slot saw two policies");
		for (unsigned int w = 0; w < j->workers + (j->uplink >= 0); w++) {
			struct saina_counters c;

			if (harness_counters(r, j->conf.job, w, &c))
				return trace_fail("counters", saina_dp_error(r->dp));
			counted += c.c[SAINA_C_STORED] + c.c[SAINA_C_ADDED];
			made += c.c[SAINA_C_COMPLETED];
			for (int n = 0; n < SAINA_C_N; n++)
				trace.total->counter[n] += c.c[n];
		}
		for (unsigned int n = 0; n < j->conf.pool; n++)
			if (oj->hot[n].meta.state == SAINA_SLOT_OPEN || oj->hot[n].meta.state == SAINA_SLOT_AWAY)
				open += oj->hot[n].meta.count;
		/* each gradient counted is in one result, in one open slot, or the parent did not take it */
		if ((j->ledger.had_uplink ? counted < j->ledger.contributions + open :
		     counted != j->ledger.contributions + open) || made != j->ledger.results)
			return trace_fail("conservation", "gradients counted in are not those in results");
		trace.total->n[RESULTS] += j->ledger.results;
		for (unsigned int n = 0; n < 6; n++)
			if (sizes[n] == j->conf.payload)
				trace.total->n[SIZED + n] += j->ledger.results;
		trace.total->n[CONTRIBUTIONS] += j->ledger.contributions;
		trace.total->n[MIXED] += j->ledger.mixed;
		if (j->conf.elem == SAINA_ELEM_INT16)
			trace.total->n[MIXED_PAIRS] += j->ledger.mixed;
		trace.total->n[NANS] += j->ledger.nans;
		for (int n = 0; n < SAINA_JC_N; n++)
			trace.total->n[COUNTED + n] += rt.count[n];
		trace.total->n[JOBS]++;
	}
	trace.total->n[STUCK] += t.sim.stuck;
	trace.total->n[FROM_PARENT] += t.sim.from_parent;
	trace.total->n[NOT_COUNTED] += t.sim.not_counted;
	trace.total->n[TYPES_ABOVE] += t.sim.types_above;
	for (unsigned int i = 0; ok && i < r->o.join_srcs; i++) {
		const struct oracle_join_src *l = &r->o.join_src[i];
		struct saina_place p;

		if (saina_dp_join_src_pop(r->dp, l->addr.ip, l->addr.udp_port, l->addr.nonce, &p) ||
		    p.ifindex != l->place.ifindex || memcmp(p.mac, l->place.mac, 6))
			return trace_fail("join source", "the place of a JOIN's sender is not what was seen");
	}
	r->o.join_srcs = 0;
	return ok;
}

static bool injected_loss(struct harness *r, bool on)
{
	for (int i = 1; i < HARNESS_PORTS; i++) {
		struct saina_port_conf c = {}, got;

		if (on) {
			c.loss_in = 0x10000000u + rng_below(&t.sim.rng, 0x10000000);
			c.seed = rng_u64(&t.sim.rng);
		} else if (!saina_dp_port_get(r->dp, r->port[i], &got) &&
			   got.drawn_in != r->o.port[r->port[i]].drawn_in) {
			return trace_fail("injected loss", "other numbers drawn");
		}
		if (harness_port(r, r->port[i], &c))
			return trace_fail("port_set", saina_dp_error(r->dp));
	}
	return true;
}

static bool episode(uint64_t seed, uint64_t packets)
{
	static const unsigned int payload_dice[] = { 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 5 };
	struct sim *w = &t.sim;
	unsigned int jobs, number;
	uint64_t before = trace.harness.packets, global[SAINA_C_N];
	bool ok = true, lossy;

	trace.seed = seed;
	trace.at = 0;
	snprintf(trace.what, sizeof(trace.what), "start");
	memcpy(global, trace.harness.o.gcount.c, sizeof(global));
	sim_init(w, &trace.harness, seed);
	lossy = seed % 5 == 2;
	w->int16 = w->uplinks = !opt.module;	/* which has no programs for int16, and no uplinks yet */
	w->kind = opt.kind ? opt.kind : seed % SIM_KINDS;
	jobs = rng_chance(&w->rng, 500) ? 1 : rng_range(&w->rng, 2, SIM_JOBS);
	number = rng_below(&w->rng, SAINA_JOBS_MAX);
	for (unsigned int i = 0; i < jobs && ok; i++) {
		unsigned int size = payload_dice[rng_below(&w->rng, 16)];

		/* every payload size is used */
		if (!i && seed % 4 == 0)
			size = seed / 4 % 6;
		if (opt.tc && size > 3)
			size = 0;	/* its frames are too large for TEST_RUN */
		ok = !sim_job_create(w, i, (number + i * 37) % SAINA_JOBS_MAX, sizes[size]);
	}
	if (!ok)
		return trace_fail("publish", trace.harness.diff);
	if (lossy)
		ok = injected_loss(&trace.harness, true);
	/* a turn in which nothing arrives is no packet, so bound the turns, too */
	for (uint64_t turn = 0; ok && trace.harness.packets - before < packets && turn < 4 * packets; turn++) {
		ok = step();
		if (ok && turn % 1000 == 999 && sim_restart_stuck(w))
			ok = trace_fail("publish", trace.harness.diff);
	}
	ok = ok && audit();
	for (int n = 0; n < SAINA_C_N; n++)
		trace.total->counter[n] += trace.harness.o.gcount.c[n] - global[n];
	for (int n = 0; n < SIM_KINDS; n++)
		trace.total->n[KIND + n] += w->results[n];
	if (lossy)
		ok = injected_loss(&trace.harness, false) && ok;
	sim_jobs_remove(w);
	return ok;
}

static const char *const job_counters[] = {
#define NAME(id, name, text) name,
	SAINA_JOB_COUNTER_LIST(NAME)
#undef NAME
};

/* Every counter must have been hit: else the traces leave out what it counts. */
static void coverage(const struct trace_total *sum)
{
	char missing[512] = "";

	for (int n = 0; n < SAINA_C_N; n++) {
		switch (n) {
		case SAINA_C_ROUND_OLD:		/* reserved */
		case SAINA_C_NO_MEMORY:		/* defects_test */
		case SAINA_C_INJECTED_OUT:	/* not part of what TEST_RUN runs */
		case SAINA_C_ASK_LIMIT:		/* tc_test */
		case SAINA_C_INCED ... SAINA_C_INC_WAIT:	/* ps_test */
			continue;
		case SAINA_C_AWAY:
		case SAINA_C_WEIGHT:
			if (opt.module)
				continue;
			break;
		case SAINA_C_UNSENT:
			if (!opt.tc)
				continue;
			break;
		case SAINA_C_RELAYED:
			if (opt.tc)
				continue;
			break;
		}
		if (!sum->counter[n]) {
			strcat(missing, " ");
			strcat(missing, saina_counter_info[n].name);
		}
		if (opt.counters)
			tap_note("%-14s %llu", saina_counter_info[n].name,
				 (unsigned long long)sum->counter[n]);
	}
	for (int n = 0; n < SAINA_JC_N; n++) {
		if (n != SAINA_JC_POLICY_MIX && !sum->n[COUNTED + n]) {
			strcat(missing, " ");
			strcat(missing, job_counters[n]);
		}
	}
	tap_ok(!missing[0], "traces: every counter was hit%s%s", missing[0] ? ", but not:" : "", missing);
}

/* Every kind of policy must have results; the one of --policy more than a quarter of all. */
static void policies(const struct trace_total *sum)
{
	char said[512] = "";
	bool ok = true;

	for (int n = SAINA_POLICY_BSP; n < SIM_KINDS; n++) {
		uint64_t least = opt.kind ? sum->n[RESULTS] / 1000 : sum->n[RESULTS] / 100;

		ok &= sum->n[KIND + n] > (n == (int)opt.kind ? sum->n[RESULTS] / 4 : least);
		snprintf(said + strlen(said), sizeof(said) - strlen(said), " %s %llu", kinds[n],
			 u(sum->n[KIND + n]));
	}
	tap_ok(ok, "traces: every kind of policy has results:%s", said);
}

int main(int argc, char **argv)
{
	struct trace_total sum;
	bool all = true;

	trace_parse(argc, argv,
		    "Random traces through the XDP or tc program and the oracle, compared bit for bit.  Policies: "
		    "bsp, fastest, fastest-timeout, sfcd, sfcd-down, timeout, external, coded.", kinds, SIM_KINDS);
	sum = trace_run(episode);
	trace_check(&sum, "traces", "program and oracle agree");
	tap_note("%llu jobs, %llu results of %llu gradients, %llu policies adopted, %llu jobs restarted%s",
		 u(sum.n[JOBS]), u(sum.n[RESULTS]), u(sum.n[CONTRIBUTIONS]), u(sum.n[COUNTED + SAINA_JC_POLICY_SWAPS]), u(sum.n[STUCK]),
		 sum.no_linear ? "; this kernel does not cut frames at will" : "");
	if (sum.ok && opt.packets >= 50 * opt.episode)
		policies(&sum);
	if (sum.ok && opt.packets >= 2500000) {
		coverage(&sum);
		for (int i = 0; i < (opt.tc ? 4 : 6); i++)
			all &= sum.n[SIZED + i] > 1000;
		tap_ok(all, "traces: every payload size that TEST_RUN takes has results: %llu %llu %llu %llu %llu %llu",
		       u(sum.n[SIZED]), u(sum.n[SIZED + 1]), u(sum.n[SIZED + 2]), u(sum.n[SIZED + 3]),
		       u(sum.n[SIZED + 4]), u(sum.n[SIZED + 5]));
		/* half of a coded job's results may have one contributor, those of a parent have its exponent */
		tap_ok(sum.n[MIXED] > (sum.n[RESULTS] - sum.n[FROM_PARENT] - sum.n[KIND + SAINA_POLICY_CODED] / 2) / 10 &&
		       sum.n[NANS] > sum.n[RESULTS] / 100,
		       "traces: some results are of several exponents, some are NaN: %llu, %llu",
		       u(sum.n[MIXED]), u(sum.n[NANS]));
		tap_ok(opt.module || (sum.n[NOT_COUNTED] > sum.n[RESULTS] / 50 &&
				      sum.n[FROM_PARENT] - sum.n[NOT_COUNTED] > sum.n[RESULTS] / 50),
		       "traces: parents make some results, some without the job's workers: %llu, %llu",
		       u(sum.n[FROM_PARENT]), u(sum.n[NOT_COUNTED]));
		tap_ok(opt.module || sum.n[TYPES_ABOVE] > sum.n[FROM_PARENT] / 1000,
		       "traces: parents say of some that they are of integers and floats: %llu", u(sum.n[TYPES_ABOVE]));
		tap_ok(opt.module || sum.n[MIXED_PAIRS] > sum.n[RESULTS] / 100,
		       "traces: some results of int16 are of several exponents: %llu", u(sum.n[MIXED_PAIRS]));
		tap_ok(sum.n[RESULTS] > opt.packets / 1000 && sum.n[COUNTED + SAINA_JC_POLICY_SWAPS] > opt.packets / 20000,
		       "traces: rounds complete, policies are adopted: %llu results, %llu policies",
		       u(sum.n[RESULTS]), u(sum.n[COUNTED + SAINA_JC_POLICY_SWAPS]));
	}
	return tap_done();
}
