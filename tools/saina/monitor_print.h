/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * saina monitor: printing of notifications and events.
 */
#ifndef SAINA_MONITOR_PRINT_H
#define SAINA_MONITOR_PRINT_H

#include "tool.h"

/* Prints a notification or an event: a callback of saina_ctl_next(). Returns 0. */
int monitor_print(const struct nlmsghdr *nlh, void *arg);
/* Prints "time" and "monotonic_ns"; as text, the wall clock and a blank. */
void monitor_time_print(__u64 monotonic_ns);

#endif /* SAINA_MONITOR_PRINT_H */
