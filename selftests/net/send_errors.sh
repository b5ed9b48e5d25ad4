#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The kernel refuses to send a worker's messages while its job runs: an MTU that became too
# small, a firewall, no route.  That is not loss: the worker names the cause, others need not
# wait for ever, and messages that are refused for a while are sent afterwards.
#
#     w0: as it is     w1: its kernel refuses
#
# 1. The MTU becomes too small
# 2. A firewall refuses gradients for a while
# 3. Gradients are lost behind the interface
# 4. A worker that computes sends nothing: no trouble
# 5. A firewall refuses gradients for longer than the time-out
# 6. There is no route any more
# 7. The interface is down

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# Without a route there are no heartbeats either.
expected_log='worker 1 .* is (dead: silent|alive, )'

lab_up --workers 2 --bridge linux

# The rule is for what worker 1 sends to the data path, not for its heartbeats.
rule=(OUTPUT -p udp --dport 48864 -j)

fw_block() { # DROP|REJECT
	in_worker 1 iptables -A "${rule[@]}" "$1"
}

fw_unblock() { # DROP|REJECT
	in_worker 1 iptables -D "${rule[@]}" "$1"
}

drop_egress() {
	in_worker 1 tc qdisc add dev eth0 clsact &&
		in_worker 1 tc filter add dev eth0 egress protocol ip u32 match ip dport 48864 0xffff \
			action mirred egress redirect dev lo
}

has_said() { # WORKER ERE
	grep -qE "$2" "$WORK/$1.err"
}

# ends WORKER: soon enough, whatever the exit status
ends() {
	slowwait 60 worker_ended "$1"
}

# job_start JOB [options of both workers]: a job whose two workers have begun
job_start() {
	job "$1" workers 2 elements 20000 payload 352 policy bsp dead 2000 heartbeat 200
	start_all "$1" 1000000 2 --elements 20000 --think-us 1000 "${@:2}"
	check "$1: rounds flow" slowwait 60 rounds_at_least "$1" 5
}

# trouble JOB [ERE]: the trouble that job show prints matches; without ERE: it prints none
trouble() {
	local output
	output=$(agent_saina -j job show "$1" | jq -r '.[0].trouble // ""')
	if [ $# = 1 ]; then
		[ -z "$output" ]
	else
		[[ $output =~ $2 ]]
	fi
}

trouble_shown() { # JOB true|false: worker show has trouble of worker 1
	[ "$(agent_saina -j worker show "$1" 1 | jq '.[0] | has("trouble")')" = "$2" ]
}

# sent_by JOB: gradients that worker 1 reports as sent for the first time, and again
sent_by() {
	agent_saina -j worker show "$1" 1 | jq -r '.[0] | "\(.sent) \(.resent)"'
}

# arrived_from JOB: gradients of worker 1 that the data path has seen, whatever it did with them
arrived_from() {
	local name sum=0
	for name in stored added duplicate late resent stale round-busy slot-busy round-future; do
		sum=$((sum + $(counter "$1" 1 "$name")))
	done
	echo $sum
}

# waited_for JOB SECONDS: some slot has waited for longer
waited_for() {
	[ "$(saina -j slot show "$1" | jq "any(.[]; .age_us > $2 * 1000000)")" = true ]
}

# others_go_on JOB: worker 0 alone
others_go_on() {
	check "$1: worker 0 goes on alone" rounds_go_on "$1" 5
	stop_workers
	check "$1: all sums of worker 0 are exact" wait_all 60
	saina job del "$1"
}

# 1. The MTU becomes too small
job_start mtu
check "mtu: the MTU of worker 1 is lowered" in_worker 1 ip link set eth0 mtu 1400
check "mtu: worker 1 ends" ends 1
worker_reap 1
equal "mtu: worker 1 ends with the status of a failed all-reduce" 4 "$status"
matches "mtu: worker 1 prints the sentence that a worker gets which joins with that MTU" \
	"interface eth0 has MTU 1400, job [0-9]+ sends packets of 1484 bytes: raise the MTU" "$(cat "$WORK/1.err")"
read -r sent resent <<<"$(summary 1 sent resent)"
diag "mtu: worker 1: $sent sent, $resent sent again, $(arrived_from mtu) arrived"
equal "mtu: worker 1 counts gradients as sent that have arrived, and no refused one" "$(arrived_from mtu)" $((sent + resent))
in_worker 1 ip link set eth0 mtu 1500
others_go_on mtu

# 2. A firewall refuses gradients for a while
for verdict in DROP REJECT; do
	job_start "$verdict"
	check "$verdict: a firewall of worker 1 refuses what it sends" fw_block "$verdict"
	check "$verdict: worker 1 says that it cannot send, and why" slowwait 30 has_said 1 "cannot send to the aggregator by eth0: Operation not permitted"
	check "$verdict: job show says that worker 1 lives and cannot send, and why" slowwait 30 trouble "$verdict" \
		"worker 1 \(.*\) is alive, but its kernel has refused to send its gradients for [0-9]+ s: Operation not permitted"
	matches "$verdict: the text of job show says that worker 1 lives and cannot send" "is alive, but its kernel" "$(agent_saina job show "$verdict")"
	matches "$verdict: saina doctor says that worker 1 lives and cannot send" "worker 1 .* is alive, but its kernel has refused" \
		"$(in_switch "$B/saina" -s "$AGENT_SOCKET" -j doctor host bridge br0 | jq -r '.[] | select(.check == "job").found')"
	check "$verdict: worker show has trouble of worker 1" trouble_shown "$verdict" true
	sent=$(sent_by "$verdict")
	check "$verdict: its kernel goes on refusing" slowwait 30 trouble "$verdict" "for ([6-9]|[1-9][0-9]+) s"
	equal "$verdict: what is refused counts neither as sent nor as sent again" "$sent" "$(sent_by "$verdict")"
	at=$(job_field "$verdict" round)
	check "$verdict: the firewall lets messages of worker 1 out again" fw_unblock "$verdict"
	check "$verdict: rounds go on" slowwait 30 rounds_at_least "$verdict" $((at + 10))
	check "$verdict: job show reports no trouble any more" slowwait 30 trouble "$verdict"
	stop_workers
	check "$verdict: all sums are exact" wait_all 60
	saina job del "$verdict"
done

# 3. Gradients are lost behind the interface
# The kernel of worker 1 accepts these messages, but they are lost behind it.
job_start lost
check "lost: what worker 1 sends is lost behind its interface" drop_egress
check "lost: job show says that nothing of worker 1 arrives" slowwait 60 trouble lost \
	"worker 1 \(.*\) is alive, and sends gradients, but none has arrived by port p1 for [0-9]+ s"
at=$(job_field lost round)
check "lost: its gradients get through again" in_worker 1 tc qdisc del dev eth0 clsact
check "lost: rounds go on" slowwait 30 rounds_at_least lost $((at + 10))
check "lost: job show reports no trouble any more" slowwait 30 trouble lost
stop_workers
check "lost: all sums are exact" wait_all 60
saina job del lost

# 4. A worker that computes sends nothing: no trouble
job busy workers 2 elements 20000 payload 352 policy bsp dead 2000 heartbeat 200
start 0 busy 1000000 --elements 20000 --think-us 1000
start 1 busy 1000000 --elements 20000 --think-us 8000000
check "busy: the round waits for worker 1, which computes" slowwait 60 missing_is busy 1
check "busy: it has computed for longer than a worker may be silent" slowwait 60 waited_for busy 4
equal "busy: job show reports no trouble" "" "$(agent_saina -j job show busy | jq -r '.[0].trouble // ""')"
stop_workers
check "busy: all sums are exact" wait_all 60
saina job del busy

# 5. A firewall refuses gradients for longer than the time-out
job_start firewall --timeout-ms 3000
check "firewall: a firewall of worker 1 refuses its gradients" fw_block REJECT
check "firewall: worker 1 ends after its time-out" ends 1
worker_reap 1
matches "firewall: worker 1 names its firewall as the reason" \
	"nothing could be sent to $AGG by eth0 for 3000 ms: Operation not permitted: a firewall here" "$(cat "$WORK/1.err")"
fw_unblock REJECT
others_go_on firewall

# 6. There is no route any more
job_start route --timeout-ms 3000
check "route: the route of worker 1 is removed" in_worker 1 ip route del 10.190.0.0/24
check "route: worker 1 ends after its time-out" ends 1
worker_reap 1
matches "route: worker 1 says that there is no route" \
	"Network is unreachable: give this host a route" "$(cat "$WORK/1.err")"
in_worker 1 ip route add 10.190.0.0/24 dev eth0
others_go_on route

# 7. The interface is down
job_start down --timeout-ms 3000
check "down: the interface of worker 1 is taken down" in_worker 1 ip link set eth0 down
check "down: worker 1 ends after its time-out" ends 1
worker_reap 1
matches "down: worker 1 says that its interface is down" "Network is unreachable: .* an interface that is down has none" "$(cat "$WORK/1.err")"
in_worker 1 ip link set eth0 up
others_go_on down
finished
