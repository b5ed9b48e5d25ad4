// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Random messages to the family saina (fuzz_msg.c) from several processes at
 * once.  Whatever comes back must be well-formed, and each message must be
 * answered once: the kernel is done with a message when its answer is there, so
 * the answers are what is counted.  In the test VM; as root.
 *
 *	netlink_fuzz [-n MESSAGES] [-p PROCESSES] [-s SEED] [-m | -r]
 *
 * -m: allocations fail: a message may not get through, nor its answer; a dump may be
 *     refused with ENOBUFS and come all the same, when the next answer is read
 *     (netlink_dump() leaves it running if there is no memory for its first part)
 * -r: for ever, also when the family is not there (the module comes and goes)
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <linux/netlink.h>

#include "ctl/obj.h"
#include "monotonic.h"
#include "fuzz_msg.h"
#include "../lib/tap.h"

#define ANSWERS 64		/* datagrams read at once */
#define ROOM	8192		/* of each; dumps are as long as there is room */

struct tally {
	unsigned long sent, accepted, refused, silent, unread, malformed, twice, unanswered, resumed;
	unsigned long kind_accepted[FUZZ_KINDS], kind_refused[FUZZ_KINDS];
	unsigned long cmd_accepted[256], cmd_refused[256];
	unsigned long error[256];
};

static struct fuzz_batch batch;
static struct tally *tally;
static unsigned char finals[FUZZ_BATCH];	/* of each message of the batch */
static int error_of[FUZZ_BATCH];
static int fd = -1;
static bool patient;		/* -m, -r */

/* A data message must be one of ours, well formed and with something in it. */
static bool object_ok(const struct nlmsghdr *h)
{
	static union saina_any_attrs attrs;
	const struct genlmsghdr *g = (const void *)((const char *)h + NLMSG_HDRLEN);
	const struct saina_op *op;

	if (h->nlmsg_type != batch.family || h->nlmsg_len < NLMSG_HDRLEN + GENL_HDRLEN)
		return false;
	op = saina_ctl_op(g->cmd);
	return op && !saina_ctl_decode(h, op->class, &attrs) && attrs.has;
}

static void answer(const struct nlmsghdr *h)
{
	uint32_t i = h->nlmsg_seq - batch.seq;
	int error;

	if (i >= FUZZ_BATCH) {
		tally->malformed++;
		return;
	}
	if (h->nlmsg_type != NLMSG_ERROR && h->nlmsg_type != NLMSG_DONE) {
		tally->malformed += !object_ok(h);
		return;
	}
	if (h->nlmsg_len < NLMSG_HDRLEN + sizeof(error)) {
		tally->malformed++;
		return;
	}
	error = *(const int *)NLMSG_DATA(h);
	tally->malformed += error > 0 || error < -255;
	if (patient && error == -ENOBUFS && batch.what[i].dump && !finals[i]) {
		tally->resumed++;
		return;
	}
	tally->twice += finals[i]++ != 0;
	error_of[i] = error;
}

static void read_answers(void)
{
	static unsigned char in[ANSWERS][ROOM] __attribute__((aligned(8)));
	static struct mmsghdr msgs[ANSWERS];
	static struct iovec iov[ANSWERS];
	int i, n;

	if (!iov[0].iov_base) {
		for (i = 0; i < ANSWERS; i++) {
			iov[i] = (struct iovec){ in[i], ROOM };
			msgs[i].msg_hdr.msg_iov = &iov[i];
			msgs[i].msg_hdr.msg_iovlen = 1;
		}
	}
	/* an answer that there was no memory for is an error of its own, among others */
	while ((n = recvmmsg(fd, msgs, ANSWERS, MSG_DONTWAIT, NULL)) > 0 ||
	       (n < 0 && (errno == ENOBUFS || errno == ENOMEM))) {
		for (i = 0; i < n; i++) {
			const struct nlmsghdr *h = (const void *)in[i];
			unsigned int left = msgs[i].msg_len;

			for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left))
				answer(h);
			tally->malformed += left != 0 || (msgs[i].msg_hdr.msg_flags & MSG_TRUNC);
		}
	}
	/* answers lost would not be counted, and the run fail for it */
	tally->malformed += n < 0 && errno != EAGAIN;
}

/* The kernel works on a message while it is sent: all that it will ever say
 * has been said by now. */
static void count_answers(void)
{
	int i;

	for (i = 0; i < FUZZ_BATCH; i++) {
		bool refused = finals[i] && error_of[i];
		int kind = batch.what[i].kind, cmd = batch.what[i].cmd;

		if (!finals[i] && batch.what[i].ack) {
			tally->unanswered++;
			continue;
		}
		tally->refused += refused;
		tally->kind_refused[kind] += refused;
		tally->cmd_refused[cmd] += refused;
		if (refused) {
			tally->error[-error_of[i] & 255]++;
			continue;
		}
		tally->accepted += finals[i] != 0;
		tally->silent += !finals[i];
		tally->kind_accepted[kind]++;
		tally->cmd_accepted[cmd]++;
	}
}

static int resolve(void)
{
	struct sockaddr_nl me = { .nl_family = AF_NETLINK };
	int one = 1, size = 4 << 20;
	struct saina_ctl *ctl;
	const char *error;

	if (fd >= 0)
		close(fd);
	fd = -1;
	if (saina_ctl_open(&ctl, "kernel", &error))
		return -ENOENT;
	batch.family = saina_ctl_msg(ctl, SAINA_CMD_JOB_GET, 1)->nlmsg_type;
	saina_ctl_close(ctl);
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (fd < 0 || bind(fd, (void *)&me, sizeof(me)))
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));
	return 0;
}

static void one_batch(void)
{
	batch.seq += FUZZ_BATCH;
	memset(finals, 0, sizeof(finals));
	fuzz_batch_make(&batch);
	while (send(fd, batch.buf, batch.used, 0) < 0) {
		if (errno == EINTR)
			continue;
		tally->malformed += !patient;
		return;
	}
	tally->sent += FUZZ_BATCH;
	/* now and then a socket is closed with all its answers, dumps half read */
	if (rng_chance(&batch.rng, 20)) {
		close(fd);
		fd = -1;
		tally->unread += FUZZ_BATCH;
		return;
	}
	read_answers();
	count_answers();
}

static int fuzz(unsigned long messages, unsigned long seed, bool forever)
{
	rng_seed(&batch.rng, seed);
	batch.seq = seed << 24;
	while (forever || tally->sent < messages) {
		if ((fd < 0 || (forever && rng_chance(&batch.rng, 30))) && resolve()) {
			if (!patient) {
				printf("# the family is not there: load saina.ko\n");
				return 1;
			}
			usleep(1000);
			continue;
		}
		one_batch();
	}
	return 0;
}

/* Listens to all that the others cause, and is too slow for it. */
static int listener(void)
{
	struct saina_ctl *ctl;
	const char *error;

	if (saina_ctl_open(&ctl, "kernel", &error) ||
	    saina_ctl_subscribe(ctl, SAINA_GROUPS_CONFIG | SAINA_GROUPS_EVENTS))
		return 1;
	pause();
	return 0;
}

static void add(struct tally *sum, const struct tally *t)
{
	const unsigned long *from = (const void *)t;
	unsigned long *to = (void *)sum;
	size_t i;

	for (i = 0; i < sizeof(*t) / sizeof(*to); i++)
		to[i] += from[i];
}

/* Was it all for nothing?  Each command must have been taken and been refused. */
static int hollow(const struct tally *t)
{
	static const unsigned char taken[] = {
		SAINA_CMD_JOB_NEW, SAINA_CMD_JOB_SET, SAINA_CMD_JOB_DEL, SAINA_CMD_JOB_GET,
		SAINA_CMD_WORKER_SET, SAINA_CMD_WORKER_DEL, SAINA_CMD_WORKER_GET,
		SAINA_CMD_LIMITS_GET, SAINA_CMD_LIMITS_SET,
	};
	unsigned long all = t->accepted + t->silent + t->refused + t->unread + t->unanswered;
	int bad = 0;
	size_t i;

	for (i = 0; i < sizeof(taken); i++) {
		if (t->cmd_accepted[taken[i]] && t->cmd_refused[taken[i]])
			continue;
		printf("# command %d: %lu accepted, %lu refused\n", taken[i],
		       t->cmd_accepted[taken[i]], t->cmd_refused[taken[i]]);
		bad = 1;
	}
	if (all != t->sent || t->accepted < t->sent / 5 || t->refused < t->sent / 5 ||
	    t->unread > t->sent / 20)
		bad = 1;
	return bad;
}

static void print(const struct tally *t, double seconds)
{
	size_t i;

	printf("# likely %lu accepted %lu refused, structured %lu and %lu, blind %lu and %lu\n",
	       t->kind_accepted[FUZZ_LIKELY], t->kind_refused[FUZZ_LIKELY],
	       t->kind_accepted[FUZZ_STRUCTURED], t->kind_refused[FUZZ_STRUCTURED],
	       t->kind_accepted[FUZZ_BLIND], t->kind_refused[FUZZ_BLIND]);
	printf("# refusals by errno:");
	for (i = 0; i < 256; i++)
		if (t->error[i])
			printf(" %s %lu", strerrorname_np(i) ? strerrorname_np(i) : "?", t->error[i]);
	putchar('\n');
	printf("# %lu messages processed: %lu accepted (%lu of them without asking for an answer), "
	       "%lu refused, %lu whose answers nobody read; %.0f messages/s\n",
	       t->sent - t->unanswered, t->accepted + t->silent, t->silent, t->refused, t->unread,
	       t->sent / seconds);
	if (t->resumed)
		printf("# %lu dumps refused with ENOBUFS, to be resumed\n", t->resumed);
}

static bool running(pid_t child)
{
	siginfo_t end = { 0 };

	return !waitid(P_PID, child, &end, WEXITED | WNOHANG | WNOWAIT) && !end.si_pid;
}

int main(int argc, char **argv)
{
	unsigned long messages = 100000, seed = 1;
	int processes = 1, failed = 0, status, c;
	uint64_t begin;
	bool forever = false;
	struct tally *all, sum = { 0 };
	pid_t ear, pid, first = 0;

	while ((c = getopt(argc, argv, "n:p:s:mr")) != -1) {
		switch (c) {
		case 'n': messages = strtoul(optarg, NULL, 0); break;
		case 'p': processes = atoi(optarg); break;
		case 's': seed = strtoul(optarg, NULL, 0); break;
		case 'm': patient = true; break;
		case 'r': patient = forever = true; break;
		default: return 2;
		}
	}
	if (processes < 1 || processes > 64)
		return 2;
	all = mmap(NULL, processes * sizeof(*all), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		return 1;
	fflush(stdout);
	begin = monotonic_ns();
	ear = patient ? 0 : fork();
	if (!ear && !patient)
		_exit(listener());
	for (c = 0; c < processes; c++) {
		pid = fork();
		if (!c)
			first = pid;
		if (!pid) {
			tally = &all[c];
			status = fuzz((messages + processes - 1) / processes, seed + c, forever);
			fflush(stdout);
			_exit(status);
		}
	}
	/* to tell somebody of everything is dear: only of the first tenth */
	while (ear && all[0].sent < messages / processes / 10 && running(first))
		usleep(10000);
	if (ear) {
		kill(ear, SIGKILL);
		waitpid(ear, &status, 0);
	}
	for (c = 0; c < processes; c++) {
		wait(&status);
		failed += status != 0;
	}
	for (c = 0; c < processes; c++)
		add(&sum, &all[c]);
	printf("# seeds %lu to %lu\n", seed, seed + processes - 1);
	print(&sum, (monotonic_ns() - begin) / 1e9);
	tap_ok(!failed && !sum.malformed, "all answers are well-formed (%lu are not)", sum.malformed);
	tap_ok(!sum.twice && (patient || !sum.unanswered),
	       "every message is answered once (%lu twice, %lu not at all)", sum.twice, sum.unanswered);
	tap_ok(!hollow(&sum), "of each command some messages are accepted and some refused");
	return tap_done();
}
