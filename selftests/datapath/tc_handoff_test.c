// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The hand-over from XDP to the tc program of the same port (saina_tc_handoff) is open only while
 * XDP is in front of tc.  Else a forged result would pass.
 */
#include <bpf/bpf.h>
#include <unistd.h>
#include "test_job.h"
#include "dp/dp.h"

struct harness harness;
bool agrees;

static int handoff, detached, open_then;

static bool is_open(int ifindex)
{
	__u32 yes;

	return !bpf_map_lookup_elem(handoff, &ifindex, &yes);
}

int __real_bpf_link_detach(int link);
int __wrap_bpf_link_detach(int link);

/* In the place of libbpf's: XDP is about to go. */
int __wrap_bpf_link_detach(int link)
{
	struct bpf_link_info info = {};
	__u32 len = sizeof(info);

	if (!bpf_obj_get_info_by_fd(link, &info, &len) && info.type == BPF_LINK_TYPE_XDP) {
		detached++;
		open_then += is_open(info.xdp.ifindex);
	}
	return __real_bpf_link_detach(link);
}

static bool attach(enum saina_dp_hook hook)
{
	detached = open_then = 0;
	if (!saina_dp_attach(harness.dp, harness.port[1], hook, true))
		return true;
	tap_note("%s", saina_dp_error(harness.dp));
	return false;
}

int main(void)
{
	int port;
	bool ok;

	harness_open(&harness);
	port = harness.port[1];
	handoff = harness_map(&harness, "saina_tc_handoff");
	tap_ok(attach(SAINA_DP_NATIVE) && is_open(port), "tc handoff: a port with native XDP accepts results from XDP");
	tap_ok(attach(SAINA_DP_GENERIC) && detached == 1 && !open_then && is_open(port),
	       "tc handoff: a port accepts none while XDP is attached in another mode, and afterwards again");
	tap_ok(attach(SAINA_DP_TC) && detached == 1 && !open_then && !is_open(port),
	       "tc handoff: a port that changes to tc accepts none before XDP is detached");
	ok = attach(SAINA_DP_NATIVE) && is_open(port);
	tap_ok(ok && !saina_dp_detach(harness.dp, port) && detached == 1 && !open_then && !is_open(port),
	       "tc handoff: a port accepts none before it is detached");
	ok = attach(SAINA_DP_NATIVE) && is_open(port);
	harness_close(&harness);
	tap_ok(ok && detached == 1 && !open_then, "tc handoff: a port accepts none before the data path ends");
	close(handoff);
	return tap_done();
}
