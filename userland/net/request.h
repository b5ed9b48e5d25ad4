/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One question to the kernel by netlink: on a socket of its own, for they are rare.
 */
#ifndef NET_REQUEST_H
#define NET_REQUEST_H

#include <libmnl/libmnl.h>

/**
 * net_request() - send a request and hand each answer to @cb, until the last or MNL_CB_STOP
 * @bus: NETLINK_ROUTE, NETLINK_GENERIC
 * @nlh: the request, whole but for its sequence number
 * @cb: may be NULL where only an acknowledgement is expected
 *
 * Return: 0 or a negative errno: the kernel's; -EAGAIN: no answer within 5 s; -EINTR: the
 * dump is torn.
 */
int net_request(int bus, struct nlmsghdr *nlh, mnl_cb_t cb, void *arg);

#endif /* NET_REQUEST_H */
