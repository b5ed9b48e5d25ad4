/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many elements a message has where nobody says. */
#ifndef SAINA_CTL_PAYLOAD_H
#define SAINA_CTL_PAYLOAD_H

#include <stdbool.h>
#include "core/attrs.h"

/**
 * saina_payload_choose() - the largest payload that fits, where a new job does not say
 * @req: of the job; is left as it is if it has a payload, or if none fits
 * @mtu: the smallest of the bridge's ports, bytes; 0 without any
 * @jumbo: results of more than SAINA_ELEMS_LINEAR_MAX elements leave without the agent
 */
void saina_payload_choose(struct saina_job_attrs *req, unsigned int mtu, bool jumbo);

#endif /* SAINA_CTL_PAYLOAD_H */
