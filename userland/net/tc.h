/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Traffic control by rtnetlink: qdiscs and filters of an interface, and interfaces of kind
 * ifb that copy frames to other interfaces.  Functions return 0 or a negative errno unless
 * they say otherwise.
 */
#ifndef NET_TC_H
#define NET_TC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kind of the qdisc that holds the ingress filters: "ingress", "clsact", "": none. */
int tc_ingress_kind(int ifindex, char *kind, size_t size);

/* Number of priorities with filters on an interface that has clsact; or negative errno.  @out:
 * egress. */
int tc_filters(int ifindex, bool out);

/* Has the interface an ingress filter with the action police? */
bool tc_is_policed(int ifindex);

/* Handle of the filter of kind bpf that runs first of those with this priority and @handle (0:
 * any); 0: none. */
uint32_t tc_bpf_find(int ifindex, bool out, unsigned int prio, uint32_t handle);

/*
 * Adds an interface of kind ifb, with clsact.  The interface is down: a frame that is
 * redirected to it passes the egress filters and is dropped, and it sends nothing itself.
 * @ifindex: out.  -EEXIST: the name is taken.
 */
int tc_ifb_add(const char *name, const char *alias, int *ifindex);
int tc_link_del(int ifindex);

/* Adds an egress filter of priority @prio (1..65535) that copies frames to @port. */
int tc_mirror_add(int ifindex, unsigned int prio, int port);
int tc_filter_del(int ifindex, unsigned int prio);

#endif /* NET_TC_H */
