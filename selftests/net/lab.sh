#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The lab itself, without an agent: it forwards frames, shapes links, and can be removed
# whatever happens to it.
#
#     switch: br0 10.190.0.1 --- p0, p1 --- w0, w1 (10.190.0.10, .11)
#
# 1. A lab forwards frames, shapes links, and is removed
# 2. All its processes are killed
# 3. Its owner is killed
# 4. It is interrupted while it comes up
# 5. A tree: each worker of a lab is a host with a lab of its own
# 6. Bad input is refused

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

leftovers() {
	ls -d "/run/netns/saina-$LAB-"* "/run/netns/saina-$LAB."* "/run/saina-lab/$LAB" "/run/saina-lab/$LAB."* 2>/dev/null
	for p in /proc/[0-9]*/cmdline; do
		{ tr '\0' ' ' <"$p"; } 2>/dev/null | grep -F -e "/run/saina-lab/$LAB/" -e "/run/saina-lab/$LAB." | grep -v grep
	done
}

pings() { # FROM ADDRESS
	in_worker "$1" ping -c 3 -i 0.02 -W 5 -q "$2"
}

shaped() { # DEVICE: bytes that its shaper let through, at worker 1
	tc -n "saina-$LAB-w1" -s -j qdisc show dev "$1" | jq '[.[]|select(.kind=="tbf").bytes]|add // 0'
}

# 1. A lab forwards frames, shapes links, and is removed
for bridge in $BRIDGES; do
	check "$bridge: the lab comes up" lab up --owner $$ --workers 2 --bridge "$bridge" --no-agent --rate 100mbit
	check "$bridge: workers reach each other" pings 0 10.190.0.11
	check "$bridge: workers reach the switch" pings 1 10.190.0.1
	check "$bridge: frames that leave a worker are shaped" [ "$(shaped eth0)" -gt 100 ]
	check "$bridge: frames that come to a worker are shaped" [ "$(shaped ifb0)" -gt 100 ]
	matches "$bridge: a second lab of that name is refused" "already" "$(lab up --no-agent 2>&1)"
	check "$bridge: saina-lab show succeeds" lab show
	check "$bridge: the port of a worker is removed" lab port del 1
	check "$bridge: the port of a worker is added again" lab port add 1
	check "$bridge: a worker whose port was added again is reached" slowwait 10 pings 1 10.190.0.10
	check "$bridge: the lab goes down" lab down
	equal "$bridge: nothing of the lab is left" "" "$(leftovers)"
done

# 2. All its processes are killed
lab_up --workers 2 --no-agent
"$LAB_TOOL" exec "$LAB" 0 sleep 1000 &
sleeper=$!
disown $sleeper
for ns in sw w0 w1; do
	for pid in $(ip netns pids "saina-$LAB-$ns"); do
		[ "$pid" = $sleeper ] || kill -KILL "$pid"
	done
done
check "a lab whose processes were killed goes down" lab down
equal "a lab whose processes were killed leaves nothing" "" "$(leftovers)"
check "a lab that goes down ends the processes in it" slowwait 5 pid_gone $sleeper

# 3. Its owner is killed
sleep 1000 &
owner=$!
disown $owner
check "a lab with an owner comes up" lab up --owner $owner --workers 1 --no-agent
"$LAB_TOOL" clean "$LAB" >/dev/null
check "saina-lab clean leaves a lab alone while its owner lives" [ -d "/run/saina-lab/$LAB" ]
kill -KILL $owner
slowwait 5 pid_gone $owner
"$LAB_TOOL" clean "$LAB" >/dev/null
equal "saina-lab clean removes a lab whose owner is gone" "" "$(leftovers)"
lab_up --workers 1 --no-agent
pid=$(cat "/run/saina-lab/$LAB/ovs/vswitchd.pid")
rm -rf "/run/saina-lab/$LAB"
"$LAB_TOOL" clean "$LAB" >/dev/null
equal "saina-lab clean removes a lab of which only the namespaces are left" "" "$(leftovers)"
check "saina-lab clean ends the Open vSwitch of a lab of which only the namespaces are left" slowwait 5 pid_gone "$pid"

# 4. It is interrupted while it comes up
"$LAB_TOOL" up "$LAB" --owner $$ --workers 64 --no-agent 2>/dev/null &
pid=$!
slowwait 10 [ -e "/run/netns/saina-$LAB-w3" ]
kill -TERM $pid
wait $pid
equal "saina-lab up, interrupted, leaves nothing" "" "$(leftovers)"

# 5. A tree: each worker of a lab is a host with a lab of its own
tree=$("$LAB_TOOL" tree up "$LAB" --owner $$ --bridge linux --hosts 2 --workers 2 --uplink 100mbit)
equal "tree: saina-lab says which labs there are" "$LAB.h0 $LAB.h1" "$(jq -r '.hosts[].name' <<<"$tree" | xargs)"
for h in 0 1; do
	check "tree: an agent runs in host $h" "$B/saina" -s "$(jq -r ".hosts[$h].control" <<<"$tree")" port show
	check "tree: host $h reaches the lab above by its uplink" in_worker $h ping -c 3 -i 0.02 -W 5 -q "$(jq -r .address <<<"$tree")"
	check "tree: a worker of host $h reaches its host" nsenter --net="/run/netns/$(jq -r ".hosts[$h].workers[1]" <<<"$tree")" -- \
		ping -c 3 -i 0.02 -W 5 -q "10.190.$((h + 1)).1"
done
check "tree: the uplink is shaped" [ "$(shaped eth0)" -gt 100 ]
matches "tree: a second one of that name is refused" "already" "$("$LAB_TOOL" tree up "$LAB" 2>&1)"
check "tree: it goes down" "$LAB_TOOL" tree down "$LAB"
equal "tree: nothing of it is left" "" "$(leftovers)"
"$LAB_TOOL" tree up "$LAB" --owner $$ --bridge linux --hosts 3 2>/dev/null >&2 &
pid=$!
slowwait 20 [ -e "/run/netns/saina-$LAB.h1-w0" ]
kill -TERM $pid
wait $pid
equal "saina-lab tree up, interrupted, leaves nothing" "" "$(leftovers)"

# 6. Bad input is refused
check_refused() { # WORD ARGUMENTS...: exit status 2 and a sentence with the word
	local output word=$1
	shift
	output=$("$LAB_TOOL" "$@" 2>&1)
	equal "saina-lab $*: is refused with status 2 and the word at fault" "2 yes" "$? $([[ $output == *"$word"* ]] && echo yes || echo "$output")"
}
check_refused '"a b"' up "a b"
check_refused '"65001"' up "$LAB" --mtu 65001
check_refused '"0"' up "$LAB" --workers 0
check_refused '"token-ring"' up "$LAB" --bridge token-ring
check_refused '"101"' up "$LAB" --loss 101
check_refused '"100.5"' up "$LAB" --loss 100.5
check_refused '--frobnicate' up "$LAB" --frobnicate 1
check_refused '--rate' up "$LAB" --rate
check_refused '"fly"' fly
check_refused '"64"' tree up "$LAB" --hosts 64
check_refused '"--rate"' tree up "$LAB" --rate 1gbit
check_refused '"fly"' tree fly "$LAB"
check_refused '"none:0"' up "$LAB" --inside none:0
matches "saina-lab clean: an unknown lab is refused" "there is no lab $LAB; saina-lab list" "$("$LAB_TOOL" clean "$LAB" 2>&1)"
check "saina-lab clean: an unknown lab is a failure" not "$LAB_TOOL" clean "$LAB"
finished
