/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of members/. */
#ifndef AGENT_MEMBERS_INTERNAL_H
#define AGENT_MEMBERS_INTERNAL_H

#include <netinet/in.h>

#include "agent/members/members.h"
#include "saina/shm.h"

struct port;

/* Sender of a datagram. */
struct sender {
	struct sockaddr_in addr;
	char text[32];
};

/* changes.c */
/* The port that a worker was admitted by, NULL: it has left the bridge; and its last name. */
const struct port *worker_port(struct agent *a, const struct saina_job *job, int w);
const char *worker_port_name(struct agent *a, const struct saina_job *job, int w);

/* ctrl_socket.c */
int ctrl_socket_init(struct agent *a);
void ctrl_socket_uninit(struct agent *a);
/* Receives at most @most messages. */
void ctrl_socket_drain(struct agent *a, int most);

/* admit.c */
void admit_join(struct agent *a, const struct sender *from, const struct saina_hdr *h,
		const struct saina_join *join);

/* reply.c */
/* The worker prints the text. */
void reply_refuse(struct agent *a, const struct sender *from, const struct saina_hdr *req,
		  uint64_t nonce, int reason, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));
void reply_welcome(struct agent *a, const struct sockaddr_in *to, const struct saina_job *job,
		   int w);
void reply_status(struct agent *a, const struct saina_job *job, int w);
/* Asks a live worker to join again, from where it is now.  @why: what has happened to its link */
void reply_join_again(struct agent *a, const struct saina_job *job, int w, const char *why);
/* @why: what has happened to the job */
void reply_job_gone(struct agent *a, const struct saina_job *job, const char *why);

/* delivery.c */
/* READY has arrived.  @fast: it says that replies of the data path arrive; @probe: the id
 * that it echoes, 0: none. */
void delivery_ready(struct agent *a, const struct saina_job *job, int w, bool fast, uint32_t probe);
int delivery_init(struct agent *a);
void delivery_uninit(struct agent *a);

/* liveness.c */
/* No worker dies because the agent was not scheduled: such time does not count as silence. */
void liveness_discount_stall(struct agent *a);
/* Declares a live worker dead that has been silent for too long. */
void liveness_check(struct agent *a, const struct saina_job *job, int w);
/* Return: sum of the counters that only the worker itself can have caused. */
uint64_t liveness_signs(const struct saina_counters *c);

/* straggler.c */
/**
 * struct progress - what the workers of a job are compared with
 * @opened, @completed: sums that its workers have, of all its sessions
 * @next_round: the next that opens
 * @k: of the newest round; 0: unknown, and nobody is compared
 */
struct progress {
	uint64_t opened, completed;
	uint32_t next_round;
	unsigned int k;
};

/* Before the workers' counters are read for straggler_check(). */
struct progress straggler_progress(struct agent *a, const struct saina_job *job);
/* Once a second, with the counters of a live worker. */
void straggler_check(struct agent *a, const struct saina_job *job, int w, struct progress p,
		     const struct saina_counters *c);

/* diagnose.c */
/* A heartbeat has a report. */
void diagnose_report(struct worker_aux *aux, const struct saina_report *r);
/* Once a second: finds out for whom an open round waits, or a job that is forming, and why. */
void diagnose_awaited(struct agent *a, const struct saina_job *job);
/* Once a second; @arrived: sum of the counters of what came from the worker. */
void diagnose_tick(struct agent *a, const struct saina_job *job, int w, uint64_t arrived);

/* numerics.c */
/* Once a second: checks the counters of a worker. */
void numerics_tick(struct agent *a, const struct saina_job *job, int w,
		   const struct saina_counters *c);
/* At the start and end of a session: reads and checks them. */
void numerics_read(struct agent *a, const struct saina_job *job, int w);
/* SAINA_EV_TYPES of the data path. */
void numerics_types(struct agent *a, const struct saina_event *ev);
bool numerics_text(struct agent *a, const struct saina_job *job, int w, char *text, size_t size);

/* shm_server.c */
int shm_server_init(struct agent *a);
void shm_server_uninit(struct agent *a);

/* shm_grant.c */
/* Serves a request.  Return: 0 and two descriptors, which the caller closes; or a negative
 * errno and the refusal in @m. */
int shm_grant(struct agent *a, const struct saina_shm_request *q, struct saina_shm_reply *m,
	      int map[2]);
/* Notes that shm_update() has to look at @job. */
void shm_job_changed(struct agent *a, const struct saina_job *job);

#endif /* AGENT_MEMBERS_INTERNAL_H */
