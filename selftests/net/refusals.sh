#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Kernels that refuse to send what a worker has, while its job runs: an MTU that became
# too small, a firewall, no route.  That is not loss: the worker says what it is, others
# need not wait for ever, and what is refused for a while only is sent afterwards.
#
#     w0: as it is     w1: its kernel refuses

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# Without a route there are no heartbeats either.
expected_log='worker 1 .* is dead: silent'

lab_up --workers 2 --bridge linux

# Of what worker 1 sends to the data path, and not of its heartbeats.
rule=(OUTPUT -p udp --dport 48864 -j)

shut() { # DROP|REJECT
	w 1 iptables -A "${rule[@]}" "$1"
}

open_again() { # DROP|REJECT
	w 1 iptables -D "${rule[@]}" "$1"
}

has_said() { # WORKER ERE
	grep -qE "$2" "$WORK/$1.err"
}

# ends WORKER: soon enough, whatever the exit status
ends() {
	until_true 60 worker_ended "$1"
}

# begun JOB [options of both workers]: a job whose two workers have begun
begun() {
	job "$1" workers 2 elements 20000 payload 352 policy bsp dead 2000 heartbeat 200
	start_all "$1" 1000000 2 --elements 20000 --think-us 1000 "${@:2}"
	check "$1: rounds flow" until_true 60 rounds_at_least "$1" 5
}

# The worker that has ended badly, on purpose.
reap() {
	wait "${worker_pids[$1]}"
	status=$?
	unset "worker_pids[$1]"
}

# others_go_on JOB: worker 0 alone
others_go_on() {
	check "$1: worker 0 goes on alone" rounds_go_on "$1" 5
	stop_workers
	check "$1: all sums of worker 0 are exact" wait_all 60
	saina job del "$1"
}

begun mtu
check "mtu: the MTU of worker 1 is lowered" w 1 ip link set eth0 mtu 1400
check "mtu: worker 1 ends" ends 1
reap 1
equal "mtu: worker 1 ends with the status of a failed all-reduce" 4 "$status"
matches "mtu: worker 1 says what a worker that joins with that MTU would be told" \
	"interface eth0 has MTU 1400, job [0-9]+ sends packets of 1484 bytes: raise the MTU" "$(cat "$WORK/1.err")"
w 1 ip link set eth0 mtu 1500
others_go_on mtu

for verdict in DROP REJECT; do
	begun "$verdict"
	check "$verdict: a firewall of worker 1 refuses what it sends" shut "$verdict"
	check "$verdict: worker 1 says so" until_true 30 has_said 1 "cannot send to the aggregator by eth0: Operation not permitted"
	at=$(job_field "$verdict" round)
	check "$verdict: it is tried again, and sent when the firewall lets it out" open_again "$verdict"
	check "$verdict: rounds go on" until_true 30 rounds_at_least "$verdict" $((at + 10))
	stop_workers
	check "$verdict: all sums are exact" wait_all 60
	saina job del "$verdict"
done

begun firewall --timeout-ms 3000
check "firewall: a firewall of worker 1 refuses its gradients" shut REJECT
check "firewall: worker 1 ends after its time-out" ends 1
reap 1
matches "firewall: worker 1 says that its firewall is why" \
	"nothing could be sent to $AGG by eth0 for 3000 ms: Operation not permitted: a firewall here" "$(cat "$WORK/1.err")"
open_again REJECT
others_go_on firewall

begun route --timeout-ms 3000
check "route: the route of worker 1 is removed" w 1 ip route del 10.190.0.0/24
check "route: worker 1 ends after its time-out" ends 1
reap 1
matches "route: worker 1 says that there is no route" \
	"Network is unreachable: give this host a route" "$(cat "$WORK/1.err")"
w 1 ip route add 10.190.0.0/24 dev eth0
others_go_on route
finished
