// SPDX-License-Identifier: GPL-2.0
#include "compat/genl.h"
#undef genl_family

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)

#define OPS_MAX 32

static const struct saina_split_family *split_family;
static struct genl_ops ops[OPS_MAX];
static struct genl_family family;

static const struct genl_split_ops *do_of(u8 cmd)
{
	const struct genl_split_ops *op = split_family->split_ops;

	while (op->cmd != cmd || !(op->flags & GENL_CMD_CAP_DO))
		op++;
	return op;
}

static int pre_doit(const struct genl_ops *op, struct sk_buff *skb, struct genl_info *info)
{
	const struct genl_split_ops *split = do_of(op->cmd);

	return split->pre_doit ? split->pre_doit(split, skb, info) : 0;
}

static void post_doit(const struct genl_ops *op, struct sk_buff *skb, struct genl_info *info)
{
	const struct genl_split_ops *split = do_of(op->cmd);

	if (split->post_doit)
		split->post_doit(split, skb, info);
}

/*
 * One operation for each command, which follow one another.  The policy of a command
 * that can be asked for in both ways is the one without NLM_F_DUMP, which comes first and
 * allows more: what a dump does not take is refused by its start callback.
 */
static int ops_make(void)
{
	const struct genl_split_ops *split = split_family->split_ops;
	int i, n = 0;

	for (i = 0; i < split_family->n_split_ops; i++, split++) {
		if (!n || ops[n - 1].cmd != split->cmd) {
			if (n == OPS_MAX)
				return n;
			ops[n].cmd = split->cmd;
			ops[n].policy = split->policy;
			ops[n].maxattr = split->maxattr;
			n++;
		}
		if (split->flags & GENL_CMD_CAP_DO) {
			ops[n - 1].doit = split->doit;
		} else {
			ops[n - 1].start = split->start;
			ops[n - 1].dumpit = split->dumpit;
			ops[n - 1].done = split->done;
		}
	}
	return n;
}

/**
 * saina_compat_family() - the family as this kernel knows it
 * @split: as it is generated
 *
 * Return: what genl_register_family() takes
 */
struct genl_family *saina_compat_family(const struct saina_split_family *split)
{
	split_family = split;
	strscpy(family.name, split->name, sizeof(family.name));
	family.version = split->version;
	family.netnsok = split->netnsok;
	family.parallel_ops = split->parallel_ops;
	family.mcgrps = split->mcgrps;
	family.n_mcgrps = split->n_mcgrps;
	family.module = split->module;
	family.pre_doit = pre_doit;
	family.post_doit = post_doit;
	family.ops = ops;
	family.n_ops = ops_make();
	return &family;
}

#endif
