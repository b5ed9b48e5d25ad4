/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A made-up system: what a control plane would answer.  Every number is
 * different from every other, so that one in the wrong place shows.
 */
#ifndef TOOL_MOCK_REPLIES_H
#define TOOL_MOCK_REPLIES_H

#include <libmnl/libmnl.h>

/* Answer number @i to request (or notification) command @cmd; NULL: no more. */
struct nlmsghdr *mock_reply(char *buf, const struct nlmsghdr *req, int cmd, int i);
/* For struct mock_agent: all answers, then the end. */
void mock_reply_all(int fd, const struct nlmsghdr *req, void *arg);

#endif /* TOOL_MOCK_REPLIES_H */
