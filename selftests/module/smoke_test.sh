#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A kernel takes everything: workers train with both variants of the XDP and of the tc program
# on a Linux bridge, with those of saina.ko for integers and for floats.
#
#     switch: sainad, in the second half with saina.ko, br0 (Linux bridge) --- w0, w1
#
# In the test VM (selftests/in-vm); TAP.

here=$(dirname "$(readlink -f "$0")")
# shellcheck source=../net/lib.sh
. "$here/../net/lib.sh"

# rounds NAME TYPE
rounds() {
	job "$1" workers 2 elements 2003 type "$2"
	start_all "$1" 5 2 --elements 2003
	check "$1: two workers find every sum of five rounds right" wait_all 60
	check "$1: both workers get the same results" same_results 0 1
	saina job del "$1"
}

has_hook() { # MODE
	equal "the agent: both ports have $1" "$1 $1" "$(agent_saina -j port show | jq -r '[.[].mode]|join(" ")')"
}

both_hooks() { # BACKEND TYPE...: on the ports as they are, and after they have changed
	local hook type
	for hook in native tc; do
		has_hook $hook
		for type in "${@:2}"; do
			rounds "$type-$1-$hook" "$type"
		done
		agent_saina port set p0 hook tc
		agent_saina port set p1 hook tc
	done
}

BACKEND=agent SAINA_CONTROL=$AGENT_SOCKET tool_opts=()
lab_up --workers 2 --bridge linux --hook xdp
both_hooks agent int32
lab_down

BACKEND=kernel SAINA_CONTROL=kernel tool_opts=(-n "saina-$LAB-sw")
check "saina.ko can be loaded" insmod "$SAINA_TEST_MODULE"
lab_up --workers 2 --bridge linux --hook xdp
both_hooks kernel int32 float32
lab_down
check "saina.ko can be removed" slowwait 20 rmmod saina
finished
