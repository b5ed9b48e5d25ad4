// SPDX-License-Identifier: GPL-2.0-or-later
/* The place of a job in a tree: the weights of its workers, its parent. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tool.h"
#include "ctl/tree_text.h"

#define NO_WORKER 0xff	/* none was given */
#define HAS(A) SAINA_HAS(u, SAINA_A_UPLINK_##A)

void uplink_prepare(struct saina_job_attrs *req)
{
	req->uplink.worker = NO_WORKER;
}

int uplink_complete(const struct args *a, struct saina_job_attrs *req)
{
	struct saina_uplink_attrs *u = &req->uplink;

	if (u->worker != NO_WORKER)
		SAINA_SET(u, SAINA_A_UPLINK_WORKER);
	if (u->job[0])
		SAINA_SET(u, SAINA_A_UPLINK_JOB);
	if (u->token_file[0])
		SAINA_SET(u, SAINA_A_UPLINK_TOKEN_FILE);
	if (!u->has || (HAS(ADDRESS) && HAS(JOB) && HAS(WORKER)))
		return 0;
	return args_error(a, "a job with a parent needs all of uplink, parent-job and parent-worker");
}

static void print_weights(const struct saina_job_attrs *job)
{
	char text[SAINA_WORKERS_MAX * 6 + 1];
	uint64_t sum = 0;

	if (!SAINA_HAS(job, SAINA_A_JOB_WEIGHTS))
		return;
	saina_weights_format(job->weights, text, sizeof(text));
	out_str("weights", "    weights %s", text);
	for (int w = 0; w < SAINA_WORKERS_MAX; w++)
		sum += job->weights[w];
	out_uint("tree_workers", ": a tree of %" PRIu64 " workers\n", sum);
}

static void print_progress(const struct saina_uplink_attrs *u)
{
	if (HAS(WEIGHT)) {
		out_uint("tree_workers", "        tree of %" PRIu64 " workers", u->weight);
		out_uint("rank", ", ranks from %" PRIu64, u->rank);
		out_uint("depth", ", depth %" PRIu64 "\n", u->depth);
	}
	if (HAS(AWAY_ROUND)) {
		out_uint("away_round", "        away: round %" PRIu64, u->away_round);
		out_uint("away_ms", " for %" PRIu64 " ms\n", u->away_ms);
	} else {
		out_null("away_round", NULL);
		out_null("away_ms", NULL);
	}
	if (HAS(BYTES_UP)) {
		out_bytes("bytes_up", "        sent %s", u->bytes_up);
		out_bytes("bytes_down", " received %s\n", u->bytes_down);
	}
}

void uplink_print(const struct saina_job_attrs *job)
{
	const struct saina_uplink_attrs *u = &job->uplink;
	char address[INET_ADDRSTRLEN + 8];
	struct in_addr ip = { u->address };

	print_weights(job);
	if (!SAINA_HAS(job, SAINA_A_JOB_UPLINK))
		return;
	snprintf(address, sizeof(address), "%s:%u", inet_ntoa(ip), ntohs(u->port));
	out_open("uplink");
	out_str("address", "    uplink %s", address);
	out_str("job", " parent-job %s", u->job);
	out_uint("worker", " parent-worker %" PRIu64, u->worker);
	if (HAS(TOKEN_FILE))
		out_str("token_file", " parent-token-file %s", u->token_file);
	out_text("\n");
	if (HAS(TEXT))
		out_str("text", "        %s\n", u->text);
	print_progress(u);
	out_close();
}
