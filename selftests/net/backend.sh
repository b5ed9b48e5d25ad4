#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The variables that choose what the other tests run on do so: the datapath of Open vSwitch
# (SAINA_LAB_DATAPATH) and the backend (SAINA_TEST_BACKEND).
#
#     w0 <--- ping ---> w1      w0, w1 reduce
#
# 1. The datapath of Open vSwitch
# 2. Agent or kernel has the jobs
# 3. Two workers train

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
	in_worker 0 ping -c 3 -i 0.02 -W 5 -q 10.190.0.11
}

program_id() {
	ip -n "saina-$LAB-sw" -j link show p0 | jq '.[0].xdp.prog.id'
}

# 1. The datapath of Open vSwitch
lab_up --workers 2 --hook xdp
datapath=${SAINA_LAB_DATAPATH:-netdev}
output=$(dpctl show)
matches "backend: Open vSwitch has the $datapath datapath" "^$datapath@" "$output"
matches "backend: the $datapath datapath has both ports" "p0.*p1|p1.*p0" "$(tr '\n' ' ' <<<"$output")"
if [ "$datapath" = system ]; then
	check "backend: openvswitch.ko is loaded" [ -d /sys/module/openvswitch ]
	equal "backend: the port belongs to openvswitch.ko" "ovs-system" \
		"$(ip -n "saina-$LAB-sw" -j link show p0 | jq -r '.[0].master')"
fi
before=$(looked_at)
check "backend: w0 pings w1" pings
check "backend: the $datapath datapath has seen the frames" slowwait 10 looked_at_more "$before"

# 2. Agent or kernel has the jobs
bpftool prog dump xlated id "$(program_id)" >"$WORK/xlated"
check "backend: the XDP program can be dumped" [ -s "$WORK/xlated" ]
program=$(grep -c 'call saina_xdp_job' "$WORK/xlated")
log=$(cat "/run/saina-lab/$LAB/sainad.log")
if [ "$BACKEND" = kernel ]; then
	matches "backend: the agent says that saina.ko has the jobs" "control plane: saina.ko in the kernel" "$log"
	check "backend: the XDP program calls saina.ko ($program calls)" [ "$program" -gt 0 ]
	check "backend: the XDP program holds a reference to saina.ko" [ "$(cat /sys/module/saina/refcnt)" -gt 0 ]
else
	matches "backend: the agent says that it has the jobs" "control plane: this agent" "$log"
	equal "backend: the XDP program calls no module" 0 "$program"
fi

# 3. Two workers train
job one workers 2 elements 3000
equal "backend: a job is shown by the control plane that has it" one "$(job_field one name)"
equal "backend: a job is shown by the agent" one "$(json_value name "$(agent_saina -j job show one)")"
start_all one 5 2 --elements 3000
verify_sums "backend" 60 0 1
finished
