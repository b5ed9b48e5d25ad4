#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Taps with the tc hook: two namespaces and a VM (Debian's 6.1 under selftests/vm/saina-vm) train in
# one job on a Linux bridge, with losses, with all ports on tc and with some of them on XDP.
#
#     saina-$LAB-sw: sainad, br0 10.190.0.1
#       p0 |      p1 |      t2 |        <- tc or native XDP
#        veth      veth       tap
#         w0        w1     VM 6.1       10.190.0.10 .. .12
#
# 1. A tap becomes a port with tc
# 2. All ports with tc
# 3. Some with XDP

# shellcheck source=vm_lib.sh
. "$(dirname "$0")/vm_lib.sh"

# 1. A tap becomes a port with tc
export SAINA_LAB_HOOK=auto
lab_up --workers 2 --bridge linux
check "tap t2 is added to the bridge" lab tap add t2
check "the tap is a port" slowwait 20 ports_are 3
equal "hook auto: every port, veth or tap, has tc" "tc veth tc veth tc tun" \
	"$(saina_jq port show 'map("\(.mode) \(.driver)")|join(" ")')"
vm_start 2 6.1 1500
vm_check_up 2 300

hooks() { # OF-P0 OF-P1 OF-T2
	saina port set p0 hook "$1" && saina port set p1 hook "$2" && saina port set t2 hook "$3"
}

lossy() { # PERCENT
	local port
	for port in p0 p1 t2; do
		saina port set $port loss-in "$1%" loss-out "$1%" seed "$SEED" || return
	done
}

# reduce NAME PERCENT DESCRIPTION
reduce() {
	check "$3: $2 % loss is set on every port" lossy "$2"
	job "$1" workers 3 elements 20011 payload 352 policy bsp dead 60000
	vm_worker 2 "$1" 10 --elements 20011
	start_all "$1" 10 2 --elements 20011
	check "$3, $2 % loss: all sums are exact" all_ended 180 2
	check "$3, $2 % loss: all workers have the same results" same_results 0 1 2
	equal "$3, $2 % loss: no result is relayed by the agent" 0 "$(counter "$1" all relayed)"
	saina job del "$1"
}

# 2. All ports with tc
reduce tc0 0 "tc"
reduce tc5 5 "tc"

# 3. Some with XDP
check "the tap changes to XDP" hooks tc tc xdp
equal "the tap has XDP, the veths have tc" "tc tc native" "$(saina_jq port show 'map(.mode)|join(" ")')"
reduce tap5 5 "XDP at the tap, tc at the veths"
check "a veth changes to XDP, the tap to tc" hooks tc xdp tc
reduce veth0 0 "XDP at a veth, tc at the other and at the tap"
reduce veth5 5 "XDP at a veth, tc at the other and at the tap"
check "the losses are taken back" lossy 0
vm_end 2
finished
