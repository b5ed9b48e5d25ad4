/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AGENT_PROCESS_H
#define AGENT_PROCESS_H

#include "agent/config.h"

/* Raises the limit of open descriptors, or says that it is too low for the jobs there may be. */
void process_limits(void);
/*
 * Goes to the background.  Return: in the child, the descriptor for
 * process_detach(); the parent does not return.  Negative errno.
 */
int process_background(void);
/* Set up: lets the parent end, and logs to syslog from now on. */
void process_detach(int background);
/* Tells whoever waits (--ready-fd, sd_notify) that the agent is set up. */
void process_ready(const struct config *cfg);

#endif /* AGENT_PROCESS_H */
