/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Which messages a session accepts. */
#ifndef SAINA_SESSION_CHECK_H
#define SAINA_SESSION_CHECK_H

#include "state.h"

/* Who a message came from. */
enum saina_source { SAINA_FROM_CTRL, SAINA_FROM_DATA, SAINA_FROM_OTHERS, SAINA_FROM_SELF };

/*
 * Is this message well formed, from the aggregator and for us?  Results and answers may come from
 * its data port or its control port; control messages come from the control port only.
 */
bool saina_session_check(const struct saina_session *j, enum saina_source from, const void *msg,
			 size_t len);

#endif /* SAINA_SESSION_CHECK_H */
