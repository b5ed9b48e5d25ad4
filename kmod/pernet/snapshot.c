// SPDX-License-Identifier: GPL-2.0
#include <linux/slab.h>

#include "pernet/snapshot.h"
#include "trace.h"

/* The lock is held, or the namespace is going. */
static void snap_remove(struct saina_net *sn, struct saina_snaps *snaps, u32 job)
{
	struct saina_snap *snap = rcu_replace_pointer(snaps->snap[job], NULL, true);

	if (!snap)
		return;
	trace_saina_snapshot_withdrawn(sn->net, &snap->conf);
	kfree_rcu(snap->live, rcu);
	kfree_rcu(snap, rcu);
}

/* The table of snapshots, made for the first job. */
static struct saina_snaps *snaps_get(struct saina_net *sn)
{
	struct saina_snaps *snaps =
		rcu_dereference_protected(sn->snaps, lockdep_is_held(&sn->lock));

	if (!snaps) {
		snaps = kzalloc(sizeof(*snaps), GFP_KERNEL_ACCOUNT);
		rcu_assign_pointer(sn->snaps, snaps);
	}
	return snaps;
}

int saina_snap_publish(struct saina_net *sn, const struct saina_job *job,
		       struct saina_core_err *err)
{
	struct saina_snap *snap, *old = saina_net_snap_owned(sn, job->id);
	struct saina_snaps *snaps = snaps_get(sn);
	struct saina_live *live;

	if (!snaps)
		goto err_memory;
	snap = kzalloc(sizeof(*snap), GFP_KERNEL_ACCOUNT);
	if (!snap)
		goto err_memory;
	live = old ? old->live : kzalloc(sizeof(*live), GFP_KERNEL_ACCOUNT);
	if (!live)
		goto err_snap;
	if (old && old->conf.generation != job->generation) {
		WRITE_ONCE(live->next_round, job->first_round);
		WRITE_ONCE(live->policy_seq, 0);
		WRITE_ONCE(live->k, 0);
	}
	snap->live = live;
	memcpy(snap->name, job->name, sizeof(snap->name));
	saina_core_snapshot(job, &snap->conf);
	rcu_assign_pointer(snaps->snap[job->id], snap);
	if (!old)
		trace_saina_job_new(sn->net, job);
	trace_saina_snapshot_published(sn->net, &snap->conf);
	if (!old || old->conf.policy.seq != job->policy.seq)
		trace_saina_policy_asked(sn->net, job->id, READ_ONCE(live->next_round),
					 old ? old->conf.policy.seq : 0, job->policy.seq);
	if (old)
		kfree_rcu(old, rcu);
	return 0;

err_snap:
	kfree(snap);
err_memory:
	return saina_refuse(err, -ENOMEM, 0, "job %s: the kernel is out of memory", job->name);
}

void saina_snap_withdraw(struct saina_net *sn, const struct saina_job *job)
{
	snap_remove(sn, rcu_dereference_protected(sn->snaps, lockdep_is_held(&sn->lock)), job->id);
}

/* Its devices are gone already, so no program runs here; but one may just be
 * leaving, hence RCU all the same.
 */
void saina_snap_free(struct saina_net *sn)
{
	struct saina_snaps *snaps = rcu_replace_pointer(sn->snaps, NULL, true);
	u32 job;

	for (job = 0; snaps && job < SAINA_JOBS_MAX; job++)
		snap_remove(sn, snaps, job);
	if (snaps)
		kfree_rcu(snaps, rcu);
}
