// SPDX-License-Identifier: GPL-2.0-or-later
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include "lib/frame.h"
#include "lib_switch.h"

#define IP	0x0afe0001u	/* of the switch; worker w has IP + 1 + w */
#define IFINDEX 1		/* they all come by one port, lo */
#define GENERATIONS 100		/* more than switch_restart() is called for a job */

/* NULL: the oracle alone. */
static const struct switch_programs *const programs = &switch_programs;

void switch_init(struct lib_switch *sw, unsigned int job, unsigned int payload, uint64_t elements,
		 unsigned int pool, unsigned int ring)
{
	struct saina_global g = { .ip = htonl(IP), .mac = { 2, 0, 0, 0, 0, 0xfe } };
	static uint32_t generation;

	if (programs) {
		sw->oracle = programs->open();
	} else {
		sw->oracle = malloc(sizeof(*sw->oracle));
		if (!sw->oracle)
			abort();
		oracle_init(sw->oracle, &g);
	}
	sw->conf = (struct saina_job_conf){
		.generation = generation += GENERATIONS,
		.job = job,
		.state = SAINA_JOB_FORMING,
		.elem = SAINA_ELEM_INT32,
		.payload = payload,
		.segments = (elements + payload - 1) / payload,
		.pool = pool,
		.ring = ring,
		.sign_words = SAINA_SIGN_WORDS(payload, 1),
		.group = htonl(SAINA_GROUP_BASE + job),
		.policy = { .seq = 1, .mode = SAINA_POLICY_BSP, .late = SAINA_LATE_RESIDUAL },
	};
	switch_publish(sw);
}

void switch_exit(struct lib_switch *sw)
{
	if (programs) {
		programs->close(sw->conf.job);
		return;
	}
	oracle_exit(sw->oracle);
	free(sw->oracle);
}

static void publish(struct lib_switch *sw, uint32_t first_round)
{
	if (programs)
		programs->publish(&sw->conf, first_round);
	else
		oracle_job_publish(sw->oracle, &sw->conf, first_round);
}

void switch_publish(struct lib_switch *sw)
{
	publish(sw, 0);
}

void switch_restart(struct lib_switch *sw, uint32_t first_round)
{
	sw->conf.generation++;
	publish(sw, first_round);
}

void switch_policy(struct lib_switch *sw, unsigned int k, bool drop_late)
{
	sw->conf.policy.seq++;
	sw->conf.policy.mode = SAINA_POLICY_FASTEST;
	sw->conf.policy.late = drop_late ? SAINA_LATE_DROP : SAINA_LATE_RESIDUAL;
	sw->conf.policy.k = k;
	sw->conf.policy.lead = SAINA_LEAD_NONE;
	switch_publish(sw);
}

void switch_lead(struct lib_switch *sw, unsigned int lead)
{
	sw->conf.policy.seq++;
	sw->conf.policy.lead = lead;
	switch_publish(sw);
}

void switch_asp(struct lib_switch *sw)
{
	sw->conf.policy = (struct saina_policy){ .seq = sw->conf.policy.seq + 1, .mode = SAINA_POLICY_ASP,
						 .late = SAINA_LATE_RESIDUAL, .window = UINT32_MAX };
	switch_publish(sw);
}

static struct saina_binding place(unsigned int w)
{
	return (struct saina_binding){ .ifindex = IFINDEX, .ip = htonl(IP + 1 + w), .udp_port = htons(1000 + w),
				       .mac = { 2, 0, 0, 0, 0, w } };
}

void switch_bind(struct lib_switch *sw, unsigned int w, uint64_t session)
{
	sw->conf.worker[w] = place(w);
	sw->conf.worker[w].session = session;
	sw->conf.worker[w].flags = SAINA_BIND_BOUND;
	switch_alive(sw, w, true);
}

void switch_alive(struct lib_switch *sw, unsigned int w, bool alive)
{
	sw->conf.active &= ~(1ull << w);
	sw->conf.active |= (uint64_t)alive << w;
	switch_publish(sw);
}

unsigned int switch_message(struct lib_switch *sw, unsigned int w, const void *msg,
			    unsigned int len, uint64_t *to, void **answer)
{
	struct saina_binding from = place(w);
	unsigned int n = frame_make(sw->frame, &sw->oracle->global, &from, msg, (const uint8_t *)msg + sizeof(struct saina_hdr),
				    len - sizeof(struct saina_hdr));

	if (programs) {
		sw->out = programs->packet(sw->frame, n, IFINDEX);
	} else {
		oracle_packet(sw->oracle, sw->frame, n, IFINDEX, &sw->alone);
		oracle_events_clear(sw->oracle);
		sw->out = &sw->alone;
	}
	*to = sw->out->to | sw->out->relayed;
	*answer = (uint8_t *)sw->out->frame + FRAME_HDR;
	return *to ? sw->out->len - FRAME_HDR : 0;
}

uint32_t switch_next_round(const struct lib_switch *sw)
{
	return sw->oracle->job[sw->conf.job].rt.next_round;
}

uint64_t switch_count(const struct lib_switch *sw, int counter)
{
	uint64_t n = sw->oracle->gcount.c[counter];

	for (int w = 0; w < SAINA_WORKERS_MAX; w++)
		n += sw->oracle->job[sw->conf.job].wcount[w].c[counter];
	return n;
}

uint64_t switch_malformed(const struct lib_switch *sw)
{
	static const int never[] = {
		SAINA_C_TRUNCATED, SAINA_C_VERSION, SAINA_C_TYPE,    SAINA_C_FLAGS,
		SAINA_C_LENGTH,	   SAINA_C_ELEMS,   SAINA_C_ELEM_TYPE, SAINA_C_SEGMENT,
		SAINA_C_NO_JOB,	   SAINA_C_FORGED,  SAINA_C_FRAGMENT,	SAINA_C_INTERNAL,
	};
	uint64_t n = 0;

	for (unsigned int i = 0; i < sizeof(never) / sizeof(*never); i++)
		n += switch_count(sw, never[i]);
	return n;
}
