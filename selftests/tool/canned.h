/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A made-up system: what a control plane would answer.  Every number is
 * different from every other, so that one in the wrong place shows.
 */
#ifndef TOOL_CANNED_H
#define TOOL_CANNED_H

#include <libmnl/libmnl.h>

/* Answer number @i to request (or notification) command @cmd; NULL: no more. */
struct nlmsghdr *canned_message(char *buf, const struct nlmsghdr *req, int cmd, int i);
/* For struct double_cp: all answers, then the end. */
void canned_answer(int fd, const struct nlmsghdr *req, void *arg);

#endif /* TOOL_CANNED_H */
