/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The little the job core needs from its surroundings: memory and string
 * primitives, snprintf, byte order, 64-bit division.  The kernel's or libc's.
 */
#ifndef _SAINA_CORE_OS_H
#define _SAINA_CORE_OS_H

#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/string.h>
#include <asm/byteorder.h>

#define saina_div(a, b)  div64_u64(a, b)
#define saina_be32(x)    cpu_to_be32(x)
#define saina_be16(x)    cpu_to_be16(x)
#define saina_cpu32(x)   be32_to_cpu(x)
#define saina_weight(x)  hweight64(x)
#else
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define saina_div(a, b)  ((a) / (b))
#define saina_be32(x)    htonl(x)
#define saina_be16(x)    htons(x)
#define saina_cpu32(x)   ntohl(x)
#define saina_weight(x)  ((unsigned int)__builtin_popcountll(x))

static inline int is_power_of_2(unsigned long n)
{
	return n && !(n & (n - 1));
}
#endif

#define saina_min(a, b) ((a) < (b) ? (a) : (b))

#endif /* _SAINA_CORE_OS_H */
