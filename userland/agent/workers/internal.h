/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of this room share. */
#ifndef AGENT_WORKERS_INTERNAL_H
#define AGENT_WORKERS_INTERNAL_H

#include <netinet/in.h>

#include "agent/workers/workers.h"
#include "saina/shm.h"

/* Where a datagram came from. */
struct from {
	struct sockaddr_in addr;
	char text[32];
};

/* admit.c */
int admit_init(struct agent *a);
void admit_uninit(struct agent *a);
/* Takes what has come in, at most @most messages. */
void admit_receive(struct agent *a, int most);

/* join.c */
void join(struct agent *a, const struct from *from, const struct saina_hdr *h,
	  const struct saina_join *join);

/* message.c: what is said to workers */

/* Refuses @req; the worker prints the sentence. */
void message_refuse(struct agent *a, const struct from *from, const struct saina_hdr *req,
		    uint64_t nonce, int reason, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));
void message_welcome(struct agent *a, const struct sockaddr_in *to, const struct saina_job *job,
		     int w);
void message_status(struct agent *a, const struct saina_job *job, int w);
void message_job_gone(struct agent *a, const struct saina_job *job);

/* path.c */
/* It said READY.  @probe: the number that it was to show, 0: none */
void path_ready(struct agent *a, const struct saina_job *job, int w, bool fast, uint32_t probe);

int health_init(struct agent *a);
void health_uninit(struct agent *a);

/* trouble.c: a heartbeat; the look of each second, @arrived counts what came of the worker */
void trouble_report(struct worker_aux *aux, const struct saina_report *r);
void trouble_look(struct agent *a, const struct saina_job *job, int w, uint64_t arrived);

/*
 * numbers.c: what the counters of a worker say of its numbers, each second, and when a life of it
 * begins and when it has ended.
 */
void numbers_look(struct agent *a, const struct saina_job *job, int w, const struct saina_counters *c);
void numbers_read(struct agent *a, const struct saina_job *job, int w);
bool worker_numbers_text(struct agent *a, const struct saina_job *job, int w, char *text, size_t size);

/* share_socket.c */
int share_init(struct agent *a);
void share_uninit(struct agent *a);

/* share.c */
/* Answers a question: 0, with two descriptors for the caller to close, or refused with @m. */
int share_lend(struct agent *a, const struct saina_shm_request *q, struct saina_shm_reply *m,
	       int map[2]);
/* Takes back what sessions had that have ended. */
void share_job_changed(struct agent *a, const struct saina_job *job);

int relay_init(struct agent *a);
void relay_uninit(struct agent *a);

#endif /* AGENT_WORKERS_INTERNAL_H */
