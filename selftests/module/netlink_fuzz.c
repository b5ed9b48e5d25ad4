// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Random messages to the family saina: well-formed ones with random contents,
 * ill-formed ones, and noise.  Whatever comes back must itself be well-formed.
 * In the test VM; as root.
 *
 *	netlink_fuzz [-n MESSAGES] [-p PROCESSES] [-s SEED] [-r]
 *
 * -r: go on when the family is not there (the module comes and goes)
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include "linux/saina.h"
#include "../lib/rng.h"

#define BATCH	16		/* messages in one datagram */
#define MSG_MAX	1024

static struct rng rng;
static int fd = -1, family;
static unsigned long answers, refused, bad;

static unsigned char out[BATCH * MSG_MAX];
static size_t used;

static void put(const void *p, size_t n)
{
	if (used + n > sizeof(out))
		n = sizeof(out) - used;
	memcpy(out + used, p, n);
	used += n;
}

static void put_pad(void)
{
	static const char zero[4];

	put(zero, -used & 3);
}

/* Begins an attribute; returns where its length stands. */
static size_t attr_begin(unsigned int type)
{
	struct nlattr a = { .nla_type = type };
	size_t at = used;

	put(&a, sizeof(a));
	return at;
}

static void attr_end(size_t at)
{
	unsigned short len = used - at;

	/* now and then a length that lies */
	if (rng_chance(&rng, 5))
		len = rng_u64(&rng);
	if (at + 2 <= sizeof(out))
		memcpy(out + at, &len, sizeof(len));
	put_pad();
}

static void put_random(size_t n)
{
	while (n--) {
		unsigned char c = rng_u64(&rng) >> 32;

		put(&c, 1);
	}
}

static void put_string(void)
{
	static const char *const some[] = {
		"a", "b", "c", "d", "job-with-a-name", "0", "17", "", "bsp", "fastest:k=1", "fastest:k=2",
		"fastest:k=2,late=drop", "sfcd", "sfcd:k0=1,kmin=1,kmax=2,sth=0.25,cth=k,stride=64",
		"sfcd:parity", "sfcd:k0=,", "fastest:k=99999999999", "bsp:x", "secret",
		"a name much longer than the thirty-one characters that fit",
		"sfcd:kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk=1",
	};
	const char *s = some[rng_below(&rng, sizeof(some) / sizeof(some[0]))];

	put(s, strlen(s) + !rng_chance(&rng, 50));
	if (rng_chance(&rng, 20))
		put_random(rng_below(&rng, 40));
}

static void put_number(unsigned int width)
{
	static const uint64_t some[] = { 0, 1, 2, 3, 4, 8, 64, 65, 255, 256, 257, 352, 1000, 65535, 1u << 31,
					 ~0u, ~0ull, 1ull << 33 };
	uint64_t n = some[rng_below(&rng, sizeof(some) / sizeof(some[0]))];

	if (rng_chance(&rng, 100))
		n = rng_u64(&rng);
	if (rng_chance(&rng, 500))
		n &= 3;
	put(&n, rng_chance(&rng, 10) ? rng_below(&rng, 9) : width);
}

/* What an attribute of an object holds: 0 a string, -n n bytes, else its width. */
static const signed char job_width[] = { 0, 2, 0, 1, 8, 1, 2, 4, 4, 1, 1, 0, 0, 2, 2, 4, 4, 8, 8, 4, 1, 4, 4 };
static const signed char worker_width[] = { 0, 2, 0, 1, 0, 1, 4, 0, 4, -6, 2, 2, 1, 4, 4 };
static const signed char limits_width[] = { 0, 4, 8, 8, 4, 8 };
static const signed char other_width[] = { 0, 2, 0, 1, 4 };

static void put_attr(const signed char *width, unsigned int n)
{
	unsigned int type = rng_range(&rng, 1, n - 1);
	size_t at;

	if (rng_chance(&rng, 10)) {
		at = attr_begin(rng_u64(&rng));
		put_random(rng_below(&rng, 20));
	} else {
		at = attr_begin(type);
		if (!width[type])
			put_string();
		else if (width[type] < 0)
			put_random(rng_chance(&rng, 20) ? rng_below(&rng, 12) : (uint32_t)-width[type]);
		else
			put_number(width[type]);
	}
	attr_end(at);
}

static void put_u(unsigned int type, uint64_t v, unsigned int width)
{
	size_t at = attr_begin(type);

	put(&v, width);
	attr_end(at);
}

/* A job or binding that the core is likely to take, else nothing would ever
 * get past its first checks. */
static void put_likely(int cmd)
{
	char name[2] = { 'a' + rng_below(&rng, 12), 0 };
	size_t at;

	if (cmd == SAINA_CMD_JOB_NEW) {
		at = attr_begin(SAINA_A_JOB_NAME);
		put(name, 2);
		attr_end(at);
		put_u(SAINA_A_JOB_ELEMENTS, 1 + rng_below(&rng, 100000), 8);
		put_u(SAINA_A_JOB_WORKERS, 1 + rng_below(&rng, 8), 1);
		return;
	}
	if (cmd == SAINA_CMD_JOB_SET || cmd == SAINA_CMD_JOB_DEL || cmd == SAINA_CMD_JOB_GET) {
		put_u(SAINA_A_JOB_ID, rng_below(&rng, 12), 2);
		if (cmd != SAINA_CMD_JOB_SET)
			return;
		at = attr_begin(SAINA_A_JOB_POLICY);
		put_string();
		attr_end(at);
		return;
	}
	/* the same number in the nest of a worker and of statistics */
	put_u(SAINA_A_WORKER_JOB_ID, rng_below(&rng, 12), 2);
	if (cmd == SAINA_CMD_STATS_GET)
		return;
	put_u(SAINA_A_WORKER_ID, rng_below(&rng, 8), 1);
	if (cmd != SAINA_CMD_WORKER_SET || rng_chance(&rng, 200))
		return;
	put_u(SAINA_A_WORKER_IFINDEX, 1, 4);
	put_u(SAINA_A_WORKER_IP, rng_u64(&rng), 4);
	put_u(SAINA_A_WORKER_MAC, rng_u64(&rng) & ~1ull, 6);
	put_u(SAINA_A_WORKER_UDP_PORT, rng_u64(&rng), 2);
	put_u(SAINA_A_WORKER_SESSION, rng_u64(&rng), 2);
}

static void put_nest(int cmd)
{
	static const struct {
		const signed char *width;
		unsigned int n;
	} objects[] = {
		[SAINA_A_JOB] = { job_width, sizeof(job_width) },
		[SAINA_A_WORKER] = { worker_width, sizeof(worker_width) },
		[SAINA_A_PORT] = { other_width, sizeof(other_width) },
		[SAINA_A_SLOT] = { other_width, sizeof(other_width) },
		[SAINA_A_STATS] = { other_width, sizeof(other_width) },
		[SAINA_A_LIMITS] = { limits_width, sizeof(limits_width) },
	};
	static const unsigned char object_of[SAINA_CMD_MAX + 1] = {
		[SAINA_CMD_JOB_NEW ... SAINA_CMD_JOB_DEL_NTF] = SAINA_A_JOB,
		[SAINA_CMD_WORKER_SET ... SAINA_CMD_WORKER_DEL_NTF] = SAINA_A_WORKER,
		[SAINA_CMD_PORT_GET ... SAINA_CMD_PORT_NTF] = SAINA_A_PORT,
		[SAINA_CMD_SLOT_GET] = SAINA_A_SLOT,
		[SAINA_CMD_STATS_GET] = SAINA_A_STATS,
		[SAINA_CMD_LIMITS_GET ... SAINA_CMD_LIMITS_SET] = SAINA_A_LIMITS,
	};
	unsigned int object = cmd <= SAINA_CMD_MAX ? object_of[cmd] : 0, i, n;
	bool likely = (object == SAINA_A_JOB || object == SAINA_A_WORKER || object == SAINA_A_STATS) &&
		      rng_chance(&rng, 600);
	size_t at;

	if (!object || rng_chance(&rng, 10))
		object = rng_range(&rng, SAINA_A_JOB, SAINA_A_LIMITS);
	at = attr_begin(object | (rng_chance(&rng, 10) ? 0 : NLA_F_NESTED));
	if (likely)
		put_likely(cmd);
	n = likely ? rng_chance(&rng, 200) : rng_below(&rng, 5);
	for (i = 0; i < n; i++)
		put_attr(objects[object].width, objects[object].n);
	attr_end(at);
}

static void put_message(void)
{
	struct nlmsghdr h = { .nlmsg_type = family, .nlmsg_flags = NLM_F_REQUEST, .nlmsg_seq = 1 };
	struct genlmsghdr g = { .version = SAINA_GENL_VERSION };
	size_t at = used;

	g.cmd = rng_chance(&rng, 10) ? rng_u64(&rng) : rng_range(&rng, 1, SAINA_CMD_MAX);
	/* deleting a job is as likely as making one: that is too likely */
	if (g.cmd == SAINA_CMD_JOB_DEL && rng_chance(&rng, 700))
		g.cmd = SAINA_CMD_WORKER_SET;
	if (rng_chance(&rng, 5))
		g.version = rng_u64(&rng), g.reserved = rng_u64(&rng);
	if (rng_chance(&rng, 100))
		h.nlmsg_flags |= NLM_F_DUMP;
	if (rng_chance(&rng, 200))
		h.nlmsg_flags |= NLM_F_ACK;
	put(&h, sizeof(h));
	put(&g, sizeof(g));
	if (rng_chance(&rng, 150)) {
		put_random(rng_below(&rng, 200));	/* blind */
	} else {
		size_t body = used;

		if (g.cmd != SAINA_CMD_LIMITS_GET && !(h.nlmsg_flags & NLM_F_DUMP && rng_chance(&rng, 500)))
			put_nest(g.cmd);
		if (rng_chance(&rng, 10))
			put_nest(g.cmd);
		while (rng_chance(&rng, 30) && used > body)	/* and a few bits turned */
			out[body + rng_below(&rng, used - body)] ^= 1 << rng_below(&rng, 8);
	}
	h.nlmsg_len = used - at;
	if (at + sizeof(h) <= sizeof(out))
		memcpy(out + at, &h, sizeof(h));
	put_pad();
}

/* Reads what there is and looks at its form. */
static void drain(int ms)
{
	static char in[1 << 16] __attribute__((aligned(8)));
	struct pollfd p = { .fd = fd, .events = POLLIN };

	while (poll(&p, 1, ms) > 0) {
		ssize_t n = recv(fd, in, sizeof(in), MSG_DONTWAIT);
		const struct nlmsghdr *h = (void *)in;

		if (n < 0 && (errno == ENOBUFS || errno == EAGAIN))
			continue;
		if (n < 0)
			return;
		for (; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
			const int *error = NLMSG_DATA(h);

			answers++;
			if (h->nlmsg_type != NLMSG_ERROR)
				continue;
			refused += *error != 0;
			bad += *error > 0 || *error < -133;
		}
		bad += n > 0;
		ms = 0;
	}
}

static int resolve(void)
{
	static char in[8192] __attribute__((aligned(8)));
	struct sockaddr_nl me = { .nl_family = AF_NETLINK };
	struct {
		struct nlmsghdr h;
		struct genlmsghdr g;
		struct nlattr a;
		char name[8];
	} req = {
		.h = { .nlmsg_len = 20 + 4 + 6, .nlmsg_type = GENL_ID_CTRL, .nlmsg_flags = NLM_F_REQUEST },
		.g = { .cmd = CTRL_CMD_GETFAMILY, .version = 1 },
		.a = { .nla_len = 10, .nla_type = CTRL_ATTR_FAMILY_NAME },
		.name = SAINA_GENL_NAME,
	};
	const struct nlmsghdr *h = (void *)in;
	int one = 1, size = 1 << 20;
	const char *at;
	ssize_t n;

	if (fd >= 0)
		close(fd);
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (fd < 0 || bind(fd, (void *)&me, sizeof(me)))
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	setsockopt(fd, 270, NETLINK_EXT_ACK, &one, sizeof(one));
	if (send(fd, &req, req.h.nlmsg_len, 0) < 0)
		return -errno;
	n = recv(fd, in, sizeof(in), 0);
	if (n < (ssize_t)sizeof(*h) || h->nlmsg_type == NLMSG_ERROR)
		return -ENOENT;
	for (at = in + 20; at + 4 <= in + n; at += NLA_ALIGN(((struct nlattr *)at)->nla_len)) {
		const struct nlattr *a = (void *)at;

		if (a->nla_len < sizeof(*a))
			break;
		if (a->nla_type == CTRL_ATTR_FAMILY_ID) {
			family = *(unsigned short *)(at + 4);
			return 0;
		}
	}
	return -ENOENT;
}

static int fuzz(unsigned long messages, unsigned long seed, bool patient)
{
	unsigned long sent = 0;

	rng_seed(&rng, seed);
	while (sent < messages) {
		int i;

		if ((fd < 0 || patient) && resolve()) {
			if (!patient) {
				printf("# the family is not there\n");
				return 1;
			}
			usleep(1000);
			continue;
		}
		for (int k = 0; k < 32 && sent < messages; k++) {
			used = 0;
			for (i = 0; i < BATCH; i++)
				put_message();
			if (send(fd, out, used, 0) < 0 && errno != ENOBUFS && errno != EAGAIN)
				bad += !patient && errno != EINTR;
			sent += BATCH;
			drain(0);
		}
		/* close some sockets in the middle of a dump */
		if (rng_chance(&rng, 50)) {
			close(fd);
			fd = -1;
		}
	}
	if (fd >= 0)
		drain(100);
	printf("# seed %lu: %lu messages, %lu answers, %lu refusals, %lu malformed answers\n", seed, sent,
	       answers, refused, bad);
	return bad || (!patient && (refused < messages / 10 || answers < refused + messages / 10));
}

int main(int argc, char **argv)
{
	unsigned long messages = 100000, seed = 1;
	int processes = 1, failed = 0, status, c;
	bool patient = false;

	while ((c = getopt(argc, argv, "n:p:s:r")) != -1) {
		switch (c) {
		case 'n': messages = strtoul(optarg, NULL, 0); break;
		case 'p': processes = atoi(optarg); break;
		case 's': seed = strtoul(optarg, NULL, 0); break;
		case 'r': patient = true; break;
		default: return 2;
		}
	}
	fflush(stdout);
	for (c = 0; c < processes; c++) {
		if (!fork()) {
			int ret = fuzz(messages / processes, seed + c, patient);

			fflush(stdout);
			_exit(ret);
		}
	}
	while (wait(&status) > 0)
		failed += status != 0;
	return failed ? 1 : 0;
}
