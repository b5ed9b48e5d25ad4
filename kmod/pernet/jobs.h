/* SPDX-License-Identifier: GPL-2.0 */
/* The job tables, one in each network namespace (pernet/pernet.h). */
#ifndef _SAINA_JOBS_H
#define _SAINA_JOBS_H

int saina_jobs_init(void);
void saina_jobs_uninit(void);

#endif /* _SAINA_JOBS_H */
