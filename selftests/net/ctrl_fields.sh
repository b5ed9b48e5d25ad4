#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A worker that forges its control messages: each field of JOIN, READY, HEARTBEAT and LEAVE at its
# extremes.
#
#     w0, w1: workers that train; w2: ctrl_fields.py, an admitted worker of their job
#
# 1. JOIN with a first round that no other worker is at
# 2. READY, HEARTBEAT and LEAVE with fields at their extremes
# 3. JOIN with a field at its extreme
# 4. JOIN with a size, where the first worker sets it
# 5. JOIN of a worker that has just been declared dead

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

FORGER=$NET_DIR/ctrl_fields.py
expected_log="lines like the next one|is dead|gets no redirected frames"
METRICS=$WORK/metrics
echo "metrics = \"unix:$METRICS\";" >"$WORK/lines"
lab_up --workers 3 --config "$WORK/lines"

forger_printed() { # WORD
	grep -qx "$1" "$WORK/forger"
}

metrics_are_right() {
	"$NET_DIR/metrics.py" get "$METRICS" >"$WORK/metrics.txt"
	tail -n +2 "$WORK/metrics.txt" | "$NET_DIR/metrics.py" check
}

# forger_start ROUND
forger_start() {
	: >"$WORK/forger"
	nsenter --net="/run/netns/saina-$LAB-w2" -- "$FORGER" live "${job_ids[forged]}" 2 "$1" >"$WORK/forger" 2>&1 &
	forger=$!
	check "a worker joins with $1 as its first round" slowwait 60 forger_printed welcome || diag "$(cat "$WORK/forger")"
}

forger_stop() {
	kill -TERM "$forger"
	wait "$forger"
	check "a worker that forges its messages: its LEAVE is heard" forger_printed left || diag "$(cat "$WORK/forger")"
	equal "a worker that forges its messages: it has left" left "$(json_value state "$(saina -j worker show forged 2)")"
}

# 1. JOIN with a first round that no other worker is at
# The forger sends no gradient, so the others must not wait for it: lead=none.
for first in 0xfffffffe 0x80000000; do
	job forged workers 3 elements 4096 payload 256 policy fastest:k=2,lead=none
	forger_start $first
	start 0 forged 1000000 --think-us 2000
	start 1 forged 1000000 --think-us 2000
	check "first round $first: the others train" slowwait 60 steps_at_least 0 20
	check "first round $first: the job begins at its beginning" [ "$(job_field forged round)" -lt 1000000 ]
	[ $first = 0x80000000 ] || { forger_stop && stop_workers && wait_all 60 && saina job del forged; }
done

# 2. READY, HEARTBEAT and LEAVE with fields at their extremes
check "fields at their extremes: rounds go on" rounds_go_on forged 200
equal "messages in the name of others: all three workers are still members" 3 "$(members forged)"
check "fields at their extremes: sainad's metrics are right" metrics_are_right || diag "$(metrics_are_right 2>&1)"
check "fields at their extremes: the workers can be shown" saina -j worker show forged
forger_stop
check "a worker that forges its messages has left: rounds go on" rounds_go_on forged 20

# 3. JOIN with a field at its extreme
equal "JOIN with a field at its extreme: refused with the reason, or welcome where the field is not looked at" \
	"elements refused 6
more refused 6
round refused 1
arrays welcome
name welcome
nonce welcome
zero welcome
token refused 3
session refused 1
segment welcome
flags refused 1
exponent welcome
mask welcome
rank2 welcome
rank3 refused 4
rank256 refused 4
last refused 4
worker3 refused 4
worker64 refused 4
worker254 refused 4
job refused 2" "$(in_worker 2 "$FORGER" joins "${job_ids[forged]}" 2)"
check "JOIN with a field at its extreme: rounds go on" rounds_go_on forged 20
stop_workers
check "a worker that forges its messages: all sums of the others are exact" wait_all 60
check "a worker that forges its messages: the others have the same results" same_results 0 1

# 4. JOIN with a size, where the first worker sets it
job grows workers 2 elements auto
for n in 0xffffffffffffffff 0x8000000000000000 0xffffffff00000000 0x100000000 0x7fffffffff; do
	matches "JOIN that has $n elements, where the first worker says how many: refused" "^$n refused (4|6)$" \
		"$(in_worker 2 "$FORGER" size "${job_ids[grows]}" $n)"
done
check "JOIN that has 4096 elements is welcome after those" [ "$(in_worker 2 "$FORGER" size "${job_ids[grows]}" 4096)" = "4096 welcome" ]

# Segments have 352 elements.  A job has as many as these arrays take in the worst case, and not one more.
size_of() { # ELEMENTS ARRAYS PER-WORKER
	in_worker 2 "$FORGER" arrays "${job_ids[grows]}" "$@"
}
equal "JOIN that has 1010 elements in one array, and 24 for each worker: a segment and three" 1408 "$(size_of 1010 1 24)"
equal "JOIN that has 1010 elements in three arrays: the worst case is 1 + 1 + 1008, five segments" 1760 "$(size_of 1010 3 0)"
equal "JOIN that has 352 elements in one array: a segment" 352 "$(size_of 352 1 0)"
equal "JOIN that has 353 elements in one array: two segments" 704 "$(size_of 353 1 0)"
equal "JOIN that has 1010 elements and says nothing of arrays: these" 1010 "$(size_of 1010 0 24)"
matches "JOIN with 2^32 - 1 elements in as many arrays as can be: refused" "^refused (4|6)$" "$(size_of 0xffffffff 65535 65535)"
matches "JOIN with 2^64 - 1 elements in as many arrays as can be: refused" "^refused (4|6)$" "$(size_of 0xffffffffffffffff 65535 65535)"

# 5. JOIN of a worker that has just been declared dead
job back workers 2 elements 4096 payload 256 policy bsp dead 30000
start 0 back 1000000 --think-us 1000 --restarts
start 1 back 1000000 --think-us 1000 --restarts
check "back: rounds flow" slowwait 30 rounds_at_least back 10
stands_still() {
	local at
	at=$(job_field back round)
	pause
	[ "$(job_field back round)" = "$at" ]
}
# Worker 0 does not go on, so the round that counts on worker 1 stays open.
kill -STOP "${worker_pids[0]}"
slowwait 20 stands_still
worker_kill 1
equal "back: a worker that its operator declared dead waits as one that left does" waits \
	"$(in_worker 1 "$FORGER" back "${job_ids[back]}" 1 "$B/saina" -s "$AGENT_SOCKET" worker set back 1 state dead)"
kill -CONT "${worker_pids[0]}"
stop_workers
check "back: worker 0 ends" slowwait 60 worker_ended 0
worker_reap 0
finished
