#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A worker whose end of the link cannot take redirected frames is detected when it joins.  It
# gets results by the tc program of the ports or, with Open vSwitch's userspace datapath, which
# would take frames before tc, through the bridge.  Port and worker say so, with a remedy.
#
#     w0, w1: GRO on       w2: GRO off, no NAPI
#
# 1. One worker without GRO
# 2. It has GRO again
# 3. No worker has GRO

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# With tc no worker needs the relay.
export SAINA_LAB_HOOK=xdp

relays() { # BRIDGE
	[ "$1" = ovs ] && [ "${SAINA_LAB_DATAPATH:-netdev}" = netdev ]
}

check_bridge() { # BRIDGE

	# 1. One worker without GRO
	expected_log="worker 2 .* gets no redirected frames"
	lab_up --workers 3 --bridge "$1"
	in_worker 2 ethtool -K eth0 gro off >/dev/null || bail "GRO cannot be turned off"
	job mixed workers 3 elements 10007 payload 256 policy bsp
	start_all mixed 100000 3 --elements 10007 --think-us 500
	check "$1: one worker without GRO: rounds flow" slowwait 30 rounds_at_least mixed 20
	equal "$1: one worker without GRO: port p2 shows one relayed worker" "1" "$(saina_jq port show p2 '.[0].relayed')"
	equal "$1: one worker without GRO: port p0 shows no relayed worker" "0" "$(saina_jq port show p0 '.[0].relayed')"
	matches "$1: one worker without GRO: port show says why it is relayed" "slow|relay|GRO|gro" "$(saina port show p2)"
	matches "$1: one worker without GRO: the worker says how to fix it" "ethtool|gro|GRO" "$(cat "$WORK/2.err")"
	if relays "$1"; then
		check "$1: one worker without GRO: results were relayed" [ "$(counter mixed all relayed)" -gt 0 ]
	else
		equal "$1: one worker without GRO: results go by tc, the agent relays none" 0 "$(counter mixed all relayed)"
	fi
	stop_workers
	verify_sums "$1: one worker without GRO" 30 0 1 2

	# 2. It has GRO again
	in_worker 2 ethtool -K eth0 gro on >/dev/null
	job fixed workers 3 elements 10007 payload 256 policy bsp
	start_all fixed 100000 3 --elements 10007 --think-us 500
	check "$1: GRO on again: rounds flow" slowwait 20 rounds_at_least fixed 20
	equal "$1: GRO on again: no result is relayed" 0 "$(counter fixed all relayed)"
	stop_workers
	check "$1: GRO on again: all sums are exact" wait_all 30
	lab_down
}

for bridge in $BRIDGES; do
	check_bridge "$bridge"
done

# 3. No worker has GRO
expected_log="gets no redirected frames"
lab_up --workers 3 --gro off
job all workers 3 elements 10007 payload 352 policy fastest:k=2 ring 64
start_all all "$(shrink 40)" 3 --elements 10007
verify_sums "no worker has GRO" 60 0 1 2
equal "no worker has GRO: every worker reports that it is relayed" "1 1 1" "$(summary 0 relayed) $(summary 1 relayed) $(summary 2 relayed)"
finished
