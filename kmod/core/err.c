// SPDX-License-Identifier: GPL-2.0
#include "core/os.h"
#include "core/err.h"

int saina_refuse(struct saina_core_err *err, int error, unsigned int attr, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return error;
	err->attr = attr;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return error;
}
