/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AGENT_PROCESS_H
#define AGENT_PROCESS_H

#include "agent/config.h"

/* Raises the limit of open descriptors; warns if it stays too low for 256 jobs. */
void process_limits(void);
/*
 * Goes to the background.  Return: in the child, the descriptor for
 * process_detach(); the parent does not return.  Negative errno.
 */
int process_background(void);
/* Setup is complete: lets the parent exit, and logs to syslog from now on. */
void process_detach(int background);
/* Reports that setup is complete, by --ready-fd and sd_notify. */
void process_ready(const struct config *cfg);

#endif /* AGENT_PROCESS_H */
