/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Configuration calls to saina.ko as tests make them, one function each. */
#ifndef SAINA_TEST_CALLS_H
#define SAINA_TEST_CALLS_H

#include "ctl/obj.h"
#include "ctl/policy_text.h"

/* Of this process; opened by calls_open(), which ends it when there is no module. */
extern struct saina_ctl *calls_ctl;
void calls_open(void);

/* Policies from and to what people write, SAINA_POLICY_TEXT_LEN bytes. */
void call_policy(const char *text, struct saina_policy_attrs *a);
void call_policy_text(const struct saina_policy_attrs *a, char *text);

/* All return 0 or the negative errno of the refusal. */
int call_job(int cmd, struct saina_job_attrs *job);
int call_worker(int cmd, struct saina_worker_attrs *w);
int call_job_new(const char *name, int workers, unsigned int elements);
/* With @payload elements of @type a message; 0 or NULL: what the module gives unasked. */
int call_job_new_as(const char *name, int workers, unsigned int elements, unsigned int payload,
		    int type, const char *policy);
int call_job_policy(int id, const char *policy);
int call_job_k(int id, int k);
int call_job_state(int id, int state);
int call_job_del(int id);
int call_worker_bind(int job, int id, unsigned int ifindex);
int call_worker_state(int job, int id, int state);
int call_worker_relay(int job, int id, int relay);
int call_worker_name(int job, int id, const char *name);
int call_worker_del(int job, int id);
int call_get(int cmd, int job, int id, int (*cb)(const struct nlmsghdr *nlh, void *arg), void *arg);
/* -EINTR: all was read, but it changed meanwhile */
int call_dump(int cmd, int (*cb)(const struct nlmsghdr *nlh, void *arg), void *arg);
int call_limits(struct saina_limits_attrs *l);

#endif /* SAINA_TEST_CALLS_H */
