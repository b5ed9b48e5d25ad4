#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Any policy follows any other one while workers train: one job goes through all ordered pairs.
#
#     w0 .. w3: think for 5 ms a step, and now and then for longer
#
# 1. Four workers train; each policy follows each other one
# 2. The workers end: every model has all updates

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

lab_up --workers 4

policies=(bsp fastest:k=3 sfcd:k0=2 "timeout:8ms,kmin=2" "fastest:k=3,timeout=8ms,kmin=2" ssp:3 coded:s=1 asp
	external:k0=3 grouped:g=2)

# pair_order: prints indexes of policies, in an order that has each ordered pair once: from the
# first to each later one and back, the same from the second, and so on; at the end the first.
pair_order() {
	local i j
	for ((i = 0; i < ${#policies[@]}; i++)); do
		for ((j = i + 1; j < ${#policies[@]}; j++)); do
			echo $i $j
		done
	done
	echo 0
}

all_stopped() { # all workers are stopped, with all their threads
	local pid stat
	for pid in "${worker_pids[@]}"; do
		for stat in /proc/"$pid"/task/*/stat; do
			stat=$(<"$stat")
			[[ ${stat##*) } == T* ]] || return 1
		done
	done
}

# status: prints the policy that was set and the one in force, with their numbers, and whether the
# former waits, as the tool shows them.
# shellcheck disable=SC2016
status() {
	saina_jq job show swap '.[0]|. as $j|(.policy_next // {policy, seq: .policy_seq})|
		"\(.policy) \(.seq), in force \($j.policy_active) \($j.policy_active_seq), waits \(.seq != $j.policy_active_seq)"'
}

all_step() { # N: every worker has made so many steps since $marks were taken
	local i
	for i in 0 1 2 3; do
		[ "$(wc -l <"$WORK/$i.log")" -ge $((marks[i] + $1)) ] || return 1
	done
}

all_go_on() { # N
	local i marks=()
	for i in 0 1 2 3; do
		marks[i]=$(wc -l <"$WORK/$i.log")
	done
	slowwait 30 all_step "$1" && return
	for i in 0 1 2 3; do
		echo "worker $i: $(($(wc -l <"$WORK/$i.log") - marks[i])) of $1 steps"
	done
	dump_hang 0
	return 1
}

# swap POLICY: sets it while workers run; it comes into force, and every worker goes on.
swap() {
	local out
	out=$(saina policy set swap "$1" 2>&1) || { echo "not set: $out"; return 1; }
	seq=$((seq + 1))
	slowwait 30 in_force swap $seq || { echo "not in force: $(status)"; return 1; }
	all_go_on 3
}

# swap_while_stopped POLICY: the same while all workers are stopped: the policy waits until they go on.
swap_while_stopped() {
	local before output
	before=$(job_field swap policy_active)
	kill -STOP "${worker_pids[@]}"
	slowwait 20 all_stopped || { kill -CONT "${worker_pids[@]}"; echo "workers do not stop"; return 1; }
	saina policy set swap "$1"
	seq=$((seq + 1))
	output=$(status)
	kill -CONT "${worker_pids[@]}"
	[[ $output == "$1"*" $seq, in force $before $((seq - 1)), waits true" ]] || { echo "while it waits: $output"; return 1; }
	slowwait 30 in_force swap $seq || { echo "not in force: $(status)"; return 1; }
	output=$(status)
	[[ $output == "$1"*" $seq, in force $1"*" $seq, waits false" ]] || { echo "in force: $output"; return 1; }
	all_go_on 3
}

# 1. Four workers train; each policy follows each other one
# The ring is so long that three workers do not run through it while the fourth waits for a core.
job swap workers 4 elements 2048 payload 256 ring 64 policy bsp
events_start
start_all swap 0 4 --elements 2048 --steps --think-us 5000 --straggle 0.2
check "bsp: workers train" slowwait 20 rounds_at_least swap 5
seq=1 at='' pairs=0
for i in $(pair_order); do
	policy=${policies[i]}
	if [ -z "$at" ]; then
		:
	elif ((pairs++ < 2 * ${#policies[@]} - 3)); then	# from bsp, and back
		check "$at to $policy: the tool shows that it waits, and in force; every worker goes on" \
			swap_while_stopped "$policy" || break
	else
		check "$at to $policy: comes into force, every worker goes on" swap "$policy" || break
	fi
	at=$policy
done
equal "all ordered pairs had their turn" $((${#policies[@]} * (${#policies[@]} - 1))) $pairs
check "bsp: workers go on at the end" all_go_on 5
equal "no slot saw two policies" 0 "$(policy_mix swap)"

# 2. The workers end: every model has all updates
stop_workers
check "every model has all updates of all workers, once" wait_all 60
equal "all workers have the same model" "" "$(same_models 0 1 2 3)"
dropped=$(for i in 0 1 2 3; do summary $i dropped; done | paste -sd+)
check "some updates were dropped, and pushed again: $dropped" [ $((dropped)) -gt 0 ]
equal "no worker had to join again" "0 0 0 0" "$(for i in 0 1 2 3; do summary $i rejoins; done | xargs)"
events_stop
equal "monitor: one event is sent for each swap, in their order" "$(seq -s ' ' 2 $seq)" \
	"$(events 'select(.event=="policy" and .job=="swap" and .to>1)|.to' | xargs)"
finished
