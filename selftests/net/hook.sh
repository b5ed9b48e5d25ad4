#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The tc hook: which ports get it, ports that change between XDP and tc while rounds go
# on, and other programs that use the hook or remove what the agent has put there.
#
#     w0 .. w3 reduce; p0 .. p3: XDP or tc
#
# 1. Open vSwitch's userspace datapath gets XDP
# 2. A Linux bridge gets tc; four workers train
# 3. Ports change between XDP and tc while rounds go on
# 4. A worker without GRO
# 5. Others remove the interface and filters, or add their own
# 6. Others replace clsact by an ingress qdisc
# 7. The agent is killed; the next one takes over
# 8. A worker dies; the others end
# 9. The agent ends and leaves nothing
# 10. An ingress qdisc of others is there first

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

export SAINA_LAB_HOOK=auto

modes() {
	saina_jq port show '[.[].mode]|join(" ")'
}

# The interface that copies results of the job to its ports.
fanout_ifb() {
	ip -n "saina-$LAB-sw" -o link show type ifb | awk -F': ' '{ print $2 }'
}

copied_to() { # ports that it copies to
	in_switch tc filter show dev "$(fanout_ifb)" egress 2>/dev/null | sed -n 's/.*Mirror to device \(p[0-9]*\)).*/\1/p' | sort | xargs
}

copied_to_is() {
	[ "$(copied_to)" = "$1" ]
}

equal_relayed() { # PORT NUMBER: of its workers
	[ "$(saina_jq port show "$1" '.[0].relayed')" = "$2" ]
}

# 1. Open vSwitch's userspace datapath gets XDP
if with_bridge ovs && [ "${SAINA_LAB_DATAPATH:-netdev}" = netdev ]; then
	lab_up --workers 1 --bridge ovs
	equal "userspace datapath of Open vSwitch: auto is XDP" native "$(saina_jq port show p0 '.[0].mode')"
	matches "userspace datapath of Open vSwitch: the text says why" "userspace datapath" "$(saina_jq port show p0 '.[0].text')"
	matches "userspace datapath of Open vSwitch: hook tc is refused" "takes frames before tc" "$(saina port set p0 hook tc 2>&1)"
	equal "userspace datapath of Open vSwitch: the port is as it was" "native auto" "$(saina_jq port show p0 '.[0]|"\(.mode) \(.hook)"')"
	lab_down
fi

# 2. A Linux bridge gets tc; four workers train
expected_log='interface of its results was changed by others|tc filter was (removed|preceded) by others'
expected_log+='|ingress qdisc belongs to another program'
lab_up --workers 4 --bridge linux
equal "auto: all ports have tc" "tc tc tc tc" "$(modes)"
equal "no job: there is no interface for results" "" "$(fanout_ifb)"

job steady workers 4 elements 10007 payload 352 policy bsp
start_all steady 1000000 4 --elements 10007 --think-us 500
check "four workers: rounds flow" slowwait 30 rounds_at_least steady 20
equal "four workers: results are copied to the port of each" "p0 p1 p2 p3" "$(copied_to)"
equal "four workers: the interface for results has a description" 1 \
	"$(ip -n "saina-$LAB-sw" link show "$(fanout_ifb)" | grep -c "alias saina .*results of job")"
equal "four workers: no result is relayed" 0 "$(counter steady all relayed)"

# 3. Ports change between XDP and tc while rounds go on
none_slower() {
	[ "$(saina_jq port show '[.[].relayed]|add')" = 0 ]
}
for to in xdp auto; do
	for p in 0 1 2 3; do
		check "p$p to $to: it is done while rounds go on" saina port set p$p hook $to
		check "p$p to $to: rounds go on" rounds_go_on steady 20
	done
	equal "all ports to $to: the mode of each" \
		"$([ $to = xdp ] && echo native native native native || echo tc tc tc tc)" "$(modes)"
	[ $to = auto ] ||
		check "all ports to xdp: soon no result takes a slower way, without a worker joining again" \
			slowwait 10 none_slower
done
equal "all ports have tc again: no worker needs the relay" 0 "$(saina_jq port show '[.[].relayed]|add')"

# 4. A worker without GRO
# Without GRO a veth drops redirected frames.
in_worker 0 ethtool -K eth0 gro off >/dev/null
slower_said() {
	saina port show p0 | grep -q "slow path to 1 workers: redirected frames do not reach them"
}
check "a worker without GRO: its port changes to XDP" saina port set p0 hook xdp
check "a worker without GRO: port show says that its results take a slower way" slowwait 10 slower_said
check "a worker without GRO: rounds go on" rounds_go_on steady 20
in_worker 0 ethtool -K eth0 gro on >/dev/null
check "GRO on again: soon no result takes a slower way, but to those whose ports have tc" \
	slowwait 10 equal_relayed p0 0
check "GRO on again: the port changes back" saina port set p0 hook auto
check "GRO on again: rounds go on" rounds_go_on steady 20

# 5. Others remove the interface and filters, or add their own
in_switch ip link del "$(fanout_ifb)"
check "the interface for results is removed by others: there is a new one" slowwait 10 copied_to_is "p0 p1 p2 p3"
check "the interface for results is removed by others: rounds go on" rounds_go_on steady 20
in_switch tc qdisc del dev "$(fanout_ifb)" clsact
check "filters of the interface for results are removed by others: they are added again" slowwait 10 copied_to_is "p0 p1 p2 p3"
check "filters of the interface for results are removed by others: rounds go on" rounds_go_on steady 20
in_switch tc qdisc del dev p2 clsact 2>/dev/null
check "clsact of a port is removed by others: rounds go on" rounds_go_on steady 20
in_switch tc qdisc add dev p2 clsact 2>/dev/null
in_switch tc filter add dev p2 ingress pref 7 protocol ip u32 match u32 0 0 action mirred egress mirror dev p2 continue 2>/dev/null
check "a filter of others is behind ours: rounds go on" rounds_go_on steady 20
check "a filter of others: the port changes to XDP" saina port set p2 hook xdp
equal "a filter of others is left when ours goes" 1 "$(in_switch tc filter show dev p2 ingress | grep -c Mirror)"
check "a filter of others: the port changes back" saina port set p2 hook auto
check "a filter of others: rounds go on" rounds_go_on steady 20

# A bpf classifier on the same clsact, which passes everything to the bridge: no later one is asked.
bpf_of_others() {
	in_switch tc filter "$1" dev p2 ingress protocol all pref 1 handle 1 bpf bytecode '1,6 0 0 4294967295,' flowid 1:1
}
check "a bpf filter of others that ends classification: it is added" bpf_of_others add
check "a bpf filter of others that ends classification: rounds go on" rounds_go_on steady 20
check "a bpf filter of others that ends classification: the port changes to XDP" saina port set p2 hook xdp
check "a bpf filter of others that ends classification: the port changes back" saina port set p2 hook auto
equal "a bpf filter of others that ends classification: the port has tc" tc "$(saina_jq port show p2 '.[0].mode')"
check "a bpf filter of others that ends classification: rounds go on behind it" rounds_go_on steady 20
check "a bpf filter of others that ends classification: it is still there" \
	in_switch tc filter del dev p2 ingress protocol all pref 1 handle 1 bpf
check "a bpf filter of others is gone: rounds go on" rounds_go_on steady 20

# The same by tcx, where the kernel has that.
in_switch python3 "$NET_DIR/tcx.py" p2 >"$WORK/tcx" 2>&1 &
tcx=$!
check "a tcx program of others: it is attached, or this kernel has no tcx" slowwait 10 grep -qE 'ready|none' "$WORK/tcx"
check "a tcx program of others: rounds go on" rounds_go_on steady 20
check "a tcx program of others: the port changes to XDP" saina port set p2 hook xdp
check "a tcx program of others: the port changes back, before it" saina port set p2 hook auto
check "a tcx program of others: rounds go on behind it" rounds_go_on steady 20
kill $tcx 2>/dev/null
wait $tcx 2>/dev/null

# 6. Others replace clsact by an ingress qdisc
# Open vSwitch's policing and libvirt's bandwidth limits do so.
printf 'qdisc del dev p2 clsact\nqdisc add dev p2 ingress\n' | in_switch tc -force -batch - 2>/dev/null
check "an ingress qdisc of others comes: rounds go on" rounds_go_on steady 20
matches "an ingress qdisc of others comes: the port has tc, or XDP and says why" "^tc |^native XDP because.*ingress qdisc" \
	"$(saina_jq port show p2 '.[0]|"\(.mode) \(.text)"')"
in_switch tc qdisc del dev p2 ingress 2>/dev/null
check "an ingress qdisc of others goes: the port gets tc again" saina port set p2 hook tc
check "an ingress qdisc of others goes: the port has hook auto" saina port set p2 hook auto
check "an ingress qdisc of others goes: rounds go on" rounds_go_on steady 20

# 7. The agent is killed; the next one takes over
check "the agent is killed" lab agent kill
check "the next agent starts" lab agent start
equal "the next agent has all ports as they were" "tc tc tc tc" "$(modes)"
equal "the next agent has one interface for results" "p0 p1 p2 p3" "$(copied_to)"
check "the next agent: rounds go on" rounds_go_on steady 20

# 8. A worker dies; the others end
worker_kill 3
expected_log+='|worker 3 .* is dead'
saina worker set steady 3 state dead
check "a worker is dead: nothing is copied to its port" slowwait 30 copied_to_is "p0 p1 p2"
check "a worker is dead: rounds go on" rounds_go_on steady 20
stop_workers
check "all sums are exact" wait_all 30
check "all workers have the same results" same_results 0 1 2
no_fanout_ifb() {
	[ -z "$(fanout_ifb)" ]
}
check "the last worker left: there is no interface for results" slowwait 10 no_fanout_ifb

# 9. The agent ends and leaves nothing
nothing_left() { # at port p0, and of interfaces and pins
	in_switch tc filter show dev p0 ingress || echo "tc failed"
	ip -n "saina-$LAB-sw" -o link show type ifb || echo "ip failed"
	find "/run/saina-lab/$LAB/bpf" -mindepth 1 ! -name "*.debug" || echo "find failed"
}

in_switch tc qdisc del dev p2 clsact 2>/dev/null
check "the agent ends" lab agent stop
equal "the agent has ended: nothing of it is left" "" "$(nothing_left)"
equal "the agent has ended: no clsact of its own is left" "" "$(in_switch tc qdisc show dev p0 | grep clsact)"

# 10. An ingress qdisc of others is there first
# The ingress qdisc of others and our clsact exclude each other; a tcx link does not mind.
check "others have an ingress qdisc on a port" in_switch tc qdisc add dev p3 ingress
check "an ingress qdisc of others: the agent starts" lab agent start
if compgen -G "/run/saina-lab/$LAB/bpf/link-tc-*" >/dev/null; then
	equal "an ingress qdisc of others: auto is tc" tc "$(saina_jq port show p3 '.[0].mode')"
else
	matches "an ingress qdisc of others: auto is XDP and says why" "native XDP because.*ingress qdisc" \
		"$(saina_jq port show p3 '.[0]|"\(.mode) \(.text)"')"
	matches "an ingress qdisc of others: hook tc is refused with its name" "ingress qdisc belongs to another program" \
		"$(saina port set p3 hook tc 2>&1)"
fi
check "an ingress qdisc of others: the agent ends" lab agent stop
equal "an ingress qdisc of others is left" 1 "$(in_switch tc qdisc show dev p3 | grep -c ingress)"
finished
