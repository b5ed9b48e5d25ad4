/* SPDX-License-Identifier: GPL-2.0 */
/* Sockets that have said that they control a job: an event says when the last one is closed. */
#ifndef _SAINA_CONTROLLER_H
#define _SAINA_CONTROLLER_H

#include "pernet/pernet.h"

/* Memory for what saina_controller_set() notes; 0 or -ENOMEM.  The caller holds the lock. */
int saina_controller_prepare(struct saina_net *sn, u32 portid);
/* Socket @portid controls @job, or (@on false) no more.  The caller holds the lock. */
void saina_controller_set(struct saina_net *sn, u32 portid, u16 job, bool on);
/* The job is deleted: nobody controls it.  The caller holds the lock. */
void saina_controller_job_del(struct saina_net *sn, u16 job);
/* Socket @portid is closed; takes the lock. */
void saina_controller_gone(struct saina_net *sn, u32 portid);
/* The namespace goes, or the module. */
void saina_controller_free(struct saina_net *sn);

#endif /* _SAINA_CONTROLLER_H */
