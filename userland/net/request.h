/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A netlink request to the kernel, on a socket of its own: requests are rare.
 */
#ifndef NET_REQUEST_H
#define NET_REQUEST_H

#include <libmnl/libmnl.h>

/**
 * net_request() - send a request and call @cb with each message of the reply, until the last
 *	one or MNL_CB_STOP
 * @bus: NETLINK_ROUTE, NETLINK_GENERIC
 * @nlh: the request; its sequence number is set here
 * @cb: NULL if only an acknowledgement is expected
 *
 * Return: 0 or the kernel's negative errno; -EAGAIN: no answer within 5 s; -EINTR: the dump
 * is inconsistent, links changed meanwhile.
 */
int net_request(int bus, struct nlmsghdr *nlh, mnl_cb_t cb, void *arg);

#endif /* NET_REQUEST_H */
