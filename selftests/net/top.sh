#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Who is slow: `saina top' on a pseudo terminal, and the line of `saina job show'.
#
#     w0 .. w2 reduce, w2 is a straggler
#
# 1. No job, and a job that forms
# 2. fastest-k: the straggler is late
# 3. bsp: all wait for the straggler
# 4. It stands still
# 5. The agent ends

/usr/bin/python3 -c 'import pyte' 2>/dev/null || { echo "1..0 # SKIP python3-pyte is not installed"; exit 4; }

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# top KEYS PATTERN... [-- WORD...]: is all of this on the screen at once?
top() {
	local keys=$1 patterns=() words=()
	shift
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		patterns+=("$1")
		shift
	done
	words=("${@:2}")
	TERM=${terminal:-xterm} LC_ALL=${locale:-C.UTF-8} "$NET_DIR/top.py" "$keys" $((40 * SLOW)) "${patterns[@]}" -- \
		"$B/saina" "${tool_opts[@]}" top interval 200 "${words[@]}" >"$WORK/screen" 2>&1
	local status=$?
	cat "$WORK/screen"
	return $status
}

# 1. No job, and a job that forms
lab_up --workers 3 --bridge linux
check "no job: top says what to do" top q 'no jobs \(make one'
job steady workers 3 elements 20000 payload 352 ring 64 policy fastest:k=2
equal "a job that forms: job show has nothing to say of slowness" null "$(saina_jq job show steady '.[0].slow')"

# 2. fastest-k: the straggler is late
start 0 steady 1000000 --elements 20000 --think-us 4000
start 1 steady 1000000 --elements 20000 --think-us 4000
# It thinks so long that it never sends a gradient: its thinking is always cancelled.
start 2 steady 1000000 --elements 20000 --think-us 1000000 --cancel
check "rounds flow" slowwait 30 rounds_at_least steady 20

check "top: job, rate, goodput, k and policy" top q \
	'^steady running  round [0-9]+  [1-9][0-9.]* rounds/s  [0-9.]+ [kMG]bit/s  k 2 of 3  flips -  fastest:k=2'
equal "top: it ends well and the terminal is as it was" "status 0 terminal as it was" "$(tail -n 2 "$WORK/screen" | xargs)"
check "top: the straggler is late in most, the others are not" top q \
	'^    2 \S+ +(alive|slow) +([5-9][0-9]|100)\.[0-9]%' '^    0 \S+ +alive +[0-4]?[0-9]\.[0-9]%' \
	'^    1 \S+ +alive +[0-4]?[0-9]\.[0-9]%'
check "top: sparklines" top q 'rounds/s [▁▂▃▄▅▆▇█]{5,20}  k ▆+' '^    2 .* [▄▅▆▇█]{3}'
locale=C check "top: sparklines without UTF-8" top q 'rounds/s [_.:=+*#-]{5,20}  k \++'
check "top: of one job" top q '^steady running' -- steady
check "top: of one job, by its number" top q '^steady running' -- "$(job_field steady id)"
matches "top: a number that no job can have is refused" "\"256\" is not a job number" "$(saina top 256 2>&1)"
check "top: of a job that is not there" top q 'no job has the name "nosuch"' -- nosuch
check "top: of a number that no job has" top q 'no job has the number 255' -- 255
check "top: paused" top pq '^steady running'
terminal=nosuch check "top: an unknown terminal is refused" top "" 'unknown terminal type "nosuch"'
matches "top: without a terminal it is refused" "needs a terminal .* use saina monitor" "$(saina top 2>&1 </dev/null)"
saina top >/dev/null 2>&1 </dev/null
equal "top: without a terminal the status is 1" 1 $?
matches "top: an interval that cannot be is refused" "100 to 60000 milliseconds" "$(saina top interval 5 2>&1)"

# 3. bsp: all wait for the straggler
stop_workers
check "fastest-k: all sums are exact" wait_all 60
# Of a job that is larger than the tensor.
job lockstep workers 3 elements 200000 payload 352 ring 64 policy bsp
start 0 lockstep 1000000 --elements 20000 --think-us 4000
start 1 lockstep 1000000 --elements 20000 --think-us 4000
start 2 lockstep 1000000 --elements 20000 --think-us 100000
slow_of() {
	saina_jq job show lockstep '.[0].slow // ""'
}
late_is_2() {
	[[ $(slow_of) =~ ^worker\ 2\ is\ late\ in\ each\ round:\ [0-9]+\.[0-9]\ ms\ after\ the\ first ]]
}
check "BSP: job show names the straggler, and how late it is in each round" slowwait 60 late_is_2
check "BSP: top says the same" top q '^    worker 2 is late in each round: [0-9]+\.[0-9] ms after the first' -- lockstep
check "BSP: top has the lateness of each worker in ms" top q '^    2 \S+ +\S+ +[0-9.]+% +[0-9.]+% +([5-9][0-9]|[0-9]{3,})\.[0-9] ' -- lockstep
check "BSP: top: nobody misses a sum" top q '^    0 \S+ +alive +0\.0%' '^    1 \S+ +alive +0\.0%' '^    2 \S+ +alive +0\.0%' -- lockstep
check "top: s sorts by lateness: the straggler is first" top s/q 'by LATE ms' '^   ID NAME.*\n +2 ' -- lockstep
check "top: ? says what keys and columns are" top '?/q' '^LATE ms +after the first' '^s +sort workers' -- lockstep

# 4. It stands still
kill -STOP "${worker_pids[2]}"
waits_for_2() {
	[[ $(slow_of) =~ ^waiting\ for\ worker\ 2\ for\ [0-9]+\.[0-9]\ s\;\ it\ was\ last\ in\ [0-9]+\ %\ of\ the\ sums$ ]]
}
check "a worker is stopped: job show names it, and for how long" slowwait 30 waits_for_2
check "a worker is stopped: the text has the line" grep -q "^    waiting for worker 2 for " <(saina job show lockstep)
check "a worker is stopped: top shows how long" top q '^    waiting for worker 2 for ' '^    2 .* [0-9]+\.[0-9]{3} s '
# Its counters stand still, too: top has the mean of all its rounds.
same_lateness() {
	local drawn shown
	drawn=$(top q '^    2 ' -- lockstep | sed -nE 's/^    2 \S+ +\S+ +[0-9.]+% +[0-9.]+% +([0-9.]+) .*/\1/p')
	shown=$(saina -j worker show lockstep 2 | jq '.[0].arrivals.mean_ms')
	echo "top: $drawn, worker show: $shown"
	awk -v a="$drawn" -v b="$shown" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < 0.06 ^ 2) }'
}
check "a worker is stopped: top and worker show have the same lateness" slowwait 30 same_lateness
kill -CONT "${worker_pids[2]}"

# 5. The agent ends
stop_workers
check "BSP: all sums are exact" wait_all 60
check "the agent ends" lab agent stop
matches "no agent: top says so" "sainad|No such file|cannot" "$(top "" "" 2>&1)"
finished
