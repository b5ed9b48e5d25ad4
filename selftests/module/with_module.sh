#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs a test of selftests/net with the jobs in saina.ko and Open vSwitch's kernel
# datapath; afterwards nothing is left over and nothing holds the module.
#
#	with_module.sh COMMAND [ARGUMENT...]
#
# In the test VM (selftests/in-vm); TAP.

set -u
# shellcheck source=../tap.sh
. "$(dirname "$(readlink -f "$0")")/../tap.sh"

left_over() {
	find /run/netns /run/saina-lab -mindepth 1 -maxdepth 1 -printf '%p ' 2>/dev/null
	[ "$(cat /sys/module/saina/refcnt)" = 0 ] || echo "somebody uses saina.ko"
}

insmod "$SAINA_TEST_MODULE" && modprobe openvswitch
point $? "saina.ko and openvswitch.ko can be loaded"
"$@"
status=$?
# The kernel frees programs a moment after their last user.
for ((i = 0; i < 100; i++)); do
	left=$(left_over)
	[ -n "$left" ] || break
	sleep 0.1
done
[ -z "$left" ]
point $? "$(basename "$1"): nothing is left over in the VM" || diag "$left"
rmmod saina
point $? "$(basename "$1"): nothing holds saina.ko afterwards"
plan
exit $status
