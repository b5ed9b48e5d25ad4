// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Memory is taken when the first such result of a round comes, and used again later. */
#include <errno.h>
#include <stdlib.h>
#include "kept.h"

int saina_kept_init(struct saina_kept *k, const struct saina_job *job)
{
	k->job = job;
	k->round = calloc(job->ring, sizeof(*k->round));
	return k->round ? 0 : -ENOMEM;
}

void saina_kept_exit(struct saina_kept *k)
{
	for (uint32_t i = 0; k->round && i < k->job->ring; i++)
		free(k->round[i]);
	free(k->round);
}

bool saina_kept_put(struct saina_kept *k, const struct saina_hdr *h)
{
	uint8_t **p = &k->round[le32toh(h->round) & (k->job->ring - 1)];

	/* Large: pages are real only once written. */
	if (!*p)
		*p = malloc(k->job->segments * k->job->msglen);
	if (*p)
		memcpy(*p + le32toh(h->segment) * k->job->msglen, h, k->job->msglen);
	return *p;
}

const struct saina_hdr *saina_kept_get(const struct saina_kept *k, uint32_t round,
				       uint32_t segment)
{
	return (const void *)(k->round[round & (k->job->ring - 1)] + segment * k->job->msglen);
}
