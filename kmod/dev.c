// SPDX-License-Identifier: GPL-2.0
#include <linux/netdevice.h>
#include <net/net_namespace.h>

#include "dev.h"
#include "pernet/pernet.h"
#include "trace.h"

/* The first live worker bound to @ifindex, in jobs from *@from on. */
static const struct saina_job *worker_behind(const struct saina_net *sn, u32 ifindex, int from,
					     int *w)
{
	const struct saina_job *job;

	for (; (job = saina_core_job_next(sn->core, from)); from = job->id + 1) {
		for (*w = 0; *w < job->workers; (*w)++)
			if (job->active & 1ull << *w && job->worker[*w].bind.ifindex == ifindex)
				return job;
	}
	return NULL;
}

/* A worker declared dead is active no longer, so this comes to an end; one that the
 * core will not declare dead (no memory) is left alone, its packets cannot come.
 */
static void workers_die(struct saina_net *sn, u32 ifindex)
{
	const struct saina_job *job;
	int w, from = 0;

	mutex_lock(&sn->lock);
	while ((job = worker_behind(sn, ifindex, from, &w))) {
		struct saina_worker_attrs req = {
			.has = 1ull << SAINA_A_WORKER_JOB_ID | 1ull << SAINA_A_WORKER_ID |
			       1ull << SAINA_A_WORKER_STATE,
			.job_id = job->id,
			.id = w,
			.state = SAINA_WORKER_STATE_DEAD,
		};

		trace_saina_worker_unplugged(sn->net, job->id, w, ifindex);
		from = job->id;
		if (saina_core_worker_set(sn->core, &req, NULL, NULL))
			from++;
	}
	mutex_unlock(&sn->lock);
}

/* unregister_netdevice_notifier() plays that every device goes. */
static bool leaving;

static int dev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	const struct net_device *dev = netdev_notifier_info_to_dev(ptr);

	if (event == NETDEV_UNREGISTER && !READ_ONCE(leaving))
		workers_die(saina_net_get(dev_net(dev)), dev->ifindex);
	return NOTIFY_DONE;
}

static struct notifier_block dev_notifier = {
	.notifier_call = dev_event,
};

int saina_dev_init(void)
{
	return register_netdevice_notifier(&dev_notifier);
}

void saina_dev_uninit(void)
{
	WRITE_ONCE(leaving, true);
	unregister_netdevice_notifier(&dev_notifier);
}
