#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# saina-allreduce as users run it: a table, sizes that grow, and for whom it waits.
#
#     w0 .. w2: eth0     sainad, br0 (Linux bridge)
#
# 1. The table of one size
# 2. A sweep, with all workers and with a straggler that is not waited for
# 3. For whom it waits, and SIGTERM

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

lab_up --workers 3 --bridge linux

people() { # WORKER JOB [options]: saina-allreduce without what start() adds for tests
	nsenter --net="/run/netns/saina-$LAB-w$1" -- "$B/saina-allreduce" --aggregator "$AGG" --job "$2" --worker "$1" \
		"${@:3}" >"$WORK/$1.out" 2>"$WORK/$1.err" </dev/null &
	worker_pids[$1]=$!
}

reap_all() { # WORKER...
	local i bad=0
	for i; do
		worker_reap "$i"
		[ "$status" = 0 ] || bad=1
	done
	return $bad
}

rows() { # WORKER: prints the sizes of the table, with a "?" behind those whose row is not consistent
	awk -v n=2 '!/^ *[0-9]/ { next }
		{ alg = $1 / $4 / 1000; bus = $5 * 2 * (n - 1) / n
		  ok = $2 == $1 / 4 && $4 > 0 && ($5 - alg) ^ 2 < 1e-6 + alg ^ 2 / 100 && ($6 - bus) ^ 2 < 1e-5 && $7 == 0
		  printf "%s%s ", $1, ok ? "" : "?" }' "$WORK/$1.out"
}

# 1. The table of one size
job one workers 2 elements 100000
people 0 one --rounds 20
people 1 one --rounds 20
check "table: both workers end with status 0" reap_all 0 1
equal "table: a row has size, count, time and bandwidths" "400000 " "$(rows 0)"
matches "table: its head is that of nccl-tests" "size +count +type +time +algbw +busbw +#wrong" "$(cat "$WORK/0.out")"
saina job del one

job shown workers 1 elements 1000
in_worker 0 script -qec "'$B/saina-allreduce' -a $AGG -j shown -r 30" /dev/null >"$WORK/terminal" 2>&1 </dev/null
matches "table: on a terminal progress is shown, and cleared before the row" \
	$'\r\e\\[Kround 0 of 30.*\r\e\\[K.* 4000 +1000 ' "$(cat "$WORK/terminal")"
saina job del shown

# 2. A sweep, with all workers and with a straggler that is not waited for
job sweep workers 2 elements 100000
for i in 0 1; do
	people $i sweep -b 64 -e 256K -f 8 --iters 6 --warmup 2
done
check "sweep: both workers end with status 0" reap_all 0 1
# From the third size on a size is a whole number of segments of 352 elements.
equal "sweep: a row for each size" "64 512 2816 32384 261888 " "$(rows 0)"
equal "sweep: the other worker has the same sizes" "$(rows 0)" "$(rows 1)"
matches "sweep: all sums are exact" "segments: [0-9]+ right .* 0 unverified, 0 wrong" "$(cat "$WORK/1.out")"
saina job del sweep

# The ring keeps more rounds than there are: the slow worker is never too late.
job fast workers 2 elements 100000 ring 64 policy fastest:k=1
for i in 0 1; do
	people $i fast -b 4K -e 64K -f 4 --iters 6 --warmup 2 --think-us $((i * 3000)) --json
done
check "sweep, fastest:k=1: both workers end with status 0" reap_all 0 1
equal "sweep, fastest:k=1: no sum is wrong, and JSON has the sizes" "2816 15488 64768 0 " \
	"$(jq -r '.size // .wrong' "$WORK/0.out" | tr '\n' ' ')"
saina job del fast

job small workers 2 elements 1000
people 0 small -b 4K -e 1M
people 1 small -b 4K -e 1M
worker_reap 0
equal "sweep: a size that the job does not have is refused with status 2" 2 "$status"
matches "sweep: a size that the job does not have is refused with the job's" "the job has 1000 elements" "$(cat "$WORK/0.err")"
worker_reap 1
saina job del small

# 3. For whom it waits, and SIGTERM
job crowd workers 5 elements 1000 dead 60000
people 0 crowd
people 2 crowd
says_missing() {
	grep -q "ranks 1, 3, 4 are missing" "$WORK/0.err"
}
again() { # at 2 s and 12 s after it has joined
	[ "$(grep -c "ranks 1, 3, 4 are missing" "$WORK/0.err")" -ge 2 ]
}
check "waits: a worker says who is missing before the job runs" slowwait 60 says_missing
check "waits: it says so again" slowwait 60 again
kill -TERM "${worker_pids[0]}" "${worker_pids[2]}"
for i in 0 2; do
	worker_reap $i
	equal "waits: SIGTERM ends worker $i, whose job does not run yet" 3 "$status"
done
equal "waits: both have left the job, for which they would be alive for a minute" "left left" \
	"$(saina_jq worker show crowd '[.[] | select(.state != "none") | .state] | join(" ")')"
saina job del crowd

job round workers 2 elements 1000 dead 60000
people 0 round --rounds 0
people 1 round --rounds 0 --think-us 1000
check "waits: rounds flow" slowwait 60 rounds_at_least round 3
kill -STOP "${worker_pids[1]}"
says_live() {
	grep -q "waiting for round [0-9]*: rank 1 is missing" "$WORK/0.err"
}
check "waits: in a round it names the live worker that is missing" slowwait 120 says_live
kill -CONT "${worker_pids[1]}"
kill -TERM "${worker_pids[0]}" "${worker_pids[1]}"
check "waits: SIGTERM ends both" reap_all 0 1
saina job del round

job lead workers 3 elements 1000 dead 60000 ring 8 policy fastest:k=2,lead=4
for i in 0 1 2; do
	people $i lead --rounds 0 --think-us 1000
done
check "waits: rounds of a job with a lead flow" slowwait 60 rounds_at_least lead 10
kill -STOP "${worker_pids[2]}"
says_behind() { # WORKER
	grep -q "waiting for round [0-9]*: rank 2 is so many rounds behind that the round cannot begin" "$WORK/$1.err"
}
check "waits: a worker names the one for which the round does not begin" slowwait 120 says_behind 0
check "waits: so does another" slowwait 120 says_behind 1
kill -CONT "${worker_pids[2]}"
kill -TERM "${worker_pids[@]}"
check "waits: SIGTERM ends all three" reap_all 0 1 2
finished
