// SPDX-License-Identifier: GPL-2.0
/*
 * kfuncs for XDP and tc programs.  A program runs in the network namespace of the interface
 * that its packet came in by, and sees the jobs of that namespace.  Programs run with bottom
 * halves off, not always under rcu_read_lock().
 *
 * A snapshot is returned as plain read-only memory and not as a pointer to a
 * structure, because only into memory may a program index by a worker number
 * that it reads from a packet.
 */
#include <linux/filter.h>
#include <linux/hash.h>
#include <linux/module.h>
#include <linux/skbuff.h>
#include <net/sock.h>
#include <net/xdp.h>

#include "compat/compat.h"
#include "pernet/event.h"
#include "pernet/snapshot.h"
#include "kfunc.h"
#include "simd.h"
#include "trace.h"

/* Locks of the sums, by the address of the slot. */
#define SUM_LOCK_BITS	8

static struct {
	spinlock_t lock;
} ____cacheline_aligned_in_smp sum_locks[1 << SUM_LOCK_BITS];

static spinlock_t *sum_lock(const void *slot)
{
	return &sum_locks[hash_ptr(slot, SUM_LOCK_BITS)].lock;
}

static struct saina_net *net_of_xdp(struct xdp_md *ctx)
{
	struct xdp_buff *xdp = (struct xdp_buff *)ctx;

	return saina_net_get_rcu(dev_net(xdp->rxq->dev));
}

static struct saina_net *net_of_tc(struct __sk_buff *ctx)
{
	struct sk_buff *skb = (struct sk_buff *)ctx;

	return saina_net_get_rcu(skb->dev ? dev_net(skb->dev) : sock_net(skb->sk));
}

static const u8 *job_of(const struct saina_net *sn, u32 job, u32 size)
{
	const struct saina_snap *snap;

	if (size > sizeof(snap->conf))
		return NULL;
	snap = saina_net_snap(sn, job);
	if (snap)
		return (const u8 *)&snap->conf;
	trace_saina_lookup_miss(sn->net, job);
	return NULL;
}

static int event(struct saina_net *sn, const struct saina_event *ev, u32 size)
{
	if (size != sizeof(*ev) || ev->type >= SAINA_EV_JOB_STATE)
		return -EINVAL;
	return saina_event_data_path(sn, ev);
}

/**
 * saina_xdp_job() - the snapshot of a job
 * @ctx: of the program
 * @job: any number
 * @rdonly_buf_size: a constant: sizeof(struct saina_job_conf), or less if only
 *	its beginning is wanted
 *
 * Return: struct saina_job_conf, immutable, valid to the end of the program's
 * run; NULL if there is no such job
 */
__bpf_kfunc const u8 *saina_xdp_job(struct xdp_md *ctx, u32 job, const u32 rdonly_buf_size)
{
	return job_of(net_of_xdp(ctx), job, rdonly_buf_size);
}

/* saina_xdp_job() for tc programs. */
__bpf_kfunc const u8 *saina_tc_job(struct __sk_buff *ctx, u32 job, const u32 rdonly_buf_size)
{
	return job_of(net_of_tc(ctx), job, rdonly_buf_size);
}

/**
 * saina_xdp_event() - send an event to the subscribers
 * @ctx: of the program
 * @ev: all but its time, which is now
 * @ev__sz: sizeof(struct saina_event)
 *
 * At most event_rate (a module parameter) a second; when some are lost,
 * subscribers get ENOBUFS once in that second.
 *
 * Return: 0, -EINVAL (not an event of the data path), -ENOENT (no such job, or
 * the event is of an earlier generation of it), -EAGAIN (too many)
 */
__bpf_kfunc int saina_xdp_event(struct xdp_md *ctx, const struct saina_event *ev, u32 ev__sz)
{
	return event(net_of_xdp(ctx), ev, ev__sz);
}

/* saina_xdp_event() for tc programs. */
__bpf_kfunc int saina_tc_event(struct __sk_buff *ctx, const struct saina_event *ev, u32 ev__sz)
{
	return event(net_of_tc(ctx), ev, ev__sz);
}

/**
 * saina_f32_sum() - store a message in a slot, or add it to the slot's sums
 * @slot: struct saina_slot_meta and float32 sums behind it
 * @slot__sz: bytes of both; of the sums a multiple of 32
 * @msg: float32; in place in the packet or anywhere
 * @msg__sz: bytes, as many as the sums have
 * @tag: of what is summed; any number that no earlier use of @slot had
 *
 * All of it is under a lock of the module's own.  If the slot's sum_tag is @tag,
 * the message is added; else it is stored, and the tag with it, so the first caller need
 * not know that it is the first.  Each sum is rounded to nearest even once per
 * call, so the result depends on the order of the calls and on nothing else.
 *
 * The caller ensures that calls with another tag come only after the last one with this
 * tag.  Otherwise sums are wrong, and nothing else.
 *
 * Return: 0 or -EINVAL
 */
__bpf_kfunc int saina_f32_sum(void *slot, u32 slot__sz, const void *msg, u32 msg__sz, u64 tag)
{
	struct saina_slot_meta *meta = slot;
	u32 *sums = slot + sizeof(*meta);
	spinlock_t *lock = sum_lock(slot);

	if (slot__sz < sizeof(*meta) || slot__sz - sizeof(*meta) != msg__sz || msg__sz % 32)
		return -EINVAL;
	spin_lock_bh(lock);
	if (meta->sum_tag == tag)
		saina_f32_add_n(sums, msg, msg__sz / 4);
	else
		memcpy(sums, msg, msg__sz);
	meta->sum_tag = tag;
	spin_unlock_bh(lock);
	return 0;
}

/**
 * saina_bf16_sum() - the same for a message of bfloat16
 * @slot: as above; the sums are float32
 * @slot__sz: bytes; of the sums a multiple of 32
 * @msg: bfloat16
 * @msg__sz: bytes, half as many as the sums have
 * @tag: as above
 *
 * Return: 0 or -EINVAL
 */
__bpf_kfunc int saina_bf16_sum(void *slot, u32 slot__sz, const void *msg, u32 msg__sz, u64 tag)
{
	struct saina_slot_meta *meta = slot;
	u32 *sums = slot + sizeof(*meta);
	spinlock_t *lock = sum_lock(slot);

	if (slot__sz < sizeof(*meta) || msg__sz % 16 ||
	    (slot__sz - sizeof(*meta)) / 2 != msg__sz || slot__sz % 2)
		return -EINVAL;
	spin_lock_bh(lock);
	if (meta->sum_tag == tag)
		saina_bf16_add_n(sums, msg, msg__sz / 2);
	else
		saina_bf16_store_n(sums, msg, msg__sz / 2);
	meta->sum_tag = tag;
	spin_unlock_bh(lock);
	return 0;
}

BTF_KFUNCS_START(saina_xdp_kfuncs)
BTF_ID_FLAGS(func, saina_xdp_job, KF_RET_NULL)
BTF_ID_FLAGS(func, saina_xdp_event)
BTF_ID_FLAGS(func, saina_f32_sum)
BTF_ID_FLAGS(func, saina_bf16_sum)
BTF_KFUNCS_END(saina_xdp_kfuncs)

BTF_KFUNCS_START(saina_tc_kfuncs)
BTF_ID_FLAGS(func, saina_tc_job, KF_RET_NULL)
BTF_ID_FLAGS(func, saina_tc_event)
BTF_ID_FLAGS(func, saina_f32_sum)
BTF_ID_FLAGS(func, saina_bf16_sum)
BTF_KFUNCS_END(saina_tc_kfuncs)

static const struct btf_kfunc_id_set xdp_set = {
	.owner = THIS_MODULE,
	.set = &saina_xdp_kfuncs,
};

static const struct btf_kfunc_id_set tc_set = {
	.owner = THIS_MODULE,
	.set = &saina_tc_kfuncs,
};

/* There is no unregistering: the sets go with the module, which the programs
 * that use them hold.
 */
int __init saina_kfunc_init(void)
{
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(sum_locks); i++)
		spin_lock_init(&sum_locks[i].lock);
	ret = register_btf_kfunc_id_set(BPF_PROG_TYPE_XDP, &xdp_set);
	if (ret)
		return ret;
	return register_btf_kfunc_id_set(BPF_PROG_TYPE_SCHED_CLS, &tc_set);
}
