// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Linked to a test of libsaina's machines (unit/lib_switch.h), so that their messages go through the
 * real XDP program, or by SAINA_TEST_HOOK=tc the tc program, too: workers as they are, while those of
 * sim_workers.c and ps_workers.c are liars, too.
 */
#include <stdlib.h>
#include <string.h>
#include "lib/tap.h"
#include "unit/lib_switch.h"
#include "harness_events.h"
#include "harness_jobs.h"
#include "harness_packets.h"
#include "harness_state.h"

static struct harness harness;
/* Workers that results go to; a snapshot with more, to be published before the next frame. */
static uint64_t fanout;
static struct saina_job_conf *more;

static void must(bool same)
{
	if (same)
		return;
	/* no "Bail out": mutants.sh takes that for a program that does not load */
	tap_note("%s", harness.diff);
	tap_ok(false, "switch: program and oracle agree");
	exit(1);
}

static struct oracle *programs_open(void)
{
	const char *hook = getenv("SAINA_TEST_HOOK");

	if (!harness.dp) {
		harness_open(&harness);
		if (hook && !strcmp(hook, "tc"))
			harness_use_tc(&harness);
	}
	return &harness.o;
}

static void publish(struct saina_job_conf *conf, uint32_t first_round)
{
	must(!harness_job(&harness, conf, first_round));
	fanout = conf->active;
	more = NULL;
}

/* A change is mostly a write into the snapshot, which waits for no grace period. */
static void programs_publish(struct saina_job_conf *conf, uint32_t first_round)
{
	const struct oracle_job *j = &harness.o.job[conf->job];

	if (!j->present || j->conf.generation != conf->generation)
		publish(conf, first_round);
	else
		must(!harness_job_overwrite(&harness, conf));
	if (conf->active & ~fanout)
		more = conf;
}

static const struct oracle_out *programs_packet(const uint8_t *frame, unsigned int len, unsigned int ifindex)
{
	if (more)
		publish(more, 0);
	must(harness_packet(&harness, frame, len, ifindex));
	return &harness.want;
}

static void programs_close(unsigned int job)
{
	must(harness_drain(&harness) && harness_check_job(&harness, job, true));
	must(!harness_job_remove(&harness, job));
}

const struct switch_programs switch_programs = {
	.open = programs_open,
	.publish = programs_publish,
	.packet = programs_packet,
	.close = programs_close,
};
