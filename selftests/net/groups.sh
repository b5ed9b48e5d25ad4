#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Groups of workers (grouped): those of a group step together, groups on their own.
#
#     w0 w2: one group      w1 w3: the other; w3 is slow, or quick, as the point needs
#
# 1. One group is a barrier
# 2. Two groups, one with a slow worker
# 3. As many groups as workers
# 4. Regrouped while workers step; other policies and back
# 5. Groups that are refused

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

expected_log="worker 3 .* is dead"
lab_up --workers 4

steps=(--elements 8192 --steps)
rounds=$(shrink 40)

# seen WORKER: for each step, the version of the sums in its model, and how many updates were new
seen() {
	jq -c 'select(.step < '"$rounds"')|[.step, .version, .updates_max]' "$WORK/$1.log"
}

# 1. One group is a barrier
job one workers 4 elements 8192 payload 256 ring 16 policy bsp dead 60000
start_all one "$rounds" 4 "${steps[@]}" --think-us 1000
check "bsp: every model has all updates of all workers, once" wait_all 60
model=$(summary 0 crc)
check "g=1: is set for a job that has no workers" saina job set one policy grouped:g=1
start_all one "$rounds" 4 "${steps[@]}" --think-us 1000
check "g=1: every model has all updates of all workers, once" wait_all 60
equal "g=1: models are those of bsp, bit for bit" "$model" "$(summary 0 crc)"
equal "g=1: all workers have the same model after each step" "1" \
	"$(for i in 0 1 2 3; do seen $i | md5sum; done | sort -u | wc -l)"

# 2. Two groups, one with a slow worker
check "g=2: is set" saina job set one policy grouped:g=2
equal "g=2: the tool shows the policy" grouped:g=2 "$(job_field one policy)"
start_all one "$rounds" 3 "${steps[@]}" --think-us 1000
start 3 one 4 "${steps[@]}" --think-us $((500000 * SLOW))
check "g=2: the slow worker makes a step" slowwait 60 steps_at_least 3 1
kill -STOP "${worker_pids[3]}"
check "g=2: workers of the quick group do not wait for the slow worker" slowwait 60 steps_at_least 0 "$rounds"
check "g=2: the other worker of its group waits for it" [ "$(steps_of 1)" -le $(($(steps_of 3) + 2)) ]
kill -CONT "${worker_pids[3]}"
verify_models "g=2" 90 0 1 2 3
equal "g=2: workers of the quick group have the same model after each step" "$(seen 0)" "$(seen 2)"

# 3. As many groups as workers
check "g=4: is set" saina job set one policy grouped:g=4
start_all one "$rounds" 4 "${steps[@]}" --think-us 1000
check "g=4: every model has all updates of all workers, once" wait_all 60
equal "g=4: no worker waits for another" "-1 -1" "$(summary 0 window_min window_max)"
# Others read the sums while only some segments have this worker's update.
check "g=4, slow link: worker 0: a link of 5 Mbit/s is set" lab rate 0 5mbit 4kb
start 0 one 4 "${steps[@]}"
for i in 1 2 3; do
	start $i one 4 "${steps[@]}" --think-us 1000
done
verify_models "g=4, slow link" 60 0 1 2 3
check "g=4, slow link: there is no limit any more" lab rate 0 none
saina job del one

# 4. Regrouped while workers step; other policies and back
job swap workers 4 elements 8192 payload 256 ring 4 policy grouped:g=2
start_all swap 0 4 "${steps[@]}" --think-us 3000
for policy in grouped:g=2,groups=0-1/2-3 grouped:g=4 ssp:4 grouped:g=3 bsp grouped:g=2,groups=0+3/1-2 asp grouped:g=1; do
	check "swap: steps and rounds flow" rounds_go_on swap 6
	check "swap: $policy is set while workers run" saina policy set swap $policy
	check "swap: $policy comes into force" slowwait 20 policy_is swap $policy
done
check "swap: steps flow" rounds_go_on swap 6
equal "swap: no slot saw two policies" 0 "$(policy_mix swap)"
check "death: two groups are set" saina policy set swap grouped:g=2
check "death: they come into force" slowwait 20 policy_is swap grouped:g=2
worker_kill 3
at=$(steps_of 1)
check "death: the killed worker is declared dead" saina worker set swap 3 state dead
check "death: who was in one group with the dead worker goes on" slowwait 40 steps_at_least 1 $((at + 30))

# 5. Groups that are refused
check_refused() { # POLICY PATTERN
	matches "refused: $1" "$2" "$(saina policy set swap "$1" 2>&1)"
}
check_refused grouped "grouped needs g"
check_refused grouped:g=0 "must be 1..64"
check_refused grouped:g=5 "must be 1..4"
check_refused grouped:groups=0-1/1-3 "a worker is in two groups"
check_refused grouped:groups=0/1/2 "worker 3 is in none: each of 0..3"
check_refused grouped:groups=0-3/4 "no worker 4: must be 0..3"
check_refused grouped:g=3,groups=0-1/2-3 "group 2 of g=3 has no worker"
stop_workers
verify_models "swap" 30 0 1 2
finished
