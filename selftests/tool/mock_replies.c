// SPDX-License-Identifier: GPL-2.0-or-later
#include <arpa/inet.h>
#include <string.h>

#include "linux/saina.h"
#include "saina/bpf.h"
#include "tool/mock_replies.h"
#include "tool/mock_agent.h"

#define U8(a, v)	mnl_attr_put_u8(nlh, SAINA_A_##a, v)
#define U16(a, v)	mnl_attr_put_u16(nlh, SAINA_A_##a, v)
#define U32(a, v)	mnl_attr_put_u32(nlh, SAINA_A_##a, v)
#define U64(a, v)	mnl_attr_put_u64(nlh, SAINA_A_##a, v)
#define STR(a, v)	mnl_attr_put_strz(nlh, SAINA_A_##a, v)

static void policy(struct nlmsghdr *nlh, int attr, const char *text)
{
	struct nlattr *n = mnl_attr_nest_start(nlh, attr);

	if (strcmp(text, "bsp")) {
		U8(POLICY_MODE, SAINA_POLICY_SFCD);
		U8(POLICY_LATE, SAINA_LATE_RESIDUAL);
		U8(POLICY_K, attr == SAINA_A_JOB_POLICY ? 1 : 2);
		U8(POLICY_K_MIN, 1);
		U16(POLICY_S_TH, attr == SAINA_A_JOB_POLICY ? 500 : 250);
		U16(POLICY_C_TH, attr == SAINA_A_JOB_POLICY ? 5 : 0);
		U16(POLICY_STRIDE, 32);
	} else {
		U8(POLICY_MODE, SAINA_POLICY_BSP);
	}
	mnl_attr_nest_end(nlh, n);
}

static void place(struct nlmsghdr *nlh, int i)
{
	__u16 weights[SAINA_WORKERS_MAX] = { 5, 1, 1, 1, 1, 1, 1, 31 };
	struct nlattr *n;

	if (!i) {
		mnl_attr_put(nlh, SAINA_A_JOB_WEIGHTS, sizeof(weights), weights);
		return;
	}
	n = mnl_attr_nest_start(nlh, SAINA_A_JOB_UPLINK);
	mnl_attr_put_u32(nlh, SAINA_A_UPLINK_ADDRESS, htonl(0x0a00000b));
	mnl_attr_put_u16(nlh, SAINA_A_UPLINK_PORT, htons(4711));
	STR(UPLINK_JOB, "root");
	U8(UPLINK_WORKER, 7);
	STR(UPLINK_TOKEN_FILE, "/etc/saina/token");
	STR(UPLINK_TEXT, "admitted");
	U32(UPLINK_WEIGHT, 42);
	U32(UPLINK_RANK, 11);
	U8(UPLINK_DEPTH, 1);
	U32(UPLINK_AWAY_ROUND, 1230);
	U64(UPLINK_AWAY_MS, 77);
	U64(UPLINK_BYTES_UP, 5 << 20);
	U64(UPLINK_BYTES_DOWN, 6 << 20);
	mnl_attr_nest_end(nlh, n);
}

static void job(struct nlmsghdr *nlh, int i)
{
	__u64 count[SAINA_JC_N];

	U16(JOB_ID, i ? 201 : 17);
	STR(JOB_NAME, i ? "waiting" : "digits");
	U8(JOB_STATE, i ? SAINA_JOB_FORMING : SAINA_JOB_RUNNING);
	U64(JOB_ELEMENTS, 301066);
	U8(JOB_WORKERS, 8);
	U16(JOB_PAYLOAD, 352);
	U32(JOB_POOL, 512);
	U32(JOB_RING, 16);
	U8(JOB_ELEM_TYPE, SAINA_ELEM_INT32);
	U32(JOB_EXPONENT, -21);
	policy(nlh, SAINA_A_JOB_POLICY, i ? "bsp" : "sfcd");
	U16(JOB_HEARTBEAT_MS, 210);
	U16(JOB_DEAD_MS, 2100);
	U32(JOB_SEGMENTS, 856);
	U32(JOB_GENERATION, 77);
	U64(JOB_MEMORY, 12897484);
	U64(JOB_ACTIVE, 0x6f);
	U32(JOB_ROUND, 1234);
	U8(JOB_K, 3);
	U32(JOB_POLICY_SEQ, 9);
	U32(JOB_POLICY_SEQ_ACTIVE, i ? 0 : 6);
	if (!i)
		policy(nlh, SAINA_A_JOB_POLICY_ACTIVE, "sfcd");
	U32(JOB_OPEN_SLOTS, 29);
	for (int n = 0; n < SAINA_JC_N; n++)
		count[n] = i ? 41 + n : 0;
	mnl_attr_put(nlh, SAINA_A_JOB_COUNT, sizeof(count), count);
	place(nlh, i);
	if (!i) {
		U32(JOB_SFCD_CONVERGED, 4);
		U64(JOB_SFCD_FLIPS, 4321);
		U64(JOB_SFCD_OBSERVED, 9408);
	}
}

static void worker(struct nlmsghdr *nlh, int i)
{
	static const unsigned char mac[6] = { 2, 0x11, 0xab, 0xcd, 0xef, 0xf0 };

	U16(WORKER_JOB_ID, 17);
	STR(WORKER_JOB_NAME, "digits");
	U8(WORKER_ID, i ? 7 : 4);
	STR(WORKER_NAME, i ? "node7:4711" : "node4:4242");
	U8(WORKER_STATE, i ? SAINA_WORKER_STATE_DEAD : SAINA_WORKER_STATE_ALIVE);
	U32(WORKER_IFINDEX, i ? 88 : 86);
	if (!i)
		STR(WORKER_IFNAME, "veth4sw");
	mnl_attr_put_u32(nlh, SAINA_A_WORKER_IP, htonl(0x0abe000e));
	mnl_attr_put(nlh, SAINA_A_WORKER_MAC, 6, mac);
	mnl_attr_put_u16(nlh, SAINA_A_WORKER_UDP_PORT, htons(40123));
	U64(WORKER_SESSION, 51966);
	U8(WORKER_RELAY, i);
	U32(WORKER_SEEN_MS, i ? 2345 : 93);
	U32(WORKER_ROUND, i ? 1111 : 1233);
}

static void port(struct nlmsghdr *nlh, int i)
{
	U32(PORT_IFINDEX, i ? 88 : 86);
	STR(PORT_IFNAME, i ? "veth7sw" : "veth4sw");
	U8(PORT_MODE, i ? SAINA_PORT_MODE_NONE : SAINA_PORT_MODE_NATIVE);
	STR(PORT_DRIVER, i ? "tun" : "veth");
	U32(PORT_MTU, i ? 9001 : 1501);
	U8(PORT_JUMBO, !i);
	U32(PORT_WORKERS, i ? 65 : 62);
	U32(PORT_RELAYED, i ? 13 : 0);
	U32(PORT_LOSS_IN, i ? 0 : 0x40000000);
	U32(PORT_LOSS_OUT, i ? 0 : 0x20000000);
	U64(PORT_SEED, i ? 0 : 987654321);
	if (i)
		STR(PORT_TEXT, "driver tun has no native XDP");
}

static void slot(struct nlmsghdr *nlh, int i)
{
	U16(SLOT_JOB_ID, 17);
	STR(SLOT_JOB_NAME, "digits");
	U32(SLOT_INDEX, i ? 301 : 300);
	U32(SLOT_ROUND, 1233);
	U32(SLOT_SEGMENT, i ? 813 : 812);
	U8(SLOT_COUNT, i ? 2 : 5);
	U8(SLOT_K, 6);
	U64(SLOT_SEEN, i ? 0x3 : 0x2f);
	U64(SLOT_MISSING, i ? 0 : 0xd0);	/* 4, 6, 7 */
	U64(SLOT_AGE_US, i ? 950 : 123456);
	U32(SLOT_POLICY, 6);
}

static void stats(struct nlmsghdr *nlh, int i)
{
	__u64 c[SAINA_C_N] = { 0 };

	if (i) {
		U16(STATS_JOB_ID, 17);
		STR(STATS_JOB_NAME, "digits");
		U8(STATS_WORKER, i == 1 ? 4 : 7);
	}
	for (int j = 0; j < SAINA_C_N; j++) {
		if ((j + i) % 3 == 0 && i < 2)
			c[j] = 100000 * (i + 1) + 1000 + j;
	}
	mnl_attr_put(nlh, SAINA_A_STATS_COUNTERS, sizeof(c), c);
}

static void limits(struct nlmsghdr *nlh, int i)
{
	U32(LIMITS_JOBS, 64);
	U64(LIMITS_MEMORY_JOB, 1ull << 30);
	U64(LIMITS_MEMORY, 3ull << 30);
	U32(LIMITS_JOBS_USED, 2);
	U64(LIMITS_MEMORY_USED, 25794968);
	U8(LIMITS_BACKEND, SAINA_BACKEND_KERNEL);
}

static const struct {
	__u32 type;
	__u64 a, b;
} events[] = {
	{ SAINA_EV_ROUND, 4321, 9408 },	  { SAINA_EV_K, 2, 3 },
	{ SAINA_EV_POLICY, 6, 9 },	  { SAINA_EV_DEGRADED, 812, 5 },
	{ SAINA_EV_STALE, 813, 0 },	  { SAINA_EV_JOB_STATE, SAINA_JOB_FORMING, SAINA_JOB_RUNNING },
	{ SAINA_EV_WORKER_JOINED, 0, 0 }, { SAINA_EV_WORKER_LEFT, 0, 0 },
	{ SAINA_EV_WORKER_DEAD, 0, 0 },	  { SAINA_EV_WORKER_LATE, 57, 0 },
	{ SAINA_EV_PORT, 86, 1 },	  { SAINA_EV_WORKER_NONFINITE, 12, 0 },
	{ SAINA_EV_WORKER_COARSENED, 95, 100 }, { SAINA_EV_WORKER_BEHIND, 7, 6 },
	{ SAINA_EV_TYPES, 3, 15 },
	{ 999, 0, 0 },
};

static void event(struct nlmsghdr *nlh, int i)
{
	U32(EVENT_TYPE, events[i].type);
	U64(EVENT_TIME, 3600000000000ull + i);
	U16(EVENT_JOB_ID, 17);
	STR(EVENT_JOB_NAME, "digits");
	if ((events[i].type >= SAINA_EV_WORKER_JOINED && events[i].type <= SAINA_EV_WORKER_LATE) ||
	    (events[i].type >= SAINA_EV_WORKER_NONFINITE && events[i].type <= SAINA_EV_WORKER_BEHIND))
		U8(EVENT_WORKER, 4);
	U32(EVENT_ROUND, 1240 + i);
	U8(EVENT_K, 3);
	U64(EVENT_A, events[i].a);
	U64(EVENT_B, events[i].b);
	if (events[i].type == SAINA_EV_WORKER_DEAD)
		STR(EVENT_TEXT, "silent for 2100 ms");
}

static const struct {
	int cmd, n;
	void (*fill)(struct nlmsghdr *nlh, int i);
} answers[] = {
	{ SAINA_CMD_JOB_GET, 2, job },	       { SAINA_CMD_JOB_NEW, 1, job },
	{ SAINA_CMD_WORKER_GET, 2, worker },   { SAINA_CMD_PORT_GET, 2, port },
	{ SAINA_CMD_SLOT_GET, 2, slot },       { SAINA_CMD_STATS_GET, 3, stats },
	{ SAINA_CMD_LIMITS_GET, 1, limits },   { SAINA_CMD_JOB_NTF, 2, job },
	{ SAINA_CMD_JOB_DEL_NTF, 1, job },     { SAINA_CMD_WORKER_NTF, 2, worker },
	{ SAINA_CMD_WORKER_DEL_NTF, 1, worker }, { SAINA_CMD_PORT_NTF, 2, port },
	{ SAINA_CMD_LIMITS_NTF, 1, limits },
	{ SAINA_CMD_EVENT, sizeof(events) / sizeof(events[0]), event },
};

struct nlmsghdr *mock_reply(char *buf, const struct nlmsghdr *req, int cmd, int i)
{
	struct nlmsghdr *nlh;

	for (size_t j = 0; j < sizeof(answers) / sizeof(answers[0]); j++) {
		if (answers[j].cmd != cmd || i >= answers[j].n)
			continue;
		if (req && (req->nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP && i)
			return NULL;	/* not a dump: one object only */
		nlh = mock_msg(buf, req, cmd);
		answers[j].fill(nlh, i);
		return nlh;
	}
	return NULL;
}

void mock_reply_all(int fd, const struct nlmsghdr *req, void *arg)
{
	static const int notes[] = { SAINA_CMD_EVENT, SAINA_CMD_JOB_NTF, SAINA_CMD_JOB_DEL_NTF,
				     SAINA_CMD_WORKER_NTF, SAINA_CMD_WORKER_DEL_NTF,
				     SAINA_CMD_PORT_NTF, SAINA_CMD_LIMITS_NTF };
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(req);
	char buf[4096] __attribute__((aligned(8)));
	struct nlmsghdr *nlh;

	for (int i = 0; (nlh = mock_reply(buf, req, g->cmd, i)); i++)
		mock_send(fd, nlh);
	mock_ack(fd, req, NULL);
	if (g->cmd != SAINA_CMD_SUBSCRIBE)
		return;
	for (size_t j = 0; j < sizeof(notes) / sizeof(notes[0]); j++) {
		for (int i = 0; (nlh = mock_reply(buf, NULL, notes[j], i)); i++)
			mock_send(fd, nlh);
	}
}
