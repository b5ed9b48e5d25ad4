// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rmmod with a live worker and a controller: subscribers get no event that one died.
 *
 *	unload_test	in the test VM, module loaded, no jobs; as root
 */
#include <errno.h>
#include <stdlib.h>
#include "../lib/tap.h"
#include "requests.h"

static int event_cb(const struct nlmsghdr *nlh, void *arg)
{
	return saina_ctl_decode(nlh, &saina_event_class, arg);
}

/* The socket of @ctl controls job 0. */
static int controls(struct saina_ctl *ctl)
{
	struct saina_job_attrs req = { 0 };
	struct nlmsghdr *nlh = saina_ctl_msg(ctl, SAINA_CMD_JOB_SET, 0);

	SAINA_PUT(&req, SAINA_A_JOB_ID, id, 0);
	SAINA_PUT(&req, SAINA_A_JOB_CONTROLLER, controller, 1);
	saina_ctl_encode(nlh, &saina_job_class, &req);
	return saina_ctl_call(ctl, nlh, NULL, NULL);
}

int main(void)
{
	struct saina_event_attrs got;
	struct saina_ctl *sub;
	const char *error;
	int ret, deaths = 0, controllers = 0;

	requests_open();
	if (!tap_ok(!request_job_new("a", 2, 1000) && !request_worker_bind(0, 0, 1) &&
		    !saina_ctl_open(&sub, "kernel", &error) &&
		    !saina_ctl_subscribe(sub, SAINA_GROUPS_EVENTS) && !controls(sub),
		    "a job has a live worker behind lo and a controller, which is subscribed to events"))
		return tap_done();
	saina_ctl_close(requests_ctl);
	tap_ok(system("rmmod saina") == 0, "rmmod succeeds while a job has a live worker and a controller");
	while ((ret = saina_ctl_next(sub, 500, event_cb, &got)) >= 0) {
		deaths += got.type == SAINA_EV_WORKER_DEAD;
		controllers += got.type == SAINA_EV_CONTROLLER;
	}
	tap_ok(!deaths, "rmmod declares no worker dead");
	tap_ok(!controllers, "rmmod declares no controller gone");
	saina_ctl_close(sub);
	tap_ok(1, "a controller's socket can be closed after rmmod");
	return tap_done();
}
