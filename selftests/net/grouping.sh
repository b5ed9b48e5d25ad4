#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Progressive grouping: `saina policy control' of a job with groups.
#
#     w0 .. w2: quick        w3: slow; then all are quick        br0: Linux bridge
#
# 1. Four workers step, one of them slowly
# 2. A controller puts the slow one into a group of its own
# 3. The workers end; all models are the same
# 4. No worker is slow any more: one group

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# 1. Four workers step, one of them slowly
lab_up --workers 4 --bridge linux
job many workers 4 elements 8192 payload 256 ring 16 policy grouped:g=1
steps=(--elements 8192 --steps)
start_all many 0 3 "${steps[@]}" --think-us 4000
start 3 many 0 "${steps[@]}" --think-us 120000

# shellcheck disable=SC2053 # a pattern
groups_are() { # PATTERN: of the policy in force
	[[ $(job_field many policy_active) == $1 ]]
}
controlled() {
	[ "$(job_field many controller)" = "$1" ]
}
matches "control: a largest number of groups of 0 is refused" "1 to 64" "$(saina policy control many groups 0 2>&1)"
matches "control: noise is not for this policy" "noise is for policies external and timeout; job many has policy grouped" \
	"$(saina policy control many noise 100 2>&1)"
control() {
	"$B/saina" "${tool_opts[@]}" -j policy control many interval 300 "$@" >>"$WORK/control" 2>"$WORK/control.err" &
	controller=$!
}

# 2. A controller puts the slow one into a group of its own
check "steps flow" slowwait 30 rounds_at_least many 10
events_start
control groups 2
check "a controller: the job has one" slowwait 20 controlled true
check "a straggler: there are two groups, and it is in the first" slowwait 60 groups_are "grouped:g=2,groups=?[+-]3/*"
first=$(head -n 1 "$WORK/control")
equal "the decision: from one group to two, for worker 3" "1 2 [3]" "$(jq -rc '"\(.from) \(.groups) \(.stragglers)"' <<<"$first")"
check "the decision: its prediction is that of the formula" \
	jq -e '.predicted_slowdown > 1.3 and .predicted_slowdown < 2' <<<"$first"
check "the decision: saina monitor shows it" slowwait 20 event_seen '.event == "policy"'
before=$(($(steps_of 0) + $(steps_of 1) + $(steps_of 2))) slow=$(steps_of 3)
check "steps go on" rounds_go_on many 40
check "quick workers of the other group do not wait for it" \
	[ $(($(steps_of 0) + $(steps_of 1) + $(steps_of 2) - before)) -gt $((2 * 2 * ($(steps_of 3) - slow))) ]

# 3. The workers end; all models are the same
stop_workers
check "every model has all updates, once" wait_all 60
equal "all models are the same" "" "$(same_models 0 1 2 3)"

# 4. No worker is slow any more: one group
start_all many 0 4 "${steps[@]}" --think-us 4000
check "no worker is slow any more: there is one group" slowwait 60 groups_are "grouped:g=1*"
kill -INT $controller
check "Ctrl-C: the job has no controller" slowwait 20 controlled false
wait $controller
equal "Ctrl-C: the controller ends with status 0" 0 $?
check "Ctrl-C: groups stay" groups_are "grouped:g=1*"
stop_workers
verify_models "later" 60 0 1 2 3
equal "no slot saw two policies" 0 "$(policy_mix many)"
finished
