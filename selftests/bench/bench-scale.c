// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The switch alone, on 1 to all cores: each core has a thread with a job of its own, which goes
 * through round after round.
 *
 * Method.  As bench-datapath: BPF_PROG_TEST_RUN repeats a driver, which writes the next headers and
 * tail-calls the program under test; the kernel measures the times.  The driver's time, into an
 * empty program, is subtracted.  A round has every branch in its proportion: 256 segments are
 * stored, added to and completed by WORKERS workers in turn, then the next 256.  A batch is some
 * rounds; figures are medians over batches of all threads, which run at the same time.
 *   xdp        a message in a frame
 *   tc         SCALE_FRAME messages in a frame, the most that TEST_RUN takes; real ones have up to 44
 *   reference  doorbells of 64 segments to the tc program; each round a thread writes the heads of
 *              all input entries, which is not timed
 * At the end the counters of each job must show that every message took its branch.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <jansson.h>
#include <limits.h>
#include <linux/pkt_cls.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <arpa/inet.h>
#include "args.h"
#include "die.h"
#include "harness.h"
#include "report.h"

#define WORKERS		8
#define ELEMS		352
#define WINDOW		256	/* hot slots */
#define SEGMENTS	4096	/* 5.5 MiB, so results do not stay in the cache */
#define BATCH		16	/* rounds */
#define MESSAGES	((unsigned int)(SEGMENTS * WORKERS))	/* of a round */
#define THREADS_MAX	64
#define SESSION		7	/* as harness_conf_fill() has it */

enum hook { HOOK_XDP, HOOK_TC, HOOK_REFERENCE, HOOKS };

static const char *const hook_name[HOOKS] = { "xdp", "tc", "reference" };

/* A thread's job at a hook. */
struct job {
	struct saina_job_conf conf;
	uint32_t round;
	uint8_t *input[WORKERS];	/* HOOK_REFERENCE */
};

struct thread {
	pthread_t thread;
	int cpu;
	struct job job[HOOKS];
	struct sample ns, driver;	/* of a message, in the present run */
};

static struct {
	struct saina_dp *dp;
	struct saina_global global;
	int driver[HOOKS], state;
	struct thread thread[THREADS_MAX];
	unsigned int threads;		/* CPUs that may be used */
	/* of the present run */
	enum hook hook;
	unsigned int cycles;
	pthread_barrier_t barrier;
	atomic_uint running;
} s;

static const unsigned int frame_step[HOOKS] = { 1, SCALE_FRAME, SAINA_DOORBELL_SEGMENTS };

/* --- one batch -------------------------------------------------------------------------------- */

static unsigned int message_bytes(void)
{
	return sizeof(struct saina_hdr) + (s.hook == HOOK_REFERENCE ? sizeof(struct saina_doorbell) : 4 * ELEMS);
}

static size_t entry_size(void)
{
	return sizeof(struct saina_input_head) + 4 * ELEMS;
}

/* Writes the heads of the input entries of a window, for all workers: what a worker writes last. */
static void inputs_write(const struct job *j, uint32_t window)
{
	for (unsigned int w = 0; w < WORKERS; w++)
		for (uint32_t i = 0; i < WINDOW; i++) {
			struct saina_input_head *in = (void *)(j->input[w] + i * entry_size());

			in->round = j->round;
			in->segment = window + i;
			in->exponent = 20;
			in->session = SESSION;
		}
}

static void state_fill(struct scale_state *st, const struct job *j, enum scale_target target, uint32_t window)
{
	struct saina_hdr *h = (void *)(st->head + BENCH_HEAD - sizeof(*h));
	uint16_t udp_len;

	*st = (struct scale_state){
		.target = target, .segment = window, .window = window, .window_size = WINDOW,
		.segments = SEGMENTS, .workers = WORKERS, .round = j->round, .step = frame_step[s.hook],
		.messages = s.hook == HOOK_TC ? SCALE_FRAME : 1, .bytes = message_bytes(),
	};
	harness_head_write(&s.global, st->head, j->conf.job, ELEMS, 0, false);
	/* lengths of what there is; the rest of the header is that of a GRAD */
	udp_len = htons(8 + st->messages * st->bytes);
	memcpy(st->head + 38, &udp_len, 2);
	udp_len = htons(28 + st->messages * st->bytes);
	memcpy(st->head + 16, &udp_len, 2);
	h->exponent = 20;
	if (s.hook == HOOK_REFERENCE) {
		h->type = SAINA_MSG_DOORBELL;
		h->count = 0;
		memset(h + 1, 0xff, sizeof(uint64_t));	/* posted */
	}
}

/* Sends @messages messages from the state on.  Returns ns a message. */
static double test_run(const struct thread *t, const struct scale_state *st, unsigned int messages)
{
	static uint8_t frame[4096];
	struct __sk_buff skb = { .ifindex = 1, .gso_size = st->messages > 1 ? st->bytes : 0 };
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = frame,
		    .data_size_in = BENCH_HEAD - sizeof(struct saina_hdr) + st->messages * st->bytes,
		    .repeat = messages / st->step);
	__u32 cpu = t->cpu;

	if (s.hook != HOOK_XDP) {
		o.ctx_in = &skb;
		o.ctx_size_in = sizeof(skb);
	}
	if (bpf_map_update_elem(s.state, &cpu, st, BPF_ANY))
		bench_die("scale_state: %s", strerror(errno));
	if (bpf_prog_test_run_opts(s.driver[s.hook], &o))
		bench_die("BPF_PROG_TEST_RUN: %s", strerror(errno));
	if (o.retval == (s.hook == HOOK_XDP ? 0 : TC_ACT_OK))
		bench_die("the driver at hook %s failed", hook_name[s.hook]);
	return (double)o.duration / st->step;
}

/* A batch of whole rounds. */
static double batch_run(struct thread *t, struct job *j)
{
	struct scale_state st;
	double ns = 0;

	if (s.hook != HOOK_REFERENCE) {
		state_fill(&st, j, SCALE_SAINA, 0);
		ns = test_run(t, &st, BATCH * MESSAGES);
		j->round += BATCH;
		return ns;
	}
	for (uint32_t window = 0; window < SEGMENTS; window += WINDOW) {
		inputs_write(j, window);
		state_fill(&st, j, SCALE_SAINA, window);
		ns += test_run(t, &st, WINDOW * WORKERS);
	}
	j->round++;
	return ns / (SEGMENTS / WINDOW);
}

static void *thread_run(void *arg)
{
	struct thread *t = arg;
	struct job *j = &t->job[s.hook];
	struct scale_state st;

	harness_pin_cpu(t->cpu);
	batch_run(t, j);	/* the first touches memory */
	pthread_barrier_wait(&s.barrier);
	for (unsigned int n = 0; n < s.cycles; n++) {
		state_fill(&st, j, SCALE_EMPTY, 0);
		sample_add(&t->driver, test_run(t, &st, MESSAGES));
		sample_add(&t->ns, batch_run(t, j));
	}
	s.running--;
	return NULL;
}

/* --- runs ------------------------------------------------------------------------------------- */

/* ns of a message on each of @threads cores at once: the mean over them of the median. */
static double run(enum hook hook, unsigned int threads, unsigned int cycles)
{
	double ns = 0;

	s.hook = hook;
	s.cycles = hook == HOOK_REFERENCE ? cycles * 4 : cycles;
	s.running = threads;
	pthread_barrier_init(&s.barrier, NULL, threads);
	for (unsigned int i = 0; i < threads; i++) {
		s.thread[i].ns.n = s.thread[i].driver.n = 0;
		if (pthread_create(&s.thread[i].thread, NULL, thread_run, &s.thread[i]))
			bench_die("cannot create a thread");
	}
	while (s.running) {
		harness_events_drop(s.dp);
		usleep(1000);
	}
	for (unsigned int i = 0; i < threads; i++) {
		pthread_join(s.thread[i].thread, NULL);
		ns += sample_median(&s.thread[i].ns) - sample_median(&s.thread[i].driver);
	}
	pthread_barrier_destroy(&s.barrier);
	return ns / threads;
}

static void job_check(const struct job *j)
{
	const __u64 segments = (__u64)j->round * SEGMENTS;
	const struct saina_counters sum = harness_counters_sum(s.dp, j->conf.job);

	if (sum.c[SAINA_C_STORED] != segments || sum.c[SAINA_C_COMPLETED] != segments ||
	    sum.c[SAINA_C_ADDED] != segments * (WORKERS - 1))
		bench_die("job %u: of %llu segments %llu were stored and %llu completed, %llu gradients added: the figures are wrong",
			  j->conf.job, segments, sum.c[SAINA_C_STORED], sum.c[SAINA_C_COMPLETED],
			  sum.c[SAINA_C_ADDED]);
}

/* --- opening ---------------------------------------------------------------------------------- */

static void drivers_open(void)
{
	struct bpf_object *o = harness_object_load("bench_scale.bpf.o");

	s.driver[HOOK_XDP] = harness_object_fd(o, "scale_xdp");
	s.driver[HOOK_TC] = s.driver[HOOK_REFERENCE] = harness_object_fd(o, "scale_tc");
	s.state = harness_object_fd(o, "scale_state");
	harness_target_set(o, "scale_xdp_targets", SCALE_EMPTY, harness_object_fd(o, "scale_xdp_empty"));
	harness_target_set(o, "scale_xdp_targets", SCALE_SAINA, saina_dp_prog_fd(s.dp));
	harness_target_set(o, "scale_tc_targets", SCALE_EMPTY, harness_object_fd(o, "scale_tc_empty"));
	harness_target_set(o, "scale_tc_targets", SCALE_SAINA, saina_dp_tc_prog_fd(s.dp));
}

/* The tc program redirects results to an interface that the job must have; none is sent here. */
static void fanout_set(__u32 job)
{
	struct bpf_prog_info info = { 0 };
	__u32 ids[64], len = sizeof(info), ifindex = 1;

	info.nr_map_ids = 64;
	info.map_ids = (uintptr_t)ids;
	if (bpf_obj_get_info_by_fd(saina_dp_tc_prog_fd(s.dp), &info, &len))
		bench_die("cannot read the maps of the tc program: %s", strerror(errno));
	for (unsigned int i = 0; i < info.nr_map_ids && i < 64; i++) {
		struct bpf_map_info m = { 0 };
		int fd = bpf_map_get_fd_by_id(ids[i]);

		len = sizeof(m);
		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &m, &len) &&
		    !strncmp(m.name, "saina_fanout_ifb", BPF_OBJ_NAME_LEN - 1) &&
		    bpf_map_update_elem(fd, &job, &ifindex, BPF_ANY))
			bench_die("%s: %s", m.name, strerror(errno));
		close(fd);
	}
}

static void inputs_map(struct job *j)
{
	for (unsigned int w = 0; w < WORKERS; w++) {
		__u32 id;
		int fd[2];

		if (saina_dp_shm_grant(s.dp, j->conf.job, w, fd, &id))
			bench_die("%s", saina_dp_error(s.dp));
		j->input[w] = mmap(NULL, WINDOW * entry_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd[0], 0);
		if (j->input[w] == MAP_FAILED)
			bench_die("cannot map an input array: %s", strerror(errno));
		close(fd[0]);
		close(fd[1]);
	}
}

static void jobs_create(struct thread *t, unsigned int number)
{
	for (enum hook h = 0; h < HOOKS; h++) {
		struct job *j = &t->job[h];

		harness_conf_fill(&j->conf, HOOKS * number + h, ELEMS, WORKERS, WORKERS, WINDOW);
		j->conf.segments = SEGMENTS;
		j->conf.lock_base = j->conf.job * WINDOW;
		if (saina_dp_job_publish(s.dp, &j->conf, 0))
			bench_die("%s", saina_dp_error(s.dp));
		fanout_set(j->conf.job);
		if (h == HOOK_REFERENCE)
			inputs_map(j);
	}
}

static void open_all(void)
{
	cpu_set_t set;

	harness_dp_open(&s.dp, &s.global, false);
	if (saina_dp_tc_prog_fd(s.dp) < 0)
		bench_die("cannot load the tc program: run saina doctor to see why");
	drivers_open();
	if (sched_getaffinity(0, sizeof(set), &set))
		bench_die("cannot read the CPU affinity: %s", strerror(errno));
	for (int cpu = 0; cpu < SCALE_CPUS && s.threads < THREADS_MAX; cpu++)
		if (CPU_ISSET(cpu, &set)) {
			s.thread[s.threads].cpu = cpu;
			jobs_create(&s.thread[s.threads], s.threads);
			s.threads++;
		}
}

int main(int argc, char **argv)
{
	const struct bench_args args =
		bench_args_parse(argc, argv, "The switch alone, on 1 to all cores, a job on each.");
	struct report out = { .json = args.json };
	json_t *rows = json_array();

	if (args.lookup) {
		fprintf(stderr, "bench-scale: --lookup is an option of bench-datapath only\n");
		return 2;
	}
	open_all();
	if (!args.json)
		printf("%10s %6s %11s %14s %10s\n", "hook", "cores", "ns/message", "messages/s", "x one core");
	for (enum hook h = 0; h < HOOKS; h++) {
		double one = 0;

		for (unsigned int n = 1; n <= s.threads; n++) {
			double ns = run(h, n, args.cycles), rate = n * 1e9 / ns;

			one = one ? one : rate;
			if (!args.json) {
				printf("%10s %6u %11.1f %14.0f %10.2f\n", hook_name[h], n, ns, rate, rate / one);
				fflush(stdout);
			}
			json_array_append_new(rows, json_pack("{s:s, s:i, s:f, s:f, s:f}", "hook", hook_name[h], "cores",
							      (int)n, "ns", ns, "messages_per_s", rate, "scaling",
							      rate / one));
		}
	}
	for (unsigned int i = 0; i < s.threads; i++)
		for (enum hook h = 0; h < HOOKS; h++)
			job_check(&s.thread[i].job[h]);
	out.root = json_pack("{s:i, s:i, s:i, s:o}", "elements", ELEMS, "workers", WORKERS, "frame_messages", SCALE_FRAME,
			 "rows", rows);
	saina_dp_close(s.dp, true);
	return report_close(&out, args.out);
}
