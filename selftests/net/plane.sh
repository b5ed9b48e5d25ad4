#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What the other tests here are said to run on is what they run on: the datapath of
# Open vSwitch (SAINA_LAB_DATAPATH) and who has the jobs (SAINA_TEST_PLANE).
#
#     w0 <--- ping ---> w1      w0, w1 reduce

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

dpctl() {
	ovs-appctl -t "/run/saina-lab/$LAB/ovs/vswitchd.ctl" "dpctl/$1"
}

# Frames that the datapath has looked at.
looked_at() {
	local re='lookups: hit:([0-9]+) missed:([0-9]+)'
	[[ "$(dpctl show)" =~ $re ]] && echo $((BASH_REMATCH[1] + BASH_REMATCH[2]))
}

looked_at_more() { # THAN
	[ "$(looked_at)" -gt "$1" ]
}

pings() {
	w 0 ping -c 3 -i 0.02 -W 5 -q 10.190.0.11
}

program_id() {
	ip -n "saina-$LAB-sw" -j link show p0 | jq '.[0].xdp.prog.id'
}

lab_up --workers 2
datapath=${SAINA_LAB_DATAPATH:-netdev}
said=$(dpctl show)
matches "Open vSwitch has the $datapath datapath" "^$datapath@" "$said"
matches "both ports are in it" "p0.*p1|p1.*p0" "$(tr '\n' ' ' <<<"$said")"
if [ "$datapath" = system ]; then
	check "the kernel's module is loaded" [ -d /sys/module/openvswitch ]
	equal "the port belongs to it" "ovs-system" \
		"$(ip -n "saina-$LAB-sw" -j link show p0 | jq -r '.[0].master')"
fi
before=$(looked_at)
check "workers reach each other" pings
check "through it" until_true 10 looked_at_more "$before"

program=$(bpftool prog dump xlated id "$(program_id)" | grep -c 'call saina_xdp_job')
log=$(cat "/run/saina-lab/$LAB/sainad.log")
if [ "$PLANE" = kernel ]; then
	matches "the agent leaves the jobs to saina.ko" "control plane: saina.ko in the kernel" "$log"
	check "the program on the port asks it ($program calls)" [ "$program" -gt 0 ]
	check "and holds it" [ "$(cat /sys/module/saina/refcnt)" -gt 0 ]
else
	matches "the agent has the jobs" "control plane: this agent" "$log"
	equal "the program on the port asks no module" 0 "$program"
fi
job one workers 2 elements 3000
equal "a job is where it is to be" one "$(job_field one name)"
equal "and at the agent" one "$(json_value name "$(agent_says -j job show one)")"
start_all one 5 2 --elements 3000
check "exact sums" wait_all 60
check "the same results everywhere" same_results 0 1
finished
