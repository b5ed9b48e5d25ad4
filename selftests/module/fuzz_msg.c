// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>

#include "ctl/obj.h"
#include "fuzz_msg.h"

static void put_bytes(struct fuzz_batch *b, const void *p, size_t n)
{
	if (b->used + n > sizeof(b->buf))
		n = sizeof(b->buf) - b->used;
	memcpy(b->buf + b->used, p, n);
	b->used += n;
}

static void put_pad(struct fuzz_batch *b)
{
	static const char zero[4];

	put_bytes(b, zero, -b->used & 3);
}

/* Begins an attribute; returns where its length stands. */
static size_t attr_begin(struct fuzz_batch *b, unsigned int type)
{
	struct nlattr a = { .nla_type = type };
	size_t at = b->used;

	put_bytes(b, &a, sizeof(a));
	return at;
}

static void attr_end(struct fuzz_batch *b, size_t at)
{
	unsigned short len = b->used - at;

	if (at + sizeof(len) <= sizeof(b->buf))
		memcpy(b->buf + at, &len, sizeof(len));
	put_pad(b);
}

/* The same, with a length that lies now and then. */
static void attr_end_fuzzy(struct fuzz_batch *b, size_t at)
{
	size_t end = b->used;
	unsigned short len;

	attr_end(b, at);
	if (!rng_chance(&b->rng, 5) || end > sizeof(b->buf) - sizeof(len))
		return;
	len = rng_u64(&b->rng);
	memcpy(b->buf + at, &len, sizeof(len));
}

static void put_attr(struct fuzz_batch *b, unsigned int type, const void *p, size_t n)
{
	size_t at = attr_begin(b, type);

	put_bytes(b, p, n);
	attr_end(b, at);
}

static void put_u(struct fuzz_batch *b, unsigned int type, uint64_t v, unsigned int width)
{
	put_attr(b, type, &v, width);
}

static void put_str(struct fuzz_batch *b, unsigned int type, const char *s)
{
	put_attr(b, type, s, strlen(s) + 1);
}

static void put_random(struct fuzz_batch *b, size_t n)
{
	uint64_t r;

	for (; n > sizeof(r); n -= sizeof(r)) {
		r = rng_u64(&b->rng);
		put_bytes(b, &r, sizeof(r));
	}
	r = rng_u64(&b->rng);
	put_bytes(b, &r, n);
}

/* Structured: any of the attributes, with contents that have a taste of them */

static void put_string(struct fuzz_batch *b)
{
	static const char *const some[] = {
		"a", "b", "c", "d", "job-with-a-name", "0", "17", "", "secret",
		"a name much longer than the thirty-one characters that fit",
	};
	const char *s = some[rng_below(&b->rng, sizeof(some) / sizeof(some[0]))];

	put_bytes(b, s, strlen(s) + !rng_chance(&b->rng, 50));
	if (rng_chance(&b->rng, 20))
		put_random(b, rng_below(&b->rng, 40));
}

static void put_number(struct fuzz_batch *b, unsigned int width)
{
	static const uint64_t some[] = { 0, 1, 2, 3, 4, 8, 64, 65, 255, 256, 257, 352, 1000, 65535,
					 1u << 31, ~0u, ~0ull, 1ull << 33 };
	uint64_t n = some[rng_below(&b->rng, sizeof(some) / sizeof(some[0]))];

	if (rng_chance(&b->rng, 100))
		n = rng_u64(&b->rng);
	if (rng_chance(&b->rng, 500))
		n &= 3;
	put_bytes(b, &n, rng_chance(&b->rng, 10) ? rng_below(&b->rng, 9) : width);
}

static void put_attrs(struct fuzz_batch *b, const struct saina_attr_class *c);

static void put_value(struct fuzz_batch *b, const struct saina_attr *f)
{
	switch (f->kind) {
	case SAINA_ATTR_NEST:
		put_attrs(b, f->nest);
		break;
	case SAINA_ATTR_STRING:
		put_string(b);
		break;
	case SAINA_ATTR_BYTES:
		put_random(b, rng_chance(&b->rng, 20) ? rng_below(&b->rng, 12) : f->size);
		break;
	case SAINA_ATTR_WORDS:
		put_random(b, 8 * rng_below(&b->rng, 4));
		break;
	default:
		put_number(b, 1 << (f->kind - SAINA_ATTR_U8));
	}
}

static void put_field(struct fuzz_batch *b, const struct saina_attr_class *c)
{
	const struct saina_attr *f = &c->attrs[rng_below(&b->rng, c->n)];
	size_t at;

	if (rng_chance(&b->rng, 10)) {
		at = attr_begin(b, rng_u64(&b->rng));
		put_random(b, rng_below(&b->rng, 20));
	} else {
		at = attr_begin(b, f->number | (!f->nest == rng_chance(&b->rng, 990) ? 0 : NLA_F_NESTED));
		put_value(b, f);
	}
	attr_end_fuzzy(b, at);
}

static void put_attrs(struct fuzz_batch *b, const struct saina_attr_class *c)
{
	unsigned int n = rng_below(&b->rng, 5);

	while (n--)
		put_field(b, c);
}

/* What a command takes, or now and then what another does. */
static const struct saina_attr_class *class_of(struct fuzz_batch *b, unsigned int cmd)
{
	const struct saina_op *op = rng_chance(&b->rng, 10) ? NULL : saina_ctl_op(cmd);

	return (op ?: &saina_ops[rng_range(&b->rng, 1, SAINA_CMD_MAX)])->class;
}

static void put_structured(struct fuzz_batch *b, unsigned int cmd, bool dump)
{
	size_t body = b->used;

	if (cmd != SAINA_CMD_LIMITS_GET && !(dump && rng_chance(&b->rng, 500)))
		put_attrs(b, class_of(b, cmd));
	while (rng_chance(&b->rng, 30) && b->used > body)	/* and a few bits turned */
		b->buf[body + rng_below(&b->rng, b->used - body)] ^= 1 << rng_below(&b->rng, 8);
}

/* Likely: as somebody might mean it */

static void put_policy(struct fuzz_batch *b)
{
	size_t at = attr_begin(b, SAINA_A_JOB_POLICY | NLA_F_NESTED);
	unsigned int mode = rng_range(&b->rng, SAINA_POLICY_BSP, SAINA_POLICY_SFCD);

	put_u(b, SAINA_A_POLICY_MODE, mode, 1);
	if (mode != SAINA_POLICY_BSP)
		put_u(b, SAINA_A_POLICY_K, rng_range(&b->rng, 1, 3), 1);
	if (mode != SAINA_POLICY_BSP && rng_chance(&b->rng, 300))
		put_u(b, SAINA_A_POLICY_LATE, SAINA_LATE_DROP, 1);
	if (mode == SAINA_POLICY_SFCD && rng_chance(&b->rng, 300))
		put_u(b, SAINA_A_POLICY_K_MAX, 3, 1);
	if (mode == SAINA_POLICY_SFCD && rng_chance(&b->rng, 300))
		put_u(b, SAINA_A_POLICY_C_TH, rng_below(&b->rng, 10), 2);
	if (mode == SAINA_POLICY_SFCD && rng_chance(&b->rng, 300))
		put_u(b, SAINA_A_POLICY_STRIDE, 1 << rng_below(&b->rng, 7), 2);
	attr_end(b, at);
}

static void put_job(struct fuzz_batch *b, unsigned int cmd)
{
	static const uint16_t payloads[] = { 64, 128, 256, 352, 1024, 2048 };
	char name[2] = { 'a' + rng_below(&b->rng, FUZZ_JOBS), 0 };

	if (cmd == SAINA_CMD_JOB_NEW) {
		put_str(b, SAINA_A_JOB_NAME, name);
		put_u(b, SAINA_A_JOB_ELEMENTS, 1 + rng_below(&b->rng, 100000), 8);
		put_u(b, SAINA_A_JOB_WORKERS, rng_range(&b->rng, 1, 8), 1);
		if (rng_chance(&b->rng, 300))
			put_u(b, SAINA_A_JOB_PAYLOAD, payloads[rng_below(&b->rng, 6)], 2);
		if (rng_chance(&b->rng, 300))
			put_str(b, SAINA_A_JOB_TOKEN, "secret");
		return;
	}
	if (rng_chance(&b->rng, 500))
		put_u(b, SAINA_A_JOB_ID, rng_below(&b->rng, FUZZ_JOBS), 2);
	else
		put_str(b, SAINA_A_JOB_NAME, name);
	if (cmd != SAINA_CMD_JOB_SET)
		return;
	if (rng_chance(&b->rng, 700))
		put_policy(b);
	if (rng_chance(&b->rng, 150))
		put_u(b, SAINA_A_JOB_STATE, rng_range(&b->rng, 1, 3), 1);
	if (rng_chance(&b->rng, 150))
		put_u(b, SAINA_A_JOB_HEARTBEAT_MS, rng_range(&b->rng, 10, 5000), 2);
}

static void put_worker(struct fuzz_batch *b, unsigned int cmd)
{
	unsigned int id = rng_below(&b->rng, 5);

	put_u(b, SAINA_A_WORKER_JOB_ID, rng_below(&b->rng, FUZZ_JOBS), 2);
	put_u(b, SAINA_A_WORKER_ID, id, 1);
	if (cmd != SAINA_CMD_WORKER_SET)
		return;
	if (rng_chance(&b->rng, 400)) {
		put_u(b, SAINA_A_WORKER_STATE, rng_range(&b->rng, 1, 4), 1);
		if (rng_chance(&b->rng, 200))
			put_str(b, SAINA_A_WORKER_NAME, "somebody");
		return;
	}
	put_u(b, SAINA_A_WORKER_IFINDEX, 1, 4);
	put_u(b, SAINA_A_WORKER_IP, rng_u64(&b->rng) | 1, 4);
	put_u(b, SAINA_A_WORKER_MAC, (rng_u64(&b->rng) & ~1ull) | 2, 6);
	put_u(b, SAINA_A_WORKER_UDP_PORT, rng_u64(&b->rng) | 1, 2);
	put_u(b, SAINA_A_WORKER_SESSION, rng_u64(&b->rng) | 1, 8);
	if (rng_chance(&b->rng, 200))
		put_u(b, SAINA_A_WORKER_ROUND, rng_below(&b->rng, 100), 4);
}

/* Of the commands, by how often they are given. */
static unsigned int some_command(struct fuzz_batch *b)
{
	static const struct {
		unsigned char cmd;
		unsigned char weight;	/* of 100 */
	} some[] = {
		{ SAINA_CMD_JOB_SET, 26 }, { SAINA_CMD_JOB_GET, 15 }, { SAINA_CMD_WORKER_SET, 26 },
		{ SAINA_CMD_WORKER_GET, 12 }, { SAINA_CMD_JOB_NEW, 9 }, { SAINA_CMD_WORKER_DEL, 4 },
		{ SAINA_CMD_LIMITS_GET, 4 }, { SAINA_CMD_LIMITS_SET, 2 }, { SAINA_CMD_JOB_DEL, 2 },
	};
	unsigned int r = rng_below(&b->rng, 100), i = 0;

	for (i = 0; r >= some[i].weight; i++)
		r -= some[i].weight;
	return some[i].cmd;
}

static void put_likely(struct fuzz_batch *b, unsigned int cmd, bool dump)
{
	if (cmd == SAINA_CMD_LIMITS_GET || (dump && rng_chance(&b->rng, 700)))
		return;
	switch (cmd) {
	case SAINA_CMD_JOB_NEW ... SAINA_CMD_JOB_GET:
		if (!dump)
			put_job(b, cmd);
		break;
	case SAINA_CMD_WORKER_SET ... SAINA_CMD_WORKER_GET:
		if (dump)
			put_u(b, SAINA_A_WORKER_JOB_ID, rng_below(&b->rng, FUZZ_JOBS), 2);
		else
			put_worker(b, cmd);
		break;
	case SAINA_CMD_LIMITS_SET:
		put_u(b, SAINA_A_LIMITS_JOBS, rng_range(&b->rng, FUZZ_JOBS, 256), 4);
		break;
	}
}

static bool can_dump(unsigned int cmd)
{
	return cmd == SAINA_CMD_JOB_GET || cmd == SAINA_CMD_WORKER_GET;
}

static void message_make(struct fuzz_batch *b, int i)
{
	struct nlmsghdr h = { .nlmsg_type = b->family, .nlmsg_flags = NLM_F_REQUEST,
			      .nlmsg_seq = b->seq + i };
	struct genlmsghdr g = { .version = SAINA_FAMILY_VERSION };
	unsigned int r = rng_below(&b->rng, 100);
	enum fuzz_kind kind = r < 50 ? FUZZ_LIKELY : r < 80 ? FUZZ_STRUCTURED : FUZZ_BLIND;
	size_t at = b->used;
	bool dump;

	if (kind == FUZZ_LIKELY) {
		g.cmd = some_command(b);
		dump = can_dump(g.cmd) && rng_chance(&b->rng, 50);
	} else {
		g.cmd = rng_chance(&b->rng, 10) ? rng_u64(&b->rng) :
						  rng_range(&b->rng, 1, SAINA_CMD_MAX);
		dump = rng_chance(&b->rng, 100);
		if (rng_chance(&b->rng, 5))
			g.version = rng_u64(&b->rng), g.reserved = rng_u64(&b->rng);
	}
	if (dump)
		h.nlmsg_flags |= NLM_F_DUMP;
	/* a dump has an end anyway */
	if (!dump && rng_chance(&b->rng, 980))
		h.nlmsg_flags |= NLM_F_ACK;
	b->what[i].kind = kind;
	b->what[i].cmd = g.cmd;
	b->what[i].dump = dump;
	b->what[i].ack = dump || h.nlmsg_flags & NLM_F_ACK;
	put_bytes(b, &h, sizeof(h));
	put_bytes(b, &g, sizeof(g));
	switch (kind) {
	case FUZZ_LIKELY:
		put_likely(b, g.cmd, dump);
		break;
	case FUZZ_STRUCTURED:
		put_structured(b, g.cmd, dump);
		break;
	default:
		put_random(b, rng_below(&b->rng, 200));
	}
	h.nlmsg_len = b->used - at;
	memcpy(b->buf + at, &h, sizeof(h));
	put_pad(b);
}

void fuzz_batch_make(struct fuzz_batch *b)
{
	int i;

	b->used = 0;
	for (i = 0; i < FUZZ_BATCH; i++)
		message_make(b, i);
}
