// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Lines for the user: collected under the lock, printed without it. */
#include "progress.h"

void saina_notes_take(struct saina *s)
{
	struct saina_notes *from = &s->session.notes;

	s->notes.used = from->used;
	memcpy(s->notes.text, from->text, from->used);
	from->used = 0;
}

void saina_notes_print(struct saina *s, struct saina_notes *n)
{
	for (size_t at = 0; at < n->used; at += strlen(n->text + at) + 1) {
		if (s->opts.log)
			s->opts.log(s->opts.log_arg, n->text + at);
		else
			fprintf(stderr, "libsaina: %s\n", n->text + at);
	}
	n->used = 0;
}
