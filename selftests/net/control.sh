#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# `saina policy control': k follows when the workers' gradients come; a controller that
# dies leaves k as it is, and an event says so, also if the agent was started anew.

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

lab_up --workers 4 --bridge linux
k_is() {
	[ "$(job_field steady k)" = "$1" ]
}
controlled() { # true|false [JOB]
	[ "$(job_field "${2:-steady}" controller)" = "$1" ]
}
controller_ended() {
	! kill -0 "$controller" 2>/dev/null
}

job steady workers 4 elements 8192 payload 256 ring 64 policy bsp
matches "control: a job that does not exist is refused" "nosuch" "$(saina policy control nosuch 2>&1)"
matches "control: another policy is refused, with what to do" "job steady has policy bsp.*external:k0=4" \
	"$(saina policy control steady 2>&1)"
matches "control: a noise of 0 is refused" "noise wants" "$(saina policy control steady noise 0 2>&1)"
matches "control: an interval of 1 ms is refused" "10 to 60000" "$(saina policy control steady interval 1 2>&1)"

saina job set steady policy external:k0=4 || not_ok "the policy is set"
matches "control: how many groups is not for this policy" "groups is for policy grouped; that of job steady is external" \
	"$(saina policy control steady groups 2 2>&1)"
for i in 0 1 2; do
	start $i steady 1000000 --elements 8192 --think-us $((4000 * SLOW)) --cancel --restarts
done
# What emulated processors take by themselves is small beside what workers think.
start 3 steady 1000000 --elements 8192 --think-us $((100000 * SLOW)) --cancel --restarts
check "rounds flow" until_true 30 rounds_at_least steady 10
equal "no controller: k is that of the policy" 4 "$(job_field steady k)"

# --- arrivals, as they come -----------------------------------------------------------------
latest() { # WORKER: has the largest mean, of ten lines of each worker or more
	jq -es "group_by(.worker)|length == 4 and all(.[]; length >= 10) and
		(max_by((map(.mean_ms * .arrived)|add) / (map(.arrived)|add))|.[0].worker == $1)" \
		"$WORK/arrivals" >/dev/null
}
arrived() { # JQ SELECT: a line of monitor arrivals
	[ -n "$(jq "select($1)" "$WORK/arrivals")" ]
}
"$B/saina" "${tool_opts[@]}" -j monitor arrivals steady >"$WORK/arrivals" 2>"$WORK/arrivals.err" </dev/null &
arrivals=$!
check "monitor arrivals: begins" until_true 10 grep -q monitoring "$WORK/arrivals.err"
# 96 ms later than the others, who take their time on a busy machine.
check "monitor arrivals: a worker that thinks much longer than the others is named as late" until_true 30 \
	arrived '.worker == 3 and .last_ms >= 40 and .mean_ms >= 40'
check "monitor arrivals: all workers are named, and that one as the latest" until_true 30 latest 3
kill -STOP $arrivals
at=$(job_field steady round)
check "monitor arrivals: rounds go on while it is stopped" until_true 30 rounds_at_least steady $((at + 5))
kill -CONT $arrivals
check "monitor arrivals: rounds that it has missed are one line with their number" until_true 30 \
	arrived '.worker == 3 and .skipped >= 3 and .arrived >= 4'
kill -INT $arrivals
wait $arrivals
equal "monitor arrivals: ends with status 0 on Ctrl-C" 0 $?
equal "monitor arrivals: has no more arrivals of a worker than worker show" true "$(
	shown=$(sj worker show steady 3 '.[0].arrivals.rounds')
	jq -s --argjson n "$shown" '[.[]|select(.worker == 3)]|(map(.arrived)|add) <= $n and
		all(.[]; .job == "steady") and (map(.round)|. == sort)' "$WORK/arrivals")"

# Not by saina(): the number would be that of a shell around it.
control() { # [JOB MS]
	"$B/saina" "${tool_opts[@]}" -j policy control "${1:-steady}" noise 100 interval "${2:-200}" \
		>>"$WORK/control" 2>"$WORK/control.err" &
	controller=$!
}
events_start
control
check "a controller: the job has one" until_true 20 controlled true
check "a controller: the worker that is late in each round is not waited for" until_true 60 k_is 3
first=$(head -n 1 "$WORK/control")
equal "a controller: it says from what to what" "4 3" "$(jq -r '"\(.from) \(.k)"' <<<"$first")"
check "a controller: it predicts shorter rounds" jq -e '.predicted_ms < .round_ms / 2' <<<"$first"
kill -KILL $controller
wait $controller 2>/dev/null
check "the controller is killed: an event says so" until_true 20 event_seen '.event == "controller"'
check "the controller is killed: the job has none" until_true 20 controlled false
at=$(job_field steady round) k=$(job_field steady k)
check "the controller is killed: rounds go on" until_true 20 rounds_at_least steady $((at + 20))
equal "the controller is killed: k stays" "$k" "$(job_field steady k)"

kill -TERM "${worker_pids[3]}"
wait "${worker_pids[3]}"
start 3 steady 1000000 --elements 8192 --think-us $((4000 * SLOW)) --cancel --restarts
control
check "nobody is late any more: all are waited for" until_true 60 k_is 4
kill -INT $controller
check "Ctrl-C: the controller ends" until_true 10 controller_ended
check "Ctrl-C: the job has no controller" until_true 20 controlled false
equal "Ctrl-C: k stays" 4 "$(job_field steady k)"

# --- the agent is started anew: connections of controllers end with it, those to saina.ko do not ---
# These look once a minute, so k is what is set here.
job back workers 2 elements 8192 policy external:k0=2
check "agent restart: k is set to 3" saina job set steady k 3
control steady 60000
gone=$controller
control back 60000
check "agent restart: a job has a controller before" until_true 20 controlled true
check "agent restart: another job has one, too" until_true 20 controlled true back
agent_restart() {
	events_stop
	check "agent restart: the agent is killed" lab agent kill
	kill -KILL $gone $controller
	wait $gone $controller 2>/dev/null
	began=$SECONDS
	check "agent restart: a new agent starts" lab agent start
	control back 60000
	events_start
	until_true 20 controlled true back
	again_after=$((SECONDS - began))
}
agent_restart_kernel() { # the other controller stays
	event_mark
	check "agent restart: the agent is killed" lab agent kill
	check "agent restart: without an agent the job has its controller" controlled true
	kill -KILL $gone
	wait $gone 2>/dev/null
	check "agent restart: a new agent starts" lab agent start
}
if [ "$PLANE" = kernel ]; then agent_restart_kernel; else agent_restart; fi
check "agent restart: an event says that the controller is gone" until_true 20 event_seen \
	'.event == "controller" and .job == "steady" and .k_set == 3'
check "agent restart: the job has no controller" controlled false
equal "agent restart: k stays" 3 "$(job_field steady k)"
check "agent restart: rounds go on" rounds_go_on steady 20
check "agent restart: who controls again within 5 seconds, or all the time, is the job's controller" controlled true back
# Five seconds are the agent's.  A busy machine may take longer over it than the controller has.
[ "${again_after:-0}" -ge 4 ] ||
	equal "agent restart: no event says that it was gone" "" "$(events 'select(.event == "controller" and .job == "back")')"
kill -KILL $controller
wait $controller 2>/dev/null
check "agent restart: when it is killed an event says so" until_true 20 event_seen \
	'.event == "controller" and .job == "back"'
stop_workers
check "all sums are exact" wait_all 60
equal "no slot saw two policies" 0 "$(policy_mix steady)"
finished
