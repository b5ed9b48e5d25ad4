// SPDX-License-Identifier: GPL-2.0-or-later
/* The sentence and the attribute of the last failure. */
#include <stdarg.h>
#include <stdio.h>

#include "ctl/priv.h"

int saina_ctl_fail(struct saina_ctl *ctl, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ctl->error, sizeof(ctl->error), fmt, ap);
	va_end(ap);
	return err;
}

const char *saina_ctl_error(const struct saina_ctl *ctl)
{
	return ctl->error[0] ? ctl->error : "no error";
}

const char *saina_ctl_warning(const struct saina_ctl *ctl)
{
	return ctl->warning;
}

const char *saina_ctl_error_attr(const struct saina_ctl *ctl)
{
	return ctl->attr;
}
