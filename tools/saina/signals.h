/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands that run until a signal stops them. */
#ifndef SAINA_SIGNALS_H
#define SAINA_SIGNALS_H

#include <stdbool.h>

/* From this call on SIGINT and SIGTERM, and with @hangup SIGHUP, set stop_requested(). */
void stop_on_signals(bool hangup);
bool stop_requested(void);

#endif /* SAINA_SIGNALS_H */
