#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Bridges and links that are replaced under traffic, with each hook and bridge, in messages and by
# reference (on a Linux bridge):
#
#     w0 .. w2 reduce; the bridge gets another MAC address; w1 gets another link
#
# 1. A port leaves the bridge and comes back
# 2. The bridge is made again with another MAC address, which the workers' neighbour entries lack
# 3. The link of a worker is replaced by one with another index and another MAC address
# 4. A worker gets another MAC address at its port
# 5. Every round has had all workers
# 6. saina doctor names ports that do not forward

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=bridge_lib.sh
. "$(dirname "$0")/bridge_lib.sh"

export SAINA_SHARE=/run/saina-lab/$LAB/run/share

link_replace() { # ovs|linux WORKER
	[ "$1" != ovs ] || port_out ovs "$2"
	in_switch ip link del "p$2"
	in_switch ip link add "p$2" type veth peer name eth0 address 02:5a:00:00:77:77 netns "saina-$LAB-w$2" || return
	in_worker "$2" ethtool -K eth0 gro on tx "$([ "$1" = ovs ] && echo off || echo on)" >/dev/null
	in_worker "$2" ip addr add "10.190.0.1$2/24" dev eth0
	in_worker "$2" ip link set eth0 up
	in_switch ip link set "p$2" up
	port_in "$1" "$2"
}

replug() { # ovs|linux HOOK WAY [WORDS OF THE JOB]
	local what="$1, $2, $3" i doctor
	expected_log="bridge br0 is gone|cannot answer|relay: a result"
	lab_up --workers 3 --bridge "$1" --hook "$2"
	job again workers 3 elements 8192 payload 256 policy bsp heartbeat 100 dead 60000 "${@:4}"
	start_all again 1000000 3 --elements 8192 --think-us 2000
	check "$what: rounds flow" slowwait 20 rounds_at_least again 10
	[ $# = 3 ] || check "$what: memory is in use" slowwait 20 shm_in_use again

	# 1. A port leaves the bridge and comes back
	check "$what: a port leaves the bridge" port_out "$1" 1
	check "$what: a port has left the bridge: it is no longer shown" slowwait 10 port_mode_is 1 none
	check "$what: the port comes back" port_in "$1" 1
	check "$what: a port came back: rounds go on" rounds_go_on again 20

	# 2. The bridge is made again with another MAC address, which the workers' neighbour entries lack
	check "$what: the workers know the aggregator's MAC address" neighbours_keep "$(mac_of switch)" 0 1 2
	check "$what: the bridge is made again with another MAC address" bridge_again "$1" 02:5a:00:00:99:99
	for i in 0 1 2; do
		check "$what: worker $i sends to the bridge's new MAC address" slowwait 60 neighbour_is "$i" 02:5a:00:00:99:99
	done
	check "$what: another MAC address: rounds go on" rounds_go_on again 20
	[ $# = 3 ] || check "$what: another MAC address: memory is in use" slowwait 20 shm_in_use again

	# 3. The link of a worker is replaced by one with another index and another MAC address
	check "$what: the link of worker 1 is replaced" link_replace "$1" 1
	check "$what: a link was replaced: rounds go on" slowwait 60 rounds_go_on again 20
	[ $# = 3 ] || check "$what: a link was replaced: memory is in use" slowwait 20 shm_in_use again

	# 4. A worker gets another MAC address at its port
	check "$what: worker 2 gets another MAC address" in_worker 2 ip link set eth0 address 02:5a:00:00:88:88
	check "$what: another MAC address of a worker: rounds go on" slowwait 60 rounds_go_on again 20
	[ $# = 3 ] || check "$what: another MAC address of a worker: memory is in use" slowwait 20 shm_in_use again

	# 5. Every round has had all workers
	equal "$what: all workers are alive" 3 "$(members again)"
	equal "$what: every round has all workers" "0 0 0" "$(for i in 0 1 2; do incomplete_rounds $i; done | xargs)"
	stop_workers

	# 6. saina doctor names ports that do not forward
	if [ "$1" = linux ]; then
		in_switch bridge link set dev p0 state 0
		in_switch bridge link set dev p2 isolated on
		doctor=$(in_switch "$B/saina" doctor host bridge br0 2>&1)
		matches "$what: doctor names a port in another spanning-tree state" "p0: spanning-tree state disabled" "$doctor"
		matches "$what: doctor names an isolated port" "p2: isolated" "$doctor"
		in_switch bridge link set dev p0 state 3
	else
		lab_vsctl set interface p0 ingress_policing_rate=5000
		matches "$what: doctor names a policed port" "p0: Open vSwitch drops what comes in above 5000 kbit/s" \
			"$(in_switch "$B/saina" doctor host bridge br0 ovsdb "/run/saina-lab/$LAB/db.sock" 2>&1)"
	fi
	verify_sums "$what" 60 0 1 2
	lab_down
}

if with_bridge ovs; then
	replug ovs auto messages
fi
replug linux tc messages
replug linux xdp messages
replug linux tc reference by-reference
finished
