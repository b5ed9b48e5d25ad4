#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Policies without rounds: workers step on their own, with a parameter server (ssp, asp).
#
#     w0 .. w2: quick        w3: slow, or quick, as the point needs
#
# 1. A bound of 0 is a barrier: the models of bsp, bit for bit
# 2. A window, and a slow worker
# 3. No bound
# 4. The window grows while workers wait
# 5. The slowest worker dies
# 6. Messages that no worker sends
# 7. From rounds to steps and back

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

expected_log="worker 3 .* is dead"
lab_up --workers 4
SWITCH_MAC=$(mac_of switch)

steps=(--elements 8192 --steps)
rounds=$(shrink 40)

waits_now() { # JOB: none of the first three workers makes a step
	local before
	before=$(cat "$WORK"/[012].log | wc -l)
	sleep 0.3
	[ "$before" = "$(cat "$WORK"/[012].log | wc -l)" ]
}

# 1. A bound of 0 is a barrier: the models of bsp, bit for bit
job zero workers 4 elements 8192 payload 256 ring 16 policy bsp dead 60000
start_all zero "$rounds" 4 "${steps[@]}" --think-us 1000
check "bsp: every model has all updates of all workers, once" wait_all 60
model=$(summary 0 crc)
check "ssp:0: is set for a job that has no workers" saina job set zero policy ssp:0
start_all zero "$rounds" 4 "${steps[@]}" --think-us 1000
check "ssp:0: every model has all updates of all workers, once" wait_all 60
equal "ssp:0: models are those of bsp, bit for bit" "$model" "$(summary 0 crc)"
equal "ssp:0: results are those of rounds" 0 "$(summary 1 window_max)"

# 2. A window, and a slow worker
check "ssp:3: is set" saina job set zero policy ssp:3
start_all zero "$rounds" 3 "${steps[@]}" --think-us 1000
start 3 zero "$rounds" "${steps[@]}" --think-us 40000
check "ssp:3: every model has all updates of all workers, once" wait_all 90
equal "ssp:3: models are those of bsp, bit for bit" "$model" "$(summary 0 crc)"
equal "ssp:3: all workers have the same model" "" "$(same_models 0 1 2 3)"
equal "ssp:3: quick workers lead by as much as they may" "3 3 3" \
	"$(summary 0 staleness_max) $(summary 1 staleness_max) $(summary 2 staleness_max)"
equal "ssp:3: no worker goes on with a model that lacks more" "0 0 0 0" \
	"$(for i in 0 1 2 3; do summary $i beyond_window; done | xargs)"
equal "ssp:3: the tool shows the policy" ssp:3 "$(job_field zero policy)"
start_all zero 3 4 --elements 8192
wait_all 30 >/dev/null
matches "ssp:3: all-reduces, whose sums cannot be checked, end with what to do" "policy has steps.*--steps" \
	"$(cat "$WORK/0.err")"
start_all zero 3 4 --elements 8192 --no-verify
check "ssp:3: all-reduces without a check of sums are done" wait_all 30

# 3. No bound
check "asp: is set" saina job set zero policy asp
start_all zero "$rounds" 3 "${steps[@]}" --think-us 1000
start 3 zero 4 "${steps[@]}" --think-us $((300000 * SLOW))
check "asp: the slow worker makes a step" slowwait 60 steps_at_least 3 1
kill -STOP "${worker_pids[3]}"
check "asp: quick workers are through while the slow one is stopped" slowwait 60 steps_at_least 0 "$rounds"
kill -CONT "${worker_pids[3]}"
verify_models "asp" 90 0 1 2 3
equal "asp: there is no window" "-1 -1" "$(summary 0 window_min window_max)"
saina job del zero

# 4. The window grows while workers wait
waits() { # JOB WORKER
	[ "$(counter "$1" "$2" clock-wait)" -gt 0 ]
}
job grow workers 4 elements 2048 payload 256 ring 16 policy ssp:2 heartbeat 100
start_all grow 0 3 "${steps[@]}" --elements 2048 --think-us 1000
start 3 grow 0 "${steps[@]}" --elements 2048 --think-us 60000000
check "window: three workers wait for the fourth" slowwait 20 waits grow 0
check "window: the three workers have made the steps they may, and no more" [ "$(wc -l <"$WORK/0.log")" -le 3 ]

# A swap to rounds waits until all workers have finished the present step.
check "swap under way: bsp is set" saina policy set grow bsp
equal "swap under way: bsp is pending, and steps are in force" "ssp:2 bsp" \
	"$(saina_jq job show grow '.[0]|"\(.policy_active) \(.policy_next.policy)"')"
matches "swap under way: another policy is refused" "waits to come into force" "$(saina policy set grow ssp:7 2>&1)"
check "swap under way: bsp is cancelled" saina policy cancel grow
check "window: a larger one is set" saina policy set grow ssp:40
check "window: workers that wait go on, though the slowest has not moved" slowwait 20 steps_at_least 0 35
check "window: no worker is further ahead than the window" [ "$(wc -l <"$WORK/0.log")" -le 41 ]
equal "window: the slowest has not moved" 0 "$(wc -l <"$WORK/3.log")"
saina policy set grow asp
check "window: asp wakes all workers that wait" slowwait 20 steps_at_least 1 200
saina policy set grow ssp:1
at=$(wc -l <"$WORK/1.log")

# 5. The slowest worker dies
check "death: with a smaller window all wait again" slowwait 20 waits_now grow
worker_kill 3
check "death: the killed worker is declared dead" saina worker set grow 3 state dead
check "death: workers that wait go on without the dead one" slowwait 40 steps_at_least 1 $((at + 50))
stop_workers
check "death: all updates of live workers are in their models" wait_all 30
equal "death: live workers have the same model" "" "$(same_models 0 1 2)"
saina job del grow

# 6. Messages that no worker sends
job bad workers 4 elements 8192 payload 256 ring 16 policy ssp:100
start_all bad 0 4 "${steps[@]}" --think-us 5000
check "hostile: steps flow" rounds_go_on bad 6
session=0x$(json_value session "$(saina -j worker show bad 1)")
port=$(json_value udp_port "$(saina -j worker show bad 1)")
send_as_worker1() { # KEY=VALUE...: forged messages in the name of worker 1
	send_raw 1 "job=${job_ids[bad]}" worker=1 "session=$session" "sport=$port" "$@"
}
counted() { # COUNTER
	[ "$(counter bad 1 "$1")" -gt 0 ]
}
send_as_worker1 type=7 count=0 round=0
send_as_worker1 type=7 count=0 round=4000000
check "hostile: a clock that goes back or is far ahead is counted" slowwait 5 counted clock-order
send_as_worker1 type=5 round=4000000
send_as_worker1 type=5 round=1
check "hostile: updates out of order are counted" slowwait 5 counted inc-order
send_as_worker1 type=1 round=4000000
check "hostile: a gradient where there are steps is counted" slowwait 5 counted wrong-mode
check "hostile: steps flow all the same" rounds_go_on bad 6
matches "hostile: a window above the maximum is refused with the range" "'65536': must be 0..65535" \
	"$(saina policy set bad ssp:65536 2>&1)"
stop_workers
verify_models "hostile" 30 0 1 2 3
saina job del bad

# 7. From rounds to steps and back
# Every pair of policies: swaps.sh.
job swap workers 4 elements 8192 payload 256 ring 4 policy bsp
start_all swap 0 4 "${steps[@]}" --think-us 3000
check "swap: rounds flow" rounds_go_on swap 6
check "swap: asp is set while workers run" saina policy set swap asp
check "swap: asp comes into force" slowwait 20 policy_is swap asp
at=$(($(job_field swap round) + 40))
check "swap: bsp is set from a step on" saina policy set swap bsp from $at
check "swap: bsp comes into force" slowwait 30 policy_is swap bsp
check "swap: bsp does not come into force before that step" [ "$(job_field swap round)" -ge "$at" ]
check "swap: ssp:3 is set on an event" saina policy set swap ssp:3 on worker-dead
check "swap: rounds flow" rounds_go_on swap 6
worker_kill 3
check "swap: the killed worker is declared dead" saina worker set swap 3 state dead
check "swap: the event brings ssp:3 into force" slowwait 40 policy_is swap ssp:3
check "swap: steps flow" rounds_go_on swap 6
equal "swap: no slot saw two policies" 0 "$(policy_mix swap)"
stop_workers
verify_models "swap" 30 0 1 2
finished
