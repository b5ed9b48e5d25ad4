// SPDX-License-Identifier: GPL-2.0-or-later
/* What the two sides of a relay share. */
#include "relay.h"

void relay_end(struct relay *r, enum uplink_state how, const char *fmt, ...)
{
	va_list ap;

	if (r->error[0])
		return;
	va_start(ap, fmt);
	vsnprintf(r->error, sizeof(r->error), fmt, ap);
	va_end(ap);
	if (!r->error[0])
		snprintf(r->error, sizeof(r->error), "unknown error");
	r->end = how;
}
