/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Configuration calls to saina.ko as tests make them, one function each. */
#ifndef SAINA_TEST_REQUESTS_H
#define SAINA_TEST_REQUESTS_H

#include "ctl/obj.h"
#include "ctl/policy_text.h"

/* Of this process; opened by requests_open(), which ends it when there is no module. */
extern struct saina_ctl *requests_ctl;
void requests_open(void);

/* Policies from and to what people write, SAINA_POLICY_TEXT_LEN bytes. */
void request_policy(const char *text, struct saina_policy_attrs *a);
void request_policy_text(const struct saina_policy_attrs *a, char *text);

/* All return 0 or the negative errno of the refusal. */
int request_job(int cmd, struct saina_job_attrs *job);
int request_worker(int cmd, struct saina_worker_attrs *w);
int request_job_new(const char *name, int workers, unsigned int elements);
/* With @payload elements of @type a message; 0 or NULL: what the module gives unasked. */
int request_job_new_as(const char *name, int workers, unsigned int elements, unsigned int payload,
		       int type, const char *policy);
int request_job_policy(int id, const char *policy);
int request_job_k(int id, int k);
int request_job_state(int id, int state);
int request_job_del(int id);
int request_worker_bind(int job, int id, unsigned int ifindex);
int request_worker_state(int job, int id, int state);
int request_worker_relay(int job, int id, int relay);
int request_worker_name(int job, int id, const char *name);
int request_worker_del(int job, int id);
int request_get(int cmd, int job, int id, int (*cb)(const struct nlmsghdr *nlh, void *arg),
		void *arg);
/* -EINTR: all was read, but it changed meanwhile */
int request_dump(int cmd, int (*cb)(const struct nlmsghdr *nlh, void *arg), void *arg);
int request_limits(struct saina_limits_attrs *l);

#endif /* SAINA_TEST_REQUESTS_H */
