#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Firewalls of a worker and of the switch's host, and addresses without an aggregator: the worker
# names what keeps it from the job, and saina doctor names it on either side.
#
#     w0: the worker that cannot join     w1: as it is
#
# 1. Addresses where no aggregator is
# 2. The host's firewall keeps JOINs out
# 3. The worker's firewall keeps JOINs or results back

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

lab_up --workers 2 --bridge linux
job filtered workers 1 elements 2000 payload 352

# Words of iptables; in the namespace of a worker, or of the switch.
fw_add() { # w0|sw WORDS...
	"in_$1" iptables -A "${@:2}"
}

fw_del() { # w0|sw WORDS...
	"in_$1" iptables -D "${@:2}"
}

in_w0() {
	in_worker 0 "$@"
}

in_sw() {
	in_switch "$@"
}

# check_join_error TEXT ERE [WORDS of saina-allreduce]: the error of a worker that cannot join matches
check_join_error() {
	matches "$1" "$2" "$(join_error 0 0 filtered --join-timeout-ms $((2000 * SLOW)) "${@:3}")"
}

# doctor WHERE CHECK: verdict and sentences of a check of saina doctor
doctor() {
	if [ "$1" = host ]; then
		agent_saina_in_switch -j doctor host bridge br0
	else
		in_worker 0 "$B/saina" -j doctor worker to "$AGG"
	fi 2>/dev/null | jq -r ".[] | select(.check == \"$2\") | \"\\(.status): \\(.found) \\(.fix)\""
}

agent_saina_in_switch() {
	in_switch "$B/saina" -s "$AGENT_SOCKET" "$@"
}

# 1. Addresses where no aggregator is
for address in 0.0.0.0 127.0.0.1 127.0.0.1:48865 127.0.1.1 239.190.0.0 255.255.255.255; do
	check_join_error "aggregator $address is refused with a sentence" \
		"aggregator ${address%:*}: this cannot be the address of sainad's bridge" --aggregator "$address"
done
check_join_error "a port that nobody has: the worker says that it is closed" \
	"$AGG answers that its UDP port 9 is closed: is sainad running there with job" --aggregator "$AGG:9"
matches "an address that nobody has: the worker says so" "no host answers at 10.190.0.200" \
	"$(join_error 0 0 filtered --join-timeout-ms $((8000 * SLOW)) --aggregator 10.190.0.200)"

# Sockets of another agent of this host, at another address; one is older than this agent's and one newer.
in_switch ip link set lo up
in_switch /usr/bin/python3 -c 'import socket, sys, time
held = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(4)]
for i, s in enumerate(held):
    s.bind((f"127.0.0.{2 + i // 2}", 48864 + i % 2))
print("held", flush=True)
time.sleep(1000)' >"$WORK/held" &
held=$!
check "another agent has its sockets" slowwait 20 grep -q held "$WORK/held"
doctor_knows_its_own() {
	doctor host udp-port >"$WORK/ports"
	cat "$WORK/ports"
	[ "$(grep -c "^ok: 4886[45] is used by sainad " "$WORK/ports")" = "$(grep -c . "$WORK/ports")" ]
}
check "saina doctor beside another agent: the ports are used by its own" doctor_knows_its_own
matches "saina doctor beside another agent: the address is that of its own" "^ok: workers use the aggregator address $AGG " "$(doctor host address)"
kill $held
wait $held 2>/dev/null

# 2. The host's firewall keeps JOINs out
fw_add sw INPUT -p udp --dport 48865 -j DROP
check_join_error "the host's firewall drops joins: the worker asks for that" "does a firewall there drop it"
matches "the host's firewall drops joins: saina doctor host names the port" \
	"FAIL: .*48865" "$(doctor host firewall)"
fw_del sw INPUT -p udp --dport 48865 -j DROP

fw_add sw INPUT -p udp --dport 48865 -j REJECT --reject-with icmp-admin-prohibited
check_join_error "the host's firewall rejects joins as prohibited: the worker says so" \
	"a firewall at $AGG rejects UDP port 48865"
matches "the host's firewall rejects joins: saina doctor worker says so" \
	"FAIL: .*firewall" "$(doctor worker aggregator)"
fw_del sw INPUT -p udp --dport 48865 -j REJECT --reject-with icmp-admin-prohibited

fw_add sw INPUT -p udp --dport 48865 -j REJECT
check_join_error "the host's firewall rejects joins like a closed port: the worker names both" \
	"UDP port 48865 is closed: is sainad running there .* a firewall there rejects the port"
matches "the host's firewall rejects joins like a closed port: saina doctor host names the port" \
	"FAIL: .*48865" "$(doctor host firewall)"
fw_del sw INPUT -p udp --dport 48865 -j REJECT
matches "the host's firewall lets joins in: saina doctor host has nothing to say" "ok: " "$(doctor host firewall)"

# 3. The worker's firewall keeps JOINs or results back
fw_add w0 OUTPUT -p udp --dport 48865 -j REJECT
check_join_error "the worker's firewall keeps its joins in: the worker says so" \
	"Operation not permitted: a firewall here rejects or drops it"
fw_del w0 OUTPUT -p udp --dport 48865 -j REJECT

fw_add w0 OUTPUT -p udp --dport 48864 -j DROP
matches "the worker's firewall keeps its gradients in: saina doctor worker names the port" \
	"FAIL: .*48864" "$(doctor worker aggregator)"
fw_del w0 OUTPUT -p udp --dport 48864 -j DROP

for rule in "-d 239.0.0.0/8 -j DROP" "-p udp --dport 48866 -j REJECT"; do
	read -ra words <<<"$rule"
	fw_add w0 INPUT "${words[@]}"
	job multicast workers 2 elements 2000 payload 352
	start_all multicast 5 2 --elements 2000
	check "the worker's firewall has $rule: all sums are exact" wait_all 120
	matches "the worker's firewall has $rule: the worker names firewall and port" \
		"a firewall here drops what comes to eth0 for UDP port 48866" "$(cat "$WORK/0.err")"
	equal "the worker's firewall has $rule: nothing is said of GRO" "" "$(grep 'gro on' "$WORK/0.err")"
	equal "the worker's firewall has $rule: a worker without it has nothing to say of one" "" \
		"$(grep firewall "$WORK/1.err")"
	matches "the worker's firewall has $rule: saina doctor worker names the port" \
		"FAIL: .*48866" "$(doctor worker firewall)"
	saina job del multicast
	fw_del w0 INPUT "${words[@]}"
done
matches "the worker has no firewall: saina doctor worker has nothing to say" "ok: " "$(doctor worker firewall)"
finished
