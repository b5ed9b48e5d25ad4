/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs in saina.ko.  The functions print a sentence on stderr and exit(1) on failure. */
#ifndef SAINA_BENCH_KERNEL_JOB_H
#define SAINA_BENCH_KERNEL_JOB_H

#include "dp/dp.h"

/* Creates a running job with all workers bound.  @c: out: the snapshot that saina.ko publishes. */
void kernel_job_create(struct saina_job_conf *c, unsigned int id, unsigned int payload,
		       unsigned int workers, unsigned int k, unsigned int pool);
void kernel_job_delete(unsigned int id);

#endif /* SAINA_BENCH_KERNEL_JOB_H */
