/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State of a network namespace: its jobs, and their snapshots for the data path, published by
 * RCU.
 */
#ifndef _SAINA_PERNET_H
#define _SAINA_PERNET_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "core/core.h"
#include "pernet/ratelimit.h"

struct saina_snaps;

/**
 * struct saina_net - state of a network namespace
 * @net: the namespace
 * @lock: serialises every use of @core and @controllers, and changes of @snaps and @seq
 * @core: the jobs
 * @seq: grows with each change, never 0: dumps compare it
 * @ratelimit: of the events of the data path
 * @controllers: sockets that control jobs (controller.c)
 * @snaps: snapshots (snapshot.h), NULL until the first job
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

#endif /* _SAINA_PERNET_H */
