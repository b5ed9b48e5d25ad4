#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The kernel's control plane and the agent: jobs are configured in saina.ko by
# `saina` over netlink; sainad serves them, is killed and starts again.
#
#     switch: saina.ko, sainad, br0 --- w0, w1, w2
#
# In the test VM (selftests/in-vm); TAP.
#
# 1. Jobs in the kernel
# 2. The payload of jobs that do not say: the tool asks the agent for its ports
# 3. The agent is killed, k is set in the kernel
# 4. The agent is stopped, saina.ko is unloaded

here=$(dirname "$(readlink -f "$0")")
module=$SAINA_TEST_MODULE

# shellcheck source=../net/lib.sh
. "$here/../net/lib.sh"
socket=$AGENT_SOCKET

agent_log() {
	cat "/run/saina-lab/$LAB/sainad.log"
}

agent_logged() { # ERE
	agent_log | grep -qE "$1"
}

last_k() { # of worker 0
	[ "$(last_field 0 k)" = "$1" ]
}

doctor_reports() { # STATUS ERE
	saina -j doctor 2>/dev/null | jq -r '.[]|select(.check=="module")|.status + ": " + .found + " " + .fix' |
		tee "$WORK/doctor" | grep -qE "^ *$1 *: .*$2" || { cat "$WORK/doctor"; return 1; }
}

default_payload() { # WHERE ELEMENTS [saina job add's words]: of a job that does not say
	saina job add usual workers 3 elements 64 "${@:3}" >/dev/null && job_field usual payload >"$WORK/payload"
	saina job del usual
	equal "payload: $2 elements are the default of a job in the kernel, $1" "$2" "$(cat "$WORK/payload")"
}

ports_mtu() { # MTU: of all ports of the switch; waits until the agent knows
	local i words=()
	for i in 0 1 2; do
		words+=(-- set interface "p$i" "mtu_request=$1")
	done
	in_switch ovs-vsctl --db="unix:/run/saina-lab/$LAB/db.sock" "${words[@]}" || return
	slowwait 20 agent_mtu "$1"
}

agent_mtu() {
	[ "$(saina_jq port show '[.[].mtu]|unique|join(" ")')" = "$1" ]
}

# 1. Jobs in the kernel
expected_log='^$'
check "backend: saina.ko is loaded" insmod "$module"
lab_up --workers 3
check "backend: the agent says that saina.ko is the control plane" agent_logged 'control plane: saina.ko'
job bsp workers 3 elements 2003
start_all bsp 5 3 --elements 2003
verify_sums "backend: a job configured in the kernel" 60 0 1 2
equal "backend: a job configured in the kernel: five rounds, all three workers in each" "5 30 0 3 3" \
	"$(summary 0 rounds exact unverified) $(minmax 0 count_min count_max)"
equal "backend: the agent answers for counters" 30 "$(saina_jq stats show bsp 0 '[.[].counters|.stored + .added]|add' 2>/dev/null || echo none)"
equal "backend: the agent answers for ports" 3 "$(saina_jq port show length)"
equal "agent's socket: the job of the kernel is shown" bsp \
	"$("$B/saina" -j -s "$socket" job show | jq -r '.[].name')"
check "agent's socket: the job of the kernel can be changed" "$B/saina" -s "$socket" job set bsp policy fastest:k=2
equal "agent's socket: the change is in the kernel" fastest:k=2 "$(job_field bsp policy | cut -d, -f1)"
check "agent's socket: a wrong change is refused" not "$B/saina" -s "$socket" job set bsp policy fastest:k=4
check "backend: a job is deleted in the kernel" saina job del bsp
equal "agent's socket: a job deleted in the kernel is gone" 0 "$("$B/saina" -j -s "$socket" job show | jq length)"

# 2. The payload of jobs that do not say: the tool asks the agent for its ports
default_payload "MTU 1500" 352
check "payload: the ports get an MTU of 9000" ports_mtu 9000
default_payload "MTU 9000" 2048
default_payload "MTU 9000, payload 64 asked for" 64 payload 64
check "payload: the ports get an MTU of 1450" ports_mtu 1450
default_payload "MTU 1450" 256
default_payload "MTU 1450, bfloat16" 352 type bfloat16
check "payload: the ports get an MTU of 1500 again" ports_mtu 1500

# 3. The agent is killed, k is set in the kernel
job steady workers 3 elements 4096 policy fastest:k=3 heartbeat 100 dead 60000
start_all steady 1000000 3 --elements 4096 --think-us 20000 --cancel
check "three workers: rounds flow" slowwait 60 log_at_least 3 || bail "no rounds"
check "rmmod: is refused while the XDP program is attached" not rmmod saina
check "doctor: says why rmmod is refused" doctor_reports ok 'rmmod is refused until sainad is stopped'
generation=$(job_field steady generation)
check "killed: the agent is killed" lab agent kill
check "killed: rounds go on without an agent" log_goes_on 3
equal "killed: k has been 3 in every round" 3 "$(field 0 k | sort -u | xargs)"
check "killed: without an agent another k is set in the kernel" saina job set steady policy fastest:k=2
check "killed: without an agent another k comes into force" slowwait 60 last_k 2
check "killed: rounds go on with another k" log_goes_on 3
check "killed: the kernel shows the k of the data path" slowwait 10 k_is steady 2
check "killed: a new agent starts" lab agent start
equal "killed: the new agent has the same incarnation of the job" "$generation" "$(job_field steady generation)"
equal "killed: all three workers are still members" 3 "$(members steady)"
check "killed: rounds go on with the new agent" log_goes_on 3
stop_workers
verify_sums "killed" 60 0 1 2
equal "killed: no slot saw two policies" 0 \
	"$(policy_mix steady)"

# 4. The agent is stopped, saina.ko is unloaded
check "stopped: the agent is stopped" lab agent stop
equal "stopped: the job is still in the kernel" steady "$(job_field steady name)"
default_payload "no agent" 352
check "doctor: says that no BPF program uses saina.ko" doctor_reports warn 'no BPF program uses it'
check "stopped: saina.ko is unloaded" slowwait 20 rmmod saina
finished
