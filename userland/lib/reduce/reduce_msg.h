/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Rounds through messages: each of these writes the message for @a into @buf. */
#ifndef SAINA_REDUCE_MSG_H
#define SAINA_REDUCE_MSG_H

#include "round.h"

struct saina_hdr *saina_msg_put_header(struct saina_round *r, void *buf, int type,
				       const struct saina_act *a);
/* Of a GRAD or PULL. */
struct saina_hdr *saina_msg_put_long_header(struct saina_round *r, void *buf, int type,
					    const struct saina_act *a);
void saina_msg_put_grad(struct saina_round *r, void *buf, const struct saina_act *a);
void saina_msg_put_pull(struct saina_round *r, void *buf, const struct saina_act *a);
void saina_msg_put_ask(struct saina_round *r, void *buf, const struct saina_act *a, uint64_t now);

#endif /* SAINA_REDUCE_MSG_H */
