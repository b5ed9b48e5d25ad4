/* SPDX-License-Identifier: GPL-2.0 */
/* What the tests of the oracle share: one oracle, and messages of the workers of job 3. */
#ifndef _ORACLE_HARNESS_H
#define _ORACLE_HARNESS_H

#include "lib/frame.h"
#include "oracle.h"

#define E	64	/* elements of a segment */

extern struct oracle o;
extern struct oracle_out out;	/* of the last message */
extern struct saina_global g;

/* Publishes job 3 with @workers of @segments, as a new generation. */
void job_make(struct saina_job_conf *c, unsigned int workers, unsigned int segments,
	      const struct saina_policy *p);
/* The answer's header and its element @i. */
struct saina_hdr *answer(void);
/* Worker @w sends a message; @v is in every element.  The verdict. */
int send_msg_at(const struct saina_job_conf *c, int type, unsigned int w, uint32_t round,
		uint32_t segment, int exponent, int32_t v);
int send_msg(const struct saina_job_conf *c, int type, unsigned int w, uint32_t round,
	     uint32_t segment, int32_t v);
int grad(const struct saina_job_conf *c, unsigned int w, uint32_t r, uint32_t s, int32_t v);
/* Is the answer a result of @mask, with @sum in its first and last element, and valid checksums? */
bool answered(int verdict, uint8_t flags, uint64_t mask, int32_t sum);

/* lead_test.c */
void oracle_test_lead(void);
/* uplink_test.c */
void oracle_test_uplink(void);

#endif /* _ORACLE_HARNESS_H */
