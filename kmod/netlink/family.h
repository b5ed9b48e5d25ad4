/* SPDX-License-Identifier: GPL-2.0 */
/* The generic netlink family `saina' (Documentation/netlink/specs/saina.yaml). */
#ifndef _SAINA_FAMILY_H
#define _SAINA_FAMILY_H

int saina_family_init(void);
void saina_family_uninit(void);

#endif /* _SAINA_FAMILY_H */
