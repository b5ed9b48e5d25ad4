#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Who is late: each figure of job show, worker show, monitor and the metrics compared with what was planted,
# for tensors of all sizes that a job can have, and for all policies.
#
#     w0 .. w2 of each job reduce; all jobs run at once.  A slow worker thinks 700 ms before each
#     round, and the others 20 ms.
#
# 1. Nobody is late, or all wait for who is: nothing is missed
# 2. A round is decided without a slow worker: it has missed that, and nobody else
# 3. Steps, in which nothing can be missed
# 4. A worker dies, and comes back

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

CLIENT=$NET_DIR/metrics.py
METRICS=$WORK/metrics
expected_log='worker [0-9]+ .* is dead'
echo "metrics = \"unix:$METRICS\";" >"$WORK/lines"
lab_up --workers 3 --bridge linux --config "$WORK/lines"
"$B/saina" "${tool_opts[@]}" -j monitor >"$WORK/events" 2>"$WORK/monitor.err" </dev/null &
monitor=$!
check "monitor: begins" slowwait 20 grep -q monitoring "$WORK/monitor.err"

QUICK=(--think-us 20000)
SLOW_ONE=(--think-us 700000)

# Two by turns: each is slow in every other round.
printf '700000\n20000\n' >"$WORK/turns-1"
printf '20000\n700000\n' >"$WORK/turns-2"

# plant JOB SLOW|turns|none WORDS... -- [OPTIONS]: a job of three workers; one of them is slow
plant() {
	local name=$1 slow=$2 words=() i think
	shift 2
	while [ "$1" != -- ]; do
		words+=("$1")
		shift
	done
	shift
	job "$name" workers 3 ring 64 "${words[@]}"
	for i in 0 1 2; do
		think=("${QUICK[@]}")
		[ "$i" != "$slow" ] || think=("${SLOW_ONE[@]}")
		[ ! -e "$WORK/$slow-$i" ] || think=(--think-from "$WORK/turns-$i")
		start_as "$name-$i" "$i" "$i" "$name" 1000000 "${think[@]}" "$@"
	done
	planted+=("$name")
}
planted=()

metric() { # NAME JOB WORKER
	"$CLIENT" value "saina_worker_$1" "saina_job=$2" "worker=$3" <"$WORK/text"
}

# Figures of a job, once its rounds have been compared for some seconds: "worker: late state", of each.
figures() { # JOB
	local i events=()
	# Before the metrics: an event is never ahead of the total.
	for i in 0 1 2; do
		events[i]=$(late_events "$1" "$i")
	done
	"$CLIENT" get "$METRICS" >"$WORK/answer"
	tail -n +2 "$WORK/answer" >"$WORK/text"
	for i in 0 1 2; do
		echo "$i: $(metric late_total "$1" "$i") late, $(metric in_time_total "$1" "$i") in time, $(saina_jq worker show "$1" "$i" '.[0]|"\(.state), \(.arrivals.mean_ms) ms"'),${events[i]} events"
	done
}

late_events() { # JOB WORKER
	jq -r "select(.event == \"worker-late\" and .job == \"$1\" and .worker == $2) | .late" "$WORK/events" | awk '{ n += $1; e++ } END { print " " n + 0 " late in " e + 0 }'
}

nothing_missed() { # JOB: and each worker has reduced
	figures "$1" | tee "$WORK/figures"
	[ "$(grep -c ': 0 late, [1-9][0-9]* in time, alive, .* 0 late in 0 events$' "$WORK/figures")" = 3 ]
}

# missed_by JOB WORKER: most sums were made without it, and few without any other one; it is slow
missed_by() {
	figures "$1" | tee "$WORK/figures"
	awk -v who="$2:" '
		$1 == who { late = $2; slow = $2 > 5 * $4 && /, slow,/ && $(NF - 4) > 0 && $(NF - 4) <= $2; next }
		{ others += /, alive,/; most = $2 > most ? $2 : most }
		END { exit !(slow && others == 2 && late > 10 * most) }' "$WORK/figures"
}

# latest_are JOB WORKER...: the mean lateness of their first segments is by far the largest.  Of two, each is late every other time.
latest_are() {
	figures "$1" | tee "$WORK/figures"
	sed -E 's/^([0-9]):.* ([0-9.e+-]+) ms,.*/\1 \2/' "$WORK/figures" |
		awk -v who="${*:2}" -v least=$((300 / ($# - 1))) '
			index(who, $1) { ms = ms == "" || $2 < ms ? $2 : ms; next }
			{ most = $2 > most ? $2 : most }
			END { exit !(ms > least && ms > 3 * most) }'
}

named_is() { # JOB PATTERN: what job show says of slowness
	local said
	said=$(saina_jq job show "$1" '.[0].slow // "null"')
	echo "$said"
	[[ $said =~ $2 ]]
}

compared() { # N: all planted jobs have had so many rounds
	local j
	for j in "${planted[@]}"; do
		rounds_at_least "$j" "$1" || { echo "$j"; return 1; }
	done
}

# The check for stragglers comes once a second: begins, has a base, compares.
some_seconds() {
	local j at=$SECONDS
	for j in "${planted[@]}"; do
		rounds_go_on "$j" 3 || return 1
	done
	slowwait 60 passed $((at + 6))
}

passed() {
	[ $SECONDS -ge "$1" ]
}

# 1. Nobody is late, or all wait for who is
plant smaller none elements 700000 policy bsp -- --elements 20000
plant beyond none elements 17394 policy bsp -- --elements 1010
plant equal none elements 20000 policy bsp -- --elements 20000
plant one none elements 70000 policy bsp -- --elements 1
plant single none elements 1 policy bsp -- --elements 1
plant varying none elements 200000 policy bsp -- --minbytes 400 --maxbytes 400K --stepfactor 1.02 --iters 25
plant buckets none elements 200000 policy bsp -- --elements 20000 --buckets 5
plant waits 2 elements 200000 policy bsp -- --elements 20000
plant waits-equal 1 elements 20000 policy bsp -- --elements 20000
plant waits-one 0 elements 70000 policy bsp -- --elements 1
plant auto 2 elements auto policy bsp -- --elements 1010
plant patient 2 elements 200000 policy timeout:60s,kmin=1 -- --elements 20000
plant all-fast 2 elements 200000 policy fastest:k=3 -- --elements 20000
plant turns turns elements 200000 policy bsp -- --elements 20000

# 2. A round is decided without a slow worker
plant fastest 2 elements 200000 policy fastest:k=2 -- --elements 20000
plant fastest-equal 0 elements 20000 policy fastest:k=2 -- --elements 20000
plant fastest-one 1 elements 200000 policy fastest:k=2 -- --elements 1
plant drops 2 elements 200000 policy fastest:k=2,late=drop -- --elements 20000
plant timed 2 elements 200000 policy timeout:60ms,kmin=2 -- --elements 20000
plant sfcd 1 elements 200000 policy sfcd:k0=2,kmax=2,sth=0.9,cth=5 -- --elements 20000
plant cancels 2 elements 200000 policy fastest:k=2 -- --elements 20000 --cancel

# 3. Steps
plant ssp none elements 20000 policy ssp:w=2 -- --steps --elements 20000
plant asp 1 elements 20000 policy asp -- --steps --elements 20000
plant grouped 2 elements 20000 policy grouped:g=2 -- --steps --elements 20000
# Its third worker comes when the others have waited for some seconds.
job joiner workers 3 ring 64 elements 200000 policy bsp
for i in 0 1; do
	start_as "joiner-$i" "$i" "$i" joiner 1000000 "${QUICK[@]}" --elements 20000
done
joined() { # JOB N
	[ "$(saina_jq worker show "$1" length)" = "$2" ]
}
check "joiner: two workers wait for the third" slowwait 60 joined joiner 2
at=$SECONDS
check "joiner: they wait for some seconds" slowwait 60 passed $((at + 4))
start_as joiner-2 2 2 joiner 1000000 "${QUICK[@]}" --elements 20000
planted+=(joiner)
check "all planted jobs have rounds" slowwait 120 compared 3
check "they are compared for some seconds" some_seconds
for j in "${planted[@]}"; do
	case $j in
	smaller | beyond | equal | one | single | varying | buckets | joiner)
		check "$j: nobody is late, and no figure says that somebody is" nothing_missed "$j"
		;;
	waits | waits-equal | waits-one | auto | patient | all-fast | turns)
		check "$j: all wait for the slow one: nobody has missed anything" nothing_missed "$j"
		;;
	fastest-equal) check "$j: worker 0 has missed most sums, and is slow" slowwait 60 missed_by "$j" 0 ;;
	fastest-one | sfcd) check "$j: worker 1 has missed most sums, and is slow" slowwait 60 missed_by "$j" 1 ;;
	fastest | drops | timed | cancels) check "$j: worker 2 has missed most sums, and is slow" slowwait 60 missed_by "$j" 2 ;;
	ssp | asp | grouped)
		figures "$j" >"$WORK/figures"
		check "$j: steps miss nothing" [ "$(grep -c ': 0 late, .*, alive, .* 0 late in 0 events$' "$WORK/figures")" = 3 ]
		;;
	esac
done
check "waits: worker 2 is by far the latest" slowwait 60 latest_are waits 2
check "waits-equal: worker 1 is by far the latest" slowwait 60 latest_are waits-equal 1
check "waits-one: worker 0 is by far the latest" slowwait 60 latest_are waits-one 0
check "turns: workers 1 and 2 are by far the latest" slowwait 60 latest_are turns 1 2
check "waits: job show names worker 2" slowwait 60 named_is waits "worker 2 (is late|for)"
check "waits-one: job show names worker 0" slowwait 60 named_is waits-one "worker 0 (is late|for)"
check "fastest: job show names worker 2, not one that completes sums" slowwait 60 named_is fastest "^worker 2 missed most"
check "sfcd: job show names worker 1" slowwait 60 named_is sfcd "^worker 1 missed most"

# A worker that was slow, and is not any more
equal "a swap to bsp: accepted" 0 "$(saina job set fastest policy bsp >/dev/null; echo $?)"
no_more_missed() {
	local before
	before=$(figures fastest | awk '{ print $2 }' | xargs)
	rounds_go_on fastest 4
	[ "$before" = "$(figures fastest | awk '{ print $2 }' | xargs)" ]
}
check "fastest, then bsp: nothing more is missed" slowwait 90 no_more_missed
all_alive() { # JOB
	[ "$(saina_jq worker show "$1" '[.[].state]|join(" ")')" = "alive alive alive" ]
}
check "fastest, then bsp: worker 2 is not slow any more" slowwait 60 all_alive fastest

# 4. A worker dies, and comes back
job dies workers 3 elements 200000 policy bsp dead 3000
for i in 0 1 2; do
	start_as "dies-$i" "$i" "$i" dies 1000000 "${QUICK[@]}" --elements 20000 --restarts
done
check "dies: rounds flow" slowwait 60 rounds_at_least dies 20
kill -KILL "${worker_pids[dies-1]}"
worker_reap dies-1 2>/dev/null
dead_is() {
	[ "$(saina_jq worker show dies 1 '.[0].state')" = dead ]
}
check "dies: worker 1 is dead" slowwait 60 dead_is
check "dies: the others go on" rounds_go_on dies 30
start_as dies-1 1 1 dies 1000000 "${QUICK[@]}" --elements 20000 --restarts
check "dies: worker 1 is back" slowwait 60 all_alive dies
planted=(dies)
check "dies: it is compared for some seconds" some_seconds
check "dies: nobody has missed anything, who died and came back neither" nothing_missed dies
stop_workers
check "all sums are exact" wait_all 120
kill -INT $monitor
wait $monitor
equal "monitor: ends with status 0 on Ctrl-C" 0 $?
finished
