// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Rounds through messages. */
#include "reduce_msg.h"

struct saina_hdr *saina_msg_put_header(struct saina_round *r, void *buf, int type,
				       const struct saina_act *a)
{
	struct saina_hdr *h = buf;

	saina_job_header(r->job, h, type);
	h->elem = r->job->elem;
	h->round = htole32(a->round);
	h->segment = htole32(a->segment);
	return h;
}

struct saina_hdr *saina_msg_put_long_header(struct saina_round *r, void *buf, int type,
					    const struct saina_act *a)
{
	struct saina_hdr *h = saina_msg_put_header(r, buf, type, a);

	h->count = htole16(saina_job_count(r->job));
	h->flags = a->again ? SAINA_F_RETRANSMIT : 0;
	return h;
}

void saina_msg_put_ask(struct saina_round *r, void *buf, const struct saina_act *a, uint64_t now)
{
	struct saina_ask ask = {.time = htole64(now)};

	memcpy(saina_msg_put_header(r, buf, SAINA_MSG_ASK, a) + 1, &ask, sizeof(ask));
}

/* As long as the result it asks for, so that answers are never longer than requests. */
void saina_msg_put_pull(struct saina_round *r, void *buf, const struct saina_act *a)
{
	memset(saina_msg_put_long_header(r, buf, SAINA_MSG_PULL, a) + 1, 0, r->job->wire);
}

void saina_msg_put_grad(struct saina_round *r, void *buf, const struct saina_act *a)
{
	struct saina_hdr *h = saina_msg_put_long_header(r, buf, SAINA_MSG_GRAD, a);

	h->exponent = saina_gradient_encode(&r->grad, a->segment, h + 1);
}
