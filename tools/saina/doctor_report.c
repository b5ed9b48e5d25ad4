// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina doctor: prints and counts the results of the checks.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "doctor_check.h"

static unsigned int count[DOC_FAIL + 1];

void doc_report(enum doc_verdict v, const char *check, const char *fix, const char *fmt, ...)
{
	static const char *const names[] = { "ok", "skip", "warn", "FAIL" };
	char found[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(found, sizeof(found), fmt, ap);
	va_end(ap);
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
		out_text(", %u not looked at", count[DOC_SKIP]);
	out_text("\n");
	return out_end() || count[DOC_FAIL] ? EXIT_FAILURE : 0;
}
