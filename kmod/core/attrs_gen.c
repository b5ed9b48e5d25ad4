// SPDX-License-Identifier: GPL-2.0
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/saina.yaml */
/* by tools/netlink/attrs-gen */

#include "core/attrs.h"

#define ROW(set, n, k, member, text, ...) { .name = text, .number = n, .kind = SAINA_ATTR_##k, \
	.offset = offsetof(struct saina_##set##_attrs, member), \
	.size = sizeof(((struct saina_##set##_attrs *)0)->member), ##__VA_ARGS__ }
#define TABLE(set, text, padding) const struct saina_attr_class saina_##set##_class = { \
	.name = text, .attrs = set##_attrs, .n = sizeof(set##_attrs) / sizeof(set##_attrs[0]), \
	.size = sizeof(struct saina_##set##_attrs), .pad = padding }
#define OP(cmd, set, text, how, ...) \
	[SAINA_CMD_##cmd] = { .name = text, .class = &saina_##set##_class, .flags = how, ##__VA_ARGS__ }
#define BIT_OF(n) (1ull << (n))

static const struct saina_attr policy_attrs[] = {
	ROW(policy, SAINA_A_POLICY_MODE, U8, mode, "mode", .min = 1, .max = 9),
	ROW(policy, SAINA_A_POLICY_LATE, U8, late, "late", .min = 1, .max = 2),
	ROW(policy, SAINA_A_POLICY_K, U8, k, "k"),
	ROW(policy, SAINA_A_POLICY_K_MIN, U8, k_min, "k-min"),
	ROW(policy, SAINA_A_POLICY_K_MAX, U8, k_max, "k-max"),
	ROW(policy, SAINA_A_POLICY_FLAGS, U8, flags, "flags", .mask = 0x3),
	ROW(policy, SAINA_A_POLICY_S_TH, U16, s_th, "s-th"),
	ROW(policy, SAINA_A_POLICY_C_TH, U16, c_th, "c-th"),
	ROW(policy, SAINA_A_POLICY_STRIDE, U16, stride, "stride"),
	ROW(policy, SAINA_A_POLICY_TIMEOUT_US, U32, timeout_us, "timeout-us"),
	ROW(policy, SAINA_A_POLICY_SPREAD, U8, spread, "spread"),
	ROW(policy, SAINA_A_POLICY_WINDOW, U32, window, "window"),
	ROW(policy, SAINA_A_POLICY_GROUPS, U8, groups, "groups"),
	ROW(policy, SAINA_A_POLICY_GROUP, BYTES, group, "group"),
	ROW(policy, SAINA_A_POLICY_LEAD, U8, lead, "lead"),
};
TABLE(policy, "policy", 0);

static const struct saina_attr uplink_attrs[] = {
	ROW(uplink, SAINA_A_UPLINK_ADDRESS, U32, address, "address"),
	ROW(uplink, SAINA_A_UPLINK_PORT, U16, port, "port"),
	ROW(uplink, SAINA_A_UPLINK_JOB, STRING, job, "job"),
	ROW(uplink, SAINA_A_UPLINK_WORKER, U8, worker, "worker"),
	ROW(uplink, SAINA_A_UPLINK_TOKEN_FILE, STRING, token_file, "token-file"),
	ROW(uplink, SAINA_A_UPLINK_TEXT, STRING, text, "text"),
	ROW(uplink, SAINA_A_UPLINK_WEIGHT, U32, weight, "weight"),
	ROW(uplink, SAINA_A_UPLINK_RANK, U32, rank, "rank"),
	ROW(uplink, SAINA_A_UPLINK_DEPTH, U8, depth, "depth"),
	ROW(uplink, SAINA_A_UPLINK_AWAY_ROUND, U32, away_round, "away-round"),
	ROW(uplink, SAINA_A_UPLINK_AWAY_MS, U64, away_ms, "away-ms"),
	ROW(uplink, SAINA_A_UPLINK_BYTES_UP, U64, bytes_up, "bytes-up"),
	ROW(uplink, SAINA_A_UPLINK_BYTES_DOWN, U64, bytes_down, "bytes-down"),
};
TABLE(uplink, "uplink", SAINA_A_UPLINK_PAD);

static const struct saina_attr job_attrs[] = {
	ROW(job, SAINA_A_JOB_ID, U16, id, "id"),
	ROW(job, SAINA_A_JOB_NAME, STRING, name, "name"),
	ROW(job, SAINA_A_JOB_STATE, U8, state, "state", .min = 1, .max = 3),
	ROW(job, SAINA_A_JOB_ELEMENTS, U64, elements, "elements"),
	ROW(job, SAINA_A_JOB_WORKERS, U8, workers, "workers"),
	ROW(job, SAINA_A_JOB_PAYLOAD, U16, payload, "payload"),
	ROW(job, SAINA_A_JOB_POOL, U32, pool, "pool"),
	ROW(job, SAINA_A_JOB_RING, U32, ring, "ring"),
	ROW(job, SAINA_A_JOB_ELEM_TYPE, U8, elem_type, "elem-type", .min = 1, .max = 4),
	ROW(job, SAINA_A_JOB_EXPONENT, U32, exponent, "exponent"),
	ROW(job, SAINA_A_JOB_POLICY, NEST, policy, "policy", .nest = &saina_policy_class),
	ROW(job, SAINA_A_JOB_TOKEN, STRING, token, "token"),
	ROW(job, SAINA_A_JOB_HEARTBEAT_MS, U16, heartbeat_ms, "heartbeat-ms"),
	ROW(job, SAINA_A_JOB_DEAD_MS, U16, dead_ms, "dead-ms"),
	ROW(job, SAINA_A_JOB_SEGMENTS, U32, segments, "segments"),
	ROW(job, SAINA_A_JOB_GENERATION, U32, generation, "generation"),
	ROW(job, SAINA_A_JOB_MEMORY, U64, memory, "memory"),
	ROW(job, SAINA_A_JOB_ACTIVE, U64, active, "active"),
	ROW(job, SAINA_A_JOB_ROUND, U32, round, "round"),
	ROW(job, SAINA_A_JOB_K, U8, k, "k"),
	ROW(job, SAINA_A_JOB_POLICY_SEQ, U32, policy_seq, "policy-seq"),
	ROW(job, SAINA_A_JOB_POLICY_SEQ_ACTIVE, U32, policy_seq_active, "policy-seq-active"),
	ROW(job, SAINA_A_JOB_SFCD_CONVERGED, U32, sfcd_converged, "sfcd-converged"),
	ROW(job, SAINA_A_JOB_SFCD_FLIPS, U64, sfcd_flips, "sfcd-flips"),
	ROW(job, SAINA_A_JOB_SFCD_OBSERVED, U64, sfcd_observed, "sfcd-observed"),
	ROW(job, SAINA_A_JOB_OPEN_SLOTS, U32, open_slots, "open-slots"),
	ROW(job, SAINA_A_JOB_POLICY_ACTIVE, NEST, policy_active, "policy-active", .nest = &saina_policy_class),
	ROW(job, SAINA_A_JOB_TEXT, STRING, text, "text"),
	ROW(job, SAINA_A_JOB_POLICY_NEXT, NEST, policy_next, "policy-next", .nest = &saina_policy_class),
	ROW(job, SAINA_A_JOB_POLICY_NEXT_SEQ, U32, policy_next_seq, "policy-next-seq"),
	ROW(job, SAINA_A_JOB_POLICY_FROM, U32, policy_from, "policy-from"),
	ROW(job, SAINA_A_JOB_POLICY_ON, U32, policy_on, "policy-on"),
	ROW(job, SAINA_A_JOB_POLICY_CANCEL, U8, policy_cancel, "policy-cancel"),
	ROW(job, SAINA_A_JOB_K_SET, U8, k_set, "k-set"),
	ROW(job, SAINA_A_JOB_CONTROLLER, U8, controller, "controller"),
	ROW(job, SAINA_A_JOB_BY_REFERENCE, U8, by_reference, "by-reference", .min = 0, .max = 2),
	ROW(job, SAINA_A_JOB_REFERENCE, STRING, reference, "reference"),
	ROW(job, SAINA_A_JOB_ELEMENTS_AUTO, U8, elements_auto, "elements-auto"),
	ROW(job, SAINA_A_JOB_TROUBLE, STRING, trouble, "trouble"),
	ROW(job, SAINA_A_JOB_COUNT, WORDS, count, "count"),
	ROW(job, SAINA_A_JOB_WEIGHTS, BYTES, weights, "weights"),
	ROW(job, SAINA_A_JOB_UPLINK, NEST, uplink, "uplink", .nest = &saina_uplink_class),
};
TABLE(job, "job", SAINA_A_JOB_PAD);

static const struct saina_attr worker_attrs[] = {
	ROW(worker, SAINA_A_WORKER_JOB_ID, U16, job_id, "job-id"),
	ROW(worker, SAINA_A_WORKER_JOB_NAME, STRING, job_name, "job-name"),
	ROW(worker, SAINA_A_WORKER_ID, U8, id, "id"),
	ROW(worker, SAINA_A_WORKER_NAME, STRING, name, "name"),
	ROW(worker, SAINA_A_WORKER_STATE, U8, state, "state", .min = 0, .max = 4),
	ROW(worker, SAINA_A_WORKER_IFINDEX, U32, ifindex, "ifindex"),
	ROW(worker, SAINA_A_WORKER_IFNAME, STRING, ifname, "ifname"),
	ROW(worker, SAINA_A_WORKER_IP, U32, ip, "ip"),
	ROW(worker, SAINA_A_WORKER_MAC, BYTES, mac, "mac"),
	ROW(worker, SAINA_A_WORKER_UDP_PORT, U16, udp_port, "udp-port"),
	ROW(worker, SAINA_A_WORKER_SESSION, U64, session, "session"),
	ROW(worker, SAINA_A_WORKER_RELAY, U8, relay, "relay"),
	ROW(worker, SAINA_A_WORKER_SEEN_MS, U32, seen_ms, "seen-ms"),
	ROW(worker, SAINA_A_WORKER_ROUND, U32, round, "round"),
	ROW(worker, SAINA_A_WORKER_LATE, U64, late, "late"),
	ROW(worker, SAINA_A_WORKER_SENT, U64, sent, "sent"),
	ROW(worker, SAINA_A_WORKER_RESENT, U64, resent, "resent"),
	ROW(worker, SAINA_A_WORKER_RTT_US, U32, rtt_us, "rtt-us"),
	ROW(worker, SAINA_A_WORKER_WINDOW, U32, window, "window"),
	ROW(worker, SAINA_A_WORKER_ARRIVALS, U64, arrivals, "arrivals"),
	ROW(worker, SAINA_A_WORKER_ARRIVAL_US, U64, arrival_us, "arrival-us"),
	ROW(worker, SAINA_A_WORKER_ARRIVAL_LAST_US, U64, arrival_last_us, "arrival-last-us"),
	ROW(worker, SAINA_A_WORKER_ARRIVAL_HIST, WORDS, arrival_hist, "arrival-hist"),
	ROW(worker, SAINA_A_WORKER_PART, U8, part, "part"),
	ROW(worker, SAINA_A_WORKER_ELEMENTS, U64, elements, "elements"),
	ROW(worker, SAINA_A_WORKER_TROUBLE, STRING, trouble, "trouble"),
};
TABLE(worker, "worker", SAINA_A_WORKER_PAD);

static const struct saina_attr port_attrs[] = {
	ROW(port, SAINA_A_PORT_IFINDEX, U32, ifindex, "ifindex"),
	ROW(port, SAINA_A_PORT_IFNAME, STRING, ifname, "ifname"),
	ROW(port, SAINA_A_PORT_MODE, U8, mode, "mode", .min = 0, .max = 3),
	ROW(port, SAINA_A_PORT_DRIVER, STRING, driver, "driver"),
	ROW(port, SAINA_A_PORT_MTU, U32, mtu, "mtu"),
	ROW(port, SAINA_A_PORT_WORKERS, U32, workers, "workers"),
	ROW(port, SAINA_A_PORT_RELAYED, U32, relayed, "relayed"),
	ROW(port, SAINA_A_PORT_LOSS_IN, U32, loss_in, "loss-in"),
	ROW(port, SAINA_A_PORT_LOSS_OUT, U32, loss_out, "loss-out"),
	ROW(port, SAINA_A_PORT_SEED, U64, seed, "seed"),
	ROW(port, SAINA_A_PORT_TEXT, STRING, text, "text"),
	ROW(port, SAINA_A_PORT_HOOK, U8, hook, "hook", .min = 0, .max = 3),
	ROW(port, SAINA_A_PORT_JUMBO, U8, jumbo, "jumbo"),
};
TABLE(port, "port", SAINA_A_PORT_PAD);

static const struct saina_attr slot_attrs[] = {
	ROW(slot, SAINA_A_SLOT_JOB_ID, U16, job_id, "job-id"),
	ROW(slot, SAINA_A_SLOT_JOB_NAME, STRING, job_name, "job-name"),
	ROW(slot, SAINA_A_SLOT_INDEX, U32, index, "index"),
	ROW(slot, SAINA_A_SLOT_ROUND, U32, round, "round"),
	ROW(slot, SAINA_A_SLOT_SEGMENT, U32, segment, "segment"),
	ROW(slot, SAINA_A_SLOT_COUNT, U8, count, "count"),
	ROW(slot, SAINA_A_SLOT_K, U8, k, "k"),
	ROW(slot, SAINA_A_SLOT_SEEN, U64, seen, "seen"),
	ROW(slot, SAINA_A_SLOT_MISSING, U64, missing, "missing"),
	ROW(slot, SAINA_A_SLOT_AGE_US, U64, age_us, "age-us"),
	ROW(slot, SAINA_A_SLOT_POLICY, U32, policy, "policy"),
};
TABLE(slot, "slot", SAINA_A_SLOT_PAD);

static const struct saina_attr stats_attrs[] = {
	ROW(stats, SAINA_A_STATS_JOB_ID, U16, job_id, "job-id"),
	ROW(stats, SAINA_A_STATS_JOB_NAME, STRING, job_name, "job-name"),
	ROW(stats, SAINA_A_STATS_WORKER, U8, worker, "worker"),
	ROW(stats, SAINA_A_STATS_COUNTERS, WORDS, counters, "counters"),
};
TABLE(stats, "stats", SAINA_A_STATS_PAD);

static const struct saina_attr limits_attrs[] = {
	ROW(limits, SAINA_A_LIMITS_JOBS, U32, jobs, "jobs"),
	ROW(limits, SAINA_A_LIMITS_MEMORY_JOB, U64, memory_job, "memory-job"),
	ROW(limits, SAINA_A_LIMITS_MEMORY, U64, memory, "memory"),
	ROW(limits, SAINA_A_LIMITS_JOBS_USED, U32, jobs_used, "jobs-used"),
	ROW(limits, SAINA_A_LIMITS_MEMORY_USED, U64, memory_used, "memory-used"),
	ROW(limits, SAINA_A_LIMITS_BACKEND, U8, backend, "backend", .min = 1, .max = 2),
	ROW(limits, SAINA_A_LIMITS_BRIDGE, STRING, bridge, "bridge"),
	ROW(limits, SAINA_A_LIMITS_OVSDB, STRING, ovsdb, "ovsdb"),
};
TABLE(limits, "limits", SAINA_A_LIMITS_PAD);

static const struct saina_attr event_attrs[] = {
	ROW(event, SAINA_A_EVENT_TYPE, U32, type, "type", .min = 1, .max = 16),
	ROW(event, SAINA_A_EVENT_TIME, U64, time, "time"),
	ROW(event, SAINA_A_EVENT_JOB_ID, U16, job_id, "job-id"),
	ROW(event, SAINA_A_EVENT_JOB_NAME, STRING, job_name, "job-name"),
	ROW(event, SAINA_A_EVENT_WORKER, U8, worker, "worker"),
	ROW(event, SAINA_A_EVENT_ROUND, U32, round, "round"),
	ROW(event, SAINA_A_EVENT_K, U8, k, "k"),
	ROW(event, SAINA_A_EVENT_A, U64, a, "a"),
	ROW(event, SAINA_A_EVENT_B, U64, b, "b"),
	ROW(event, SAINA_A_EVENT_TEXT, STRING, text, "text"),
};
TABLE(event, "event", SAINA_A_EVENT_PAD);

static const struct saina_attr subscription_attrs[] = {
	ROW(subscription, SAINA_A_SUBSCRIPTION_GROUPS, U32, groups, "groups", .mask = 0x3),
};
TABLE(subscription, "subscription", 0);

_Static_assert(SAINA_JOB_FORMING == 1, "job-state: forming");
_Static_assert(SAINA_JOB_RUNNING == 2, "job-state: running");
_Static_assert(SAINA_JOB_STOPPED == 3, "job-state: stopped");
_Static_assert(SAINA_ELEM_INT32 == 1, "elem-type: int32");
_Static_assert(SAINA_ELEM_FLOAT32 == 2, "elem-type: float32");
_Static_assert(SAINA_ELEM_BFLOAT16 == 3, "elem-type: bfloat16");
_Static_assert(SAINA_ELEM_INT16 == 4, "elem-type: int16");
_Static_assert(SAINA_REFERENCE_NO == 0, "reference: no");
_Static_assert(SAINA_REFERENCE_ALLOWED == 1, "reference: allowed");
_Static_assert(SAINA_REFERENCE_ONLY == 2, "reference: only");
_Static_assert(SAINA_POLICY_BSP == 1, "policy-mode: bsp");
_Static_assert(SAINA_POLICY_FASTEST == 2, "policy-mode: fastest");
_Static_assert(SAINA_POLICY_SFCD == 3, "policy-mode: sfcd");
_Static_assert(SAINA_POLICY_TIMEOUT == 4, "policy-mode: timeout");
_Static_assert(SAINA_POLICY_EXTERNAL == 5, "policy-mode: external");
_Static_assert(SAINA_POLICY_CODED == 6, "policy-mode: coded");
_Static_assert(SAINA_POLICY_SSP == 7, "policy-mode: ssp");
_Static_assert(SAINA_POLICY_ASP == 8, "policy-mode: asp");
_Static_assert(SAINA_POLICY_GROUPED == 9, "policy-mode: grouped");
_Static_assert(SAINA_LATE_RESIDUAL == 1, "late-rule: residual");
_Static_assert(SAINA_LATE_DROP == 2, "late-rule: drop");
_Static_assert(SAINA_POLICY_F_PARITY == 1, "policy-flags: parity");
_Static_assert(SAINA_POLICY_F_DOWN == 2, "policy-flags: down");
_Static_assert(SAINA_EV_ROUND == 1, "event-type: round");
_Static_assert(SAINA_EV_K == 2, "event-type: k");
_Static_assert(SAINA_EV_POLICY == 3, "event-type: policy");
_Static_assert(SAINA_EV_DEGRADED == 4, "event-type: degraded");
_Static_assert(SAINA_EV_STALE == 5, "event-type: stale");
_Static_assert(SAINA_EV_JOB_STATE == 6, "event-type: job-state");
_Static_assert(SAINA_EV_WORKER_JOINED == 7, "event-type: worker-joined");
_Static_assert(SAINA_EV_WORKER_LEFT == 8, "event-type: worker-left");
_Static_assert(SAINA_EV_WORKER_DEAD == 9, "event-type: worker-dead");
_Static_assert(SAINA_EV_WORKER_LATE == 10, "event-type: worker-late");
_Static_assert(SAINA_EV_PORT == 11, "event-type: port");
_Static_assert(SAINA_EV_CONTROLLER == 12, "event-type: controller");
_Static_assert(SAINA_EV_WORKER_NONFINITE == 13, "event-type: worker-nonfinite");
_Static_assert(SAINA_EV_WORKER_COARSENED == 14, "event-type: worker-coarsened");
_Static_assert(SAINA_EV_WORKER_BEHIND == 15, "event-type: worker-behind");
_Static_assert(SAINA_EV_TYPES == 16, "event-type: types");

const char *const saina_worker_state_names[6] = {
	"absent", "alive", "slow", "dead", "left", NULL,
};
const char *const saina_port_mode_names[5] = {
	"none", "native", "generic", "tc", NULL,
};
const char *const saina_port_hook_names[5] = {
	"auto", "xdp", "generic", "tc", NULL,
};
const char *const saina_job_state_names[5] = {
	NULL, "forming", "running", "stopped", NULL,
};
const char *const saina_elem_type_names[6] = {
	NULL, "int32", "float32", "bfloat16", "int16", NULL,
};

const struct saina_op saina_ops[SAINA_CMD_MAX + 1] = {
	OP(JOB_NEW, job, "job-new", SAINA_OP_DO | SAINA_OP_ADMIN,
	   .do_takes = BIT_OF(SAINA_A_JOB_ID) |
		BIT_OF(SAINA_A_JOB_NAME) |
		BIT_OF(SAINA_A_JOB_ELEMENTS) |
		BIT_OF(SAINA_A_JOB_WORKERS) |
		BIT_OF(SAINA_A_JOB_PAYLOAD) |
		BIT_OF(SAINA_A_JOB_POOL) |
		BIT_OF(SAINA_A_JOB_RING) |
		BIT_OF(SAINA_A_JOB_ELEM_TYPE) |
		BIT_OF(SAINA_A_JOB_EXPONENT) |
		BIT_OF(SAINA_A_JOB_POLICY) |
		BIT_OF(SAINA_A_JOB_TOKEN) |
		BIT_OF(SAINA_A_JOB_HEARTBEAT_MS) |
		BIT_OF(SAINA_A_JOB_DEAD_MS) |
		BIT_OF(SAINA_A_JOB_BY_REFERENCE) |
		BIT_OF(SAINA_A_JOB_ELEMENTS_AUTO) |
		BIT_OF(SAINA_A_JOB_WEIGHTS) |
		BIT_OF(SAINA_A_JOB_UPLINK)),
	OP(JOB_SET, job, "job-set", SAINA_OP_DO | SAINA_OP_ADMIN,
	   .do_takes = BIT_OF(SAINA_A_JOB_ID) |
		BIT_OF(SAINA_A_JOB_NAME) |
		BIT_OF(SAINA_A_JOB_STATE) |
		BIT_OF(SAINA_A_JOB_ELEMENTS) |
		BIT_OF(SAINA_A_JOB_WORKERS) |
		BIT_OF(SAINA_A_JOB_PAYLOAD) |
		BIT_OF(SAINA_A_JOB_POOL) |
		BIT_OF(SAINA_A_JOB_RING) |
		BIT_OF(SAINA_A_JOB_ELEM_TYPE) |
		BIT_OF(SAINA_A_JOB_EXPONENT) |
		BIT_OF(SAINA_A_JOB_POLICY) |
		BIT_OF(SAINA_A_JOB_TOKEN) |
		BIT_OF(SAINA_A_JOB_HEARTBEAT_MS) |
		BIT_OF(SAINA_A_JOB_DEAD_MS) |
		BIT_OF(SAINA_A_JOB_POLICY_FROM) |
		BIT_OF(SAINA_A_JOB_POLICY_ON) |
		BIT_OF(SAINA_A_JOB_POLICY_CANCEL) |
		BIT_OF(SAINA_A_JOB_K_SET) |
		BIT_OF(SAINA_A_JOB_CONTROLLER) |
		BIT_OF(SAINA_A_JOB_UPLINK)),
	OP(JOB_DEL, job, "job-del", SAINA_OP_DO | SAINA_OP_ADMIN,
	   .do_takes = BIT_OF(SAINA_A_JOB_ID) |
		BIT_OF(SAINA_A_JOB_NAME)),
	OP(JOB_GET, job, "job-get", SAINA_OP_DO | SAINA_OP_DUMP,
	   .do_takes = BIT_OF(SAINA_A_JOB_ID) |
		BIT_OF(SAINA_A_JOB_NAME)),
	OP(JOB_NTF, job, "job-ntf", 0),
	OP(JOB_DEL_NTF, job, "job-del-ntf", 0),
	OP(WORKER_SET, worker, "worker-set", SAINA_OP_DO | SAINA_OP_ADMIN,
	   .do_takes = BIT_OF(SAINA_A_WORKER_JOB_ID) |
		BIT_OF(SAINA_A_WORKER_JOB_NAME) |
		BIT_OF(SAINA_A_WORKER_ID) |
		BIT_OF(SAINA_A_WORKER_NAME) |
		BIT_OF(SAINA_A_WORKER_STATE) |
		BIT_OF(SAINA_A_WORKER_IFINDEX) |
		BIT_OF(SAINA_A_WORKER_IP) |
		BIT_OF(SAINA_A_WORKER_MAC) |
		BIT_OF(SAINA_A_WORKER_UDP_PORT) |
		BIT_OF(SAINA_A_WORKER_SESSION) |
		BIT_OF(SAINA_A_WORKER_RELAY) |
		BIT_OF(SAINA_A_WORKER_ROUND) |
		BIT_OF(SAINA_A_WORKER_LATE) |
		BIT_OF(SAINA_A_WORKER_ELEMENTS)),
	OP(WORKER_DEL, worker, "worker-del", SAINA_OP_DO | SAINA_OP_ADMIN,
	   .do_takes = BIT_OF(SAINA_A_WORKER_JOB_ID) |
		BIT_OF(SAINA_A_WORKER_JOB_NAME) |
		BIT_OF(SAINA_A_WORKER_ID)),
	OP(WORKER_GET, worker, "worker-get", SAINA_OP_DO | SAINA_OP_DUMP,
	   .do_takes = BIT_OF(SAINA_A_WORKER_JOB_ID) |
		BIT_OF(SAINA_A_WORKER_JOB_NAME) |
		BIT_OF(SAINA_A_WORKER_ID),
	   .dump_takes = BIT_OF(SAINA_A_WORKER_JOB_ID) |
		BIT_OF(SAINA_A_WORKER_JOB_NAME)),
	OP(WORKER_NTF, worker, "worker-ntf", 0),
	OP(WORKER_DEL_NTF, worker, "worker-del-ntf", 0),
	OP(LIMITS_GET, limits, "limits-get", SAINA_OP_DO),
	OP(LIMITS_SET, limits, "limits-set", SAINA_OP_DO | SAINA_OP_ADMIN,
	   .do_takes = BIT_OF(SAINA_A_LIMITS_JOBS) |
		BIT_OF(SAINA_A_LIMITS_MEMORY_JOB) |
		BIT_OF(SAINA_A_LIMITS_MEMORY)),
	OP(LIMITS_NTF, limits, "limits-ntf", 0),
	OP(EVENT, event, "event", 0),
	OP(PORT_GET, port, "port-get", SAINA_OP_DUMP),
	OP(PORT_SET, port, "port-set", SAINA_OP_DO | SAINA_OP_ADMIN,
	   .do_takes = BIT_OF(SAINA_A_PORT_IFINDEX) |
		BIT_OF(SAINA_A_PORT_IFNAME) |
		BIT_OF(SAINA_A_PORT_LOSS_IN) |
		BIT_OF(SAINA_A_PORT_LOSS_OUT) |
		BIT_OF(SAINA_A_PORT_SEED) |
		BIT_OF(SAINA_A_PORT_HOOK)),
	OP(PORT_NTF, port, "port-ntf", 0),
	OP(SLOT_GET, slot, "slot-get", SAINA_OP_DUMP,
	   .dump_takes = BIT_OF(SAINA_A_SLOT_JOB_ID) |
		BIT_OF(SAINA_A_SLOT_JOB_NAME)),
	OP(STATS_GET, stats, "stats-get", SAINA_OP_DUMP,
	   .dump_takes = BIT_OF(SAINA_A_STATS_JOB_ID) |
		BIT_OF(SAINA_A_STATS_JOB_NAME)),
	OP(SUBSCRIBE, subscription, "subscribe", SAINA_OP_DO,
	   .do_takes = BIT_OF(SAINA_A_SUBSCRIPTION_GROUPS)),
};
