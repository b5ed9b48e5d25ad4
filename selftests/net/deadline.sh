#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# `saina policy control' of a job with a time-out: T and kmin depend on when gradients arrive.
#
#     job timed: w0 .. w2: quick, w3: late        job rare: w0, w1: slow rounds        br0: Linux bridge
#
# 1. What it refuses
# 2. A worker that comes far too late is not waited for
# 3. It comes a little late: it is waited for
# 4. Rounds are too rare to be measured: nothing is set, and it says so

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

lab_up --workers 4 --bridge linux
job timed workers 4 elements 8192 payload 256 ring 64 policy timeout:500ms,kmin=1,late=drop
job rare workers 2 elements 8192 policy timeout:5ms,kmin=1
words=(--elements 8192 --cancel --restarts)
ms=$((1000 * SLOW))

# 1. What it refuses
matches "control: how many groups is not for this policy" "groups is for policy grouped; job timed has policy timeout" \
	"$(saina policy control timed groups 2 2>&1)"

control() { # JOB OPTIONS...
	"$B/saina" "${tool_opts[@]}" -j policy control "$@" >>"$WORK/control.$1" 2>"$WORK/control.$1.err" &
	controller=$!
}
decided() { # JQ-EXPRESSION: true of the last decision for job timed, which is no trial
	jq -es "last | . != null and .trial != true and ($1)" "$WORK/control.timed" >/dev/null
}

# 2. A worker that comes far too late is not waited for
start_all timed 1000000 3 "${words[@]}" --think-us $((50 * ms))
start 3 timed 1000000 "${words[@]}" --think-us $((450 * ms))
start_as rare0 0 0 rare 1000000 "${words[@]}" --think-us $((8000 * ms))
start_as rare1 1 1 rare 1000000 "${words[@]}" --think-us $((8000 * ms))
check "rounds flow" slowwait 30 rounds_at_least timed 5
control rare
rare=$controller
control timed noise 1000000 interval 200
check "a worker that comes far too late: T is short and three are enough" slowwait 120 \
	decided ".timeout_ms < $((200 * SLOW)) and .kmin <= 3 and .predicted_count < 3.5"
matches "control: it warns of workers that finish all gradients" "should give up gradients of rounds that are over" \
	"$(cat "$WORK/control.timed.err")"
first=$(head -n 1 "$WORK/control.timed")
equal "the first decision: its output has the old setting" "500 1" "$(jq -r '"\(.from_ms) \(.from_kmin)"' <<<"$first")"
check "the first decision: it predicts shorter rounds" jq -e '.predicted_ms < .round_ms / 1.5' <<<"$first"
matches "the policy: what else it says stays" "late=drop" "$(job_field timed policy)"
at=$(job_field timed round) began=$SECONDS
check "rounds go on" slowwait 60 rounds_at_least timed $((at + 50))
check "rounds: they do not wait for that worker" [ $((SECONDS - began)) -lt $((50 * 450 * SLOW / 1000)) ]

# 3. It comes a little late: it is waited for
kill -TERM "${worker_pids[3]}"
wait "${worker_pids[3]}"
start 3 timed 1000000 "${words[@]}" --think-us $((58 * ms))
check "a worker that comes a little late: it is waited for" slowwait 180 decided '.predicted_count > 3.5'
kill -INT $controller
wait $controller
equal "Ctrl-C: the controller ends with status 0" 0 $?
equal "Ctrl-C: the job has no controller" false "$(job_field timed controller)"
equal "Ctrl-C: T and kmin stay" "$(jq -rs 'last | "\(.timeout_ms * 1000 | round) \(.kmin)"' "$WORK/control.timed")" \
	"$(saina_jq job show timed '.[0].policy' | sed -nE 's/^timeout:([0-9]+)us,kmin=([0-9]+).*/\1 \2/p')"

# 4. Rounds are too rare to be measured: nothing is set, and it says so
says_why() {
	grep -q "job rare: .*a measurement needs 20: T and kmin stay as they are" "$WORK/control.rare.err"
}
check "too few rounds: it says that nothing is set" slowwait 60 says_why
equal "too few rounds: nothing is set" "" "$(cat "$WORK/control.rare")"
kill -INT $rare
wait $rare
stop_workers
check "all sums are exact" wait_all 60
equal "no slot saw two policies" 0 "$(policy_mix timed)"
finished
