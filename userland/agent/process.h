/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process: limits, background, readiness, restart. */
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
/* After a reload: this process is in the background already. */
void process_background_again(void);
/* Setup is complete: lets the parent exit, and logs to syslog from now on. */
void process_detach(int background);
/* Reports that setup is complete, by --ready-fd and sd_notify. */
void process_ready(const struct config *cfg);

/* Is there somebody who sends SIGHUP to have the configuration read again? */
bool process_reloads(const struct config *cfg);
/*
 * Restarts the program in this process, with the same arguments, in @directory, where it was
 * started first.  Returns a negative errno, if at all.
 */
int process_restart(int argc, char **argv, int directory);

#endif /* AGENT_PROCESS_H */
