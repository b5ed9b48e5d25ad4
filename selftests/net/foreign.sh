#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Traffic that is not ours is bridged as if the program were not there, before
# and while workers reduce on the same ports:
#
#     w0 <--- ping, TCP, UDP, fragments, IPv6 ---> w1
#     w0 .. w3 reduce
#
# 1. Without the program, and with it
# 2. While four workers reduce

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# Frames are counted where they arrive, and waited for: a late frame is not lost.

# snmp WORKER NAME: a counter of its network stack (the header line has the names)
snmp() {
	in_worker "$1" cat /proc/net/snmp /proc/net/snmp6 | awk -v name="$2" '
		$1 == name { print $2; exit }
		$1 == group { for (i in at) if (group at[i] == name) print $i }
		{ delete at; group = $1; for (i = 2; i <= NF; i++) at[i] = $i }'
}

snmp_since() { # WORKER NAME BEFORE MORE
	[ $(($(snmp "$1" "$2") - $3)) -ge "$4" ]
}

# Not more at once than fits a receive buffer of Open vSwitch.
udp() { # KEY=VALUE...: 50 datagrams to a port of w1 nobody listens to
	local before
	before=$(snmp 1 Udp:NoPorts)
	in_worker 0 "$RAWSEND" eth0 "dmac=$mac" dip=10.190.0.11 count=64 repeat=50 "$@"
	slowwait 20 snmp_since 1 Udp:NoPorts "$before" 50
	sent_udp=$((sent_udp + $(snmp 1 Udp:NoPorts) - before))
}

# pings NAME COUNTER ADDRESS [OPTION...]: how many echo replies came back
pings() {
	local before
	before=$(snmp 0 "$2")
	# ping itself ends before a reply that is late.
	in_worker 0 ping -c 10 -i 0.02 -q "${@:4}" "$3" >/dev/null
	slowwait 20 snmp_since 0 "$2" "$before" 10
	echo "$1 $(($(snmp 0 "$2") - before))"
}

# arrivals: prints how many of a fixed list of frames arrive.
arrivals() {
	local mac sent_udp=0
	mac=$(mac_of 1)
	# Other ports; our ports to others than the aggregator; frames that merely
	# look like ours.
	udp dport=9 sport=9
	udp dport=48864
	udp dport=48865
	udp dport=48866 sport=48864
	udp dport=9 options=1
	echo "udp $sent_udp"
	pings ping Icmp:InEchoReps 10.190.0.11
	pings fragments Icmp:InEchoReps 10.190.0.11 -s 4000
	pings ipv6 Icmp6InEchoReplies fd00:190::11
}

addresses() {
	local i ns
	for i in 0 1; do
		ns=saina-$LAB-w$i
		in_worker $i sysctl -qw net.ipv6.conf.eth0.disable_ipv6=0
		ip -n "$ns" addr add "fd00:190::1$i/64" dev eth0 nodad
	done
}

# tcp FROM TO: moves the data, prints whether they arrived unchanged
tcp() {
	local to=10.190.0.$((10 + $2))
	rm -f "$WORK/tcp"
	in_worker "$2" timeout $((60 * SLOW)) socat -u TCP-LISTEN:5001,reuseaddr "CREATE:$WORK/tcp" &
	local pid=$!
	slowwait 10 listens "$2"
	in_worker "$1" timeout $((60 * SLOW)) socat -u "OPEN:$WORK/data" "TCP:$to:5001"
	wait $pid
	cmp -s "$WORK/data" "$WORK/tcp" && echo unchanged || echo changed
}

listens() {
	in_worker "$1" ss -Hltn 'sport = :5001' | grep -q LISTEN
}

head -c "$(shrink 8000000)" /dev/urandom >"$WORK/data"
expected="udp 250
ping 10
fragments 10
ipv6 10"

check_bridge() { # BRIDGE

	# 1. Without the program, and with it
	lab_up --workers 4 --bridge "$1" --no-agent
	addresses
	equal "$1, without the program: every foreign frame arrives" "$expected" "$(arrivals)"
	check "$1: the agent starts" lab agent start
	check "$1: the program is on all four ports" slowwait 10 all_attached 4
	equal "$1, with the program: every foreign frame arrives" "$expected" "$(arrivals)"
	equal "$1, with the program: a TCP stream is unchanged" unchanged "$(tcp 0 1)"

	# 2. While four workers reduce
	job busy workers 4 elements 20000 payload 256 policy bsp
	start_all busy 1000000 4 --elements 20000 --think-us 2000
	check "$1: four workers: rounds flow" slowwait 20 rounds_at_least busy 10
	equal "$1, while workers reduce: every foreign frame arrives" "$expected" "$(arrivals)"
	equal "$1, while workers reduce: a TCP stream from w0 to w1 is unchanged" unchanged "$(tcp 0 1)"
	equal "$1, while workers reduce: a TCP stream from w1 to w0 is unchanged" unchanged "$(tcp 1 0)"
	check "$1: rounds go on beside foreign traffic" rounds_go_on busy 10
	stop_workers
	check "$1: all sums beside foreign traffic are exact" wait_all 30
	lab_down
}

all_attached() {
	[ "$(saina_jq port show 'map(select(.mode!="none"))|length')" = "$1" ]
}

for bridge in $BRIDGES; do
	check_bridge "$bridge"
done
finished
