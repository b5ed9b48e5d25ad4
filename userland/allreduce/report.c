// SPDX-License-Identifier: GPL-2.0-or-later
/* What a run of saina-allreduce says: a line for each round, and a summary. */
#include <inttypes.h>
#include <zlib.h>
#include "allreduce.h"

void report_round(struct run *r, const struct saina_call *c, uint32_t policy)
{
	uint32_t crc = crc32(0, (const void *)r->buf, 4 * r->n);

	r->crc = crc32(r->crc, (const void *)&crc, sizeof(crc));
	r->rounds++;
	r->late += c->late_segments;
	r->skipped += c->skipped_segments;
	r->degraded += c->degraded_segments;
	r->resent += c->resent;
	r->saturated += c->saturated;
	r->time_us += c->time_us;
	if (c->rounds_behind > r->behind)
		r->behind = c->rounds_behind;
	if (!r->log)
		return;
	fprintf(r->log, "{\"round\": %u, \"k\": %u, \"next_k\": %u, \"policy\": %u, \"count_min\": %u, \"count_max\": %u, \"mask_any\": \"%#" PRIx64 "\", \"mask_all\": \"%#" PRIx64 "\", \"crc\": \"%08x\", \"late_segments\": %u, \"skipped_segments\": %u, \"degraded_segments\": %u, \"rounds_behind\": %u, \"resent\": %" PRIu64 ", \"saturated\": %" PRIu64 ", \"time_us\": %" PRIu64 "}\n",
		c->round, c->k, c->next_k, policy, c->count_min, c->count_max, c->mask_any, c->mask_all,
		crc, c->late_segments, c->skipped_segments, c->degraded_segments, c->rounds_behind,
		c->resent, c->saturated, c->time_us);
	fflush(r->log);
}

void report_summary(struct run *r, int status)
{
	struct saina_stats t = { .size = sizeof(t) };

	table_row(r);
	saina_get_stats(r->s, &t);
	printf(r->a->json ?
	       "{\"job\": %d, \"worker\": %d, \"first_round\": %u, \"rounds\": %u, \"exact\": %" PRIu64 ", \"bounded\": %" PRIu64 ", \"unverified\": %" PRIu64 ", \"wrong\": %" PRIu64 ", \"late_segments\": %" PRIu64 ", \"skipped_segments\": %" PRIu64 ", \"degraded_segments\": %" PRIu64 ", \"stale_rounds\": %" PRIu64 ", \"rounds_behind_max\": %" PRIu64 ", \"saturated\": %" PRIu64 ", \"sent\": %" PRIu64 ", \"resent\": %" PRIu64 ", \"pulled\": %" PRIu64 ", \"asked\": %" PRIu64 ", \"results\": %" PRIu64 ", \"duplicate_results\": %" PRIu64 ", \"late_answers\": %" PRIu64 ", \"bad_messages\": %" PRIu64 ", \"rejoins\": %" PRIu64 ", \"rtt_us\": %u, \"rto_us\": %u, \"window\": %u, \"relayed\": %d, \"time_us\": %" PRIu64 ", \"crc\": \"%08x\", \"residual\": \"%s\", \"status\": %d}\n" :
	       "job %d worker %d: from round %u, %u rounds; segments: %" PRIu64 " right (%" PRIu64 " of them within the bound of rounding), %" PRIu64 " unverified, %" PRIu64 " wrong, %" PRIu64 " late, %" PRIu64 " skipped, %" PRIu64 " degraded; %" PRIu64 " stale rounds, at most %" PRIu64 " behind, %" PRIu64 " saturated; sent %" PRIu64 ", resent %" PRIu64 ", pulled %" PRIu64 ", asked %" PRIu64 ", results %" PRIu64 ", duplicates %" PRIu64 ", late answers %" PRIu64 ", bad %" PRIu64 ", rejoins %" PRIu64 "; rtt %u us, rto %u us, window %u, relayed %d, in all-reduce %" PRIu64 " us, crc %08x, residual %s, status %d\n",
	       r->info.job, r->info.worker, r->first, r->rounds, r->v.right, r->v.bounded, r->v.unknown,
	       r->v.wrong, r->late, r->skipped, r->degraded, r->stale, r->behind, r->saturated,
	       t.sent, t.resent, t.pulled, t.asked, t.results, t.duplicate_results, t.late_answers,
	       t.bad_messages, t.rejoins, t.rtt_us, t.rto_us, t.window, r->info.relayed,
	       r->time_us, r->crc,
	       r->residual_wrong ? "wrong" : r->residual_checked ? "exact" : "unchecked", status);
	fflush(stdout);
}
