// SPDX-License-Identifier: GPL-2.0-or-later
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <libgen.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>
#include "die.h"
#include "harness.h"

#define EXPONENT	20	/* of the worker that opens a slot */
#define REPEATS		16	/* passes of a branch that does not change state */

static void log_line(void *arg, int level, const char *line)
{
	if (level == 0)
		fprintf(stderr, "%s\n", line);
}

static void dp_open(struct saina_dp **dp, struct saina_global *g)
{
	const struct saina_dp_opts opts = { .log = log_line, .any_port = true };

	if (geteuid())
		bench_die("needs root to load BPF programs: run it with sudo");
	if (saina_dp_open(dp, &opts))
		bench_die("%s", saina_dp_error(*dp));
	g->ip = htonl(0x0abe0001);
	memcpy(g->mac, "\x02\x5a\x00\x00\x00\x01", 6);
	if (saina_dp_global_set(*dp, g))
		bench_die("%s", saina_dp_error(*dp));
}

static struct bpf_object *object_load(const char *name)
{
	char self[PATH_MAX / 2], path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct bpf_object *o;

	self[n > 0 ? n : 0] = 0;
	snprintf(path, sizeof(path), "%s/%s", dirname(self), name);
	o = bpf_object__open_file(path, NULL);
	if (!o || bpf_object__load(o))
		bench_die("cannot load %s: %s", path, strerror(errno));
	return o;
}

static int object_fd(const struct bpf_object *o, const char *name)
{
	struct bpf_program *p = bpf_object__find_program_by_name(o, name);
	int fd = p ? bpf_program__fd(p) : bpf_object__find_map_fd_by_name(o, name);

	if (fd < 0)
		bench_die("%s has no %s", bpf_object__name(o), name);
	return fd;
}

static void target_set(const struct bpf_object *o, const char *map, __u32 target, int prog)
{
	if (bpf_map_update_elem(object_fd(o, map), &target, &prog, BPF_ANY))
		bench_die("%s: program %u cannot be reached by tail call: %s", map, target, strerror(errno));
}

void harness_open(struct harness *r)
{
	static const char *const name[BENCH_TARGETS] = {
		[BENCH_EMPTY] = "bench_empty",	     [BENCH_PARSE] = "bench_parse",
		[BENCH_ADD_64] = "bench_add_64",     [BENCH_ADD_128] = "bench_add_128",
		[BENCH_ADD_256] = "bench_add_256",   [BENCH_ADD_352] = "bench_add_352",
		[BENCH_ADD_1024] = "bench_add_1024", [BENCH_ADD_2048] = "bench_add_2048",
	};
	int fd;

	dp_open(&r->dp, &r->global);
	r->obj = object_load("bench.bpf.o");
	r->driver = object_fd(r->obj, "bench_driver");
	r->empty = object_fd(r->obj, "bench_empty");
	r->state = object_fd(r->obj, "bench_state");
	for (int i = 0; i < BENCH_TARGETS; i++) {
		fd = i == BENCH_SAINA ? saina_dp_prog_fd(r->dp) : object_fd(r->obj, name[i]);
		target_set(r->obj, "bench_targets", i, fd);
	}
	for (size_t i = BENCH_HEAD; i < sizeof(r->frame); i++)
		r->frame[i] = i * 37;
}

void harness_close(struct harness *r)
{
	bpf_object__close(r->obj);
	saina_dp_close(r->dp, true);
}

static void conf_fill(struct saina_job_conf *c, unsigned int id, unsigned int payload,
		      unsigned int workers, unsigned int k, unsigned int pool)
{
	c->generation = 1;
	c->job = id;
	c->state = SAINA_JOB_RUNNING;
	c->elem = SAINA_ELEM_INT32;
	c->payload = payload;
	c->segments = pool;
	c->pool = pool;
	c->ring = 2;
	c->lock_base = 0;
	c->sign_words = SAINA_SIGN_WORDS(payload, 1);
	c->active = workers == 64 ? ~0ull : (1ull << workers) - 1;
	c->group = htonl(SAINA_GROUP_BASE | id);
	c->policy.seq = 1;
	c->policy.mode = k == workers ? SAINA_POLICY_BSP : SAINA_POLICY_FASTEST;
	c->policy.late = SAINA_LATE_RESIDUAL;
	c->policy.k = k == workers ? 0 : k;
	c->policy.k_min = 1;
	c->policy.lead = SAINA_LEAD_NONE;	/* some workers never send */
	for (unsigned int w = 0; w < workers; w++) {
		struct saina_binding *b = &c->worker[w];

		b->ifindex = SENDER_IFINDEX;
		b->ip = htonl(SENDER_IP);
		b->udp_port = htons(BENCH_UDP_PORT + w);
		b->session = SENDER_SESSION;
		memcpy(b->mac, SENDER_MAC, 6);
		b->flags = SAINA_BIND_BOUND;
	}
}

void harness_job_create(struct harness *r, struct bench_job *j, unsigned int id,
			unsigned int payload, unsigned int workers, unsigned int k,
			unsigned int pool, unsigned int touched)
{
	struct saina_job_conf *c = &j->conf;

	memset(j, 0, sizeof(*j));
	j->touched = touched;
	conf_fill(c, id, payload, workers, k, pool);
	if (saina_dp_job_publish(r->dp, c, 0))
		bench_die("%s", saina_dp_error(r->dp));
}

void harness_job_set_timeout(struct harness *r, struct bench_job *j)
{
	j->conf.policy.timeout_us = UINT32_MAX;
	j->conf.policy.seq++;
	if (saina_dp_job_publish(r->dp, &j->conf, 0))
		bench_die("%s", saina_dp_error(r->dp));
}

static void head_write(const struct saina_global *g, unsigned char *head, unsigned int job,
		       unsigned int payload, __u32 round, bool foreign)
{
	unsigned int udp_len = 8 + sizeof(struct saina_hdr) + 4 * payload;
	unsigned char *ip = head + 14, *udp = ip + 20;
	struct saina_hdr hdr = {
		.version = SAINA_PROTO_VERSION,
		.type = SAINA_MSG_GRAD,
		.elem = SAINA_ELEM_INT32,
		.job = job,
		.session = SENDER_SESSION,
		.round = round,
		.count = payload,
		.exponent = EXPONENT,
	};

	memset(head, 0, BENCH_HEAD);
	memcpy(head, g->mac, 6);
	memcpy(head + 6, SENDER_MAC, 6);
	head[12] = 0x08;
	ip[0] = 0x45;
	ip[2] = (udp_len + 20) >> 8;
	ip[3] = udp_len + 20;
	ip[6] = 0x40;
	ip[8] = 64;
	ip[9] = 17;
	*(__be32 *)(void *)(ip + 12) = htonl(SENDER_IP);
	*(__be32 *)(void *)(ip + 16) = g->ip;
	*(__be16 *)(void *)udp = htons(BENCH_UDP_PORT);
	*(__be16 *)(void *)(udp + 2) = htons(foreign ? 5001 : SAINA_PORT_DATA);
	*(__be16 *)(void *)(udp + 4) = htons(udp_len);
	memcpy(udp + 8, &hdr, sizeof(hdr));
}

/* The kernel's mean over the repeats, in whole ns.  Wall time would include patching the
 * XDP dispatcher and its grace period, tens of ms a call. */
static double prog_run(struct harness *r, int prog, unsigned int payload, unsigned int repeat)
{
	LIBBPF_OPTS(bpf_test_run_opts, t, .data_in = r->frame,
		    .data_size_in = BENCH_HEAD + 4 * payload, .repeat = repeat);

	if (bpf_prog_test_run_opts(prog, &t))
		bench_die("BPF_PROG_TEST_RUN: %s", strerror(errno));
	if (t.retval == 0)
		bench_die("a program under test aborted");
	return t.duration;
}

/* The rings of events and of messages to relay are not measured. */
static void events_drop(struct saina_dp *dp)
{
	static const struct saina_dp_cb none;

	if (saina_dp_event_dispatch(dp, &none) < 0)
		bench_die("%s", saina_dp_error(dp));
}

static struct saina_counters counters_sum(struct saina_dp *dp, unsigned int job)
{
	struct saina_counters sum = {}, c;

	for (int w = 0; w < SAINA_WORKERS_MAX; w++) {
		if (saina_dp_counters(dp, job, w, &c))
			bench_die("%s", saina_dp_error(dp));
		for (int i = 0; i < SAINA_C_N; i++)
			sum.c[i] += c.c[i];
	}
	return sum;
}

/* Sends packets of @branch for segments @from to @to - 1; returns ns in all. */
static double batch_run(struct harness *r, struct bench_job *j, enum bench_branch branch,
			enum bench_target target, unsigned int from, unsigned int to)
{
	unsigned int workers = __builtin_popcountll(j->conf.active);
	unsigned int k = j->conf.policy.k ? j->conf.policy.k : workers;
	struct bench_state s = {
		.target = target,
		.segment = from,
		.segment_begin = from,
		.segment_end = to,
		.exponent = EXPONENT,
		.exponent_step = -j->coarsens,
	};
	unsigned int passes = 1;
	__u32 zero = 0;
	double ns;

	switch (branch) {
	case BRANCH_STORE:
		break;
	case BRANCH_ACCUMULATE:
		s.worker = 1;
		s.worker_step = 1;
		passes = k - 2;
		break;
	case BRANCH_DUPLICATE:
		passes = REPEATS;
		break;
	case BRANCH_COMPLETE:
		s.worker = k - 1;
		break;
	case BRANCH_LATE:
		s.worker = workers - 1;
		passes = REPEATS;
		break;
	case BRANCHES:
		abort();
	}
	if (branch != BRANCH_STORE)
		s.exponent += j->finer - j->coarsens * (int)s.worker;
	head_write(&r->global, (unsigned char *)s.head, j->conf.job, j->conf.payload, j->round, false);
	if (bpf_map_update_elem(r->state, &zero, &s, BPF_ANY))
		bench_die("bench_state: %s", strerror(errno));
	passes *= to - from;
	ns = prog_run(r, r->driver, j->conf.payload, passes) * passes;
	if (target == BENCH_SAINA) {
		j->sent[branch] += passes;
		/* the first finer one shows that the worker which opened the slot made it coarser */
		if (j->finer && branch == BRANCH_ACCUMULATE)
			j->coarsened += to - from;
		events_drop(r->dp);
	}
	return ns;
}

double harness_run_accumulate(struct harness *r, struct bench_job *j, enum bench_target target,
			      unsigned int from, unsigned int to)
{
	return batch_run(r, j, BRANCH_ACCUMULATE, target, from, to) /
	       ((to - from) * (j->conf.policy.k - 2));
}

double harness_run_branch(struct harness *r, struct bench_job *j, enum bench_branch branch,
			  enum bench_target target)
{
	unsigned int workers = __builtin_popcountll(j->conf.active);
	unsigned int k = j->conf.policy.k ? j->conf.policy.k : workers;
	unsigned int cut = j->touched / 8, n;
	double cold;

	switch (branch) {
	case BRANCH_ACCUMULATE:
		if (k < 16)
			break;
		return harness_run_accumulate(r, j, target, 0, j->touched);
	case BRANCH_DUPLICATE:
	case BRANCH_LATE:
		n = j->touched * REPEATS;
		return batch_run(r, j, branch, target, 0, j->touched) / n;
	default:
		break;
	}
	/* Few packets: the cold start, which both parts have, is taken off. */
	n = j->touched - 2 * cut;
	if (branch == BRANCH_ACCUMULATE)
		n *= k - 2;
	cold = batch_run(r, j, branch, target, 0, cut);
	return (batch_run(r, j, branch, target, cut, j->touched) - cold) / n;
}

double harness_run_plain(struct harness *r, int prog, unsigned int payload, bool foreign,
			 unsigned int repeat)
{
	head_write(&r->global, r->frame, 0, payload, 0, foreign);
	return prog_run(r, prog, payload, repeat);
}

void harness_round_done(struct bench_job *j)
{
	j->round++;
}

void harness_check_shifted(struct harness *r, const struct bench_job *j)
{
	static __s32 sums[SAINA_ELEMS_MAX];
	struct saina_slot_meta m;
	__s32 v, half = 1 << (j->finer - 1);

	if (saina_dp_result(r->dp, j->conf.job, 0, j->round, &m, sums))
		bench_die("job %u: round %u has no result: %s", j->conf.job, j->round,
			    saina_dp_error(r->dp));
	for (unsigned int i = 0; i < j->conf.payload; i++) {
		memcpy(&v, r->frame + BENCH_HEAD + 4 * i, sizeof(v));
		if ((__u32)sums[i] !=
		    (__u32)v + (m.count - 1u) * (__u32)(int)(((__s64)v + half) >> j->finer))
			bench_die(
				"job %u: round %u, element %u: %d is not a sum of shifted inputs: no figures are reported, because they would be wrong",
				j->conf.job, j->round, i, sums[i]);
	}
}

void harness_check_coarser(struct harness *r, const struct bench_job *j)
{
	static __s32 sums[SAINA_ELEMS_MAX];
	struct saina_slot_meta m;

	if (saina_dp_result(r->dp, j->conf.job, 0, j->round, &m, sums))
		bench_die("job %u: round %u has no result: %s", j->conf.job, j->round,
			    saina_dp_error(r->dp));
	if (m.exponent != EXPONENT - j->coarsens * (m.count - 1))
		bench_die("job %u: round %u has exponent %d, not that of its last worker: no figures are reported, because they would be wrong",
			    j->conf.job, j->round, m.exponent);
}

void harness_check(struct harness *r, const struct bench_job *j)
{
	static const struct {
		enum saina_counter counter;
		enum bench_branch branch;
	} want[] = {
		{ SAINA_C_STORED, BRANCH_STORE },
		{ SAINA_C_DUPLICATE, BRANCH_DUPLICATE },
		{ SAINA_C_COMPLETED, BRANCH_COMPLETE },
		{ SAINA_C_LATE, BRANCH_LATE },
	};
	const struct saina_counters sum = counters_sum(r->dp, j->conf.job);
	__u64 added = j->sent[BRANCH_ACCUMULATE] + j->sent[BRANCH_COMPLETE];

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		if (sum.c[want[i].counter] != j->sent[want[i].branch])
			bench_die(
				"job %u: %llu packets were meant to be %s, %llu were: no figures are reported, because they would be wrong",
				j->conf.job, (unsigned long long)j->sent[want[i].branch],
				saina_counter_info[want[i].counter].name,
				(unsigned long long)sum.c[want[i].counter]);
	if (sum.c[SAINA_C_COARSENED] != j->coarsened)
		bench_die("job %u: %llu packets were meant to be coarser, %llu were", j->conf.job,
			    (unsigned long long)j->coarsened,
			    (unsigned long long)sum.c[SAINA_C_COARSENED]);
	if (sum.c[SAINA_C_ADDED] != added)
		bench_die("job %u: %llu packets were meant to be added, %llu were", j->conf.job,
			    (unsigned long long)added, (unsigned long long)sum.c[SAINA_C_ADDED]);
}

void harness_pin_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		bench_die("cannot run on CPU %d: %s", cpu, strerror(errno));
}
