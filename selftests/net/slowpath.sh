#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A worker whose end of the link cannot take redirected frames: found out when it
# joins, served through the bridge, shown, and told how to mend it.
#
#     w0, w1: GRO on       w2: GRO off, no NAPI

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

slow() { # BRIDGE
	expected_log="worker 2 .* gets no redirected frames"
	lab_up --workers 3 --bridge "$1"
	w 2 ethtool -K eth0 gro off >/dev/null || bail "GRO cannot be turned off"
	job mixed workers 3 elements 10007 payload 256 policy bsp
	start_all mixed 100000 3 --elements 10007 --think-us 500
	check "$1: rounds flow" until_true 30 rounds_at_least mixed 20
	equal "$1: one worker of port p2 is relayed" "1" "$(sj port show p2 '.[0].relayed')"
	equal "$1: none of port p0" "0" "$(sj port show p0 '.[0].relayed')"
	matches "$1: people are shown why" "slow|relay|GRO|gro" "$(saina port show p2)"
	matches "$1: the worker is told how to mend it" "ethtool|gro|GRO" "$(cat "$WORK/2.err")"
	check "$1: results were relayed" [ "$(counter mixed all relayed)" -gt 0 ]
	stop_workers
	check "$1: exact sums" wait_all 30
	check "$1: the same results everywhere" same_results 0 1 2

	w 2 ethtool -K eth0 gro on >/dev/null
	job mended workers 3 elements 10007 payload 256 policy bsp
	start_all mended 100000 3 --elements 10007 --think-us 500
	check "$1: mended: rounds flow" until_true 20 rounds_at_least mended 20
	equal "$1: mended: nothing is relayed" 0 "$(counter mended all relayed)"
	stop_workers
	check "$1: mended: exact sums" wait_all 30
	lab_down
}

for bridge in $BRIDGES; do
	slow "$bridge"
done

# --- nobody can take them ------------------------------------------------------
expected_log="gets no redirected frames"
lab_up --workers 3 --gro off
job all workers 3 elements 10007 payload 352 policy fastest:k=2 ring 64
start_all all "$(less 40)" 3 --elements 10007
check "all relayed: exact sums" wait_all 60
check "all relayed: the same results everywhere" same_results 0 1 2
equal "all relayed: every worker knows" "1 1 1" "$(summary 0 relayed) $(summary 1 relayed) $(summary 2 relayed)"
finished
