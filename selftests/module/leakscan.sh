#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In a VM whose kernel has kmemleak (selftests/vm/saina-vm -k debug): runs a command, if
# one is named, then has kmemleak look for memory that nothing points to any more,
# and fails if there is some.  The kernel's own line about it fails the VM, too.
#
#	leakscan.sh [COMMAND...]

control=/sys/kernel/debug/kmemleak
[ -w "$control" ] || { echo "1..0 # SKIP this kernel has no kmemleak"; exit 4; }

status=0
[ $# = 0 ] || "$@"
status=$?

# kmemleak reports memory without a reference that was not changed since the scan before,
# and none younger than 5 s.
echo scan >"$control"
sleep 6
echo scan >"$control"
echo scan >"$control"
found=$(cat "$control")
if [ -n "$found" ]; then
	echo "not ok - kmemleak: no memory without a reference is left"
	head -n 200 <<<"$found" | sed 's/^/# /'
	status=1
elif [ $# = 0 ]; then
	echo "ok - kmemleak: no memory without a reference is left"
fi
# A command has printed a plan of its own.
[ $# != 0 ] || echo 1..1
exit $status
