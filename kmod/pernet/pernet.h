/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What there is in a network namespace: the jobs, and what the data path sees of
 * them, snapshots published by RCU.
 */
#ifndef _SAINA_PERNET_H
#define _SAINA_PERNET_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "core/core.h"

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
 * struct saina_ratelimit - lets only so many events of the data path through
 * @lock: of the rest
 * @begin: of the present second, in jiffies
 * @n: events since then
 */
struct saina_ratelimit {
	spinlock_t lock;
	unsigned long begin;
	u32 n;
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

/**
 * struct saina_net - all there is in a network namespace
 * @net: the namespace
 * @lock: serialises every use of @core and @controllers, and changes of @snaps and @seq
 * @core: the jobs
 * @seq: grows with each change; never 0, so that dumps can tell
 * @ratelimit: of the events of the data path
 * @controllers: sockets that control jobs (pernet/controller.c)
 * @snaps: NULL until there is a first job
 */
struct saina_net {
	struct net *net;
	struct mutex lock;
	struct saina_core *core;
	u32 seq;
	struct saina_ratelimit ratelimit;
	struct list_head controllers;
	struct saina_snaps __rcu *snaps;
};

extern unsigned int saina_net_id;

static inline struct saina_net *saina_net_get(const struct net *net)
{
	return net_generic(net, saina_net_id);
}

/* Programs run under rcu_read_lock() or, in drivers that do without, with bottom halves
 * off alone: kfree_rcu() waits for both.
 */
#define saina_rcu(p) rcu_dereference_check(p, rcu_read_lock_bh_held())

/* The same for the data path: as cheap as can be. */
static inline struct saina_net *saina_net_get_rcu(const struct net *net)
{
	return saina_rcu(net->gen)->ptr[saina_net_id];
}

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

#endif /* _SAINA_PERNET_H */
