// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Attributes to plain structures and back, driven by one table per object.
 */
#include <errno.h>
#include <string.h>

#include "ctl/obj.h"

#define ROW(O, o, A, knd, f, nm) \
	{ SAINA_A_##O##_##A, SAINA_CTL_##knd, offsetof(struct saina_ctl_##o, f), \
	  sizeof(((struct saina_ctl_##o *)0)->f), nm }
#define CLASS(O, o) \
	const struct saina_ctl_class saina_ctl_##o##_class = { \
		#o, SAINA_A_##O, o##_fields, sizeof(o##_fields) / sizeof(o##_fields[0]), \
		sizeof(struct saina_ctl_##o) }

#define R(A, knd, f, nm) ROW(JOB, job, A, knd, f, nm)
static const struct saina_ctl_field job_fields[] = {
	R(ID, U16, id, "id"),
	R(NAME, STRING, name, "name"),
	R(STATE, U8, state, "state"),
	R(ELEMENTS, U64, elements, "elements"),
	R(WORKERS, U8, workers, "workers"),
	R(PAYLOAD, U16, payload, "payload"),
	R(POOL, U32, pool, "pool"),
	R(RING, U32, ring, "ring"),
	R(ELEM_TYPE, U8, elem_type, "elem-type"),
	R(EXPONENT, U8, exponent, "exponent"),
	R(POLICY, STRING, policy, "policy"),
	R(TOKEN, STRING, token, "token"),
	R(HEARTBEAT_MS, U16, heartbeat_ms, "heartbeat"),
	R(DEAD_MS, U16, dead_ms, "dead"),
	R(SEGMENTS, U32, segments, "segments"),
	R(GENERATION, U32, generation, "generation"),
	R(MEMORY, U64, memory, "memory"),
	R(ACTIVE, U64, active, "active"),
	R(ROUND, U32, round, "round"),
	R(K, U8, k, "k"),
	R(POLICY_SEQ, U32, policy_seq, "policy-seq"),
	R(POLICY_SEQ_ACTIVE, U32, policy_seq_active, "policy-seq-active"),
	R(SFCD_CONVERGED, U32, sfcd_converged, "sfcd-converged"),
	R(SFCD_FLIPS, U64, sfcd_flips, "sfcd-flips"),
	R(SFCD_OBSERVED, U64, sfcd_observed, "sfcd-observed"),
	R(POLICY_MIX, U64, policy_mix, "policy-mix"),
	R(OPEN_SLOTS, U32, open_slots, "open-slots"),
	R(POLICY_ACTIVE, STRING, policy_active, "policy-active"),
	R(TEXT, STRING, text, "text"),
};
CLASS(JOB, job);
#undef R

#define R(A, knd, f, nm) ROW(WORKER, worker, A, knd, f, nm)
static const struct saina_ctl_field worker_fields[] = {
	R(JOB_ID, U16, job_id, "job"),
	R(JOB_NAME, STRING, job_name, "job"),
	R(ID, U8, id, "worker"),
	R(NAME, STRING, name, "name"),
	R(STATE, U8, state, "state"),
	R(IFINDEX, U32, ifindex, "ifindex"),
	R(IFNAME, STRING, ifname, "port"),
	R(IP, U32, ip, "ip"),
	R(MAC, BYTES, mac, "mac"),
	R(UDP_PORT, U16, udp_port, "udp-port"),
	R(SESSION, U64, session, "session"),
	R(RELAY, U8, relay, "relay"),
	R(SEEN_MS, U32, seen_ms, "seen"),
	R(ROUND, U32, round, "round"),
	R(LATE, U64, late, "late"),
};
CLASS(WORKER, worker);
#undef R

#define R(A, knd, f, nm) ROW(PORT, port, A, knd, f, nm)
static const struct saina_ctl_field port_fields[] = {
	R(IFINDEX, U32, ifindex, "ifindex"),
	R(IFNAME, STRING, ifname, "port"),
	R(MODE, U8, mode, "mode"),
	R(DRIVER, STRING, driver, "driver"),
	R(MTU, U32, mtu, "mtu"),
	R(WORKERS, U32, workers, "workers"),
	R(RELAYED, U32, relayed, "relayed"),
	R(LOSS_IN, U32, loss_in, "loss-in"),
	R(LOSS_OUT, U32, loss_out, "loss-out"),
	R(DELAY_IN, U32, delay_in, "delay-in"),
	R(DELAY_OUT, U32, delay_out, "delay-out"),
	R(SEED, U64, seed, "seed"),
	R(TEXT, STRING, text, "text"),
};
CLASS(PORT, port);
#undef R

#define R(A, knd, f, nm) ROW(SLOT, slot, A, knd, f, nm)
static const struct saina_ctl_field slot_fields[] = {
	R(JOB_ID, U16, job_id, "job"),
	R(JOB_NAME, STRING, job_name, "job"),
	R(INDEX, U32, index, "slot"),
	R(ROUND, U32, round, "round"),
	R(SEGMENT, U32, segment, "segment"),
	R(COUNT, U8, count, "count"),
	R(K, U8, k, "k"),
	R(SEEN, U64, seen, "seen"),
	R(MISSING, U64, missing, "missing"),
	R(AGE_US, U64, age_us, "age"),
	R(POLICY, U32, policy, "policy"),
};
CLASS(SLOT, slot);
#undef R

#define R(A, knd, f, nm) ROW(STATS, stats, A, knd, f, nm)
static const struct saina_ctl_field stats_fields[] = {
	R(JOB_ID, U16, job_id, "job"),
	R(JOB_NAME, STRING, job_name, "job"),
	R(WORKER, U8, worker, "worker"),
	R(COUNTERS, WORDS, counters, "counters"),
};
CLASS(STATS, stats);
#undef R

#define R(A, knd, f, nm) ROW(LIMITS, limits, A, knd, f, nm)
static const struct saina_ctl_field limits_fields[] = {
	R(JOBS, U32, jobs, "jobs"),
	R(MEMORY_JOB, U64, memory_job, "memory-job"),
	R(MEMORY, U64, memory, "memory"),
	R(JOBS_USED, U32, jobs_used, "jobs-used"),
	R(MEMORY_USED, U64, memory_used, "memory-used"),
	R(PLANE, U8, plane, "plane"),
};
CLASS(LIMITS, limits);
#undef R

#define R(A, knd, f, nm) ROW(EVENT, event, A, knd, f, nm)
static const struct saina_ctl_field event_fields[] = {
	R(TYPE, U32, type, "type"),
	R(TIME, U64, time, "time"),
	R(JOB_ID, U16, job_id, "job"),
	R(JOB_NAME, STRING, job_name, "job"),
	R(WORKER, U8, worker, "worker"),
	R(ROUND, U32, round, "round"),
	R(K, U8, k, "k"),
	R(A, U64, a, "a"),
	R(B, U64, b, "b"),
	R(TEXT, STRING, text, "text"),
};
CLASS(EVENT, event);
#undef R

const struct saina_ctl_class *saina_ctl_class_find(unsigned int nest)
{
	static const struct saina_ctl_class *const all[] = {
		&saina_ctl_job_class, &saina_ctl_worker_class, &saina_ctl_port_class,
		&saina_ctl_slot_class, &saina_ctl_stats_class, &saina_ctl_limits_class,
		&saina_ctl_event_class,
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i]->nest == nest)
			return all[i];
	}
	return NULL;
}

static const struct saina_ctl_field *field_find(const struct saina_ctl_class *c, unsigned int attr)
{
	for (unsigned int i = 0; i < c->n; i++) {
		if (c->fields[i].attr == attr)
			return &c->fields[i];
	}
	return NULL;
}

const char *saina_ctl_attr_name(const struct saina_ctl_class *c, unsigned int attr)
{
	const struct saina_ctl_field *f = field_find(c, attr);

	return f ? f->name : NULL;
}

void saina_ctl_clean(char *text)
{
	for (; *text; text++) {
		if (*text < 0x20 || *text > 0x7e)
			*text = '?';
	}
}

static int field_decode(const struct saina_ctl_field *f, const struct nlattr *a, char *obj)
{
	static const __u8 width[] = { 1, 2, 4, 8 };
	const char *from = mnl_attr_get_payload(a);
	unsigned int len = mnl_attr_get_payload_len(a);
	char *to = obj + f->offset;

	switch (f->kind) {
	case SAINA_CTL_STRING:
		if (len >= f->size)
			len = f->size - 1;
		memcpy(to, from, len);
		to[len] = 0;
		saina_ctl_clean(to);
		return 0;
	case SAINA_CTL_WORDS:
		if (len % 8)
			return -EBADMSG;
		memcpy(to, from, len < f->size ? len : f->size);
		return 0;
	case SAINA_CTL_BYTES:
		if (len != f->size)
			return -EBADMSG;
		memcpy(to, from, len);
		return 0;
	default:
		if (len != width[f->kind])
			return -EBADMSG;
		memcpy(to, from, len);
		return 0;
	}
}

int saina_ctl_decode(const struct nlmsghdr *nlh, const struct saina_ctl_class *c, void *obj)
{
	const struct nlattr *top, *a;
	__u64 *has = obj;
	int ret = -ENOENT;

	memset(obj, 0, c->size);
	mnl_attr_for_each(top, nlh, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(top) != c->nest)
			continue;
		mnl_attr_for_each_nested(a, top) {
			const struct saina_ctl_field *f = field_find(c, mnl_attr_get_type(a));

			if (!f)
				continue;	/* of a newer control plane */
			ret = field_decode(f, a, obj);
			if (ret)
				return ret;
			*has |= 1ull << f->attr;
		}
		ret = 0;
	}
	return ret;
}

void saina_ctl_encode(struct nlmsghdr *nlh, const struct saina_ctl_class *c, const void *obj)
{
	static const __u8 width[] = { 1, 2, 4, 8 };
	struct nlattr *nest = mnl_attr_nest_start(nlh, c->nest);
	__u64 has;

	memcpy(&has, obj, sizeof(has));
	for (unsigned int i = 0; i < c->n; i++) {
		const struct saina_ctl_field *f = &c->fields[i];
		const char *from = (const char *)obj + f->offset;

		if (!(has & (1ull << f->attr)))
			continue;
		if (f->kind == SAINA_CTL_STRING)
			mnl_attr_put_strz(nlh, f->attr, from);
		else if (f->kind == SAINA_CTL_BYTES || f->kind == SAINA_CTL_WORDS)
			mnl_attr_put(nlh, f->attr, f->size, from);
		else
			mnl_attr_put(nlh, f->attr, width[f->kind], from);
	}
	mnl_attr_nest_end(nlh, nest);
}
