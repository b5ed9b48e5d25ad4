/* SPDX-License-Identifier: GPL-2.0 */
/* The handlers and the family as they are generated, on all kernels. */
#ifndef _SAINA_OPS_H
#define _SAINA_OPS_H

#include "compat/genl.h"
#include "netlink/netlink_gen.h"
#undef genl_family

#endif /* _SAINA_OPS_H */
