// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Workers that leave: their job's ring is replaced by a copy, which they do not get.
 *
 *	a process makes rounds, begins to replace the ring, and is killed half-way
 *	the next one takes over what is pinned: the ring with its results, and goes on
 *	a worker that is behind asks while there is no ring
 *	three workers leave at once: one copy
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <dirent.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/beside.h"
#include "lib/tap.h"
#include "harness.h"

#define ELEMS	64
#define WORKERS 4
#define JOB	1
#define KILLED	7

static struct saina_dp *dp;
static struct saina_job_conf conf;
static struct harness harness; /* for bindings and messages */
static char pins[] = "/tmp/saina-ring.XXXXXX";
static bool kill_in_copy;
static unsigned int copies;
static int asked; /* verdict of an ASK in between */

static int send_ask(unsigned int w, uint32_t round);
int __real_bpf_map_freeze(int fd);
int __wrap_bpf_map_freeze(int fd);

/* The copy is made, and not in the place of the ring yet. */
int __wrap_bpf_map_freeze(int fd)
{
	copies++;
	if (kill_in_copy)
		_exit(KILLED);
	asked = send_ask(3, 0);
	return __real_bpf_map_freeze(fd);
}

static void bail(const char *what, const char *why)
{
	umount2(pins, MNT_DETACH);
	rmdir(pins);
	tap_bail("%s: %s", what, why);
}

static void open_dp(void)
{
	const struct saina_dp_opts opts = { .pin_dir = pins, .any_port = true };

	if (saina_dp_open(&dp, &opts))
		bail("saina_dp_open", saina_dp_error(dp));
	harness.prog = saina_dp_prog_fd(dp);
}

static void make_job(void)
{
	harness.g.ip = htonl(0x0abe0001);
	harness.port[0] = 1;
	conf = (struct saina_job_conf){
		.generation = 1, .job = JOB, .state = SAINA_JOB_RUNNING, .elem = SAINA_ELEM_INT32,
		.payload = ELEMS, .segments = 1, .pool = 1, .ring = 4,
		.sign_words = SAINA_SIGN_WORDS(ELEMS, 1), .group = harness_group(JOB),
		.policy = { .seq = 1, .mode = SAINA_POLICY_BSP, .late = 1 },
	};
	harness_bind_all(&harness, &conf, WORKERS, 1);
}

/* Verdict of the program, or -errno. */
static int send_message(int type, unsigned int w, uint32_t round, const void *body, size_t len)
{
	const struct saina_hdr h = {
		.type = type, .count = type == SAINA_MSG_GRAD ? ELEMS : 0, .worker = w,
		.round = round,
	};
	uint8_t out[FRAME_MAX];

	return harness_exchange(&harness, &conf, h, body, len, out);
}

static int send_ask(unsigned int w, uint32_t round)
{
	const struct saina_ask body = {};

	return send_message(SAINA_MSG_ASK, w, round, &body, sizeof(body));
}

/* All elements of worker w are w + 1. */
static bool make_round(uint32_t round)
{
	int verdict = -1;

	for (unsigned int w = 0; w < WORKERS; w++) {
		int32_t v[ELEMS];

		for (int i = 0; i < ELEMS; i++)
			v[i] = w + 1;
		verdict = send_message(SAINA_MSG_GRAD, w, round, v, sizeof(v));
	}
	return verdict == XDP_REDIRECT;
}

static bool has_result(uint32_t round)
{
	struct saina_slot_meta m;
	int32_t sum[ELEMS];

	return !saina_dp_result(dp, JOB, 0, round, &m, sum) && m.count == WORKERS &&
	       sum[0] == WORKERS * (WORKERS + 1) / 2 && sum[ELEMS - 1] == sum[0];
}

static bool grant_all(void)
{
	int fd[2], err = 0;
	__u32 id;

	for (unsigned int w = 0; w < WORKERS && !err; w++) {
		err = saina_dp_shm_grant(dp, JOB, w, fd, &id);
		if (!err) {
			close(fd[0]);
			close(fd[1]);
		}
	}
	return !err;
}

/* In a process of its own: a round, and worker 3 leaves. */
static int begin_and_die(void)
{
	open_dp();
	if (saina_dp_global_set(dp, &harness.g) || saina_dp_job_publish(dp, &conf, 0))
		bail("job", saina_dp_error(dp));
	if (!grant_all() || !make_round(0))
		bail("round 0", saina_dp_error(dp));
	kill_in_copy = true;
	saina_dp_shm_revoke(dp, JOB, 1 << 3);
	return 1;
}

static bool is_killed_in_copy(void)
{
	pid_t child = fork();
	int status = 0;

	if (!child)
		_exit(begin_and_die());
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
	       WEXITSTATUS(status) == KILLED;
}

static unsigned int kept_rings(void)
{
	DIR *dir = opendir(pins);
	struct dirent *e;
	unsigned int n = 0;

	while (dir && (e = readdir(dir)))
		n += !strncmp(e->d_name, "saina_kept", 10);
	if (dir)
		closedir(dir);
	return n;
}

static void check_leavers(void)
{
	__u32 ring = saina_dp_shm_output_id(dp, JOB);
	bool ok;

	copies = 0;
	ok = !saina_dp_shm_revoke(dp, JOB, 1 << 3);
	tap_ok(ok && copies == 1 && saina_dp_shm_output_id(dp, JOB) != ring &&
		       !saina_dp_shm_is_granted(dp, JOB, 3) && saina_dp_shm_is_granted(dp, JOB, 0),
	       "ring: a worker leaves: there is another ring, and it has no array%s%s", ok ? "" : ": ",
	       ok ? "" : saina_dp_error(dp));
	tap_ok(asked == XDP_DROP && send_ask(3, 0) == XDP_REDIRECT,
	       "ring: whoever asks about an earlier round in between gets no answer, rather than that it is gone");
	tap_ok(has_result(0) && has_result(1), "ring: a worker leaves: results are in the copy");
	ok = !saina_dp_shm_revoke(dp, JOB, 7);
	tap_ok(ok && copies == 2 && !saina_dp_shm_is_granted(dp, JOB, 0) &&
		       !saina_dp_shm_is_granted(dp, JOB, 1) && !saina_dp_shm_is_granted(dp, JOB, 2),
	       "ring: three workers leave at once: one copy is made (%u)", copies - 1);
	ok = !saina_dp_shm_revoke(dp, JOB, 15);
	tap_ok(ok && copies == 2, "ring: workers without arrays leave: no copy is made");
	tap_ok(make_round(2) && has_result(2) && has_result(1) && !kept_rings(),
	       "ring: rounds go on in the copy, and nothing else is left pinned");
}

int main(void)
{
	char path[PATH_MAX];

	setenv("SAINA_BPF_OBJECT", path_beside(path, "../saina_xdp.bpf.o"), 0);
	if (geteuid())
		tap_skip_all("only root may load BPF programs");
	if (unshare(CLONE_NEWNET | CLONE_NEWNS) || !mkdtemp(pins) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("bpf", pins, "bpf", 0, NULL))
		tap_skip_all("cannot mount a bpffs");
	make_job();
	tap_ok(is_killed_in_copy(), "ring: the process that copies it is killed");
	open_dp();
	tap_ok(saina_dp_taken_over(dp) && has_result(0),
	       "ring: the next process has the job, and its results");
	tap_ok(make_round(1) && has_result(1), "ring: the next process: rounds go on");
	tap_ok(saina_dp_shm_is_granted(dp, JOB, 3),
	       "ring: the next process sees whose memory is to be revoked");
	check_leavers();
	saina_dp_close(dp, true);
	umount2(pins, MNT_DETACH);
	rmdir(pins);
	return tap_done();
}
