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

/* A JOIN that is being answered. */
struct join {
	const struct sender *from;
	const struct saina_hdr *h;
	const struct saina_join *body;	/* with NODE, of struct saina_join_node */
};

/* node.c */
/* Does the present round count on worker @w, and is it incomplete? */
bool round_needs(const struct saina_job *job, const struct saina_job_rt *rt, int w);
/* The functions that return false have sent a refusal, or none: the JOIN is repeated. */
bool node_job_admits(struct agent *a, const struct join *j, const struct saina_job *job);
/* Number of the worker that has the rank in the JOIN, -1 after a refusal. */
int node_worker_of_rank(struct agent *a, const struct join *j, const struct saina_job *job);
/* Can the sender be worker @w, as far as the tree is concerned? */
bool node_place_fits(struct agent *a, const struct join *j, const struct saina_job *job, int w);
/* Which free places WORKER_ANY means. */
bool node_place_is_any(const struct saina_job *job, int w);
/* Is it the node, or relay, that has been worker @w, with what it has summed? */
bool node_is_same(struct agent *a, const struct join *j, const struct saina_job *job, int w);
/* Of a node: ends its earlier session.  Return: the job, which may have begun a new generation; NULL:
 * the JOIN is to be repeated. */
const struct saina_job *node_comes_back(struct agent *a, const struct join *j,
					const struct saina_job *job, int w);
/* Of a worker of the uplink: is it the relay, by its port? */
bool node_port_fits(struct agent *a, const struct join *j, const struct saina_job *job, int w,
		    int ifindex);
uint64_t node_incarnation(struct agent *a, const struct join *j, const struct saina_job *job, int w);
/* The first round of a worker that joins a job that is forming. */
uint32_t node_first_round(struct agent *a, const struct saina_job *job, uint32_t named);

/* admit.c */
void admit_join(struct agent *a, const struct sender *from, const struct saina_hdr *h,
		const struct saina_join *join);

/* reply.c */
/* The worker prints the text. */
void reply_refuse(struct agent *a, const struct sender *from, const struct saina_hdr *req,
		  uint64_t nonce, int reason, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));
/* @tree: the JOIN has the flag TREE. */
void reply_welcome(struct agent *a, const struct sockaddr_in *to, const struct saina_job *job,
		   int w, bool tree);
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
