#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Many jobs: two at once over the same ports with nothing in common, 64 and more
# that exist, and the limits.
#
#     w0 .. w3: workers of "a" and of "b" at the same time, 1 % lost each way

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

lab_up --workers 4 --loss 1 --seed "$SEED"
equal "the lab loses 1 % each way at every port" "0.01 0.01 0.01 0.01 0.01 0.01 0.01 0.01" \
	"$(sj port show '[.[].injected|.loss_in,.loss_out|.*10000|round/10000]|join(" ")')"

# --- two at once -------------------------------------------------------------
job a workers 4 elements 10000 payload 256 policy bsp
job b workers 4 elements 7000 payload 352 ring 64 policy fastest:k=3 token other
for i in 0 1 2 3; do
	start_as "a$i" $i $i a "$(less 60)" --elements 10000
	start_as "b$i" $i $i b "$(less 60)" --elements 7000 --token other
done
check "two jobs at once: exact sums in both" wait_all 60
check "a: the same results everywhere" same_results a0 a1 a2 a3
check "b: the same results everywhere" same_results b0 b1 b2 b3
equal "a waits for all" "4 4" "$(minmax a0 count_min count_max)"
equal "b waits for three" "3 3" "$(minmax b0 count_min count_max)"

# --- many --------------------------------------------------------------------
made=2
for ((i = 0; i < 70; i++)); do
	saina job add "many$i" workers 2 elements 64 payload 64 pool 1 ring 2 >/dev/null 2>"$WORK/add" || break
	made=$((made + 1))
done
equal "72 jobs exist at once" 72 "$made"
[ -s "$WORK/add" ] && diag "$(cat "$WORK/add")"
equal "all are shown" 72 "$(sj job show length)"
start_as m0 0 0 many69 20 --elements 64
start_as m1 1 1 many69 20 --elements 64
start_as n0 0 2 many0 20 --elements 64
start_as n1 1 3 many0 20 --elements 64
check "the first and the last of them reduce" wait_all 60

# --- limits ------------------------------------------------------------------
check "at most 72 jobs, at most 4 MiB for one" saina limits set jobs 72 memory-job 4M
said=$(saina job add one-more workers 2 elements 64 payload 64 2>&1)
matches "one more is refused" "72" "$said"
check "one is removed" saina job del many5
said=$(saina job add big workers 2 elements 100000000 payload 256 2>&1)
matches "one that is too big is refused" "4 MiB|4194304" "$said"
check "a small one is taken" saina job add small workers 2 elements 64 payload 64
said=$(saina job add a workers 2 elements 64 payload 64 2>&1)
matches "a name that is taken is refused" "\"?a\"?.*(exists|taken|already)" "$said"
equal "72 again" 72 "$(sj limits show '.[0].jobs_used')"
finished
