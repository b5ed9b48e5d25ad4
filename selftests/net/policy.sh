#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Fastest-k with a straggler, and policies changed while gradients flow:
#
#     w0 .. w4: quick        w5: thinks for 20 ms a round, until it is decided
#
# 1. fastest-k with a straggler
# 2. Policies change under traffic
# 3. Each change has an event, and no round two policies

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

lab_up --workers 6

# 1. fastest-k with a straggler
rounds=$(shrink 150)
job straggler workers 6 elements 8192 payload 256 ring 64 policy fastest:k=5
start_all straggler "$rounds" 5 --elements 8192 --think-us 2000
start 5 straggler "$rounds" --elements 8192 --think-us $((20000 * SLOW)) --cancel
verify_sums "straggler, fastest:k=5" 60 0 1 2 3 4 5
equal "straggler, fastest:k=5: every sum has five contributors" "5 5" "$(minmax 0 count_min count_max)"
check "straggler, fastest:k=5: some of its segments were late" [ "$(total 5 late_segments)" -gt 0 ]
equal "straggler, fastest:k=5: all it produced is in sums or in its residual" exact "$(summary 5 residual)"

# 2. Policies change under traffic
job swap workers 6 elements 8192 payload 256 ring 64 policy bsp
events_start
start_all swap 100000 6 --elements 8192 --think-us 4000 --cancel
check "policies under traffic: rounds flow" slowwait 20 rounds_at_least swap 10
policies=("fastest:k=4" "sfcd:k0=2,sth=0.9,cth=5" "bsp" "fastest:k=6,late=drop" "fastest:k=3")
seq=1
for p in "${policies[@]}"; do
	seq=$((seq + 1))
	check "policies under traffic: set to $p" saina job set swap policy "$p"
	check "policies under traffic: $p comes into force" slowwait 10 in_force swap $seq
	check "policies under traffic: rounds go on under $p" rounds_go_on swap 5
done
matches "policies under traffic: a k above the number of workers is refused" "k" "$(saina job set swap policy "fastest:k=9" 2>&1)"
equal "policies under traffic: a refused policy changes nothing" $seq "$(job_field swap policy_seq)"
matches "policies under traffic: an unknown key is refused by its name" "slow" \
	"$(saina job set swap policy "fastest:k=4,slow=yes" 2>&1)"
equal "policies under traffic: no slot saw two policies" 0 "$(policy_mix swap)"
check "policies under traffic: late gradients were answered" [ "$(counter swap all late)" -gt 0 ]
stop_workers
verify_sums "policies under traffic" 30 0 1 2 3 4 5

# 3. Each change has an event, and no round two policies
events_stop
equal "monitor: one policy event is sent for each change" "2 3 4 5 6" \
	"$(events 'select(.event=="policy" and .job=="swap" and .to>1)|.to' | xargs)"

# policies_apart: all workers saw each round under the same policy, the policies follow each
# other, and each segment has as many contributors as the round's k (except at the end, when
# workers leave).
policies_apart() {
	jq -r 'select(.degraded_segments == 0)|"\(.round) \(.k) \(.policy) \(.count_min) \(.count_max)"' \
		"$WORK"/[0-5].log | awk '{
			round = $1; k = $2; policy = $3; low = $4; high = $5
			if (low != k || high != k)
				print "round " round ": k " k ", counted " low " to " high
			if (round in seen && seen[round] != policy)
				print "round " round ": policies " seen[round] " and " policy
			seen[round] = policy
			if (round > last)
				last = round
		}
		END {
			for (r = 0; r <= last; r++) {
				if (r in seen && seen[r] < newest)
					print "round " r ": policy " seen[r] " after " newest
				if (r in seen)
					newest = seen[r]
			}
			if (newest != 6)
				print "last policy " newest
		}' >"$WORK/apart"
	cat "$WORK/apart"
	[ ! -s "$WORK/apart" ]
}
check "policies under traffic: no round was decided under two policies" policies_apart
finished
