#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# saina.ko is loaded before, under and after sainad, which chooses its control plane
# once, at start; what saina and saina doctor say of it.
#
#     switch: sainad, before and after saina.ko is loaded, br0 (Linux bridge) --- w0, w1
#
# In the test VM (selftests/in-vm); TAP.
#
# 1. The module is loaded under sainad
# 2. sainad is killed and started: jobs that run stay where they are
# 3. The module stays for as long as it is used
# 4. control_plane = "kernel"
# 5. A module that no program can use

here=$(dirname "$(readlink -f "$0")")
module=$SAINA_TEST_MODULE
# The agent begins with the jobs, on a bridge that needs no other module.
export SAINA_TEST_BACKEND=agent SAINA_LAB_DATAPATH=netdev

# shellcheck source=../net/lib.sh
. "$here/../net/lib.sh"
backend=$AGENT_SOCKET	# what the tool asks: the agent at this socket, or "kernel"
run=()			# a command that runs the tool, such as installed()

saina() {
	SAINA_CONTROL=$backend SAINA_CTL_SOCKET=$AGENT_SOCKET "${run[@]}" "$B/saina" -n "saina-$LAB-sw" "$@"
}

agent_logged() { # ERE
	grep -qE "$1" "/run/saina-lab/$LAB/sainad.log"
}

doctor_reports() { # STATUS CHECK ERE
	saina doctor >"$WORK/doctor" 2>&1
	grep -A1 -E "^$1 +$2 " "$WORK/doctor" | tr '\n' ' ' | grep -qE "$3" || {
		grep -A1 -E "^[a-zA-Z]+ +(module|program)" "$WORK/doctor"
		return 1
	}
}

# installed MODULE DIRECTORY COMMAND...: COMMAND, where that is the only module there is
installed() {
	# shellcheck disable=SC2016
	unshare -m sh -c 'mount -t tmpfs saina /lib/modules && mkdir -p "/lib/modules/$2" &&
		cp "$1" "/lib/modules/$2/saina.ko" && shift 2 && exec "$@"' sh "$@"
}

# Prints a module that is built for another kernel, and that kernel's release.
other_module() {
	local ko release
	for ko in "$B"/module/*/saina.ko; do
		release=$(modinfo -F vermagic "$ko" 2>/dev/null)
		release=${release%% *}
		[ -z "$release" ] || [ "$release" = "$(uname -r)" ] || break
		ko=$module release=6.0.0-another
	done
	echo "$ko $release"
}

# left_over JOB ID: makes a job with a live worker in the kernel, as an agent that died leaves it
left_over() {
	in_switch /usr/bin/python3 - "$here/../kselftest" "$@" <<-'EOF'
		import socket, sys
		sys.path.insert(0, sys.argv[1])
		from family import Family
		f, name = Family(), sys.argv[2]
		f.do("job-new", {"name": name, "id": int(sys.argv[3]), "elements": 2003, "workers": 1})
		f.do("worker-set", {
		    "job-name": name, "id": 0, "name": "left", "ifindex": socket.if_nametoindex("p0"),
		    "ip": 0x0abe000a, "mac": b"\2\0\0\0\0\1", "udp-port": 5000, "session": 100})
		state = f.do("worker-get", {"job-name": name, "id": 0})["state"]
		sys.exit(state != 1)
	EOF
}

# The attributes with which a job was made, without its generation and its policy number.
asked_of() { # JOB
	saina_jq job show "$1" '.[0]|[.id,.name,.workers,.elements,.type,.payload,.pool,.ring,.exponent,
		.policy,.token,.heartbeat_ms,.dead_ms]|@json'
}

ports_are() { # MODE...
	[ "$(saina_jq port show '[.[].mode]|join(" ")')" = "$*" ]
}

unplug() {
	lab port del 0 && lab port del 1 && slowwait 20 ports_are
}

# The tool as users run it: it finds out by itself whether to ask the agent or the kernel.
any_saina() {
	mkdir -p /run/saina
	ln -sfn "$AGENT_SOCKET" /run/saina/control
	env -u SAINA_CONTROL -u SAINA_CTL_SOCKET "$B/saina" -n "saina-$LAB-sw" "$@"
}

train() { # JOB WHAT: five rounds of the two workers
	start_all "$1" 5 2 --elements 2003 --token secret
	check "$2: two workers train, all sums are exact" wait_all 60
	check "$2: both workers have the same results" same_results 0 1
}

# 1. The module is loaded under sainad
expected_log='saina.ko is loaded, but not used|is dead|jobs are moved from'
lab_up --bridge linux --workers 2 --hook xdp
job early workers 2 elements 2003 id 7 policy fastest:k=2 token secret
before=$(asked_of early)
check "doctor: says that no module is loaded" doctor_reports ok module 'saina.ko is not loaded: sainad is the control plane'
read -r other release < <(other_module)
this=$(uname -r)
run=(installed "$other" "$release/extra")
check "doctor: warns of a module for another kernel" doctor_reports warn module \
	"built for another kernel \\(${release//+/.}\\), not for this one \\(${this//+/.}\\).*dkms autoinstall -k ${this//+/.}"
run=(installed "$module" "$this/updates/dkms")
check "doctor: says that the module is installed, but not loaded" doctor_reports ok module \
	'saina.ko is installed, but not loaded: sainad is the control plane.*modprobe saina'
check "doctor: the command that it recommends loads the module" \
	"${run[@]}" sh -c 'depmod && modprobe saina'
run=()
start_all early 1000000 2 --elements 2003 --think-us 20000 --token secret --cancel
check "loaded under sainad: rounds flow in the agent's job" slowwait 60 log_at_least 3
backend=kernel
equal "loaded under sainad: the kernel has no job" 0 "$(saina_jq job show length)"
equal "loaded under sainad: saina shows the job of the agent" early "$(any_saina -j job show 2>"$WORK/note" | jq -r '.[].name')"
matches "loaded under sainad: saina notes that the module is not in use" 'saina.ko is loaded, but not in use' "$(cat "$WORK/note")"
check "doctor: warns that the loaded module is not in use" doctor_reports warn module 'saina.ko is loaded, but not in use: sainad at .* has the jobs'
backend=$AGENT_SOCKET

# 2. sainad is killed and started: jobs that run stay where they are
check "agent killed, job runs: the agent is killed" lab agent kill
check "agent killed, job runs: a new agent starts" lab agent start
check "agent killed, job runs: the new agent says that it does not use the module" agent_logged 'saina.ko is loaded, but not used: jobs of this agent are running'
check "agent killed, job runs: rounds go on in the agent's job" log_goes_on 3
stop_workers
check "agent killed, job runs: all sums over both agents are exact" wait_all 60
has_no_workers() {
	[ "$(job_field early state)" = forming ]
}
check "agent killed, no workers: both have left" slowwait 60 has_no_workers
check "agent killed, no workers: the agent is killed" lab agent kill
check "agent killed, no workers: a new agent starts" lab agent start
check "agent killed, no workers: the new agent uses the kernel" agent_logged 'control plane: saina.ko in the kernel'
backend=kernel
equal "agent killed, no workers: the kernel has the job with all its attributes" "$before" "$(asked_of early)"
equal "agent killed, no workers: saina shows the kernel's job without a note" "early " \
	"$(any_saina -j job show 2>"$WORK/note" | jq -r '.[].name') $(cat "$WORK/note")"
train early "a job moved to the kernel"

# 3. The module stays for as long as it is used
check "rmmod is refused with ports attached" not rmmod saina
check "both ports are removed" unplug
check "rmmod is refused without ports while sainad runs" not rmmod saina
check "doctor: says that rmmod is refused until sainad is stopped" doctor_reports ok module 'rmmod is refused until sainad is stopped'
check "a port is added" lab port add 0
check "an added port has native XDP" slowwait 30 ports_are native
check "the agent is killed while the kernel has the job" lab agent kill
check "rmmod is refused while the program is pinned" not rmmod saina
check "--control-plane agent: the agent starts" lab agent start --control-plane agent
backend=$AGENT_SOCKET
equal "--control-plane agent: the agent has the job with all its attributes" "$before" "$(asked_of early)"
check "--control-plane agent: the port has native XDP" slowwait 30 ports_are native
check "--control-plane agent: the agent is stopped" lab agent stop
check "rmmod succeeds after the agent is stopped" slowwait 20 rmmod saina
lab_down

# 4. control_plane = "kernel"
backend=kernel
expected_log='control plane|saina.ko|is dead|data path'
lab_up --bridge linux --workers 2 --hook xdp --no-agent
check "--control-plane kernel: the agent does not start without the module" not lab agent start --control-plane kernel
check "--control-plane kernel: the agent says that the module is not loaded" agent_logged 'saina.ko is not loaded'
check "--control-plane kernel: saina.ko is loaded" insmod "$module"
check "--control-plane kernel: the kernel has a job with a live worker, without an agent" left_over before 20
check "--control-plane kernel: the agent starts" lab agent start --control-plane kernel
check "--control-plane kernel: the worker found in the kernel is declared dead" slowwait 20 worker_state_is before 0 dead
check "--control-plane kernel: the agent says why the worker is dead" agent_logged 'job before: worker 0 \(left\) is dead: its rounds were lost with the data path'
check "--control-plane kernel: the job of the dead worker is deleted" saina job del before
job late workers 2 elements 2003 id 9 policy fastest:k=1 token secret
train late "a job made in the kernel"
check "--control-plane kernel: the agent is stopped" lab agent stop
check "doctor: warns of a module without an agent" slowwait 20 doctor_reports warn module 'no BPF program uses it'
check "doctor: says that the kernel accepts the program that uses the module" doctor_reports ok program 'accepts the XDP program that uses saina.ko'
check "rmmod succeeds without an agent" slowwait 20 rmmod saina

# 5. A module that no program can use
check "module without BTF: it is made" objcopy -R .BTF -R .BTF.base "$module" "$WORK/saina.ko"
check "module without BTF: it is loaded" insmod "$WORK/saina.ko"
check "module without BTF: the doctor says that BTF is missing" doctor_reports warn module-btf 'built without BTF.*make module'
check "module without BTF: sainad starts, and has the jobs itself" lab agent start
check "module without BTF: sainad says that the module is not used" agent_logged 'saina.ko is loaded, but not used: it was built without BTF'
check "module without BTF: that agent ends" lab agent stop
check "module without BTF: sainad does not start with --control-plane kernel" not lab agent start --control-plane kernel
check "module without BTF: sainad says what to do" agent_logged 'has BTF, or start sainad without it .control_plane = "agent".'
check "module without BTF: sainad starts with --control-plane agent" lab agent start --control-plane agent
check "doctor: warns that control_plane is agent" doctor_reports warn module 'control_plane is .agent.'
check "module without BTF: rmmod succeeds" rmmod saina
finished
