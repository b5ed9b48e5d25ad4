/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The payload of a new job that does not specify one. */
#ifndef SAINA_CTL_PAYLOAD_H
#define SAINA_CTL_PAYLOAD_H

#include <stdbool.h>
#include "core/attrs.h"

/**
 * saina_payload_choose() - choose the largest payload that fits
 * @req: attributes of the job; unchanged if they have a payload, or if none fits
 * @mtu: the smallest of the bridge's ports, bytes; 0: no ports
 * @jumbo: the data path itself sends results of more than SAINA_ELEMS_LINEAR_MAX elements
 */
void saina_payload_choose(struct saina_job_attrs *req, unsigned int mtu, bool jumbo);

#endif /* SAINA_CTL_PAYLOAD_H */
