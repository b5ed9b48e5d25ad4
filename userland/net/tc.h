/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Traffic control by rtnetlink: what is on an interface, and interfaces of kind ifb
 * that copy what they are given to other interfaces.  All functions return 0 or a
 * negative errno unless they say otherwise.
 */
#ifndef NET_TC_H
#define NET_TC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kind of the qdisc that has the ingress filters of an interface: "ingress", "clsact",
 * or empty. */
int tc_ingress_kind(int ifindex, char *kind, size_t size);

/* Of how many priorities filters are there on an interface that has clsact; negative
 * errno. */
int tc_filters_in(int ifindex);
int tc_filters_out(int ifindex);

/* Is there a filter of kind bpf with this priority and handle?  @out: on the way out. */
bool tc_bpf_exists(int ifindex, bool out, unsigned int prio, uint32_t handle);
/* The handle of the first filter of kind bpf with this priority, which a frame meets before
 * the others of it; 0: there is none. */
uint32_t tc_bpf_first_handle(int ifindex, bool out, unsigned int prio);

/*
 * An interface of kind ifb, with clsact.  What is redirected to it goes through the egress
 * filters and is dropped then, because the interface is down; so it also sends nothing of
 * its own.
 * @ifindex: out.  -EEXIST: there is an interface of that name.
 */
int tc_ifb_add(const char *name, const char *alias, int *ifindex);
int tc_link_del(int ifindex);

/* The egress filter of @prio (1..65535): copy to @port and go on with the next one. */
int tc_mirror_add(int ifindex, unsigned int prio, int port);
int tc_filter_del(int ifindex, unsigned int prio);

#endif /* NET_TC_H */
