// SPDX-License-Identifier: GPL-2.0
/*
 * saina.ko: straggler-aware in-network aggregation, the kernel's control plane.
 * Configuration by generic netlink (netlink/), snapshots for BPF programs (pernet/,
 * kfunc.c).
 */
#include <linux/module.h>

#include "pernet/jobs.h"
#include "kfunc.h"
#include "netlink/family.h"
#include "simd.h"

static int __init saina_init(void)
{
	int ret;

	saina_simd_init();
	ret = saina_jobs_init();
	if (ret)
		return ret;
	ret = saina_family_init();
	if (ret)
		goto err_jobs;
	/* a module built without BTF can still be configured */
	ret = saina_kfunc_init();
	if (ret)
		pr_warn("saina: BPF programs cannot use this module (error %d): build it with BTF\n", ret);
	return 0;

err_jobs:
	saina_jobs_uninit();
	return ret;
}

static void __exit saina_exit(void)
{
	saina_family_uninit();
	saina_jobs_uninit();
}

module_init(saina_init);
module_exit(saina_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("SAINA: straggler-aware in-network aggregation, control plane");
/* No alias of the family: the tool looks for it first, and that must not load a
 * module that the operator has not asked for.
 */
