#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In a VM whose kernel can fail allocations (selftests/vm/saina-vm -k debug): random
# messages while one allocation in twenty of the processes that send them fails.
# Requests that fail half-way must be undone.  TAP.
#
#	failmem.sh MESSAGES

set -u
ko=$SAINA_TEST_MODULE B=$SAINA_BUILD messages=$1
fail=/sys/kernel/debug/failslab
export SAINA_CONTROL=kernel
many=1000000000
# shellcheck source=../tap.sh
. "$(dirname "$(readlink -f "$0")")/../tap.sh"

[ -w $fail/probability ] || { echo "1..0 # SKIP this kernel has no failslab"; exit 4; }
check "saina.ko is loaded" insmod "$ko"

echo N >$fail/ignore-gfp-wait
echo Y >$fail/task-filter
echo 0 >$fail/verbose
echo $many >$fail/times
echo 5 >$fail/probability
# The senders are marked after they have started: exec() would fail, too.
"$B/selftests/netlink_fuzz" -m -n "$messages" -p 2 -s "${SEED:-1}" &
fuzz=$!
for ((i = 0; i < 100; i++)); do
	mapfile -t sender < <(pgrep -P $fuzz)
	[ ${#sender[@]} -lt 2 ] || break
	sleep 0.05
done
for p in "${sender[@]}"; do
	echo 1 >"/proc/$p/make-it-fail"
done
wait $fuzz
point $? "random messages get well-formed answers while allocations fail"
echo 0 >$fail/probability
failed=$((many - $(cat $fail/times)))
echo "# $failed allocations failed"
check "allocations did fail ($failed)" [ $failed -gt $((messages / 20)) ]

"$B/saina" -j job show >/dev/null && "$B/saina" -j worker show >/dev/null
point $? "after failed allocations, jobs and workers can still be listed"
"$B/saina" job add after workers 2 elements 64 && "$B/saina" job del after
point $? "after failed allocations, a job can be added and deleted"
check "saina.ko is unloaded with the jobs that are left" rmmod saina
plan
