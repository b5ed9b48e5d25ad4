#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Traffic that is not ours is bridged as if the program were not there, before
# and while workers reduce on the same ports:
#
#     w0 <--- ping, TCP, UDP, fragments, IPv6 ---> w1
#     w0 .. w3 reduce

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# UDP datagrams that came to a port of w1 nobody listens to
udp_in() {
	w 1 cat /proc/net/snmp | sed -n 's/^Udp: [0-9]* \([0-9]*\).*/\1/p'
}

udp_since() { # COUNT MORE
	[ $(($(udp_in) - $1)) -ge "$2" ]
}

# What of a fixed list of frames arrives at w1, as its counters tell.
arrivals() {
	local mac udp
	mac=$(mac_of 1)
	udp=$(udp_in)
	# Other ports; our ports to others than the aggregator; frames that merely
	# look like ours.
	w 0 "$RAWSEND" eth0 "dmac=$mac" dip=10.190.0.11 dport=9 sport=9 count=64 repeat=50
	w 0 "$RAWSEND" eth0 "dmac=$mac" dip=10.190.0.11 dport=48864 count=64 repeat=50
	w 0 "$RAWSEND" eth0 "dmac=$mac" dip=10.190.0.11 dport=48865 count=64 repeat=50
	w 0 "$RAWSEND" eth0 "dmac=$mac" dip=10.190.0.11 dport=48866 sport=48864 count=64 repeat=50
	w 0 "$RAWSEND" eth0 "dmac=$mac" dip=10.190.0.11 dport=9 options=1 count=64 repeat=50
	until_true 10 udp_since "$udp" 250
	echo "udp $(($(udp_in) - udp))"
	echo "ping $(w 0 ping -c 10 -i 0.02 -q 10.190.0.11 | sed -n 's/.* \([0-9]*\) received.*/\1/p')"
	echo "fragments $(w 0 ping -c 10 -i 0.02 -q -s 4000 10.190.0.11 | sed -n 's/.* \([0-9]*\) received.*/\1/p')"
	echo "ipv6 $(w 0 ping -c 10 -i 0.02 -q fd00:190::11 | sed -n 's/.* \([0-9]*\) received.*/\1/p')"
}

addresses() {
	local i ns
	for i in 0 1; do
		ns=saina-$LAB-w$i
		w $i sysctl -qw net.ipv6.conf.eth0.disable_ipv6=0
		ip -n "$ns" addr add "fd00:190::1$i/64" dev eth0 nodad
	done
}

# tcp FROM TO: moves the data, prints whether they arrived unchanged
tcp() {
	local to=10.190.0.$((10 + $2))
	rm -f "$WORK/tcp"
	w "$2" timeout 60 socat -u TCP-LISTEN:5001,reuseaddr "CREATE:$WORK/tcp" &
	local pid=$!
	until_true 10 listens "$2"
	w "$1" timeout 60 socat -u "OPEN:$WORK/data" "TCP:$to:5001"
	wait $pid
	cmp -s "$WORK/data" "$WORK/tcp" && echo unchanged || echo changed
}

listens() {
	w "$1" ss -Hltn 'sport = :5001' | grep -q LISTEN
}

head -c "$(less 8000000)" /dev/urandom >"$WORK/data"
everything="udp 250
ping 10
fragments 10
ipv6 10"

both() { # BRIDGE
	local before
	lab_up --workers 4 --bridge "$1" --no-agent
	addresses
	before=$(arrivals)
	equal "$1, without the program: all frames arrive" "$everything" "$before"
	check "$1: the agent starts" lab agent start
	check "$1: the program is on the ports" until_true 10 all_native 4
	equal "$1, with the program: the same" "$before" "$(arrivals)"
	equal "$1: TCP to a worker" unchanged "$(tcp 0 1)"

	job busy workers 4 elements 20000 payload 256 policy bsp
	start_all busy 1000000 4 --elements 20000 --think-us 2000
	check "$1: rounds flow" until_true 20 rounds_at_least busy 10
	equal "$1, while workers reduce: the same" "$before" "$(arrivals)"
	equal "$1, while workers reduce: TCP one way" unchanged "$(tcp 0 1)"
	equal "$1, while workers reduce: TCP the other way" unchanged "$(tcp 1 0)"
	at=$(job_field busy round)
	check "$1: rounds went on" until_true 20 rounds_at_least busy $((at + 10))
	stop_workers
	check "$1: exact sums all the way" wait_all 30
	lab_down
}

all_native() {
	[ "$(sj port show 'map(select(.mode=="native"))|length')" = "$1" ]
}

for bridge in $BRIDGES; do
	both "$bridge"
done
finished
