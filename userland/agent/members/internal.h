/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of this room share. */
#ifndef AGENT_MEMBERS_INTERNAL_H
#define AGENT_MEMBERS_INTERNAL_H

#include <netinet/in.h>

#include "agent/members/members.h"
#include "saina/shm.h"

/* Where a datagram came from. */
struct sender {
	struct sockaddr_in addr;
	char text[32];
};

/* admit.c */
int ctrl_socket_init(struct agent *a);
void ctrl_socket_uninit(struct agent *a);
/* Takes what has come in, at most @most messages. */
void ctrl_socket_drain(struct agent *a, int most);

/* join.c */
void admit_join(struct agent *a, const struct sender *from, const struct saina_hdr *h,
	  const struct saina_join *join);

/* message.c: what is said to workers */

/* Refuses @req; the worker prints the sentence. */
void reply_refuse(struct agent *a, const struct sender *from, const struct saina_hdr *req,
		    uint64_t nonce, int reason, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));
void reply_welcome(struct agent *a, const struct sockaddr_in *to, const struct saina_job *job,
		     int w);
void reply_status(struct agent *a, const struct saina_job *job, int w);
void reply_job_gone(struct agent *a, const struct saina_job *job);

/* path.c */
/* It said READY.  @probe: the number that it was to show, 0: none */
void delivery_ready(struct agent *a, const struct saina_job *job, int w, bool fast, uint32_t probe);

int liveness_init(struct agent *a);
void liveness_uninit(struct agent *a);

/* trouble.c: a heartbeat; the look of each second, @arrived counts what came of the worker */
void diagnose_report(struct worker_aux *aux, const struct saina_report *r);
void diagnose_tick(struct agent *a, const struct saina_job *job, int w, uint64_t arrived);

/*
 * numbers.c: what the counters of a worker say of its numbers, each second, and when a life of it
 * begins and when it has ended.
 */
void numerics_tick(struct agent *a, const struct saina_job *job, int w, const struct saina_counters *c);
void numerics_read(struct agent *a, const struct saina_job *job, int w);
bool numerics_text(struct agent *a, const struct saina_job *job, int w, char *text, size_t size);

/* share_socket.c */
int shm_server_init(struct agent *a);
void shm_server_uninit(struct agent *a);

/* share.c */
/* Answers a question: 0, with two descriptors for the caller to close, or refused with @m. */
int shm_grant(struct agent *a, const struct saina_shm_request *q, struct saina_shm_reply *m,
	       int map[2]);
/* Takes back what sessions had that have ended. */
void shm_job_changed(struct agent *a, const struct saina_job *job);

int delivery_init(struct agent *a);
void delivery_uninit(struct agent *a);

#endif /* AGENT_MEMBERS_INTERNAL_H */
