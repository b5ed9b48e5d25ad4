#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Workers that die, come back, or leave, under BSP: the others wait for a silent
# worker until it is declared dead, and no longer.
#
#     w0 .. w3; w2 is stopped, killed and started again; w3 leaves
#
# 1. Four workers train
# 2. One stands still: it is declared dead, and no longer waited for
# 3. It joins again
# 4. Another one leaves
# 5. The workers end: every sum was right
# 6. Another job: two of three workers are killed; then all are, and start again one after the other

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

expected_log="worker [0-2] .* is dead"

# 1. Four workers train
lab_up --workers 4
# dead is so long that the test sees the waiting slots before a worker is declared dead.
job life workers 4 elements 8192 payload 256 policy bsp heartbeat 50 dead 60000
events_start
start_all life 1000000 4 --elements 8192 --think-us 2000 --restarts
check "four workers: rounds flow" slowwait 20 rounds_at_least life 10

# 2. One stands still: it is declared dead, and no longer waited for
kill -STOP "${worker_pids[2]}"
check "a silent worker: the open slots say that it is missing" slowwait 20 missing_is life 2
check "a silent worker: dead-ms is lowered while the job runs" \
	saina job set life dead $((3000 * SLOW))
check "a silent worker is declared dead" slowwait 20 worker_state_is life 2 dead
check "a dead worker is not waited for: rounds go on" rounds_go_on life 10
check "monitor: worker-dead is sent when a worker is declared dead" \
	slowwait 5 event_seen '.event=="worker-dead" and .worker==2'
saina job set life dead 60000 || bail "dead-ms cannot be raised"
worker_kill 2

# 3. It joins again
start 2 life 1000000 --elements 8192 --think-us 2000 --restarts
check "a dead worker that joins again is alive" slowwait 20 worker_state_is life 2 alive
joined=$(job_field life round)
check "a worker joined again: rounds go on" slowwait 20 rounds_at_least life $((joined + 20))
check "a worker joined again: its gradients are counted" slowwait 10 counted_in 0 2 $((joined + 5))

# 4. Another one leaves
kill -TERM "${worker_pids[3]}"
check "a worker that ends has left the job" slowwait 20 worker_state_is life 3 left
check "a worker that left is not waited for: rounds go on" rounds_go_on life 10

# 5. The workers end: every sum was right
stop_workers
verify_sums "death" 30 0 1 2
events_stop
saina job del life >/dev/null

# 6. Another job: two of three workers are killed; then all are, and start again one after the other
# The round that waits for the first one has contributions of processes that have ended, so it must
# not join before the others are dead.
job again workers 3 elements 8192 payload 256 policy bsp heartbeat 50 dead 60000
start_all again 1000000 3 --elements 8192 --think-us 2000
check "all restarted: rounds flow" slowwait 20 rounds_at_least again 10
worker_kill 1
check "two of three killed: the open slots wait for one that is not dead yet" slowwait 20 missing_is again 1
worker_kill 2
saina worker set again 2 state dead || bail "worker 2 cannot be set dead"
start 2 again 1000000 --elements 8192
check "two of three killed: one joins again, since another worker in the round lives" \
	slowwait 20 worker_state_is again 2 alive
worker_kill 2
worker_kill 0
saina worker set again 2 state dead || bail "worker 2 cannot be set dead"
start 2 again 20 --elements 8192
check "all restarted: the first one is refused, since the others are silent" \
	slowwait 20 grep -q 'its other workers have been silent for' "$WORK/2.err"
equal "all restarted: the first one has not joined" dead "$(saina -j worker show again | jq -r '.[] | select(.worker == 2).state')"
for i in 0 1; do
	saina worker set again "$i" state dead || bail "worker $i cannot be set dead"
	start "$i" again 20 --elements 8192
done
verify_sums "all restarted" $((60 * SLOW)) 0 1 2
equal "all restarted: every worker begins with the job's first round" "0 0 0" "$(
	for i in 0 1 2; do head -n 1 "$WORK/$i.log" | jq -r .round; done | xargs)"
finished
