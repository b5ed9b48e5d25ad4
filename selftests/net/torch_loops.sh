#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Training loops around saina.torch.State: accumulation, buffers, evaluation on one rank, policies that a loop does not
# expect, ranks that die.  Four ranks of selftests/python/loops.py.
#
#     rank 0 .. 3: w0 .. w3 --- br0 (Linux bridge)

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../python/lib.sh
. "$NET_DIR/../python/lib.sh"
# Rank 2 stays at a round that is gone, and dies.
expected_log='worker [0-9]+ (asked for round [0-9]+, which is gone|.* is dead: silent for)'
DEFAULT_BRIDGE=linux

lab_up --workers 4

# loop_case NAME POLICY...: a case with jobs of these policies
loop_case() {
	local policy n=0
	for policy in "${@:2}"; do
		job "job$n" id "$n" elements 700000 workers 4 token s3cret dead 3000 policy "$policy"
		n=$((n + 1))
	done
	rm -f "$WORK"/silent-* "$WORK"/ended-* "$WORK"/fetched-* "$WORK"/begins-*
	rank_case "$1, ${*:2}" 600 "$1" 4 "$TOP/selftests/python/loops.py" "$1"
}

# As NAMES of loops.py.
policies=(bsp "fastest:k=2,lead=none" "fastest:k=3,late=drop" "timeout:150ms,kmin=2" "sfcd:k0=2")
read -ra cases <<<"${1:-accumulate collectives statistics stragglers evaluate again coded silent_dies}"
for name in "${cases[@]}"; do
	case $name in
	coded)	loop_case coded coded:s=1 ;;
	stragglers) loop_case stragglers bsp timeout:1s,kmin=2 ;;
	silent_dies)
		# Each needs the three that go on, so that none of them falls behind.
		for policy in "fastest:k=3,lead=none" "fastest:k=3,lead=none,late=drop" "timeout:10ms,kmin=3,lead=none"; do
			loop_case silent_dies "$policy"
		done ;;
	*)	loop_case "$name" "${policies[@]}" ;;
	esac
done

finished
