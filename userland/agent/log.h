/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Log lines: one per event, to stderr (or syslog once in the background). */
#ifndef AGENT_LOG_H
#define AGENT_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_L_ERROR, LOG_L_WARN, LOG_L_INFO, LOG_L_DEBUG };

/**
 * struct log_limit - rate limit, so that packets cannot fill the log: bursts of ten
 *	lines, then one a second with the number of lines suppressed
 */
struct log_limit {
	uint64_t refill_ns;
	unsigned int used;
	unsigned int left_out;
};

void log_level_set(int level);
int log_level_parse(const char *name);	/* -1 if unknown */
void log_to_syslog(void);
void log_line(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool log_allowed(struct log_limit *l, int level);

#define log_error(...) log_line(LOG_L_ERROR, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_L_WARN, __VA_ARGS__)
#define log_info(...)  log_line(LOG_L_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_L_DEBUG, __VA_ARGS__)

/* For all that a packet can trigger.  @limit: one for each kind of line. */
#define log_limited(limit, level, ...)			\
	do {						\
		if (log_allowed(limit, level))			\
			log_line(level, __VA_ARGS__);	\
	} while (0)

#endif /* AGENT_LOG_H */
