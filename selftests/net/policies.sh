#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Policies with a time-out, with k set by a client, with replicas, and on a schedule, with
# real workers:
#
#     w0 .. w2: quick        w3: thinks for long, or is quick, as the point needs
#
# 1. A time-out: three are there, the fourth thinks much longer
# 2. external: k is set by a client
# 3. Policies from a round on, and on an event
# 4. coded: workers 0 and 2 compute one part, 1 and 3 the other
# 5. coded: a round waits for one of each pair

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

lab_up --workers 4

think=$((60000 * SLOW))

# 1. A time-out: three are there, the fourth thinks much longer
rounds=$(shrink 40)
job out workers 4 elements 8192 payload 256 ring 64 policy timeout:10ms,kmin=3
start_all out "$rounds" 3 --elements 8192 --think-us 1000
start 3 out "$rounds" --elements 8192 --think-us $think --cancel
verify_sums "timeout:10ms,kmin=3" 60 0 1 2 3
equal "timeout:10ms,kmin=3: some sum has three contributors, none has fewer" 3 "$(minmax 0 count_min count_max | cut -d' ' -f1)"
check "timeout:10ms,kmin=3: results are said to be degraded" [ "$(total 0 degraded_segments)" -gt 0 ]
equal "timeout:10ms,kmin=3: what the straggler produced is in sums or in its residual" exact "$(summary 3 residual)"
saina job del out

# 2. external: k is set by a client
job ext workers 4 elements 8192 payload 256 ring 64 policy external:k0=4
start_all ext 100000 4 --elements 8192 --think-us 5000 --cancel
check "external:k0=4: rounds flow" slowwait 20 rounds_at_least ext 5
equal "external:k0=4: arrival times of all workers are published" "true true true true" \
	"$(saina_jq worker show ext '[.[]|.arrivals.rounds > 0]|join(" ")')"
equal "external:k0=4: k is 4" 4 "$(job_field ext k)"
for k in 2 3 1; do
	check "external:k0=4: k is set to $k" saina job set ext k $k
	check "external:k0=4: rounds are opened with k $k" slowwait 20 k_is ext $k
	check "external:k0=4: rounds go on with k $k" rounds_go_on ext 5
done
matches "external:k0=4: a k above the number of workers is refused" "5.*4" "$(saina job set ext k 5 2>&1)"
equal "external:k0=4: a refused k changes nothing" 1 "$(job_field ext k)"

# 3. Policies from a round on, and on an event
check "schedule: a policy is set from a distant round on" saina policy set ext bsp from 3000000
matches "schedule: a second policy is refused while the first is pending" "waits already|cancel" \
	"$(saina policy set ext bsp from 4000000 2>&1)"
check "schedule: the pending policy is cancelled" saina policy cancel ext
at=$(($(job_field ext round) + 100))
check "schedule: a policy is set from round $at" saina policy set ext fastest:k=3 from $at
check "schedule: the policy comes into force" slowwait 30 policy_is ext fastest:k=3
check "schedule: the policy does not come into force before its round" [ "$(job_field ext round)" -ge "$at" ]
check "schedule: a policy is set on an event" saina policy set ext bsp on worker-dead
seq=$(job_field ext policy_active_seq)
check "schedule: rounds go on before the event" rounds_go_on ext 10
equal "schedule: before the event the policy is the one before" "$seq" "$(job_field ext policy_active_seq)"
kill -KILL "${worker_pids[3]}"
check "schedule: the killed worker is declared dead" saina worker set ext 3 state dead
check "schedule: the death of a worker brings the policy into force" slowwait 30 policy_is ext bsp
unset "worker_pids[3]"
stop_workers
verify_sums "external, schedule" 30 0 1 2
equal "external, schedule: no slot saw two policies" 0 "$(policy_mix ext)"
saina job del ext

# 4. coded: workers 0 and 2 compute one part, 1 and 3 the other
job rep workers 4 elements 8192 payload 256 ring 64 policy coded:s=1
start_all rep "$rounds" 3 --elements 8192 --think-us 1000
start 3 rep "$rounds" --elements 8192 --think-us $((20000 * SLOW)) --cancel
check "coded:s=1: all sums are right for those who are in them" wait_all 60
check "coded:s=1: all workers have the same results" same_results 0 1 2 3
equal "coded:s=1: a sum has one of each pair" "2 2" "$(minmax 0 count_min count_max)"
saina job del rep

# 5. coded: a round waits for one of each pair
job pairs workers 4 elements 8192 payload 256 ring 64 policy coded:s=1
waits_for() { # WORKER...: each open slot, and there is one
	local slots want
	want=$(printf '%s\n' "$@" | xargs | tr ' ' ,)
	slots=$(saina_jq slot show pairs '[.[].missing|map(.worker)|join(",")]|unique|join(" ")')
	[ -n "$slots" ] && [ "$slots" = "$want" ]
}
# Two rings of rounds are six seconds: a worker that starts late, or is stopped, is not left behind.
start_all pairs 0 4 --elements 8192 --think-us 50000 --cancel
check "coded:s=1: rounds flow" slowwait 20 rounds_at_least pairs 5
kill -STOP "${worker_pids[3]}"
check "coded:s=1: worker 3 is stopped: rounds go on with worker 1, who computes the same" rounds_go_on pairs 20
kill -STOP "${worker_pids[1]}"
check "coded:s=1: workers 1 and 3 are stopped: the round waits for them, and not for 0 or 2" slowwait 20 waits_for 1 3
kill -CONT "${worker_pids[3]}"
check "coded:s=1: worker 3 goes on: so do rounds" rounds_go_on pairs 20
kill -CONT "${worker_pids[1]}"
stop_workers
check "coded:s=1: all sums are exact" wait_all 60
finished
