/* SPDX-License-Identifier: GPL-2.0 */
/* Snapshots of jobs for the data path, published by RCU. */
#ifndef _SAINA_SNAPSHOT_H
#define _SAINA_SNAPSHOT_H

#include "pernet/pernet.h"

/**
 * struct saina_live - what the data path says of a job, as long as it exists
 * @rcu: for freeing it
 * @next_round: 1 + the last round known to have been finished
 * @policy_seq: of the policy last adopted, 0: not known
 * @k: in force, 0: nothing has been heard yet
 */
struct saina_live {
	struct rcu_head rcu;
	u32 next_round;
	u32 policy_seq;
	u8 k;
};

/**
 * struct saina_snap - immutable, published in struct saina_net
 * @rcu: for freeing it
 * @live: the same for all snapshots of a job
 * @name: of the job
 * @conf: what programs see
 */
struct saina_snap {
	struct rcu_head rcu;
	struct saina_live *live;
	char name[SAINA_NAME_LEN];
	struct saina_job_conf conf;
};

/**
 * struct saina_snaps - the snapshots of a network namespace
 * @rcu: for freeing it
 * @snap: by number of the job
 */
struct saina_snaps {
	struct rcu_head rcu;
	struct saina_snap __rcu *snap[SAINA_JOBS_MAX];
};

/* Publishes the job in the place of what was there; 0 or -ENOMEM.  The caller holds the lock. */
int saina_snap_publish(struct saina_net *sn, const struct saina_job *job,
		       struct saina_core_err *err);
/* The job is deleted; the caller holds the lock. */
void saina_snap_withdraw(struct saina_net *sn, const struct saina_job *job);
/* The namespace is going. */
void saina_snap_free(struct saina_net *sn);

/**
 * saina_net_snap() - what programs see of a job
 * @sn: namespace
 * @job: any number
 *
 * Return: the snapshot, valid as long as the caller holds RCU or has bottom halves off,
 * or NULL
 */
static inline const struct saina_snap *saina_net_snap(const struct saina_net *sn, u32 job)
{
	const struct saina_snaps *snaps = saina_rcu(sn->snaps);

	return snaps && job < SAINA_JOBS_MAX ? saina_rcu(snaps->snap[job]) : NULL;
}

/* The same for who holds the lock; @job is a number of a job. */
static inline struct saina_snap *saina_net_snap_owned(const struct saina_net *sn, u32 job)
{
	const struct saina_snaps *snaps =
		rcu_dereference_protected(sn->snaps, lockdep_is_held(&sn->lock));

	return snaps ? rcu_dereference_protected(snaps->snap[job], lockdep_is_held(&sn->lock)) :
		       NULL;
}

/* What the data path says of a job of the core; the caller holds the lock. */
static inline struct saina_live *saina_net_live(const struct saina_net *sn,
						const struct saina_job *job)
{
	const struct saina_snap *snap = saina_net_snap_owned(sn, job->id);

	return snap ? snap->live : NULL;
}

#endif /* _SAINA_SNAPSHOT_H */
