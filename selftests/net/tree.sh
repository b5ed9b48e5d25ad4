#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A job across hosts: each host's sum goes up to the root as one gradient.
#
#     saina-$LAB-sw: sainad, br0 -- p0 -- saina-$LAB-w0 = host 0: sainad, saina-uplink, br0 -- w0, w1, ..
#                                -- p1 -- saina-$LAB-w1 = host 1: likewise
#                                   ^ losses and rates are of these links
#
# 1. 2 hosts with 2 workers: sums of integers, means of floats; integers at one, floats at the other
# 2. 4 hosts with 4 workers
# 3. 80 workers, more than one aggregator can have
# 4. A relay is killed, and comes back
# 5. Messages are lost on the uplinks
# 6. A host is killed, and comes back
# 7. An uplink is down for a while; the agents of the root and of a host are killed, and come back
# 8. 80 workers train
#
#	tree.sh [quick]		quick: only 1

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tree_lib.sh
. "$(dirname "$0")/tree_lib.sh"

quick=${1-}

# 1., 2. and 3.
sums() { # HOSTS WORKERS ELEMENTS ROUNDS TYPE...
	local n="$1 x $2" elements=$3 rounds=$4 type
	tree_lab "$1" "$2"
	for type in "${@:5}"; do
		tree_job "$type" "$elements"
		tree_workers "$type" "$elements" "$rounds" "$type"
		check "$n, $type: all workers end" wait_all 120
		case $type in
		int32)	tree_exact "$n, $type" $((hosts * each)) "$elements" "$rounds" ;;
		float32) equal "$n, $type: the means are those of one aggregator, bit for bit" "$(tree_flat $((hosts * each)) "$type" "$elements" "$rounds")" \
				"$(tree_field crc)" ;;
		mixed)	matches "$n, $type scales: all workers have the same results" '^[0-9a-f]{8}$' "$(tree_field crc)"
			check "$n, $type scales: the error is at most a unit for each worker and half a unit for each level" \
				[ "$(jq -s 'map(.error)|max < 2' "$WORK"/out.*)" = true ] ;;
		esac
		# the relay may be a new one, as the workers have left
		check "$n, $type: the agent of a host says how many workers the tree has" slowwait 20 tree_has 0 "$type" $((hosts * each))
	done
	[ "$each" != 2 ] || other_types
	lab_down
}

# Integers at one host, floats at the other: there is no sum, and all workers say so.
other_types() {
	local h
	expected_log+="|round 0 has no sum: "
	tree_job types 20000
	rm -f "$WORK"/out.* "$WORK"/log.*
	for h in 0 1; do
		tree_worker $h 0 types 20000 20 "$([ $h = 0 ] && echo int32 || echo float32)"
		tree_worker $h 1 types 20000 20 "$([ $h = 0 ] && echo int32 || echo float32)"
	done
	for h in 0 1; do
		check "types: worker $h of the host with integers names the types" slowwait 60 grep -q \
			"workers 0-1 started int32, workers of other hosts float32 (this is worker $h)" "$WORK/0.$h.err"
		check "types: worker $h of the host with floats names the types" slowwait 60 grep -q \
			"workers of other hosts started int32, workers 0-1 float32 (this is worker $h)" "$WORK/1.$h.err"
	done
	wait_all 60 >/dev/null
	check "types: the agent of a host says so" slowwait 10 grep -qa \
		'all workers of this host started int32, and some of another host float32' "/run/saina-lab/$LAB.h0/sainad.log"
	check "types: the root's agent names the host" slowwait 10 grep -qaE \
		'no sum: worker 0 .* started int32, and others float32' "/run/saina-lab/$LAB/sainad.log"
}
sums 2 2 20000 20 int32 float32 mixed
[ "$quick" = quick ] && { finished; exit; }
sums 4 4 50000 20 int32 float32 mixed
sums 4 20 10000 10 int32

# 4. A relay is killed, and comes back
tree_lab 2 2
expected_log='saina-uplink'
tree_job kill 50000
tree_workers kill 50000 400 int32
check "relay killed: rounds begin" slowwait 30 tree_round_at_least 20
for at in 40 80 120; do
	pid=$(relay_pid 0)
	check "relay killed: there is one" [ -n "$pid" ]
	kill -KILL "$pid"
	check "relay killed: there is a new one" slowwait 10 relay_is_new 0 "$pid"
	at=$(tree_round)
	check "relay killed: rounds go on" slowwait 30 tree_round_at_least $((at + 20))
done
check "relay killed: all workers end" wait_all 120
tree_exact "relay killed" $((hosts * each)) 50000 400
lab_down

# 5. Messages are lost on the uplinks
expected_log='^$'
tree_lab 2 2 --loss 10
tree_job loss 16384
tree_workers loss 16384 200 int32
check "10 % of the messages lost on the uplinks: all workers end" wait_all 240
tree_exact "10 % of the messages lost on the uplinks" $((hosts * each)) 16384 200
lost=$(json_sum injected-in "$(saina_at root -j stats show global all)")
check "10 % of the messages lost on the uplinks: some were" [ "${lost:-0}" -gt 10 ]
lab_down

# 6. A host is killed, and comes back: the others wait for it until it is dead, and not once more
# while its agent believes that the workers of before are alive.
times_in() { # LOG WHAT: lines of an agent's log
	grep -c "$2" "/run/saina-lab/$1/sainad.log"
}
log_has() {
	[ "$(times_in "$@")" -gt 0 ]
}
rounds_of() { # HOST WORKER
	wc -l <"$WORK/log.$1.$2"
}
has_rounds() { # HOST WORKER ROUNDS
	[ "$(rounds_of "$1" "$2")" -ge "$3" ]
}
expected_log='saina-uplink|is dead: silent for'
tree_lab 2 2
tree_job back 50000
tree_workers back 50000 1000000 int32
check "host killed: rounds begin" slowwait 30 tree_round_at_least 20
for i in 0 1; do
	kill -KILL "${worker_pids[1.$i]}"
	wait "${worker_pids[1.$i]}" 2>/dev/null
done
host_kill 1
check "host killed: the root counts it as dead" slowwait 60 log_has "$LAB" 'worker 1 .* is dead'
at=$(tree_round)
check "host killed: rounds go on without it" slowwait 30 tree_round_at_least $((at + 20))
"$LAB_TOOL" agent "$LAB.h1" start
for i in 0 1; do
	tree_worker 1 "$i" back 50000 1000000 int32
done
check "host back: its agent waits for the workers of before" slowwait 60 log_has "$LAB.h1" 'worker 1 .* is dead'
equal "host back: it is no node of the root's job until then" 1 "$(times_in "$LAB" 'worker 1 .* joined')"
for i in 0 1; do
	check "host back: worker $i takes part" slowwait 60 has_rounds 1 $i 20
done
kill -TERM "${worker_pids[@]}"
check "host back: all workers end" wait_all 60
equal "host back: no sum is wrong" 0 "$(tree_sum wrong)"
check "host back: sums have all workers again" [ "$(jq .all "$WORK/out.1.0")" -gt 0 ]
lab_down

# 7. An uplink is down for a while; the agents of the root and of a host are killed, and come back
goes_on() { # WHAT
	local at
	at=$(tree_round)
	check "$1: rounds go on" slowwait 60 tree_round_at_least $((at + 20))
}
expected_log='saina-uplink|is alive, but its port p1 is in spanning-tree state|the data path is gone'
tree_lab 2 2 --uplink 20mbit
tree_job down 20000
tree_workers down 20000 1000000 int32
check "uplink down: rounds begin" slowwait 30 tree_round_at_least 20
in_switch ip link set p1 down
sleep 5
in_switch ip link set p1 up
goes_on "uplink down"
"$LAB_TOOL" agent "$LAB" kill
goes_on "root agent killed"
"$LAB_TOOL" agent "$LAB" start
goes_on "root agent back"
pid=$(relay_pid 1)
"$LAB_TOOL" agent "$LAB.h1" kill
# longer than a JOIN waits for an answer
sleep 6
goes_on "host agent killed"
cp "$B/saina-uplink" "$WORK/saina-uplink"
SAINA_UPLINK=$WORK/saina-uplink "$LAB_TOOL" agent "$LAB.h1" start --keep
goes_on "host agent back"
equal "host agent back: the relay has run on" "$pid" "$(relay_pid 1)"
check "host agent back: it knows what the relay reports" slowwait 10 tree_has 1 down 4
kill -KILL "$pid"
check "relay killed that an earlier agent has started: there is a new one" slowwait 10 relay_is_new 1 "$pid"
goes_on "relay killed that an earlier agent has started"
"$LAB_TOOL" agent "$LAB.h1" stop
goes_on "host agent stopped, with --keep"
pid=$(relay_pid 1)
cp "$B/saina-uplink" "$WORK/newer"
mv "$WORK/newer" "$WORK/saina-uplink"
SAINA_UPLINK=$WORK/saina-uplink "$LAB_TOOL" agent "$LAB.h1" start --keep
check "newer saina-uplink: the agent starts it in the place of the earlier one" slowwait 10 relay_is_new 1 "$pid"
goes_on "newer saina-uplink"
kill -TERM "${worker_pids[@]}"
check "agents killed: all workers end" wait_all 60
equal "agents killed: no sum is wrong" 0 "$(tree_sum wrong)"
# the last round of those that end first
check "agents killed: none lacks a worker before the workers end" [ "$(tree_sum some)" -le $((2 * 4 * 2500)) ]
pid=$(relay_pid 1)
tree_worker 1 0 down 20000 1 int32
check "maps lost: a worker is there, and a relay" slowwait 20 relay_is_new 1 "$pid"
"$LAB_TOOL" agent "$LAB.h1" stop
pid=$(relay_pid 1)
check "maps lost: the relay runs on" [ -n "$pid" ]
umount "/run/saina-lab/$LAB.h1/bpf"
"$LAB_TOOL" agent "$LAB.h1" start
check "maps lost: the agent ends the relay of the earlier one" [ "$(relay_pid 1)" != "$pid" ]
kill -KILL "${worker_pids[1.0]}"
lab_down

# 8. 80 workers train: make demo's data, its target
tree_lab 4 20
digits=$("$TOP/tools/get-digits" "$B/data" 2>"$WORK/digits.err") || bail "no digits: $(cat "$WORK/digits.err")"
"$TOP/selftests/trainer/examples.py" "$digits" "$WORK/examples" >/dev/null || bail "no examples"
model=(--data "$WORK/examples" --workers 80 --rounds 160 --batch 4 --rate 0.5 --base 0 --delay 0 --hidden 128)
parameters=$("$B/saina-train" --describe "${model[@]}" | sed -n 's/.*parameters=\([0-9]*\).*/\1/p')
tree_dead=60000 tree_job train "$parameters" payload 256
mkdir "$WORK/run"
for ((h = 0; h < hosts; h++)); do
	id=$(saina_at "$h" -j job show train | jq '.[0].id')
	for ((i = 0; i < each; i++)); do
		nsenter --net="/run/netns/saina-$LAB.h$h-w$i" -- "$B/saina-train" "${model[@]}" --aggregator "10.190.$((h + 1)).1" --job "$id" \
			--worker $((h * each + i)) --out "$WORK/run" >"$WORK/out.$h.$i" 2>"$WORK/$h.$i.err" </dev/null &
		worker_pids[$h.$i]=$!
	done
done
check "80 workers train: all end" wait_all 240
equal "80 workers train: all models are the same, bit for bit" 1 "$(md5sum "$WORK"/run/worker-*.params | cut -d' ' -f1 | sort -u | wc -l)"
accuracy=$(cut -d, -f2 "$WORK/run/accuracy.csv" | sort -g | tail -n 1)
check "80 workers train: they reach 95 % of the test data" awk "BEGIN { exit !($accuracy >= .95) }" || diag "$accuracy"
lab_down
finished
