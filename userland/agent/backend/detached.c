// SPDX-License-Identifier: GPL-2.0-or-later
/* Finds jobs of the kernel that have no data path. */
#include <string.h>

#include "agent/backend/backend.h"

const struct detached_job *backend_detached(struct agent *a, unsigned int id)
{
	const struct detached_job *d = backend_detached_next(a, id);

	return d && d->job.id == id ? d : NULL;
}

const struct detached_job *backend_detached_find(struct agent *a, bool has_id, unsigned int id,
						 const char *name)
{
	const struct detached_job *d;
	unsigned int from;

	if (has_id)
		return backend_detached(a, id);
	for (from = 0; name && (d = backend_detached_next(a, from)); from = d->job.id + 1)
		if (!strcmp(d->job.name, name))
			return d;
	return NULL;
}
