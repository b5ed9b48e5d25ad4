// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Messages to send, and the end of a session. */
#include "state.h"

struct saina_session_msg *saina_session_message(struct saina_session *j, int type)
{
	struct saina_session_msg *m = &j->out[j->out_n];

	if (j->out_n + 1 < sizeof(j->out) / sizeof(j->out[0]))
		j->out_n++;
	memset(m, 0, sizeof(*m));
	m->len = type == SAINA_MSG_PROBE ? sizeof(struct saina_hdr) : SAINA_CTRL_LEN;
	saina_job_header(&j->job, (void *)m->buf, type);
	return m;
}

bool saina_session_output(struct saina_session *j, struct saina_session_msg *m)
{
	if (!j->out_n)
		return false;
	*m = j->out[0];
	memmove(j->out, j->out + 1, --j->out_n * sizeof(*m));
	return true;
}

void saina_session_fail(struct saina_session *j, int err, const char *fmt, ...)
{
	va_list ap;

	if (j->phase == PHASE_FAILED)
		return;
	va_start(ap, fmt);
	vsnprintf(j->error, sizeof(j->error), fmt, ap);
	va_end(ap);
	j->phase = PHASE_FAILED;
	j->err = err;
	j->changed = true;
}

void saina_session_abort(struct saina_session *j, int err, const char *text)
{
	saina_session_message(j, SAINA_MSG_LEAVE);
	saina_session_fail(j, err, "%s", text);
}
