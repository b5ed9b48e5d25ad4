// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rmmod with a live worker: subscribers are not told that it died.
 *
 *	unload_test	in the test VM, module loaded, no jobs; as root
 */
#include <errno.h>
#include <stdlib.h>
#include "../lib/tap.h"
#include "calls.h"

static int event_cb(const struct nlmsghdr *nlh, void *arg)
{
	return saina_ctl_decode(nlh, &saina_event_class, arg);
}

int main(void)
{
	struct saina_event_attrs got;
	struct saina_ctl *sub;
	const char *error;
	int ret, deaths = 0;

	calls_open();
	if (!tap_ok(!call_job_new("a", 2, 1000) && !call_worker_bind(0, 0, 1) &&
		    !saina_ctl_open(&sub, "kernel", &error) &&
		    !saina_ctl_subscribe(sub, SAINA_GROUPS_EVENTS),
		    "a job has a live worker behind lo, and events a subscriber"))
		return tap_done();
	saina_ctl_close(calls_ctl);
	tap_ok(system("rmmod saina") == 0, "rmmod succeeds while a job has a live worker");
	while ((ret = saina_ctl_next(sub, 500, event_cb, &got)) >= 0)
		deaths += got.type == SAINA_EV_WORKER_DEAD;
	tap_ok(!deaths, "rmmod declares no worker dead");
	saina_ctl_close(sub);
	return tap_done();
}
