#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A worker that lies in its control messages: each field of JOIN, READY, HEARTBEAT and LEAVE at its
# extremes.
#
#     w0, w1: workers that train; w2: ctrl_fields.py, an admitted worker of their job

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

LIAR=$NET_DIR/ctrl_fields.py
expected_log="lines like the next one|is dead|gets no redirected frames"
METRICS=$WORK/metrics
echo "metrics = \"unix:$METRICS\";" >"$WORK/lines"
lab_up --workers 3 --config "$WORK/lines"

says() { # WORD
	grep -qx "$1" "$WORK/liar"
}

logged() { # ROUNDS
	[ "$(wc -l <"$WORK/0.log")" -ge "$1" ]
}

metrics_are_right() {
	"$NET_DIR/metrics.py" get "$METRICS" >"$WORK/metrics.txt"
	tail -n +2 "$WORK/metrics.txt" | "$NET_DIR/metrics.py" check
}

# liar_lives ROUND
liar_lives() {
	: >"$WORK/liar"
	nsenter --net="/run/netns/saina-$LAB-w2" -- "$LIAR" live "${job_ids[lied]}" 2 "$1" >"$WORK/liar" 2>&1 &
	liar=$!
	check "a worker joins with $1 as its first round" slowwait 60 says welcome || diag "$(cat "$WORK/liar")"
}

liar_leaves() {
	kill -TERM "$liar"
	wait "$liar"
	check "a worker that lies: its LEAVE is heard" says left || diag "$(cat "$WORK/liar")"
	equal "a worker that lies: it has left" left "$(json_value state "$(saina -j worker show lied 2)")"
}

# --- rounds that nobody else is at ------------------------------------------------
for first in 0xfffffffe 0x80000000; do
	job lied workers 3 elements 4096 payload 256 policy fastest:k=2
	liar_lives $first
	start 0 lied 1000000 --think-us 2000
	start 1 lied 1000000 --think-us 2000
	check "first round $first: the others train" slowwait 60 logged 20
	check "first round $first: the job begins at its beginning" [ "$(job_field lied round)" -lt 1000000 ]
	[ $first = 0x80000000 ] || { liar_leaves && stop_workers && wait_all 60 && saina job del lied; }
done

# --- READY, HEARTBEAT, LEAVE --------------------------------------------------------
at=$(job_field lied round)
check "fields at their extremes: rounds go on" slowwait 60 rounds_at_least lied $((at + 200))
check "fields at their extremes: sainad's metrics are right" metrics_are_right || diag "$(metrics_are_right 2>&1)"
check "fields at their extremes: the workers can be shown" saina -j worker show lied
liar_leaves
check "it has left: rounds go on" rounds_go_on lied 20

# --- JOIN -----------------------------------------------------------------------------
equal "JOIN with a field at its extreme: refused with the reason, or welcome where the field is not looked at" \
	"elements refused 6
more refused 6
round refused 1
reserved refused 1
name welcome
nonce welcome
zero welcome
token refused 3
session refused 1
segment welcome
flags refused 1
exponent welcome
aux welcome
mask welcome
worker3 refused 4
worker64 refused 4
worker254 refused 4
job refused 2" "$(in_worker 2 "$LIAR" joins "${job_ids[lied]}" 2)"
check "JOIN with a field at its extreme: rounds go on" rounds_go_on lied 20
stop_workers
check "a worker that lies: all sums of the others are exact" wait_all 60
check "a worker that lies: the others have the same results" same_results 0 1

job grows workers 2 elements auto
for n in 0xffffffffffffffff 0x8000000000000000 0xffffffff00000000 0x100000000 0x7fffffffff; do
	matches "JOIN that has $n elements, where the first worker says how many: refused" "^$n refused (4|6)$" \
		"$(in_worker 2 "$LIAR" size "${job_ids[grows]}" $n)"
done
check "JOIN that has 4096 elements is welcome after those" [ "$(in_worker 2 "$LIAR" size "${job_ids[grows]}" 4096)" = "4096 welcome" ]

# --- coming back too early ----------------------------------------------------------------
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
kill -KILL "${worker_pids[1]}"
wait "${worker_pids[1]}" 2>/dev/null
unset 'worker_pids[1]'
equal "back: a worker that its operator declared dead waits as one that left does" waits \
	"$(in_worker 1 "$LIAR" back "${job_ids[back]}" 1 "$B/saina" -s "$AGENT_SOCKET" worker set back 1 state dead)"
kill -CONT "${worker_pids[0]}"
stop_workers
check "back: worker 0 ends" slowwait 60 worker_ended 0
wait "${worker_pids[0]}"
unset 'worker_pids[0]'
finished
