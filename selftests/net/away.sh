#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The sentence of a worker that waits for another one, whose port keeps it away, on a Linux bridge
# and on Open vSwitch:
#
#     w0 .. w2 reduce; something happens to the port of w1
#
# 1. A job is forming: nobody can join by a port in another spanning-tree state, or that is policed
# 2. The port of a worker does not forward
# 3. The port of a worker is policed
# 4. The port of a worker is isolated

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=bridge_lib.sh
. "$(dirname "$0")/bridge_lib.sh"

expected_log="worker 1 \(.* is alive, but its port p1 is"

said() { # ERE: worker 0 has said it
	grep -Eq "$1" "$WORK/0.err"
}

job_says() { # ERE
	saina job show away | grep -Eq "$1"
}

job_names_no_port() {
	local shown
	shown=$(saina job show away) && [[ $shown == *away:* && $shown != *"port p1"* ]]
}

# away WHAT ERE: worker 0 waits for worker 1, and says why
away() {
	check "$1: job show says what keeps the worker away" slowwait 20 job_says "$2"
	check "$1: so does the worker that waits" slowwait 30 said "waiting for round [0-9]*: rank 1 is missing: worker 1 .*$2"
}

away_linux() {
	# 1. A job is forming: nobody can join by a port in another spanning-tree state
	lab_up --workers 3 --bridge linux --hook tc
	job away workers 3 elements 4096 payload 256 policy bsp heartbeat 50 dead 60000
	in_switch bridge link set dev p1 state 1 || bail "no spanning-tree state"
	start 0 away 1000000 --elements 4096 --think-us 2000
	check "forming, a port that listens: the worker that waits says so" slowwait 20 said \
		"ranks 1, 2 are missing: port p1 is in spanning-tree state listening: \`bridge link set dev p1 state 3\`"
	check "forming, a port that listens: job show says so" slowwait 20 job_says "port p1 is in spanning-tree state listening"
	in_switch bridge link set dev p1 state 3
	start 1 away 1000000 --elements 4096 --think-us 2000
	start 2 away 1000000 --elements 4096 --think-us 2000
	check "three workers: rounds flow" slowwait 20 rounds_at_least away 10

	# 2. The port of a worker does not forward.  The program gets gradients before the bridge does, so
	# the worker itself has to stop
	in_switch bridge link set dev p1 state 2
	kill -STOP "${worker_pids[1]}"
	away "a port that learns" "port p1 is in spanning-tree state learning: \`bridge link set dev p1 state 3\`"
	in_switch bridge link set dev p1 state 3
	kill -CONT "${worker_pids[1]}"
	check "the port forwards again: rounds go on" rounds_go_on away 10

	# 4. The port of a worker is isolated
	in_switch bridge link set dev p1 isolated on
	kill -STOP "${worker_pids[1]}"
	away "an isolated port" "port p1 is isolated, it reaches no other isolated port .*: \`bridge link set dev p1 isolated off\`"
	kill -CONT "${worker_pids[1]}"
	check "the worker goes on: rounds go on" rounds_go_on away 10
	check "the worker goes on: job show names no port" slowwait 20 job_names_no_port
	stop_workers
	lab_down
}

away_policed() {
	# 1. A job is forming: nobody can join by a port that is policed
	lab_up --workers 2 --bridge linux --hook tc
	job away workers 2 elements 4096 payload 256 policy bsp heartbeat 50 dead 600000
	# behind the program, which passes JOINs on
	in_switch tc filter add dev p1 ingress prio 2 protocol all u32 match u32 0 0 action police rate 8bit burst 1 drop ||
		bail "no policing"
	start_all away 1000000 2 --elements 4096 --think-us 2000
	check "forming, a policed port: the worker that waits says so" slowwait 20 said \
		"rank 1 is missing: port p1 is policed, .*: \`tc filter show dev p1 ingress\`"
	in_switch tc filter del dev p1 ingress prio 2 protocol all u32
	check "the port is not policed any more: rounds flow" slowwait 20 rounds_at_least away 10
	stop_workers
	lab_down
}

away_ovs() {
	# 3. The port of a worker is policed
	lab_up --workers 2 --bridge ovs
	job away workers 2 elements 4096 payload 256 policy bsp heartbeat 50 dead 60000
	start_all away 1000000 2 --elements 4096 --think-us 2000
	check "Open vSwitch: rounds flow" slowwait 20 rounds_at_least away 10
	lab_vsctl set interface p1 ingress_policing_rate=5000 || bail "no policing"
	kill -STOP "${worker_pids[1]}"
	away "Open vSwitch, a policed port" "port p1 is policed to 5000 kbit/s, .*: ovs-vsctl set interface p1 ingress_policing_rate=0"
	kill -CONT "${worker_pids[1]}"
	check "Open vSwitch: rounds go on" rounds_go_on away 10
	stop_workers
	lab_down
}

case ${1-} in
policed)
	away_policed ;;
*)
	away_linux
	if with_bridge ovs; then
		away_ovs
	fi ;;
esac
finished
