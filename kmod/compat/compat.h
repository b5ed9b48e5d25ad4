/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What kernels from 6.1 on can do, under one name each.  Only compat/ looks at
 * the kernel's version; the rest of the module asks for abilities.
 */
#ifndef _SAINA_COMPAT_H
#define _SAINA_COMPAT_H

#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/version.h>
#include <net/genetlink.h>

/* 6.3: marks functions that BPF may call, so that no copy of them is made. */
#ifndef __bpf_kfunc
#define __bpf_kfunc __used noinline
#endif

/* 6.8: sets of kfuncs must say that they are. */
#ifndef BTF_KFUNCS_START
#define BTF_KFUNCS_START(name) BTF_SET8_START(name)
#define BTF_KFUNCS_END(name)   BTF_SET8_END(name)
#endif

#endif /* _SAINA_COMPAT_H */
