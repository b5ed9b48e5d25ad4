// SPDX-License-Identifier: GPL-2.0-or-later
#include <signal.h>

#include "signals.h"

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	stopped = 1;
}

void stop_on_signals(bool hangup)
{
	/* no SA_RESTART: the wait must end */
	struct sigaction sa = { .sa_handler = on_signal };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	if (hangup)
		sigaction(SIGHUP, &sa, NULL);
}

bool stop_requested(void)
{
	return stopped;
}
