#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# saina.ko is loaded and unloaded under a running sainad: the agent says so, and
# jobs go from one control plane to the other.
#
# In the test VM (selftests/in-vm); TAP.

here=$(dirname "$(readlink -f "$0")")
module=$SAINA_TEST_MODULE
# The agent begins with the jobs, on a bridge that needs no other module.
export SAINA_TEST_PLANE=agent SAINA_LAB_DATAPATH=netdev

# shellcheck source=../net/lib.sh
. "$here/../net/lib.sh"
plane=$AGENT_SOCKET	# whom the tool asks: this, or "kernel"

run=()			# ... and inside of what it runs

saina() {
	SAINA_CONTROL=$plane SAINA_CTL_SOCKET=$AGENT_SOCKET "${run[@]}" "$B/saina" -n "saina-$LAB-sw" "$@"
}

agent_said() { # ERE
	grep -qE "$1" "/run/saina-lab/$LAB/sainad.log"
}

not() {
	! "$@"
}

doctor_says() { # STATUS CHECK ERE
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

# A module built for another kernel, and for which.
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

# left_over JOB ID: a job in the kernel, and its worker alive, as of an agent that died
left_over() {
	sw /usr/bin/python3 - "$here" "$@" <<-'EOF'
		import socket, sys
		sys.path.insert(0, sys.argv[1])
		from family import Family
		f, name = Family(), sys.argv[2]
		f.do("job-new", {"job": {"name": name, "id": int(sys.argv[3]), "elements": 2003, "workers": 1}})
		f.do("worker-set", {"worker": {
		    "job-name": name, "id": 0, "name": "left", "ifindex": socket.if_nametoindex("p0"),
		    "ip": 0x0abe000a, "mac": b"\2\0\0\0\0\1", "udp-port": 5000, "session": 100}})
		state = f.do("worker-get", {"worker": {"job-name": name, "id": 0}})["worker"]["state"]
		sys.exit(state != 1)
	EOF
}

# What was asked of a job: not its numbers of generations and policies.
asked_of() { # JOB
	sj job show "$1" '.[0]|[.id,.name,.workers,.elements,.type,.payload,.pool,.ring,.exponent,
		.policy,.token,.heartbeat_ms,.dead_ms]|@json'
}

ports_are() { # MODE...
	[ "$(sj port show '[.[].mode]|join(" ")')" = "$*" ]
}

unplug() {
	lab port del 0 && lab port del 1 && until_true 20 ports_are
}

plug() {
	lab port add 0 && lab port add 1 && until_true 30 ports_are native native
}

train() { # JOB WHERE: five rounds of the two workers
	start_all "$1" 5 2 --elements 2003 --token secret
	check "two workers train, $2" wait_all 60
	check "with the same results" same_results 0 1
}

# --- the module comes, nobody trains ------------------------------------------------
expected_log='saina.ko was loaded|saina.ko is gone|control plane:|not attached|is dead'
lab_up --bridge linux --workers 2
job early workers 2 elements 2003 id 7 policy fastest:k=2 token secret
before=$(asked_of early)
check "the doctor: there is no module" doctor_says ok module 'saina.ko is not loaded: sainad is the control plane'
read -r other release < <(other_module)
this=$(uname -r)
run=(installed "$other" "$release/extra")
check "the doctor: there is one for another kernel" doctor_says warn module \
	"built for another kernel \\(${release//+/.}\\), not for this one \\(${this//+/.}\\).*dkms autoinstall -k ${this//+/.}"
run=(installed "$module" "$this/updates/dkms")
check "the doctor: it is installed, but not loaded" doctor_says ok module \
	'saina.ko is installed, but not loaded: sainad is the control plane.*modprobe saina'
check "what the doctor says, under an agent that is the control plane" \
	"${run[@]}" sh -c 'depmod && modprobe saina'
run=()
check "the agent says that the kernel is now" until_true 30 agent_said \
	'control plane: saina.ko in the kernel, as of now; 1 jobs'
plane=kernel
equal "its job is in the kernel, as it was asked for" "$before" "$(asked_of early)"
train early "in the kernel's job"
check "rmmod is refused: the program is on the ports" not rmmod saina
check "the doctor says why" doctor_says ok module 'rmmod is refused until sainad is stopped.*or no port is attached'

# --- the module goes ----------------------------------------------------------------
check "the ports are unplugged" unplug
check "the doctor: rmmod is possible now" doctor_says ok module 'no port is attached, so rmmod is possible'
check "now nothing holds the module" until_true 30 rmmod saina
check "the agent says that it is the control plane" until_true 20 agent_said \
	'saina.ko is gone; control plane: this agent, as of now, with its 1 jobs'
plane=$AGENT_SOCKET
equal "the job is the agent's again, as it was asked for" "$before" "$(asked_of early)"
check "the ports are plugged in" plug
train early "in the agent's job"

# --- the module comes while workers train ---------------------------------------------
start_all early 1000000 2 --elements 2003 --think-us 20000 --token secret --cancel
check "rounds flow" until_true 60 log_at_least 3
check "insmod while they train" insmod "$module"
check "the agent says that it stays the control plane" until_true 20 agent_said \
	'workers train under this sainad, which stays'
at=$(log_round)
check "rounds go on" until_true 60 log_at_least $((at + 3))
plane=kernel
equal "the kernel knows of no job" 0 "$(sj job show length)"
check "the doctor says where they are" doctor_says warn module 'sainad has the jobs: workers trained.*saina -s'
plane=$AGENT_SOCKET
check "the module can go" rmmod saina
check "the agent says that, too" until_true 20 agent_said 'saina.ko is gone again'
stop_workers
check "exact sums all the way" wait_all 60
lab_down

# --- control_plane = "kernel": the agent waits for the module ---------------------------
plane=kernel
expected_log='saina.ko was loaded|saina.ko is gone|control plane:|not attached|is dead'
check "insmod" insmod "$module"
lab_up --bridge linux --workers 2 --no-agent
check "a worker has been left in the kernel, alive" left_over before 20
check "an agent that is told to use the kernel" lab agent start --control-plane kernel
check "the worker of before is dead" until_true 20 worker_state_is before 0 dead
check "and the agent says why" agent_said 'job before: worker 0 \(left\) is dead: its rounds went with the data path'
check "its job is deleted" saina job del before
job late workers 2 elements 2003 id 9 policy fastest:k=1 token secret
before=$(asked_of late)
train late "in the kernel's job"
check "the ports are unplugged" unplug
check "rmmod" until_true 30 rmmod saina
check "the agent says that jobs stand still" until_true 20 agent_said 'jobs stand still until it is loaded again'
plane=$AGENT_SOCKET
check "changes are refused" not saina job set late policy fastest:k=2
matches "with what to do" 'is gone: load it again' "$(saina job set late policy fastest:k=2 2>&1)"
check "the doctor: sainad waits" doctor_says FAIL module 'sainad waits for saina.ko.*modprobe saina'
check "a port is plugged in" lab port add 0
check "but not attached" until_true 20 ports_are none
matches "and says why" 'is gone: load it again' "$(sj port show '.[].text')"
# Between the module's coming and the agent's hearing of it somebody else has been there.
read -r pid _ <"/run/saina-lab/$LAB/sainad.pid"
check "the agent sleeps" kill -STOP "$pid"
check "insmod" insmod "$module"
check "a worker has been left in the kernel, alive" left_over meanwhile 21
check "the agent wakes up" kill -CONT "$pid"
check "the agent says that it has the module back" until_true 30 agent_said \
	'saina.ko in the kernel, as of now; 1 jobs were handed to it'
plane=kernel
equal "the job is in the kernel again, as it was asked for" "$before" "$(asked_of late)"
check "the worker of before is dead" until_true 20 worker_state_is meanwhile 0 dead
check "and the agent says why" agent_said 'job meanwhile: worker 0 \(left\) is dead: its rounds went with the data path'
check "its job is deleted" saina job del meanwhile
check "the port is attached" until_true 30 ports_are native
check "the other port is plugged in" lab port add 1
check "and attached" until_true 30 ports_are native native
train late "in the kernel's job again"
check "the agent is stopped" lab agent stop
check "nothing holds the module" until_true 20 rmmod saina
lab_down

# --- killed under one control plane, started under the other ------------------------------
plane=$AGENT_SOCKET
expected_log='saina.ko|control plane|data path|is dead'
lab_up --bridge linux --workers 2
job moved workers 2 elements 2003 id 3 policy fastest:k=1 token secret
before=$(asked_of moved)
check "the agent is killed" lab agent kill
check "insmod while it is away" insmod "$module"
check "a new agent" lab agent start
plane=kernel
equal "has handed the job to the kernel" "$before" "$(asked_of moved)"
train moved "in the kernel's job"
check "the agent is stopped" lab agent stop
check "the doctor: the module is there, the agent is not" until_true 20 doctor_says warn module 'no XDP program uses it'
check "but one could" doctor_says ok program 'takes the XDP program that uses saina.ko'
check "nothing holds the module" until_true 20 rmmod saina

# --- a module that no program can use ---------------------------------------------------
check "a module without BTF" objcopy -R .BTF -R .BTF.base "$module" "$WORK/saina.ko"
check "can be loaded" insmod "$WORK/saina.ko"
check "the doctor says what it lacks" doctor_says FAIL module-btf 'built without BTF.*make module'
check "and that the program is refused" doctor_says FAIL program '.'
check "sainad does not start" not lab agent start
check "and says what to do" agent_said 'built with BTF\?.*control_plane = "agent", does without it'
check "with control_plane agent it does" lab agent start --control-plane agent
check "the doctor says so" doctor_says warn module 'control_plane is .agent.'
check "rmmod" rmmod saina
finished
