/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the commands of saina monitor share.
 */
#ifndef SAINA_MONITOR_H
#define SAINA_MONITOR_H

#include <stdbool.h>
#include "tool.h"

/* From here on SIGINT and SIGTERM do not kill, but set what monitor_stopped() returns. */
void monitor_catch_signals(void);
bool monitor_stopped(void);
/* When it happened: members "time" and "monotonic_ns", in text the wall clock and a blank. */
void monitor_time_print(__u64 monotonic_ns);

/* monitor_arrivals.c */
int monitor_arrivals(const struct tool *t, struct args *a);

#endif /* SAINA_MONITOR_H */
