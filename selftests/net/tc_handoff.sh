#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# XDP on the ports of a Linux bridge: results that XDP cannot redirect to many leave by the
# tc program of the same port.
#
#     w0 .. w2: links of 9000 bytes       w2: GRO off, no NAPI
#
# 1. XDP and tc share the limits of what a worker may cause
# 2. Results leave by tc, with and without checksum offload
# 3. Forged messages do not pass for results that XDP hands over

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

export SAINA_LAB_HOOK=xdp
expected_log="worker 2 .* gets no redirected frames"
lab_up --workers 3 --bridge linux --mtu 9000
in_worker 2 ethtool -K eth0 gro off >/dev/null || bail "GRO cannot be turned off"

# 1. XDP and tc share the limits of what a worker may cause
# maps_of PROGRAM: the limits of what a worker may ask and cause, by name and number
maps_of() {
	bpftool -j prog show pinned "/run/saina-lab/$LAB/bpf/$(in_bpf "$1")" | jq -r '.map_ids[]' | while read -r id; do
		bpftool -j map show id "$id" | jq -r '"\(.name) \(.id)"'
	done | grep -E 'saina_(asked|event_see)' | sort
}
in_bpf() {
	find "/run/saina-lab/$LAB/bpf" -name "*$1" -printf '%f\n'
}
equal "tc hand-over: every port has XDP" native "$(saina -j port show | jq -r 'map(.mode) | unique | join(" ")')"
equal "tc hand-over: a worker has one budget of questions and one of events, whichever hook it comes by" \
	"$(maps_of saina_xdp)" "$(maps_of saina_tc)"
matches "tc hand-over: both budgets are there" 'saina_asked [0-9]+ saina_event_see[a-z]* [0-9]+' "$(maps_of saina_tc | tr '\n' ' ')"

# 2. Results leave by tc, with and without checksum offload
# reduce PAYLOAD TYPE
reduce() {
	job "p$1" id 7 workers 3 elements 100003 payload "$1" policy bsp
	start_all "p$1" "$(shrink 20)" 3 --type "$2" --elements 100003
	verify_sums "tc hand-over: payload $1, $2" 60 0 1 2
	equal "tc hand-over: payload $1, $2: the agent relays no result" 0 "$(counter "p$1" all relayed)"
	saina job del "p$1"
}

# no_wrong_checksum WHAT: no worker has got a wrong checksum since its namespace was made
no_wrong_checksum() {
	local i
	for i in 0 1 2; do
		equal "tc hand-over: $1: w$i got no result with a wrong checksum" 0 \
			"$(in_worker $i nstat -asz UdpInCsumErrors | awk '/Udp/ { print $2 }')"
	done
}

reduce 2048 int32
reduce 352 float32
# XDP has handed over frames whose checksum is not finished: without offload it is finished where
# they leave.
for i in 0 1 2; do
	in_switch ethtool -K p$i tx off >/dev/null || bail "the checksum offload of p$i cannot be turned off"
done
reduce 1024 int32
no_wrong_checksum "ports without checksum offload"
for i in 0 1 2; do
	in_switch ethtool -K p$i tx on >/dev/null
done
# Without offload at the workers the sender has finished it.
for i in 0 1 2; do
	in_worker $i ethtool -K eth0 tx off >/dev/null || bail "the checksum offload of w$i cannot be turned off"
done
reduce 256 int32
no_wrong_checksum "workers without checksum offload"
for i in 0 1 2; do
	in_worker $i ethtool -K eth0 tx on >/dev/null
done

# 3. Forged messages do not pass for results that XDP hands over
job watched id 7 workers 3 elements 100003 payload 2048 policy bsp
start_all watched 100000 3 --elements 100003
check "tc hand-over: rounds flow" slowwait 30 rounds_at_least watched 5
forged=$(counter - - forged)
SWITCH_MAC=$(mac_of switch)
send_raw 0 type=2 dip=239.190.0.7 dport=48866 dmac=01:00:5e:3e:00:07 sip=10.190.0.1 sport=48864 job=7 repeat=100
dropped() {
	[ "$(counter - - forged)" -ge $((forged + 100)) ]
}
check "tc hand-over: forged results are dropped" slowwait 10 dropped
stop_workers
check "tc hand-over: all sums are exact beside forged results" wait_all 30
equal "tc hand-over: no worker saw a bad message" "0 0 0" \
	"$(summary 0 bad_messages) $(summary 1 bad_messages) $(summary 2 bad_messages)"
finished
