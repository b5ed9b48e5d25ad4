#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Ports and bridges that go and come under traffic, on Open vSwitch and on a Linux bridge:
#
#     w0 .. w2 reduce; a port of w1 is away for a moment, the bridge is made again, the port of w2 is
#     removed and added again
#
# 1. Three workers train; a port leaves the bridge and comes back
# 2. The bridge is deleted and made again, with another MAC address
# 3. A port is removed for good
# 4. The port is added again, and its worker joins

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=bridge_lib.sh
. "$(dirname "$0")/bridge_lib.sh"

all_alive() { # JOB N
	[ "$(members "$1")" = "$2" ]
}

port_replug() { # BRIDGE
	local at

	# 1. Three workers train; a port leaves the bridge and comes back
	expected_log="worker 2 .* is dead|bridge br0 is gone|cannot answer"
	lab_up --workers 3 --bridge "$1"
	job plug workers 3 elements 4096 payload 256 policy bsp heartbeat 50 dead 60000
	start_all plug 1000000 3 --elements 4096 --think-us 1000 --restarts
	check "$1: three workers: rounds flow" slowwait 20 rounds_at_least plug 10
	check "$1: the port of worker 1 leaves the bridge" port_out "$1" 1
	check "$1: a port that has left the bridge is no longer shown" slowwait 10 port_mode_is 1 none
	check "$1: the worker of a port that has left is alive until its time is up" all_alive plug 3
	matches "$1: the worker of a port that has left: worker show says so" "its port p1 has left bridge br0" \
		"$(agent_saina worker show plug 1)"
	check "$1: the port comes back" port_in "$1" 1
	check "$1: a port that came back has the program" slowwait 10 port_is_attached 1
	check "$1: a port that came back: rounds go on" rounds_go_on plug 10

	# 2. The bridge is deleted and made again
	neighbours_keep "$(mac_of switch)" 0 1 2 || bail "the workers' neighbour entries cannot be set"
	check "$1: the bridge is deleted and made again with another MAC address" bridge_again "$1" 02:5a:00:00:99:99
	for at in 0 1 2; do
		check "$1: worker $at sends to the bridge's new MAC address" slowwait 60 neighbour_is "$at" 02:5a:00:00:99:99
	done
	check "$1: the bridge was made again: rounds go on" rounds_go_on plug 10
	check "$1: the bridge was made again: all workers are alive" all_alive plug 3
	equal "$1: every round until now has all workers" "0 0 0" "$(for at in 0 1 2; do incomplete_rounds $at; done | xargs)"

	# 3. A port is removed for good
	check "$1: the port of worker 2 is removed" lab port del 2
	check "$1: dead-ms is lowered" saina job set plug dead $((1000 * SLOW))
	check "$1: the worker of a removed port is declared dead" slowwait 20 worker_state_is plug 2 dead
	check "$1: rounds go on without the worker of a removed port" rounds_go_on plug 10
	check "$1: the log says why" grep -q "worker 2 .* is dead.* port p2 has left bridge br0" "/run/saina-lab/$LAB/sainad.log"
	worker_kill 2
	saina job set plug dead 60000 || bail "dead-ms cannot be raised"

	# 4. The port is added again, and its worker joins
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
