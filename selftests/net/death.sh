#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Workers that die, come back, or leave, under BSP: everybody waits for a dead
# worker until it is found dead, and no longer.
#
#     w0 .. w3; w2 is killed and started again; w3 leaves

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

expected_log="worker 2 .* is dead"
lab_up --workers 4
job life workers 4 elements 8192 payload 256 policy bsp heartbeat 50 dead 2500
events_start
start_all life 1000000 4 --elements 8192 --think-us 2000 --restarts
check "rounds flow" until_true 20 rounds_at_least life 10

kill -STOP "${worker_pids[2]}"
check "while it is silent its slots are open, and who is missing is told" until_true 5 missing_is life 2
check "waiting slots complete when it is found dead" until_true 20 worker_state_is life 2 dead
at=$(job_field life round)
check "the others go on" until_true 20 rounds_at_least life $((at + 10))
check "monitor tells of the death" until_true 5 event_seen '.event=="worker-dead" and .worker==2'
kill -KILL "${worker_pids[2]}"
wait "${worker_pids[2]}" 2>/dev/null
unset 'worker_pids[2]'

start 2 life 1000000 --elements 8192 --think-us 2000 --restarts
check "it is admitted again" until_true 20 worker_state_is life 2 alive
joined=$(job_field life round)
check "rounds go on with it" until_true 20 rounds_at_least life $((joined + 20))
check "it is counted again" until_true 10 counted_in 0 2 $((joined + 5))

kill -TERM "${worker_pids[3]}"
check "one leaves" until_true 20 worker_state_is life 3 left
at=$(job_field life round)
check "the others do not wait for it" until_true 20 rounds_at_least life $((at + 10))
stop_workers
check "exact sums all the way" wait_all 30
check "the same results everywhere" same_results 0 1 2
events_stop
finished
