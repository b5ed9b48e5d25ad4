#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Many jobs: two that train at once over the same ports, 72 that exist at once, and the
# limits.
#
#     w0 .. w3: workers of "a" and of "b" at the same time, 1 % lost each way
#
# 1. Two jobs at once over the same ports
# 2. 72 jobs
# 3. The default payload
# 4. Limits of the number of jobs and of memory
# 5. The default payload of other MTUs

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

lab_up --workers 4 --loss 1 --seed "$SEED"
equal "loss of 1 % each way is shown for every port" "0.01 0.01 0.01 0.01 0.01 0.01 0.01 0.01" \
	"$(saina_jq port show '[.[].injected|.loss_in,.loss_out|.*10000|round/10000]|join(" ")')"

# 1. Two jobs at once over the same ports
job a workers 4 elements 10000 payload 256 policy bsp
job b workers 4 elements 7000 payload 352 ring 64 policy fastest:k=3 token other
for i in 0 1 2 3; do
	start_as "a$i" $i $i a "$(shrink 60)" --elements 10000
	start_as "b$i" $i $i b "$(shrink 60)" --elements 7000 --token other
done
check "two jobs at once: all sums of both are exact" wait_all 60
check "two jobs at once: all workers of job a have the same results" same_results a0 a1 a2 a3
check "two jobs at once: all workers of job b have the same results" same_results b0 b1 b2 b3
equal "two jobs at once: job a, with bsp, has four workers in every sum" "4 4" "$(minmax a0 count_min count_max)"
equal "two jobs at once: job b, with fastest:k=3, has three in every sum" "3 3" "$(minmax b0 count_min count_max)"

# 2. 72 jobs
made=2
for ((i = 0; i < 70; i++)); do
	saina job add "many$i" workers 2 elements 64 payload 64 pool 1 ring 2 >/dev/null 2>"$WORK/add" || break
	made=$((made + 1))
done
equal "72 jobs exist at once" 72 "$made"
[ -s "$WORK/add" ] && diag "$(cat "$WORK/add")"
equal "job show lists all 72 jobs" 72 "$(saina_jq job show length)"
start_as m0 0 0 many69 20 --elements 64
start_as m1 1 1 many69 20 --elements 64
start_as n0 0 2 many0 20 --elements 64
start_as n1 1 3 many0 20 --elements 64
check "the first and the last of 72 jobs reduce: all sums are exact" wait_all 60

# 3. The default payload
default_payload() { # of a job that does not say
	saina job add usual workers 2 elements 64 >/dev/null && job_field usual payload
	saina job del usual
}
equal "payload: 352 elements are the default with an MTU of 1500" 352 "$(default_payload)"

# 4. Limits of the number of jobs and of memory
check "limits: set to 72 jobs and 4 MiB for one" saina limits set jobs 72 memory-job 4M
matches "limits: job 73 of 72 is refused" "72" "$(saina job add one-more workers 2 elements 64 payload 64 2>&1)"
check "limits: one of 72 jobs is deleted" saina job del many5
matches "limits: a job of more than 4 MiB is refused" "4 MiB|4194304" \
	"$(saina job add big workers 2 elements 100000000 payload 256 2>&1)"
check "limits: a small job is accepted after another job was deleted" saina job add small workers 2 elements 64 payload 64
matches "job add: a name that is taken is refused" "\"?a\"?.*(exists|taken|already)" \
	"$(saina job add a workers 2 elements 64 payload 64 2>&1)"
equal "limits: 72 jobs are in use" 72 "$(saina_jq limits show '.[0].jobs_used')"
lab_down

# 5. The default payload of other MTUs
if with_bridge linux; then
	lab_up --workers 2 --bridge linux --mtu 1450
	equal "payload: 256 elements are the default with an MTU of 1450" 256 "$(default_payload)"
	lab_down
	lab_up --workers 2 --bridge linux --mtu 9000
	equal "payload: 2048 elements are the default with an MTU of 9000" 2048 "$(default_payload)"
	lab_down
fi
finished
