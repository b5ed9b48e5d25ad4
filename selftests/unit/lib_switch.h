/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The switch of libsaina's tests: the oracle (selftests/oracle) with one job, given
 * messages instead of frames.  Workers have made-up places; no network, no clock.
 *
 * Where datapath/switch.c is linked, too, each message also goes through the real XDP program, which
 * must answer as the oracle does.
 */
#ifndef SAINA_LIB_SWITCH_H
#define SAINA_LIB_SWITCH_H

#include <stdbool.h>
#include <stdint.h>
#include "oracle/oracle.h"

/**
 * struct lib_switch - one job
 * @conf: the snapshot in force; switch_publish() after a change
 * @out: what became of the last message
 */
struct lib_switch {
	struct oracle *oracle;
	struct saina_job_conf conf;
	const struct oracle_out *out;
	struct oracle_out alone;
	uint8_t frame[ORACLE_FRAME_MAX];
};

/**
 * struct switch_programs - the real programs beside the oracle; what differs ends the test
 * @open: returns the oracle
 * @publish: a job that is new, or changes
 * @packet: returns what became of it
 * @close: compares all state of the job, and removes it
 */
struct switch_programs {
	struct oracle *(*open)(void);
	void (*publish)(struct saina_job_conf *conf, uint32_t first_round);
	const struct oracle_out *(*packet)(const uint8_t *frame, unsigned int len, unsigned int ifindex);
	void (*close)(unsigned int job);
};

/* Of datapath/switch.c, where that is linked. */
extern const struct switch_programs switch_programs __attribute__((weak));

/* A FORMING job without workers. */
void switch_init(struct lib_switch *sw, unsigned int job, unsigned int payload, uint64_t elements,
		 unsigned int pool, unsigned int ring);
void switch_exit(struct lib_switch *sw);
void switch_publish(struct lib_switch *sw);
/* As after a restart of the host: it knows nothing and opens @first_round first. */
void switch_restart(struct lib_switch *sw, uint32_t first_round);
/* An answer when @k are in, from the next round on. */
/* fastest, with lead=none */
void switch_policy(struct lib_switch *sw, unsigned int k, bool drop_late);
/* The lead of that policy, as struct saina_policy has it. */
void switch_lead(struct lib_switch *sw, unsigned int lead);
/* Steps, as far ahead as workers like. */
void switch_asp(struct lib_switch *sw);
/* Worker @w is admitted, and alive. */
void switch_bind(struct lib_switch *sw, unsigned int w, uint64_t session);
void switch_alive(struct lib_switch *sw, unsigned int w, bool alive);

/**
 * switch_message() - worker @w says @len bytes to the data port
 * Return: length of the answer, *@answer points to it and is to go to the workers in
 *	*@to (more than one: by multicast); 0 if there is none
 */
unsigned int switch_message(struct lib_switch *sw, unsigned int w, const void *msg,
			    unsigned int len, uint64_t *to, void **answer);

uint32_t switch_next_round(const struct lib_switch *sw);
/* Of all workers together. */
uint64_t switch_count(const struct lib_switch *sw, int counter);
/* Messages that no worker may send, whatever is lost or late. */
uint64_t switch_malformed(const struct lib_switch *sw);

#endif /* SAINA_LIB_SWITCH_H */
