// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include "agent/log.h"
#include "monotonic.h"

#define LIMIT_BURST 10

static int log_max = LOG_L_INFO;
static bool log_syslog;

static const char *const level_name[] = { "error", "warn", "info", "debug" };

void log_level_set(int level)
{
	log_max = level;
}

int log_level_parse(const char *name)
{
	int i;

	for (i = 0; i <= LOG_L_DEBUG; i++)
		if (!strcmp(name, level_name[i]))
			return i;
	return -1;
}

void log_to_syslog(void)
{
	openlog("sainad", LOG_PID, LOG_DAEMON);
	log_syslog = true;
}

void log_line(int level, const char *fmt, ...)
{
	static const int priority[] = { LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG };
	char line[512];
	va_list ap;

	if (level > log_max)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (log_syslog)
		syslog(priority[level], "%s", line);
	else
		fprintf(stderr, "sainad: %s: %s\n", level_name[level], line);
}

bool log_allowed(struct log_limit *l, int level)
{
	uint64_t now = monotonic_ns();

	if (now - l->refill_ns >= NSEC_PER_SEC) {
		/* ten quiet seconds restore the whole burst */
		l->used = now - l->refill_ns >= LIMIT_BURST * NSEC_PER_SEC || !l->used
				  ? 0
				  : l->used - 1;
		l->refill_ns = now;
	}
	if (l->used >= LIMIT_BURST) {
		l->left_out++;
		return false;
	}
	l->used++;
	if (l->left_out) {
		log_line(level, "%u lines like the next one were left out", l->left_out);
		l->left_out = 0;
	}
	return true;
}
