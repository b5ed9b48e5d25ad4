// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina doctor: prints and counts the results of the checks.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor_check.h"

#define TEXT_LEN 512

/* A result about some ports or workers: all of them, and the first. */
struct group {
	enum doc_verdict verdict;
	char check[32], found[TEXT_LEN], fix[TEXT_LEN], first[128], *subjects;
};

static unsigned int count[DOC_FAIL + 1];
static struct group *groups;
static size_t n_groups;

static void print_result(enum doc_verdict v, const char *check, const char *fix, char *found)
{
	static const char *const names[] = { "ok", "skip", "warn", "FAIL" };

	saina_ctl_sanitize(found);
	count[v]++;
	out_open(NULL);
	out_str("status", "%-5s", names[v]);
	out_str("check", "%-16s", check);
	out_str("found", " %s\n", found);
	if (fix)
		out_str("fix", "                      -> %s\n", fix);
	else
		out_null("fix", NULL);
	out_close();
	if (!out_is_json())
		fflush(stdout);
}

void doc_report(enum doc_verdict v, const char *check, const char *fix, const char *fmt, ...)
{
	char found[TEXT_LEN];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(found, sizeof(found), fmt, ap);
	va_end(ap);
	print_result(v, check, fix, found);
}

void doc_report_of(enum doc_verdict v, const char *check, const char *subject, const char *fix,
		   const char *fmt, ...)
{
	struct group *g = NULL, *more;
	char found[TEXT_LEN], *subjects = NULL;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(found, sizeof(found), fmt, ap);
	va_end(ap);
	for (size_t i = 0; i < n_groups && !g; i++) {
		g = &groups[i];
		if (g->verdict != v || strcmp(g->check, check) || strcmp(g->found, found) ||
		    strcmp(g->fix, fix ? fix : ""))
			g = NULL;
	}
	if (g) {
		if (asprintf(&subjects, "%s, %s", g->subjects, subject) < 0)
			return;
		free(g->subjects);
		g->subjects = subjects;
		return;
	}
	subjects = strdup(subject);
	more = subjects ? realloc(groups, (n_groups + 1) * sizeof(*groups)) : NULL;
	if (!more) {
		free(subjects);
		return;
	}
	groups = more;
	g = &groups[n_groups++];
	*g = (struct group){ .verdict = v, .subjects = subjects };
	snprintf(g->check, sizeof(g->check), "%s", check);
	snprintf(g->found, sizeof(g->found), "%s", found);
	snprintf(g->fix, sizeof(g->fix), "%s", fix ? fix : "");
	snprintf(g->first, sizeof(g->first), "%s", subject);
}

/* Formats the fix for the first subject; the others need the same. */
static void format_fix(const struct group *g, char *text, size_t size)
{
	const char *from = g->fix, *at;
	size_t len = 0;

	text[0] = 0;
	while ((at = strstr(from, "{}")) && len < size) {
		len += snprintf(text + len, size - len, "%.*s%s", (int)(at - from), from, g->first);
		from = at + 2;
	}
	if (len < size)
		len += snprintf(text + len, size - len, "%s", from);
	if (len < size && from != g->fix && strcmp(g->subjects, g->first))
		snprintf(text + len, size - len, "; the others likewise");
}

void doc_report_group(void)
{
	char fix[TEXT_LEN + 128], *found;

	for (size_t i = 0; i < n_groups; i++) {
		format_fix(&groups[i], fix, sizeof(fix));
		if (asprintf(&found, "%s: %s", groups[i].subjects, groups[i].found) < 0)
			continue;
		print_result(groups[i].verdict, groups[i].check, fix[0] ? fix : NULL, found);
		free(found);
		free(groups[i].subjects);
	}
	free(groups);
	groups = NULL;
	n_groups = 0;
}

const char *doc_fix(const char *fmt, ...)
{
	static char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return text;
}

int doc_finish(void)
{
	out_text("%u ok, %u warnings, %u failures", count[DOC_OK], count[DOC_WARN],
		 count[DOC_FAIL]);
	if (count[DOC_SKIP])
		out_text(", %u skipped", count[DOC_SKIP]);
	out_text("\n");
	return out_end() || count[DOC_FAIL] ? EXIT_FAILURE : 0;
}
