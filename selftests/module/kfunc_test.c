// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The module's kfuncs, called by real programs (kfunc_test.bpf.c) with
 * BPF_PROG_TEST_RUN: what they find is compared with what was configured by netlink,
 * sums with those of this CPU's floating point unit.
 *
 *	kfunc_test OBJECT		in the test VM, module loaded, no jobs; as root
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "requests.h"
#include "kfunc_test.h"
#include "../lib/rng.h"
#include "../lib/tap.h"

#define PARAMS	"/sys/module/saina/parameters/"

static struct bpf_object *object;

static int map_fd(const char *name)
{
	return bpf_object__find_map_fd_by_name(object, name);
}

static int run(const char *prog, int times)
{
	struct bpf_program *p = bpf_object__find_program_by_name(object, prog);
	char packet[64] = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = times);

	if (!p || bpf_prog_test_run_opts(bpf_program__fd(p), &opts)) {
		printf("# running %s: %s\n", prog, p ? strerror(errno) : "no such program");
		return -1;
	}
	return opts.retval;
}

static struct io call(const char *prog, struct io in)
{
	__u32 zero = 0;

	bpf_map_update_elem(map_fd("io"), &zero, &in, BPF_ANY);
	run(prog, 1);
	bpf_map_lookup_elem(map_fd("io"), &zero, &in);
	return in;
}

static void request(int ret)
{
	if (ret)
		tap_note("refused: %s", saina_ctl_error(requests_ctl));
}

static void job_new(const char *name, int workers)
{
	request(request_job_new(name, workers, 1000));
}

static void job_del(int id)
{
	request(request_job_del(id));
}

static void test_jobs(const char *prog)
{
	struct io x;

	x = call(prog, (struct io){ .job = 0 });
	tap_ok(!x.found, "%s: there is no snapshot without a job", prog);
	job_new("a", 3);
	request(request_worker_bind(0, 2, 1));
	x = call(prog, (struct io){ .job = 0, .worker = 2 });
	tap_ok(x.found && x.active == 4 && x.generation && x.policy.mode == SAINA_POLICY_BSP &&
	       x.binding.session == 3 && x.binding.ifindex == 1 &&
	       x.binding.udp_port == htons(4002) && x.binding.mac[5] == 2 &&
	       x.binding.flags == SAINA_BIND_BOUND, "%s: the snapshot shows the configuration", prog);
	x = call(prog, (struct io){ .job = 0, .worker = 1 });
	tap_ok(x.found && !x.binding.flags, "%s: a worker that is not there is not bound in the snapshot", prog);
	request(request_job_policy(0, "fastest:k=2"));
	x = call(prog, (struct io){ .job = 0 });
	tap_ok(x.policy.mode == SAINA_POLICY_FASTEST && x.policy.k == 2 && x.policy.seq == 2,
	       "%s: a change is in the snapshot when the call has returned", prog);
	x = call(prog, (struct io){ .job = 1 });
	tap_ok(!x.found, "%s: there is no snapshot of another job", prog);
	x = call(prog, (struct io){ .job = 0xffffffff });
	tap_ok(!x.found, "%s: there is no snapshot for a number out of range", prog);
	job_del(0);
	x = call(prog, (struct io){ .job = 0 });
	tap_ok(!x.found, "%s: there is no snapshot of a deleted job", prog);
}

static int event_cb(const struct nlmsghdr *nlh, void *arg)
{
	return saina_ctl_decode(nlh, &saina_event_class, arg);
}

static int job_cb(const struct nlmsghdr *nlh, void *arg)
{
	return saina_ctl_decode(nlh, &saina_job_class, arg);
}

static void test_events(const char *prog)
{
	struct saina_event ev = { .type = SAINA_EV_K, .worker = 0xff, .k = 2, .round = 41, .a = 2, .b = 3 };
	struct saina_job_attrs job = { .id = 0 };
	struct saina_event_attrs got;
	struct saina_ctl *sub;
	const char *error;
	int ret;

	job_new("a", 4);
	if (saina_ctl_open(&sub, "kernel", &error) || saina_ctl_subscribe(sub, SAINA_GROUPS_EVENTS)) {
		tap_ok(false, "%s: subscribing: %s", prog, error);
		return;
	}
	ev.generation = call("xdp_job", (struct io){ .job = 0 }).generation;
	tap_ok(call(prog, (struct io){ .ev = ev }).ret == 0, "%s: an event of a job is accepted", prog);
	ret = saina_ctl_next(sub, 5000, event_cb, &got);
	tap_ok(!ret && got.type == SAINA_EV_K && got.a == 2 && got.b == 3 && got.k == 2 &&
	       got.round == 41 && got.time && !strcmp(got.job_name, "a") &&
	       !SAINA_HAS(&got, SAINA_A_EVENT_WORKER), "%s: the subscriber gets the event", prog);
	ev.type = SAINA_EV_ROUND;
	ev.round = 42;
	ev.k = 3;
	call(prog, (struct io){ .ev = ev });
	ev.generation++;
	ev.round = 57;
	tap_ok(call(prog, (struct io){ .ev = ev }).ret == -ENOENT,
	       "%s: an event of another generation of the job is refused", prog);
	ev.generation--;
	request_get(SAINA_CMD_JOB_GET, 0, 0, job_cb, &job);
	tap_ok(job.round == 43 && job.k == 3,
	       "%s: the job shows the round and k of the last event of its generation", prog);
	ev.type = SAINA_EV_WORKER_DEAD;
	tap_ok(call(prog, (struct io){ .ev = ev }).ret == -EINVAL,
	       "%s: an event of the control plane is refused", prog);
	ev.type = SAINA_EV_ROUND;
	ev.job = 5;
	tap_ok(call(prog, (struct io){ .ev = ev }).ret == -ENOENT, "%s: an event for an unknown job is refused", prog);
	saina_ctl_close(sub);
	job_del(0);
}

static void param(const char *name, const char *value)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), PARAMS "%s", name);
	f = fopen(path, "w");
	if (!f || fputs(value, f) < 0 || fclose(f))
		printf("# cannot write %s\n", path);
}

static void test_rate(void)
{
	struct io in = { .ev = { .type = SAINA_EV_ROUND, .worker = 0xff, .k = 1 } };
	struct saina_event_attrs got;
	struct saina_ctl *sub;
	const char *error;
	__u32 zero = 0;
	bool lost = false;
	int n = 0, ret;

	job_new("a", 1);
	in.ev.generation = call("xdp_job", (struct io){ .job = 0 }).generation;
	param("event_rate", "20");
	if (saina_ctl_open(&sub, "kernel", &error) || saina_ctl_subscribe(sub, SAINA_GROUPS_EVENTS)) {
		tap_ok(false, "subscribing: %s", error);
		return;
	}
	bpf_map_update_elem(map_fd("io"), &zero, &in, BPF_ANY);
	run("xdp_event", 5000);
	bpf_map_lookup_elem(map_fd("io"), &zero, &in);
	while ((ret = saina_ctl_next(sub, 200, event_cb, &got)) != -ETIMEDOUT) {
		if (ret == -ENOBUFS)
			lost = true;
		else
			n++;
	}
	/* some of this second's were spent before, others may have begun during the run */
	tap_ok(n >= 1 && n <= 2500 && lost && in.ret == -EAGAIN,
	       "the rate of events is limited, and the subscriber gets the number of lost ones (%d of 5000)", n);
	param("event_rate", "10000");
	saina_ctl_close(sub);
	job_del(0);
}

/* That "simd" below is not silently the scalar path. */
static void test_unit(void)
{
	bool here = !system("grep -qw avx2 /proc/cpuinfo");
	char unit[16] = "";
	FILE *f = fopen(PARAMS "simd_unit", "r");

	if (!f || !fgets(unit, sizeof(unit), f))
		unit[0] = 0;
	if (f)
		fclose(f);
	tap_ok(!strcmp(unit, here ? "avx2\n" : "none\n"),
	       "saina.ko has found the vector unit of this CPU (%.4s)", unit);
}

static __u32 f32_of(float f)
{
	__u32 u;

	memcpy(&u, &f, 4);
	return u;
}

/* The reference: one addss of this CPU, so that no compiler reorders operands. */
static __u32 add_ref(__u32 a, __u32 b)
{
	float x, y;

	memcpy(&x, &a, 4);
	memcpy(&y, &b, 4);
	asm volatile("addss %1, %0" : "+x"(x) : "x"(y));
	return f32_of(x);
}

static __u32 rnd(struct rng *r)
{
	return rng_u64(r) >> 32;
}

/* Bit patterns where sums go wrong: of all exponents, near each other, special. */
static __u32 pick(struct rng *r)
{
	static const __u32 special[] = {
		0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001, 0xffa00000,
		1, 0x80000001, 0x007fffff, 0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff,
		0x3f800000, 0xbf800000, 0x4b800000, 0x33800000, 0x33800001, 0x33000000,
	};
	__u32 u = rnd(r);

	switch (u & 3) {
	case 0:
		return special[rnd(r) % (sizeof(special) / sizeof(special[0]))];
	case 1:
		return (rnd(r) & 0x80ffffff) + 0x3e800000 + ((rnd(r) & 0x1f) << 23);
	default:
		return rnd(r);
	}
}

static bool nan32(__u32 u)
{
	return (u & 0x7fffffff) > 0x7f800000;
}

/* Of two NaNs the first should stay; qemu's emulated CPU keeps another one. */
static bool same(__u32 a, __u32 b, __u32 got, __u32 want)
{
	return got == want || (nan32(a) && nan32(b) && nan32(got));
}

static void vec_set(struct vec *v, __u64 tag)
{
	struct io in = { .tag = tag };
	__u32 zero = 0;

	bpf_map_update_elem(map_fd("vec"), &zero, v, BPF_ANY);
	bpf_map_update_elem(map_fd("io"), &zero, &in, BPF_ANY);
}

static void vec_get(struct vec *v)
{
	__u32 zero = 0;

	bpf_map_lookup_elem(map_fd("vec"), &zero, v);
}

/* Sums of kfunc @prog (@half: of bfloat16) with those of this CPU; how many differ. */
static int sums_differ(const char *how, const char *prog, bool half, struct rng *r)
{
	struct vec v, was;
	int bad = 0;

	for (int i = 0; i < ELEMS; i++) {
		v.slot.sum[i] = pick(r);
		v.msg[i] = pick(r);
		v.half[i] = pick(r) >> 16;
	}
	v.slot.meta = (struct saina_slot_meta){ .sum_tag = 7 };
	was = v;
	vec_set(&v, 7);
	if (run(prog, 1) != 2)
		return ELEMS;
	vec_get(&v);
	for (int i = 0; i < ELEMS; i++) {
		__u32 a = was.slot.sum[i], b = half ? (__u32)was.half[i] << 16 : was.msg[i];
		__u32 want = add_ref(a, b), got = v.slot.sum[i];

		if (!same(a, b, got, want) && !bad++)
			printf("# %s, %s: %08x + %08x = %08x, not %08x\n", prog, how, a, b, want, got);
	}
	return bad;
}

static void simd(const char *how)
{
	param("simd", how[1] == 'c' ? "0" : "1");
}

static void test_sums(const char *how, unsigned long seed)
{
	int bad_f = 0, bad_h = 0;
	struct rng r;

	simd(how);
	rng_seed(&r, seed);
	for (int round = 0; round < 400; round++) {
		bad_f += sums_differ(how, "f32_sum", false, &r);
		bad_h += sums_differ(how, "bf16_sum", true, &r);
	}
	tap_ok(!bad_f, "%s: float32 sums are the CPU's, bit for bit (%d differ)", how, bad_f);
	tap_ok(!bad_h, "%s: bfloat16 sums are the CPU's, bit for bit (%d differ)", how, bad_h);
}

/* The tag decides whether a message is stored or added. */
static void test_tag(const char *how)
{
	struct vec v = { .slot.meta = { .sum_tag = 8, .round = 3, .seen = 5 } };
	bool stored = true, added = true, half_stored = true;

	simd(how);
	for (int i = 0; i < ELEMS; i++) {
		v.slot.sum[i] = 0xffffffff;
		v.msg[i] = 0x80000000 + (i % 2 ? 0x3f800000 : 0);	/* -1 and -0 */
		v.half[i] = 0x8000 + (i % 2 ? 0x3f80 : 0);
	}
	vec_set(&v, 9);
	run("f32_sum", 1);
	vec_get(&v);
	for (int i = 0; i < ELEMS; i++)
		stored &= v.slot.sum[i] == (__s32)v.msg[i];
	tap_ok(stored && v.slot.meta.sum_tag == 9,
	       "%s: float32: a message with another tag replaces the sum", how);
	run("f32_sum", 1);
	run("bf16_sum", 1);
	vec_get(&v);
	for (int i = 0; i < ELEMS; i++)
		added &= (__u32)v.slot.sum[i] == f32_of(i % 2 ? -3 : -0.0f);
	tap_ok(added, "%s: float32: a message with the same tag is added", how);
	vec_set(&v, 10);
	run("bf16_sum", 1);
	vec_get(&v);
	for (int i = 0; i < ELEMS; i++)
		half_stored &= (__u32)v.slot.sum[i] == (__u32)v.half[i] << 16;
	tap_ok(half_stored && v.slot.meta.sum_tag == 10, "%s: bfloat16: a message with another tag replaces the sum", how);
	tap_ok(v.slot.meta.round == 3 && v.slot.meta.seen == 5, "%s: the rest of the slot's head is unchanged", how);
}

static void *adder(void *arg)
{
	run("f32_sum", 20000);
	return NULL;
}

static void test_lock(const char *how)
{
	pthread_t t[4];
	struct vec v = { .slot.meta = { .sum_tag = 2 } };
	int bad = 0;

	simd(how);
	for (int i = 0; i < ELEMS; i++) {
		v.slot.sum[i] = f32_of(-1);
		v.msg[i] = f32_of(1);
	}
	vec_set(&v, 1);
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, adder, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	vec_get(&v);
	for (int i = 0; i < ELEMS; i++)
		bad += (__u32)v.slot.sum[i] != f32_of(80000);
	tap_ok(!bad, "%s: four threads: one message is stored, all others are added (%d differ)", how, bad);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: kfunc_test OBJECT\n");
		return 2;
	}
	requests_open();
	object = bpf_object__open_file(argv[1], NULL);
	if (!object || bpf_object__load(object))
		tap_bail("%s does not load: %m", argv[1]);
	test_jobs("xdp_job");
	test_jobs("tc_job");
	job_new("a", 1);
	tap_ok(!call("xdp_job_too_long", (struct io){ .found = 1 }).found,
	       "kfunc: a size beyond the snapshot is refused");
	job_del(0);
	test_events("xdp_event");
	test_events("tc_event");
	test_rate();
	tap_ok(call("sum_bad", (struct io){ 0 }).ret == 1, "kfunc: lengths that do not match are refused");
	test_unit();
	test_sums("simd", 1);
	test_sums("scalar", 2);
	test_tag("simd");
	test_tag("scalar");
	test_lock("simd");
	test_lock("scalar");
	param("simd", "1");
	tap_ok(system("rmmod saina 2>/dev/null") != 0, "saina.ko cannot be unloaded while a program uses it");
	bpf_object__close(object);
	saina_ctl_close(requests_ctl);
	return tap_done();
}
