// SPDX-License-Identifier: GPL-2.0
/*
 * No memory for linear copies of GSO batches: while nomem.ko is loaded, pskb_expand_head()
 * of a long skb fails when it may not sleep, each time but every @spare'th.  Debian's kernels
 * have no fault injection, so a kprobe returns in its place.  x86.
 */
#include <linux/atomic.h>
#include <linux/gfp.h>
#include <linux/kprobes.h>
#include <linux/linkage.h>
#include <linux/module.h>
#include <linux/skbuff.h>

#define LONG	9000	/* bytes: of a GSO batch, not of a frame */

static int spare = 2;
module_param(spare, int, 0);
MODULE_PARM_DESC(spare, "one of so many succeeds");

static atomic_t asked;
static int failed;
module_param(failed, int, 0444);
MODULE_PARM_DESC(failed, "how many have failed");

/* What the function is replaced with. */
void nomem_return(void);
asm(".text\n"
    ".type nomem_return, @function\n"
    ".globl nomem_return\n"
    "nomem_return:\n"
    ASM_RET
    ".size nomem_return, .-nomem_return\n");

static int nomem_expand(struct kprobe *p, struct pt_regs *regs)
{
	const struct sk_buff *skb = (const void *)regs->di;

	if (skb->len < LONG || (regs->cx & __GFP_DIRECT_RECLAIM) ||
	    atomic_inc_return(&asked) % spare == 0)
		return 0;
	WRITE_ONCE(failed, READ_ONCE(failed) + 1);
	regs->ax = -ENOMEM;
	regs->ip = (unsigned long)nomem_return;
	return 1;
}

static struct kprobe probe = {
	.symbol_name = "pskb_expand_head",
	.pre_handler = nomem_expand,
};

static int __init nomem_init(void)
{
	return register_kprobe(&probe);
}

static void __exit nomem_exit(void)
{
	unregister_kprobe(&probe);
}

module_init(nomem_init);
module_exit(nomem_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("no memory for linear copies of GSO batches");
