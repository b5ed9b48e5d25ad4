# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What happens to bridges and ports while their workers live.  After lib.sh.

lab_vsctl() { # ovs-vsctl on the lab's Open vSwitch
	ovs-vsctl --timeout=$((60 * SLOW)) --db="unix:/run/saina-lab/$LAB/db.sock" "$@"
}

port_out() { # ovs|linux WORKER: its port leaves the bridge; the link stays
	if [ "$1" = ovs ]; then
		lab_vsctl del-port br0 "p$2"
	else
		in_switch ip link set "p$2" nomaster
	fi
}

port_in() { # ovs|linux WORKER
	if [ "$1" = ovs ]; then
		lab_vsctl add-port br0 "p$2"
	else
		in_switch ip link set "p$2" master br0
	fi
}

ports_of_lab() {
	in_switch ip -o link show type veth | sed -n 's/^[0-9]*: \(p[0-9]*\)@.*/\1/p'
}

# bridge_again ovs|linux MAC: deletes the bridge and makes it again, with its ports and its address
bridge_again() {
	local p args=()
	if [ "$1" = ovs ]; then
		lab_vsctl del-br br0
		for p in $(ports_of_lab); do
			args+=(-- add-port br0 "$p")
		done
		lab_vsctl add-br br0 -- set bridge br0 "datapath_type=${SAINA_LAB_DATAPATH:-netdev}" fail-mode=standalone \
			"other-config:hwaddr=\"$2\"" "${args[@]}"
		slowwait 20 in_switch ip link show br0 >/dev/null || return 1
		in_switch ethtool -K br0 tx off >/dev/null 2>&1
	else
		in_switch ip link del br0
		in_switch ip link add br0 address "$2" type bridge mcast_snooping 0
		for p in $(ports_of_lab); do
			in_switch ip link set "$p" master br0
		done
	fi
	in_switch ip addr add "$AGG/24" dev br0 && in_switch ip link set br0 up
}

port_mode() {
	saina_jq port show "p$1" '.[0].mode' 2>/dev/null | grep . || echo none
}

port_mode_is() {
	[ "$(port_mode "$1")" = "$2" ]
}

port_is_attached() {
	[[ $(port_mode "$1") = @(native|generic|tc) ]]
}

# incomplete_rounds WORKER: rounds in its log whose results lack a contributor
incomplete_rounds() {
	grep -cv '"degraded_segments": 0,' "$WORK/$1.log"
}

neighbour_is() { # WORKER MAC: where it sends messages for the aggregator
	[[ $(ip -n "saina-$LAB-w$1" neigh show "$AGG") == *" lladdr $2 "* ]]
}

# neighbours_keep MAC WORKER...: without an announcement their entries outlast the test
neighbours_keep() {
	local i
	for i in "${@:2}"; do
		in_worker "$i" sysctl -qw net.ipv4.neigh.eth0.base_reachable_time_ms=36000000
		ip -n "saina-$LAB-w$i" neigh replace "$AGG" lladdr "$1" nud reachable dev eth0 || return
	done
}
