// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina doctor: checks whether a worker's socket can hold all results in flight.
 *
 * libsaina sends batches, GSO datagrams of up to 64 KiB. It has at most one batch less in flight
 * than its result socket can hold, because results may come twice. The tc hook delivers a batch of
 * results as one buffer; a port with XDP delivers each result in a page of its own, unless GRO
 * merges them.
 */
#include <stdlib.h>
#include <unistd.h>
#include <sys/socket.h>

#include "doctor_check.h"

/* Constants of libsaina; doctor_buffers_test compares them. */
#define BATCHES_MAX  8
#define BATCH_BYTES (68 << 10)
#define DATAGRAM    65507

/* Charge for one result in a socket buffer: the page of a redirected frame and its sk_buff. */
#define FRAME_TRUESIZE 4608

/* a job with the defaults of kmod/core/check.c */
static const struct saina_job_attrs default_job = {
	.name = "a job with defaults",
	.payload = 352,
	.pool = 256,
	.segments = ~0u,
};

unsigned long doc_buffers_need(const struct saina_job_attrs *job, bool xdp)
{
	unsigned int half = job->elem_type == SAINA_ELEM_BFLOAT16 ? 2 : 1;
	unsigned long batch, batches, bytes, frames;

	batch = DATAGRAM / (sizeof(struct saina_hdr) + job->payload * 4 / half);
	batch = batch < SAINA_ASK_SEGMENTS ? batch : SAINA_ASK_SEGMENTS;
	batch = batch < job->pool ? batch : job->pool;
	if (!batch)
		return 0;
	batches = job->segments <= job->pool ? (job->segments + batch - 1) / batch : job->pool / batch;
	batches = batches < BATCHES_MAX ? batches : BATCHES_MAX;
	bytes = batches > 1 ? (batches + 1) * BATCH_BYTES : BATCH_BYTES;
	/* larger results reach XDP ports by the tc hook or the agent */
	frames = job->payload <= SAINA_ELEMS_LINEAR_MAX ? batches * batch * FRAME_TRUESIZE : 0;
	return xdp && frames > bytes ? frames : bytes;
}

/* Does a port have XDP?  If no port is known: will hook auto be XDP? */
static bool has_xdp_port(const struct doc_state *s)
{
	const struct saina_port_attrs *p = s->ports.v;

	for (size_t i = 0; i < s->ports.n; i++) {
		if (p[i].mode == SAINA_PORT_MODE_NATIVE || p[i].mode == SAINA_PORT_MODE_GENERIC)
			return true;
	}
	return !s->ports.n && s->userspace;
}

void doc_buffers(const struct doc_state *s)
{
	const struct saina_job_attrs *job = s->jobs.v, *most = &default_job;
	bool xdp = has_xdp_port(s);
	unsigned long have, need;
	char text[32];

	for (size_t i = 0; i < s->jobs.n; i++) {
		if (!i || doc_buffers_need(&job[i], xdp) > doc_buffers_need(most, xdp))
			most = &job[i];
	}
	if (!doc_read_line("/proc/sys/net/core/rmem_max", text, sizeof(text))) {
		doc_report(DOC_SKIP, "rmem", NULL,
			   "net.core.rmem_max cannot be read in this network namespace");
		return;
	}
	/* the kernel doubles SO_RCVBUF, so half of the charge is enough */
	have = strtoul(text, NULL, 10);
	need = (doc_buffers_need(most, xdp) + 1) / 2;
	if (have < need)
		doc_report(DOC_WARN, "rmem", doc_fix("sysctl -w net.core.rmem_max=%lu", need),
			   "net.core.rmem_max is %lu: a full window of results of %s takes %lu in a worker's socket%s",
			   have, most->name, need, xdp ? ", a page for each behind ports with XDP" : "");
	else
		doc_report(DOC_OK, "rmem", NULL, "net.core.rmem_max is %lu, a full window of %s takes %lu",
			   have, most->name, need);
}

void doc_buffers_worker(void)
{
	int want = (int)doc_buffers_need(&default_job, true), half = (want + 1) / 2, got = 0;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(got);

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &half, sizeof(half));
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &got, &len);
	close(fd);
	if (got >= want)
		doc_report(DOC_OK, "rmem", NULL, "a socket can have %d bytes, a full window takes %d", got, want);
	else if (got >= (int)doc_buffers_need(&default_job, false))
		doc_report(DOC_OK, "rmem", doc_fix("on the host: sysctl -w net.core.rmem_max=%d", half),
			   "a socket gets no more than %d bytes: enough behind a port with the tc hook, a full window behind one with XDP takes %d",
			   got, want);
	else
		doc_report(DOC_WARN, "rmem", doc_fix("on the host: sysctl -w net.core.rmem_max=%d", half),
			   "a socket gets no more than %d bytes: a full window of results takes %d", got, want);
}
