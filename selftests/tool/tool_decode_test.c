// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The client's decoder and transport: every object, then replies of a buggy or hostile control
 * plane. The sources are included, and built with the address and undefined-behaviour sanitizers.
 *
 * 	tool_decode_test [SEED [ROUNDS]]
 */
#include <linux/ethtool_netlink.h>

/*
 * Without saina.ko the kernel has no family "saina". With another name the client must find that
 * family and its multicast groups, and understand its refusals.
 */
#include "linux/saina.h"
#undef SAINA_FAMILY_NAME
#undef SAINA_MCGRP_EVENTS
#define SAINA_FAMILY_NAME		"ethtool"
#define SAINA_MCGRP_EVENTS	"monitor"

#include "kmod/core/attrs_gen.c"
#include "userland/ctl/obj.c"
#include "userland/ctl/error.c"
#include "userland/ctl/ack.c"
#include "userland/ctl/open.c"
#include "userland/ctl/transport.c"

#include "lib/rng.h"
#include "lib/tap.h"
#include "tool/mock_replies.h"
#include "tool/mock_agent.h"

static const struct saina_attr_class *const classes[] = {
	&saina_job_class, &saina_worker_class, &saina_port_class,
	&saina_slot_class, &saina_stats_class, &saina_limits_class,
	&saina_event_class,
};

static const int commands[] = {
	SAINA_CMD_JOB_GET, SAINA_CMD_WORKER_GET, SAINA_CMD_PORT_GET, SAINA_CMD_SLOT_GET,
	SAINA_CMD_STATS_GET, SAINA_CMD_LIMITS_GET, SAINA_CMD_EVENT,
};

static void test_tables(void)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		const struct saina_attr_class *c = classes[i];
		__u64 seen = 0;
		bool ok = true;

		for (unsigned int j = 0; j < c->n; j++) {
			const struct saina_attr *f = &c->attrs[j];

			ok &= !(seen & (1ull << f->number)) && f->number && f->number < 64 && f->name &&
			      f->offset >= sizeof(__u64) && f->offset + f->size <= c->size;
			if (f->kind <= SAINA_ATTR_U64)
				ok &= f->size == 1 << f->kind;
			if (f->nest)
				ok &= f->size == f->nest->size;
			seen |= 1ull << f->number;
		}
		tap_ok(ok, "decode: the table of %s has each attribute once, in a field of its size", c->name);
	}
}

/* Every third counter, as in mock_replies.c. */
static bool has_mock_counters(const struct saina_stats_attrs *s)
{
	for (__u64 j = 0; j < SAINA_C_N; j++)
		if (s->counters[j] != ((j + 1) % 3 ? 0 : 201000 + j))
			return false;
	return true;
}

static void test_objects(void)
{
	char buf[4096] __attribute__((aligned(8)));
	struct nlmsghdr *nlh;
	union saina_any_attrs o;

	mock_reply(buf, NULL, SAINA_CMD_JOB_GET, 0);
	tap_ok(!saina_ctl_decode((void *)buf, &saina_job_class, &o) && o.job.id == 17 &&
		       !strcmp(o.job.name, "digits") && o.job.elements == 301066 &&
		       o.job.exponent == -21 && o.job.memory == 12897484 &&
		       o.job.policy_seq_active == 6 && !SAINA_HAS(&o.job, SAINA_A_JOB_TOKEN),
	       "decode: the attributes of a job are read");
	mock_reply(buf, NULL, SAINA_CMD_STATS_GET, 1);
	tap_ok(!saina_ctl_decode((void *)buf, &saina_stats_class, &o) && o.stats.worker == 4 &&
		       has_mock_counters(&o.stats),
	       "decode: the counters of a worker are read");
	nlh = mock_msg(buf, NULL, SAINA_CMD_STATS_GET);
	{
		__u64 c[SAINA_C_N + 5];

		for (int i = 0; i < SAINA_C_N + 5; i++)
			c[i] = 7;
		mnl_attr_put(nlh, SAINA_A_STATS_COUNTERS, sizeof(c), c);
	}
	tap_ok(!saina_ctl_decode(nlh, &saina_stats_class, &o) &&
		       o.stats.counters[SAINA_C_N - 1] == 7,
	       "decode: counters that only a newer control plane has are ignored");
	nlh = mock_msg(buf, NULL, SAINA_CMD_STATS_GET);
	{
		__u64 c[2] = { 5, 6 };

		mnl_attr_put(nlh, SAINA_A_STATS_COUNTERS, sizeof(c), c);
	}
	tap_ok(!saina_ctl_decode(nlh, &saina_stats_class, &o) && o.stats.counters[1] == 6 &&
		       !o.stats.counters[2],
	       "decode: counters that an older control plane lacks are 0");
	tap_ok(saina_ctl_decode(nlh, &saina_job_class, &o) == -ENOENT,
	       "decode: a message with another object gives -ENOENT");
	nlh = mock_msg(buf, NULL, SAINA_CMD_JOB_GET);
	mnl_attr_put_u32(nlh, SAINA_A_JOB_K, 1);
	tap_ok(saina_ctl_decode(nlh, &saina_job_class, &o) == -EBADMSG,
	       "decode: a number of the wrong width is refused");
	nlh = mock_msg(buf, NULL, SAINA_CMD_STATS_GET);
	mnl_attr_put(nlh, SAINA_A_STATS_COUNTERS, 12, "123456789ab");
	tap_ok(saina_ctl_decode(nlh, &saina_stats_class, &o) == -EBADMSG,
	       "decode: half a counter is refused");
	nlh = mock_msg(buf, NULL, SAINA_CMD_JOB_GET);
	{
		char name[100];

		memset(name, 'x', sizeof(name));
		name[3] = '\n';
		mnl_attr_put(nlh, SAINA_A_JOB_NAME, sizeof(name), name);
		mnl_attr_put_u8(nlh, 60, 1);
	}
	tap_ok(!saina_ctl_decode(nlh, &saina_job_class, &o) && strlen(o.job.name) == 31 &&
		       o.job.name[3] == '?',
	       "decode: a long string is cut, a control character replaced, an unknown attribute ignored");
}

/* Fills some of the attributes with any content that a message can carry. */
static void fill_random(struct rng *r, const struct saina_attr_class *c, void *attrs)
{
	__u64 *has = attrs;

	for (unsigned int i = 0; i < c->n; i++) {
		const struct saina_attr *f = &c->attrs[i];
		char *to = (char *)attrs + f->offset;

		if (rng_chance(r, 300))
			continue;
		*has |= 1ull << f->number;
		if (f->nest) {
			fill_random(r, f->nest, to);
			continue;
		}
		for (unsigned int j = 0; j < f->size; j++)
			to[j] = f->kind == SAINA_ATTR_STRING ? (char)rng_range(r, 33, 126) :
							       (char)rng_u64(r);
		/* bytes behind the end of a string are not sent */
		if (f->kind == SAINA_ATTR_STRING) {
			unsigned int end = rng_below(r, f->size);

			memset(to + end, 0, f->size - end);
		}
	}
}

static void test_round_trip(struct rng *r)
{
	char a[8192] __attribute__((aligned(8)));
	bool ok = true;

	for (int n = 0; n < 2000; n++) {
		int what = rng_below(r, sizeof(classes) / sizeof(classes[0]));
		const struct saina_attr_class *c = classes[what];
		struct nlmsghdr *nlh = mock_msg(a, NULL, commands[what]);
		union saina_any_attrs in, out;

		memset(&in, 0, sizeof(in));
		fill_random(r, c, &in);
		saina_ctl_encode(nlh, c, &in);
		memset(&out, 0xa5, sizeof(out));
		ok &= !saina_ctl_decode(nlh, c, &out) && !memcmp(&in, &out, c->size);
	}
	tap_ok(ok, "decode: 2000 random objects are the same after encoding and decoding");
}

/* Damages @n bytes; may change the length, up to @max. */
static size_t damage(struct rng *r, unsigned char *p, size_t n, size_t max)
{
	static const __u16 lengths[] = { 0, 1, 3, 4, 5, 0x7fff, 0x8000, 0xfffb, 0xffff };
	__u16 v;

	for (unsigned int times = rng_range(r, 1, 4); times; times--) {
		switch (rng_below(r, 6)) {
		case 0:	/* a byte */
			if (n)
				p[rng_below(r, n)] = rng_u64(r);
			break;
		case 1:	/* a bit */
			if (n)
				p[rng_below(r, n)] ^= 1 << rng_below(r, 8);
			break;
		case 2:	/* a length or type */
			v = lengths[rng_below(r, 9)];
			if (n >= 4)
				memcpy(p + (rng_below(r, n - 2) & ~1u), &v, 2);
			break;
		case 3:	/* cut off */
			n = rng_below(r, n + 1);
			break;
		case 4:	/* longer */
			while (n < max && rng_chance(r, 900))
				p[n++] = rng_u64(r);
			break;
		case 5:	/* copy a piece */
			if (n > 8) {
				size_t from = rng_below(r, n - 8), to = rng_below(r, n - 8);

				memmove(p + to, p + from, rng_below(r, 8) + 1);
			}
			break;
		}
	}
	return n;
}

static bool is_clean(const struct saina_attr_class *c, const union saina_any_attrs *o)
{
	for (unsigned int i = 0; i < c->n; i++) {
		const struct saina_attr *f = &c->attrs[i];
		const char *s = (const char *)o + f->offset;

		if (f->kind != SAINA_ATTR_STRING)
			continue;
		if (strnlen(s, f->size) == f->size)
			return false;
		for (; *s; s++) {
			if (*s < 0x20 || *s > 0x7e)
				return false;
		}
	}
	return true;
}

static void fuzz_decode(struct rng *r, int rounds)
{
	int good = 0, bad = 0, none = 0, insane = 0;

	for (int i = 0; i < rounds; i++) {
		unsigned int what = rng_below(r, sizeof(commands) / sizeof(commands[0]));
		char buf[4096] __attribute__((aligned(8)));
		struct nlmsghdr *nlh = mock_reply(buf, NULL, commands[what], rng_below(r, 2));
		union saina_any_attrs o;
		size_t n;
		char *exact;

		if (!nlh)
			continue;
		n = damage(r, (void *)buf, nlh->nlmsg_len, 1024);
		/* a heap block of this size, so that the sanitizer sees a read behind it */
		exact = calloc(1, NLMSG_ALIGN(n) ?: 1);
		memcpy(exact, buf, n);
		nlh = (void *)exact;
		if (rng_chance(r, 800) && n >= sizeof(*nlh))
			nlh->nlmsg_len = n;
		if (msg_is_complete(nlh, (int)n) && nlh->nlmsg_len >= NLMSG_HDRLEN + GENL_HDRLEN) {
			int ret = saina_ctl_decode(nlh, classes[what], &o);

			good += !ret;
			bad += ret == -EBADMSG;
			none += ret == -ENOENT;
			insane += ret > 0 || (!ret && !is_clean(classes[what], &o));
		}
		free(exact);
	}
	tap_note("decoded %d, malformed %d, empty %d", good, bad, none);
	tap_ok(!insane && good && bad && none, "decode: %d damaged objects are decoded or refused",
	       rounds);
}

/* A client connected to the test. */
static struct saina_ctl *open_client(int *peer)
{
	struct saina_ctl *ctl = calloc(1, sizeof(*ctl));
	int sv[2];

	if (!ctl || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv))
		abort();
	ctl->last = &ctl->first;
	ctl->fd = sv[0];
	ctl->type = SAINA_NLMSG_TYPE;
	strcpy(ctl->peer, "the test");
	*peer = sv[1];
	return ctl;
}

static int count_cb(const struct nlmsghdr *nlh, void *arg)
{
	union saina_any_attrs o;

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		saina_ctl_decode(nlh, classes[i], &o);
	(*(int *)arg)++;
	return 0;
}

static void fuzz_transport(struct rng *r, int rounds)
{
	int ok = 0, refused = 0, wrong = 0, objects = 0, notes = 0;

	for (int i = 0; i < rounds; i++) {
		char buf[8192] __attribute__((aligned(8)));
		int peer, ret, dump = rng_below(r, 2);
		struct saina_ctl *ctl = open_client(&peer);
		struct nlmsghdr *req = saina_ctl_msg(ctl, SAINA_CMD_JOB_GET, dump), *nlh;
		struct saina_job_attrs job = { .has = 1ull << SAINA_A_JOB_NAME, .name = "d" };

		saina_ctl_encode(req, &saina_job_class, &job);
		for (unsigned int n = rng_below(r, 4); n; n--) {
			nlh = mock_reply(buf, rng_chance(r, 300) ? NULL : req,
					 commands[rng_below(r, 7)], 0);
			if (nlh)
				send(peer, buf, rng_chance(r, 700) ?
					nlh->nlmsg_len :
					damage(r, (void *)buf, nlh->nlmsg_len, 2048), 0);
		}
		if (rng_chance(r, 500)) {
			/* a refusal, mostly damaged behind its sequence number */
			int tmp[2];

			if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, tmp))
				abort();
			mock_refuse(tmp[0], req, 22, "a sentence", rng_below(r, 64),
				    rng_below(r, 70), rng_below(r, 64));
			ret = (int)recv(tmp[1], buf, sizeof(buf), 0);
			close(tmp[0]);
			close(tmp[1]);
			if (rng_chance(r, 700))
				ret = 16 + (int)damage(r, (unsigned char *)buf + 16, ret - 16, 512);
			nlh = (void *)buf;
			if (rng_chance(r, 700))
				nlh->nlmsg_len = ret;
			send(peer, buf, ret, 0);
		}
		mock_ack(peer, req, NULL);
		shutdown(peer, SHUT_WR);
		ret = saina_ctl_call(ctl, req, count_cb, &objects);
		ok += !ret;
		refused += ret < 0;
		wrong += ret > 0 || (ret && !ctl->error[0]) || strlen(ctl->error) >= sizeof(ctl->error);
		while (ctl->queued && !saina_ctl_next(ctl, 0, count_cb, &notes))
			;
		close(peer);
		saina_ctl_close(ctl);
	}
	tap_note("calls that succeeded %d, failed %d; objects %d, notifications %d", ok, refused,
		 objects, notes);
	tap_ok(!wrong && ok && refused && objects && notes,
	       "calls: every failure of %d calls with damaged answers has a sentence", rounds);
}

static void test_transport(void)
{
	char buf[8192] __attribute__((aligned(8)));
	int peer, ret, n = 0;
	struct saina_ctl *ctl = open_client(&peer);
	struct nlmsghdr *req, *nlh;

	/* two messages and the end in one datagram */
	req = saina_ctl_msg(ctl, SAINA_CMD_JOB_GET, 1);
	nlh = mock_reply(buf, req, SAINA_CMD_JOB_GET, 0);
	ret = (int)NLMSG_ALIGN(nlh->nlmsg_len);
	nlh = mock_reply(buf + ret, req, SAINA_CMD_JOB_GET, 1);
	ret += (int)nlh->nlmsg_len;
	send(peer, buf, ret, 0);
	mock_ack(peer, req, NULL);
	ret = saina_ctl_call(ctl, req, count_cb, &n);
	tap_ok(!ret && n == 2, "calls: several messages in one datagram are read");

	/* replies to an earlier call that timed out are skipped */
	req = saina_ctl_msg(ctl, SAINA_CMD_JOB_GET, 1);
	req->nlmsg_seq--;
	mock_refuse(peer, req, 2, "old", 0, 0, 0);
	req->nlmsg_seq++;
	mock_ack(peer, req, NULL);
	ret = saina_ctl_call(ctl, req, count_cb, &n);
	tap_ok(!ret, "calls: answers to earlier calls are skipped");

	/* notifications during a call are queued for saina_ctl_next() */
	n = 0;
	req = saina_ctl_msg(ctl, SAINA_CMD_JOB_GET, 0);
	nlh = mock_reply(buf, NULL, SAINA_CMD_EVENT, 0);
	mock_send(peer, nlh);
	mock_ack(peer, req, NULL);
	ret = saina_ctl_call(ctl, req, count_cb, &n);
	tap_ok(!ret && !n && !saina_ctl_next(ctl, 0, count_cb, &n) && n == 1,
	       "calls: notifications that arrive during a call are kept");
	tap_ok(saina_ctl_next(ctl, 0, count_cb, &n) == -ETIMEDOUT, "calls: waiting without a notification gives -ETIMEDOUT");

	/* calls end after the time-out that was set */
	{
		long before = monotonic_ms();

		ctl->timeout_ms = SAINA_CTL_TIMEOUT_MS;
		saina_ctl_set_timeout(ctl, 50);
		req = saina_ctl_msg(ctl, SAINA_CMD_JOB_GET, 0);
		ret = saina_ctl_call(ctl, req, count_cb, &n);
		tap_ok(ret == -ETIMEDOUT && monotonic_ms() - before < 5000,
		       "calls: without an answer a call ends with its time-out");
	}

	/* a sentence longer than the buffer, an offset behind the request */
	{
		char text[600];

		memset(text, 'y', sizeof(text) - 1);
		text[sizeof(text) - 1] = 0;
		req = saina_ctl_msg(ctl, SAINA_CMD_JOB_DEL, 0);
		mock_refuse(peer, req, 22, text, req->nlmsg_len - 2, 0, 0);
		ret = saina_ctl_call(ctl, req, count_cb, &n);
		tap_ok(ret == -22 && strspn(saina_ctl_error(ctl), "y") > 200 &&
			       strlen(saina_ctl_error(ctl)) < sizeof(ctl->error) &&
			       !saina_ctl_error_attr(ctl),
		       "calls: a refusal of 599 characters is cut, its impossible offset ignored");
	}

	/* an interrupted dump is an error */
	req = saina_ctl_msg(ctl, SAINA_CMD_JOB_GET, 1);
	nlh = mock_reply(buf, req, SAINA_CMD_JOB_GET, 0);
	nlh->nlmsg_flags |= NLM_F_DUMP_INTR;
	mock_send(peer, nlh);
	mock_ack(peer, req, NULL);
	tap_ok(saina_ctl_call(ctl, req, count_cb, &n) == -EINTR, "calls: an interrupted dump gives -EINTR");

	req = saina_ctl_msg(ctl, SAINA_CMD_JOB_GET, 1);
	close(peer);
	ret = saina_ctl_call(ctl, req, count_cb, &n);
	tap_ok(ret < 0 && strstr(saina_ctl_error(ctl), "the test"), "calls: a closed connection is an error: %s",
	       saina_ctl_error(ctl));
	saina_ctl_close(ctl);
}

static int count_message(const struct nlmsghdr *nlh, void *arg)
{
	(*(int *)arg)++;
	return 0;
}

static void test_kernel(void)
{
	struct saina_ctl *ctl;
	struct nlmsghdr *req;
	struct nlattr *nest;
	const char *error;
	int ret, n = 0;

	ret = saina_ctl_open(&ctl, "kernel", &error);
	if (!ret)
		tap_ok(ctl->kernel && ctl->type > GENL_ID_CTRL && !strcmp(ctl->peer, "kernel"),
		       "kernel: a generic netlink family is found");
	else
		tap_ok(false, "kernel: a generic netlink family is found: %s", error);
	if (ret)
		return;
	/* the numbers are those of a command about jobs and of the attribute of their name */
	_Static_assert((int)ETHTOOL_MSG_LINKINFO_GET == SAINA_CMD_JOB_SET &&
		       (int)ETHTOOL_A_HEADER_DEV_NAME == SAINA_A_JOB_NAME, "the same numbers");
	req = saina_ctl_msg(ctl, ETHTOOL_MSG_LINKINFO_GET, 0);
	ret = saina_ctl_call(ctl, req, count_message, &n);
	/* the kernel names the missing attribute or, before 6.1, sends a sentence */
	tap_ok(ret == -EINVAL && !n && strstr(saina_ctl_error(ctl), "missing"),
	       "kernel: a missing attribute is reported: %s, %s", saina_ctl_error(ctl),
	       saina_ctl_error_attr(ctl) ?: "none");
	req = saina_ctl_msg(ctl, ETHTOOL_MSG_LINKINFO_GET, 0);
	nest = mnl_attr_nest_start(req, ETHTOOL_A_LINKINFO_HEADER);
	mnl_attr_put_strz(req, ETHTOOL_A_HEADER_DEV_NAME, "a-name-that-is-too-long");
	mnl_attr_nest_end(req, nest);
	ret = saina_ctl_call(ctl, req, count_message, &n);
	tap_ok(ret < 0 && !n && saina_ctl_error_attr(ctl) &&
		       !strcmp(saina_ctl_error_attr(ctl), "name"),
	       "kernel: the sentence and the attribute of a refusal are read: %s, %s", saina_ctl_error(ctl),
	       saina_ctl_error_attr(ctl) ?: "none");
	req = saina_ctl_msg(ctl, ETHTOOL_MSG_STRSET_GET, 1);
	nest = mnl_attr_nest_start(req, ETHTOOL_A_STRSET_HEADER);
	mnl_attr_nest_end(req, nest);
	ret = saina_ctl_call(ctl, req, count_message, &n);
	tap_ok(!ret && n, "kernel: a dump is read (%d messages)", n);
	tap_ok(!saina_ctl_subscribe(ctl, SAINA_GROUPS_EVENTS), "kernel: a multicast group is joined");
	ret = saina_ctl_subscribe(ctl, SAINA_GROUPS_CONFIG);
	tap_ok(ret == -EOPNOTSUPP,
	       "kernel: an unknown multicast group is refused: %s", saina_ctl_error(ctl));
	saina_ctl_close(ctl);
}

int main(int argc, char **argv)
{
	__u64 seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20260101;
	int rounds = argc > 2 ? atoi(argv[2]) : 200000;
	struct rng r;

	tap_note("seed %llu", (unsigned long long)seed);
	rng_seed(&r, seed);
	test_tables();
	test_objects();
	test_round_trip(&r);
	test_transport();
	test_kernel();
	fuzz_decode(&r, rounds);
	fuzz_transport(&r, rounds / 10);
	return tap_done();
}
