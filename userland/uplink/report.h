/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The socket to sainad. */
#ifndef SAINA_UPLINK_REPORT_H
#define SAINA_UPLINK_REPORT_H

#include "relay.h"

/**
 * handover_receive() - wait for what sainad hands over
 * @fd: socket to sainad
 * @c: out
 * @fds: out, UPLINK_FD_COUNT descriptors
 * @text: out, why not, a sentence
 * Return: 0 or -errno
 */
int handover_receive(int fd, struct uplink_handover *c, int *fds, char *text, size_t size);

/**
 * struct reporter
 * @fd: socket to sainad; -1: it has ended
 * @listener: for the next one
 * @last: the last report
 * @next_ns: no other report before this, unless it says something new
 */
struct reporter {
	int	fd, listener;
	struct uplink_report last;
	uint64_t next_ns;
};

/* Return: 0 or -errno: sainad has to start a new relay when it has ended. */
int report_listen(struct reporter *p, const struct uplink_handover *c);
/* A sainad has connected: it is told what was handed over, and gets the reports from now on. */
void report_accept(struct reporter *p, const struct uplink_handover *c);
/* sainad has ended. */
void report_closed(struct reporter *p);

/* Reports if that is due; returns when to call again at the latest. */
uint64_t report_run(struct reporter *p, const struct relay *r, uint64_t now);

#endif /* SAINA_UPLINK_REPORT_H */
