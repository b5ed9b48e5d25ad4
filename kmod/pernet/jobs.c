// SPDX-License-Identifier: GPL-2.0
/*
 * The owner of the job core in the kernel: gives each network namespace one,
 * publishes its jobs to the data path by RCU and its changes by netlink.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/ktime.h>

#include "core/os.h"
#include "pernet/controller.h"
#include "pernet/event.h"
#include "pernet/jobs.h"
#include "pernet/notify.h"
#include "trace.h"

unsigned int saina_net_id __read_mostly;

/* The next state of dumps. */
static void jobs_changed(struct saina_net *sn)
{
	lockdep_assert_held(&sn->lock);
	if (!++sn->seq)
		sn->seq = 1;
}

/* The data path must not see the job any more; the lock is held, or nobody is left. */
static void snap_remove(struct saina_net *sn, struct saina_snaps *snaps, u32 job)
{
	struct saina_snap *snap = rcu_replace_pointer(snaps->snap[job], NULL, true);

	if (!snap)
		return;
	trace_saina_snapshot_withdrawn(sn->net, &snap->conf);
	kfree_rcu(snap->live, rcu);
	kfree_rcu(snap, rcu);
}

/* Operations of the core (core.h); it calls them with the lock held. */

static void *jobs_alloc(void *ctx, unsigned long size)
{
	return kvzalloc(size, GFP_KERNEL_ACCOUNT);
}

static void jobs_release(void *ctx, void *p)
{
	kvfree(p);
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

static int jobs_publish(void *ctx, const struct saina_job *job, int gone,
			struct saina_core_err *err)
{
	struct saina_net *sn = ctx;
	struct saina_snap *snap, *old = saina_net_snap_owned(sn, job->id);
	struct saina_snaps *snaps = snaps_get(sn);
	struct saina_live *live;

	if (!snaps)
		goto err_memory;
	if (gone) {
		snap_remove(sn, snaps, job->id);
		return 0;
	}
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

static void jobs_notify(void *ctx, int cmd, const struct saina_job *job, int worker)
{
	struct saina_net *sn = ctx;

	switch (cmd) {
	case SAINA_CMD_JOB_NTF:
		trace_saina_job_set(sn->net, job);
		break;
	case SAINA_CMD_JOB_DEL_NTF:
		trace_saina_job_del(sn->net, job);
		saina_controller_job_del(sn, job->id);
		break;
	case SAINA_CMD_WORKER_NTF:
		trace_saina_worker_set(sn->net, job, worker);
		break;
	case SAINA_CMD_WORKER_DEL_NTF:
		trace_saina_worker_del(sn->net, job, worker);
		break;
	}
	jobs_changed(sn);
	saina_notify(sn, cmd, job, worker);
}

static void jobs_event(void *ctx, const struct saina_event *core_ev)
{
	struct saina_net *sn = ctx;
	const struct saina_snap *snap = saina_net_snap_owned(sn, core_ev->job);
	struct saina_event ev = *core_ev;

	ev.time = ktime_get_ns();
	if (snap) {
		ev.round = READ_ONCE(snap->live->next_round);
		ev.k = READ_ONCE(snap->live->k);
	}
	trace_saina_event(sn->net, &ev, 0);
	saina_event_send(sn, &ev, snap ? snap->name : NULL, GFP_KERNEL);
}

static u32 jobs_policy_seq(void *ctx, const struct saina_job *job)
{
	const struct saina_live *live = saina_net_live(ctx, job);

	return live ? READ_ONCE(live->policy_seq) : 0;
}

static const struct saina_core_ops jobs_ops = {
	.alloc = jobs_alloc,
	.free = jobs_release,
	.publish = jobs_publish,
	.notify = jobs_notify,
	.event = jobs_event,
	.policy_seq = jobs_policy_seq,
	.floats = 1,
};

static int __net_init jobs_net_init(struct net *net)
{
	struct saina_net *sn = saina_net_get(net);

	sn->net = net;
	sn->seq = 1;
	mutex_init(&sn->lock);
	spin_lock_init(&sn->ratelimit.lock);
	sn->ratelimit.begin = jiffies;
	INIT_LIST_HEAD(&sn->controllers);
	sn->core = saina_core_new(&jobs_ops, sn, NULL);
	return sn->core ? 0 : -ENOMEM;
}

/* Its devices are gone already, so no program runs here; but one may just be
 * leaving, hence RCU all the same.
 */
static void __net_exit jobs_net_exit(struct net *net)
{
	struct saina_net *sn = saina_net_get(net);
	struct saina_snaps *snaps = rcu_replace_pointer(sn->snaps, NULL, true);
	u32 job;

	for (job = 0; snaps && job < SAINA_JOBS_MAX; job++)
		snap_remove(sn, snaps, job);
	if (snaps)
		kfree_rcu(snaps, rcu);
	saina_core_free(sn->core);
	saina_controller_free(sn);
}

static struct pernet_operations jobs_net_ops = {
	.init = jobs_net_init,
	.exit = jobs_net_exit,
	.id = &saina_net_id,
	.size = sizeof(struct saina_net),
};

int saina_jobs_init(void)
{
	return register_pernet_subsys(&jobs_net_ops);
}

void saina_jobs_uninit(void)
{
	unregister_pernet_subsys(&jobs_net_ops);
}
