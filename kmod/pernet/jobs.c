// SPDX-License-Identifier: GPL-2.0
/*
 * Owner of the job core in the kernel: one core for each network namespace, whose jobs are
 * published to the data path by RCU and whose changes are sent by netlink.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/ktime.h>

#include "pernet/controller.h"
#include "pernet/event.h"
#include "pernet/jobs.h"
#include "pernet/notify.h"
#include "pernet/snapshot.h"
#include "trace.h"

unsigned int saina_net_id __read_mostly;

/* Makes dumps in progress inconsistent. */
static void jobs_changed(struct saina_net *sn)
{
	lockdep_assert_held(&sn->lock);
	if (!++sn->seq)
		sn->seq = 1;
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

static int jobs_publish(void *ctx, const struct saina_job *job, int gone,
			struct saina_core_err *err)
{
	if (!gone)
		return saina_snap_publish(ctx, job, err);
	saina_snap_withdraw(ctx, job);
	return 0;
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
	saina_ratelimit_init(&sn->ratelimit);
	INIT_LIST_HEAD(&sn->controllers);
	sn->core = saina_core_new(&jobs_ops, sn, NULL);
	return sn->core ? 0 : -ENOMEM;
}

static void __net_exit jobs_net_exit(struct net *net)
{
	struct saina_net *sn = saina_net_get(net);

	saina_snap_free(sn);
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
