// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One rule for the agent, which knows its ports, and for the tool, which creates jobs in
 * saina.ko and knows none.
 */
#include "ctl/payload.h"
#include "linux/saina.h"
#include "saina/proto.h"

#define IP_UDP 28 /* bytes of both headers */
#define REFERENCE_POOL 64 /* inputs and hot slots that stay in the caches */

void saina_payload_choose(struct saina_job_attrs *req, unsigned int mtu, bool jumbo)
{
	static const __u16 sizes[] = {
#define SIZE(E) E,
		SAINA_ELEMS_LIST(SIZE)
#undef SIZE
	};
	bool half = SAINA_HAS(req, SAINA_A_JOB_ELEM_TYPE) && req->elem_type == SAINA_ELEM_BFLOAT16;

	if (SAINA_HAS(req, SAINA_A_JOB_PAYLOAD))
		return;
	/* segments stay in shared memory: the MTU does not matter */
	if (SAINA_HAS(req, SAINA_A_JOB_BY_REFERENCE) &&
	    req->by_reference == SAINA_REFERENCE_ONLY) {
		SAINA_PUT(req, SAINA_A_JOB_PAYLOAD, payload, SAINA_ELEMS_MAX);
		if (!SAINA_HAS(req, SAINA_A_JOB_POOL))
			SAINA_PUT(req, SAINA_A_JOB_POOL, pool, REFERENCE_POOL);
		return;
	}
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		if ((sizes[i] > SAINA_ELEMS_LINEAR_MAX && !jumbo) ||
		    IP_UDP + sizeof(struct saina_hdr) + sizes[i] * (half ? 2 : 4) > mtu)
			break;
		SAINA_PUT(req, SAINA_A_JOB_PAYLOAD, payload, sizes[i]);
	}
}
