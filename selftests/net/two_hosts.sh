#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Workers on two hosts that share one L2 network: the bridge of the second host has no agent.
#
#     saina-$LAB-sw: sainad, br0 -- p0 -- w0, p1 -- w1
#                             | LINK, a port of br0 and of br1
#     saina-$LAB-w4: the second host: br1 -- p2 -- w2, p3 -- w3
#
# 1. A veth pair, as a NIC or a VLAN device would be
# 2. VXLAN, which leaves 1450 bytes of 1500
# 3. The link is down for a while

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

in_host2() {
	in_worker 4 "$@"
}

# link_add veth|vxlan: makes the device u0 of both hosts
link_add() {
	if [ "$1" = veth ]; then
		in_switch ip link add u0 type veth peer name u0 netns "saina-$LAB-w4"
		return
	fi
	in_switch ip link add under type veth peer name under netns "saina-$LAB-w4"
	in_switch ip addr add 192.0.2.1/24 dev under
	in_host2 ip addr add 192.0.2.2/24 dev under
	in_switch ip link set under up
	in_host2 ip link set under up
	in_switch ip link add u0 type vxlan id 7 local 192.0.2.1 remote 192.0.2.2 dstport 4789 dev under
	in_host2 ip link add u0 type vxlan id 7 local 192.0.2.2 remote 192.0.2.1 dstport 4789 dev under
}

# second_host veth|vxlan: moves workers 2 and 3 to it
second_host() {
	local i
	in_host2 ip link set eth0 down
	in_host2 ip link add br1 type bridge mcast_snooping 0
	link_add "$1" || return
	for i in 2 3; do
		in_switch ip link set "p$i" netns "saina-$LAB-w4"
		in_host2 ip link set "p$i" master br1 up
		[ "$1" = veth ] || in_worker "$i" ip link set eth0 mtu 1450
	done
	in_host2 ip link set u0 master br1 up
	in_host2 ip link set br1 up
	in_switch ip link set u0 master br0 up
}

# link_bytes: received and sent by the link's device at the first host
link_bytes() {
	in_switch ip -s -j link show u0 | jq '.[0].stats64 | .rx.bytes, .tx.bytes' | xargs
}

two_hosts() { # veth|vxlan PAYLOAD
	local what="two hosts, $1" rounds bytes before
	rounds=$(shrink 50 10)
	lab_up --workers 5 --bridge linux
	check "$what: workers 2 and 3 move to the second host" second_host "$1"
	job far workers 4 elements 65536 payload "$2" policy bsp
	before=$(link_bytes)
	start_all far "$rounds" 4 --elements 65536
	verify_sums "$what" 120 0 1 2 3
	bytes=$(link_bytes)
	diag "$what: $(((${bytes% *} - ${before% *}) / rounds)) bytes a round from the second host and" \
		"$(((${bytes#* } - ${before#* }) / rounds)) to it, for 262144 bytes of gradient"
	equal "$what: no frame was dropped as forged" 0 "$(counter - - forged)"

	# 3. The link is down for a while
	start_all far 1000000 4 --elements 65536
	check "$what: rounds flow" rounds_go_on far 5
	check "$what: the link goes down" in_switch ip link set u0 down
	check "$what: the link comes up" in_switch ip link set u0 up
	check "$what: the link was down: rounds go on" slowwait 60 rounds_go_on far 5
	stop_workers
	verify_sums "$what: the link was down" 120 0 1 2 3
	saina job del far
	lab_down
}

two_hosts veth 352
two_hosts vxlan 256

finished
