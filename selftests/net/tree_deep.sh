#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A job across hosts at three levels, with nodes and a worker at one aggregator.
#
#     root: $LAB (10.190.0.1) -- host a: $LAB.a (10.190.1.1) -- host b: $LAB.a.b (10.191.16.1) -- 2 workers
#                             |                              -- host c: $LAB.a.c (10.191.17.1) -- 2 workers
#                             |                              -- 1 worker
#                             -- host d: $LAB.d (10.190.2.1) -- 2 workers
#
# 1. sums of integers, means of floats
# 2. relays and agents are killed, at each level
# 3. a host in the middle is dead, and comes back: those below it begin anew
# 4. jobs that would be above each other
# 5. messages are lost at two levels
#
#	tree_deep.sh [quick]	quick: only 1

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tree_lib.sh
. "$(dirname "$0")/tree_lib.sh"

quick=${1-}
BELOW=("$LAB.a" "$LAB.d" "$LAB.a.b" "$LAB.a.c")
ALL=7

# In the place of tree_lib.sh's.
lab_down() {
	local i
	tree_complaints
	for ((i = ${#BELOW[@]} - 1; i >= 0; i--)); do
		"$LAB_TOOL" down "${BELOW[i]}" || not_ok "a lab could be taken down"
	done
	"$LAB_TOOL" down "$LAB" || not_ok "the root's lab could be taken down"
}

up() { # LAB WORKERS [OPTIONS]
	"$LAB_TOOL" up "$1" --owner $$ --bridge linux --workers "${@:2}" || bail "lab $1 did not come up"
}

at() { # LAB WORDS...
	"$B/saina" -s "/run/saina-lab/$1/control" "${@:2}"
}

add() { # LAB WORDS...: a job
	local out
	out=$(at "$1" job add "${@:2}" dead $((${dead:-15000} * SLOW)) 2>&1) || bail "no job at $1: $out"
}

jobs_add() { # NAME ELEMENTS
	add "$LAB" "$1" elements "$2" workers 2 weights 5,2
	add "$LAB.a" "$1" elements "$2" workers 3 weights 2,2,1 uplink 10.190.0.1 parent-job "$1" parent-worker 0
	add "$LAB.d" "$1" elements "$2" workers 2 uplink 10.190.0.1 parent-job "$1" parent-worker 1
	add "$LAB.a.b" "$1" elements "$2" workers 2 uplink 10.190.1.1 parent-job "$1" parent-worker 0
	add "$LAB.a.c" "$1" elements "$2" workers 2 uplink 10.190.1.1 parent-job "$1" parent-worker 1
}

# a_worker LAB ADDRESS NUMBER RANK JOB ELEMENTS ROUNDS TYPE
a_worker() {
	nsenter --net="/run/netns/saina-$1-w$3" -- "$B/selftests/tree_worker" "$2" "$5" "$3" "$4" $ALL "${@:6:3}" \
		"$WORK/log.$4" 1 >"$WORK/out.$4" 2>"$WORK/$4.err" </dev/null &
	worker_pids[$4]=$!
}

below_a() { # JOB ELEMENTS ROUNDS TYPE
	a_worker "$LAB.a.b" 10.191.16.1 0 0 "$@"
	a_worker "$LAB.a.b" 10.191.16.1 1 1 "$@"
	a_worker "$LAB.a.c" 10.191.17.1 0 2 "$@"
	a_worker "$LAB.a.c" 10.191.17.1 1 3 "$@"
}

workers() { # JOB ELEMENTS ROUNDS TYPE
	rm -f "$WORK"/out.* "$WORK"/log.*
	below_a "$@"
	a_worker "$LAB.a" 10.190.1.1 2 4 "$@"
	a_worker "$LAB.d" 10.190.2.1 0 5 "$@"
	a_worker "$LAB.d" 10.190.2.1 1 6 "$@"
}

lab_all() { # [OPTIONS of the root's lab and host a's]
	up "$LAB" 2 "$@"
	up "$LAB.a" 3 --inside "$LAB:0" "$@"
	up "$LAB.d" 2 --inside "$LAB:1"
	up "$LAB.a.b" 2 --inside "$LAB.a:0"
	up "$LAB.a.c" 2 --inside "$LAB.a:1"
}

# 1.
lab_all
jobs_add ints 20000
workers ints 20000 20 int32
check "int32: all workers end" wait_all 120
tree_exact "int32" $ALL 20000 20
jobs_add floats 20000
workers floats 20000 20 float32
check "float32: all workers end" wait_all 120
equal "float32: the means are those of one aggregator, bit for bit" "$(tree_flat $ALL float32 20000 20)" "$(tree_field crc)"
equal "host b, two levels down, has its place in the tree" "7 0 2" \
	"$(at "$LAB.a.b" -j job show floats | jq -r '.[0].uplink | "\(.tree_workers) \(.rank) \(.depth)"')"

# 2.
a_round() { # RANK: its last
	tail -n 1 "$WORK/log.$1" 2>/dev/null | cut -d' ' -f1
}
at_least() { # RANK ROUND
	local round
	round=$(a_round "$1")
	[ "${round:--1}" -ge "$2" ]
}
goes_on() { # WHAT
	local rank from=()
	for ((rank = 0; rank < ALL; rank++)); do
		from[rank]=$(a_round "$rank")
	done
	for ((rank = 0; rank < ALL; rank++)); do
		check "$1: rounds of rank $rank go on" slowwait 60 at_least "$rank" $((${from[rank]:-0} + 20))
	done
}
[ "$quick" != quick ] || { lab_down; finished; exit; }
expected_log="saina-uplink|the data path is gone"
jobs_add kill 20000
workers kill 20000 1000000 int32
goes_on "begin"
for ns in "$LAB-w0" "$LAB-w1" "$LAB.a-w0" "$LAB.a-w1"; do
	kill -KILL "$(relay_in "$ns")"
	goes_on "relay in $ns killed"
done
for lab in "$LAB" "$LAB.a" "$LAB.a.b"; do
	"$LAB_TOOL" agent "$lab" kill
	sleep 6
	goes_on "agent of $lab killed"
	"$LAB_TOOL" agent "$lab" start
	goes_on "agent of $lab back"
done
kill -TERM "${worker_pids[@]}"
check "kills: all workers end" wait_all 60
equal "kills: no sum is wrong" 0 "$(tree_sum wrong)"
# the last round of those that end first
check "kills: none lacks a worker before the workers end" [ "$(tree_sum some)" -le $((2 * ALL * 2500)) ]

# 3.
is_forming() { # LAB JOB
	[ "$(at "$1" -j job show "$2" | jq -r '.[0].state')" = forming ]
}
expected_log='saina-uplink|is dead: silent for|no node is live, and round'
dead=5000 jobs_add host 20000
workers host 20000 1000000 int32
goes_on "before a host dies"
"$LAB_TOOL" agent "$LAB.a" kill
kill -KILL "$(relay_in "$LAB-w0")" "${worker_pids[4]}"
wait "${worker_pids[4]}" 2>/dev/null
check "host in the middle is dead: rounds of the other one go on" slowwait 60 at_least 5 $(($(a_round 5) + 200))
"$LAB_TOOL" agent "$LAB.a" start
a_worker "$LAB.a" 10.190.1.1 2 4 host 20000 1000000 int32
for rank in 0 1 2 3; do
	wait "${worker_pids[$rank]}" 2>/dev/null
	matches "host in the middle is back: rank $rank has to get a model" "the results of round [0-9]* are gone" "$(cat "$WORK/$rank.err")"
	rm "$WORK/$rank.err"
done
below_a host 20000 1000000 int32
goes_on "host in the middle is back"
for rank in 0 1 2 3 4; do
	kill -KILL "${worker_pids[$rank]}"
	wait "${worker_pids[$rank]}" 2>/dev/null
done
for i in 0 1; do
	kill -KILL "$(relay_in "$LAB.a-w$i")"
done
"$LAB_TOOL" agent "$LAB.a.b" kill
"$LAB_TOOL" agent "$LAB.a.c" kill
check "all below the host in the middle are dead: rounds of the other one go on" slowwait 60 at_least 5 $(($(a_round 5) + 200))
"$LAB_TOOL" agent "$LAB.a.b" start
"$LAB_TOOL" agent "$LAB.a.c" start
below_a host 20000 1000000 int32
# a worker of host a that joins before its job begins anew would have to join again
check "all below the host in the middle are back: its job begins anew" slowwait 60 is_forming "$LAB.a" host
a_worker "$LAB.a" 10.190.1.1 2 4 host 20000 1000000 int32
goes_on "all below the host in the middle are back"
kill -TERM "${worker_pids[@]}"
check "host in the middle: all workers end" wait_all 60
equal "host in the middle: no sum is wrong" 0 "$(tree_sum wrong)"
check "host in the middle: sums have all workers again" [ "$(jq .all "$WORK/out.0")" -gt 0 ]
lab_down

# 4.  The link to host d is a port of host a's bridge, and the other way round.
expected_log='saina-uplink'
lab_all
A=saina-$LAB-w0 D=saina-$LAB-w1
ip -n "$A" link add above type veth peer name below netns "$D"
ip -n "$D" link add above type veth peer name below netns "$A"
for ns in "$A" "$D"; do
	ip -n "$ns" link set below master br0 up
	ip -n "$ns" link set above up
done
ip -n "$A" addr add 10.190.2.50/24 dev above
ip -n "$D" addr add 10.190.1.50/24 dev above
add "$LAB.a" loop elements 4096 workers 3 weights 2,2,1 uplink 10.190.2.1 parent-job loop parent-worker 0
add "$LAB.d" loop elements 4096 workers 2 weights 9,1 uplink 10.190.1.1 parent-job loop parent-worker 0
add "$LAB.a.b" loop elements 4096 workers 2 uplink 10.190.1.1 parent-job loop parent-worker 0
says() { # LAB TEXT
	at "$1" job show loop | grep -q "$2"
}
a_worker "$LAB.a" 10.190.1.1 2 4 loop 4096 1 int32
a_worker "$LAB.d" 10.190.2.1 1 6 loop 4096 1 int32
a_worker "$LAB.a.b" 10.191.16.1 0 0 loop 4096 1 int32
# In a loop some node has more workers than its weight.
for lab in "$LAB.a" "$LAB.d" "$LAB.a.b"; do
	check "loop: host ${lab##*.} says why it is not admitted" slowwait 60 says "$lab" "worker 0 of job loop stands for 2 workers by its weight, and this node has"
done
check "loop: a worker is told" slowwait 30 grep -q "not admitted by its parent" "$WORK/0.err"
kill -KILL "${worker_pids[@]}"
wait "${worker_pids[@]}" 2>/dev/null
worker_pids=()
rm -f "$WORK"/*.err
lab_down

# 5.
expected_log='^$'
lab_all --loss 5
jobs_add loss 16384
workers loss 16384 200 int32
check "5 % of the messages lost at two levels: all workers end" wait_all 240
tree_exact "5 % of the messages lost at two levels" $ALL 16384 200
for lab in "$LAB" "$LAB.a"; do
	lost=$(json_sum injected-in "$(at "$lab" -j stats show global all)")
	check "5 % of the messages lost at two levels: some were at $lab" [ "${lost:-0}" -gt 10 ]
done
lab_down
finished
