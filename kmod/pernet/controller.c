// SPDX-License-Identifier: GPL-2.0
#include <linux/bitmap.h>
#include <linux/list.h>
#include <linux/slab.h>

#include "pernet/controller.h"

/**
 * struct saina_controller - a socket that controls jobs, or has
 * @list: in struct saina_net
 * @portid: of the socket
 * @jobs: bits by number of the job
 */
struct saina_controller {
	struct list_head list;
	u32 portid;
	DECLARE_BITMAP(jobs, SAINA_JOBS_MAX);
};

static struct saina_controller *controller_find(const struct saina_net *sn, u32 portid)
{
	struct saina_controller *c;

	lockdep_assert_held(&sn->lock);
	list_for_each_entry(c, &sn->controllers, list)
		if (c->portid == portid)
			return c;
	return NULL;
}

static bool is_controlled(const struct saina_net *sn, u16 job)
{
	const struct saina_controller *c;

	list_for_each_entry(c, &sn->controllers, list)
		if (test_bit(job, c->jobs))
			return true;
	return false;
}

static void controller_free(struct saina_controller *c)
{
	list_del(&c->list);
	kfree(c);
}

int saina_controller_prepare(struct saina_net *sn, u32 portid)
{
	struct saina_controller *c = controller_find(sn, portid);

	if (c)
		return 0;
	c = kzalloc(sizeof(*c), GFP_KERNEL_ACCOUNT);
	if (!c)
		return -ENOMEM;
	c->portid = portid;
	list_add(&c->list, &sn->controllers);
	return 0;
}

void saina_controller_set(struct saina_net *sn, u32 portid, u16 job, bool on)
{
	struct saina_controller *c = controller_find(sn, portid);

	if (!c)
		return;
	__assign_bit(job, c->jobs, on);
	if (bitmap_empty(c->jobs, SAINA_JOBS_MAX))
		controller_free(c);
}

void saina_controller_job_del(struct saina_net *sn, u16 job)
{
	struct saina_controller *c, *next;

	lockdep_assert_held(&sn->lock);
	list_for_each_entry_safe(c, next, &sn->controllers, list)
		saina_controller_set(sn, c->portid, job, false);
}

void saina_controller_gone(struct saina_net *sn, u32 portid)
{
	struct saina_controller *c;
	DECLARE_BITMAP(jobs, SAINA_JOBS_MAX);
	unsigned int job;

	/* each generic netlink socket comes here; what this one has noted is seen */
	if (list_empty(&sn->controllers))
		return;
	mutex_lock(&sn->lock);
	c = controller_find(sn, portid);
	if (c) {
		bitmap_copy(jobs, c->jobs, SAINA_JOBS_MAX);
		controller_free(c);
		for_each_set_bit(job, jobs, SAINA_JOBS_MAX)
			if (!is_controlled(sn, job))
				saina_core_controller_gone(sn->core, job);
	}
	mutex_unlock(&sn->lock);
}

void saina_controller_free(struct saina_net *sn)
{
	struct saina_controller *c, *next;

	list_for_each_entry_safe(c, next, &sn->controllers, list)
		controller_free(c);
}
