#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Ports that go and come under traffic, on Open vSwitch and on a Linux bridge:
#
#     w0 .. w2 reduce; the port of w2 is pulled out and plugged in again
#
# 1. Three workers train; a port is removed
# 2. The port is added again, and its worker joins

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

port_mode() {
	saina_jq port show "p$1" '.[0].mode' 2>/dev/null | grep . || echo none
}

port_mode_is() {
	[ "$(port_mode "$1")" = "$2" ]
}

port_is_attached() {
	[[ $(port_mode "$1") = @(native|tc) ]]
}

port_replug() { # BRIDGE
	local at

	# 1. Three workers train; a port is removed
	expected_log="worker 2 .* is dead"
	lab_up --workers 3 --bridge "$1"
	job plug workers 3 elements 4096 payload 256 policy bsp heartbeat 50 dead 5000
	start_all plug 1000000 3 --elements 4096 --think-us 1000 --restarts
	check "$1: three workers: rounds flow" slowwait 20 rounds_at_least plug 10
	check "$1: the port of worker 2 is removed" lab port del 2
	check "$1: the worker of a removed port is declared dead" slowwait 20 worker_state_is plug 2 dead
	check "$1: a removed port is no longer shown" slowwait 10 port_mode_is 2 none
	check "$1: rounds go on without the worker of a removed port" rounds_go_on plug 10
	worker_kill 2

	# 2. The port is added again, and its worker joins
	check "$1: the port of worker 2 is added again" lab port add 2
	check "$1: the program is attached to a port that was added again" slowwait 10 port_is_attached 2
	start 2 plug 1000000 --elements 4096 --think-us 1000 --restarts
	check "$1: the worker of a port that was added again joins" slowwait 20 worker_state_is plug 2 alive
	at=$(job_field plug round)
	check "$1: the worker of a port that was added again is counted" slowwait 20 counted_in 0 2 $((at + 3))
	stop_workers
	verify_sums "$1: ports come and go" 30 0 1 2
	lab_down
}

for bridge in $BRIDGES; do
	port_replug "$bridge"
done
finished
