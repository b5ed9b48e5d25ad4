/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Declarations of the commands of saina monitor.
 */
#ifndef SAINA_MONITOR_H
#define SAINA_MONITOR_H

#include <stdbool.h>
#include "tool.h"

/* From this call on SIGINT and SIGTERM set the result of monitor_stopped(). */
void monitor_catch_signals(void);
bool monitor_stopped(void);
/* Prints "time" and "monotonic_ns"; as text, the wall clock and a blank. */
void monitor_time_print(__u64 monotonic_ns);

/* monitor_arrivals.c */
int monitor_arrivals(const struct tool *t, struct args *a);

#endif /* SAINA_MONITOR_H */
