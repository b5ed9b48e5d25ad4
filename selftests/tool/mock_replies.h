/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Replies of a control plane with made-up objects. Every number is different, so that one in the
 * wrong place is noticed.
 */
#ifndef TOOL_MOCK_REPLIES_H
#define TOOL_MOCK_REPLIES_H

#include <libmnl/libmnl.h>

/* Builds reply number @i to request (or notification) @cmd; NULL: there is no such reply. */
struct nlmsghdr *mock_reply(char *buf, const struct nlmsghdr *req, int cmd, int i);
/* An answer function of struct mock_agent: sends all replies and the end. */
void mock_reply_all(int fd, const struct nlmsghdr *req, void *arg);

#endif /* TOOL_MOCK_REPLIES_H */
