#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# float32 through integers: every result of every worker is as near to the float64 sum as the type
# promises (userland/allreduce/verify_numbers.c), residuals included; it is NaN where a worker had
# one, and exact for small whole numbers (saina-allreduce --values).  SAINA_TEST_TYPE: int32 or int16.
#
#     w0 .. w15 --- p0 .. p15 [lost in, lost out] --- slot machine
#        \..............memory........./
#
#	numbers.sh [all]	all: 2, 4 and 16 workers, each kind with and without losses
#
# 1. Four workers
# 2. "all": two, four and sixteen

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

SHARE=/run/saina-lab/$LAB/run/share
ROUNDS=25
KINDS='spike zeros nan large jump'
# Elements of the job with whole numbers, whose sums are exact: more, so that they are in many slots.
WHOLE=50000
TYPE=${SAINA_TEST_TYPE:-int32}
# The payload of 256 elements.
PAYLOAD=256
[ "$TYPE" = int32 ] || PAYLOAD=128
# Some workers have ended before the agent answers them.
expected_log="shared memory: cannot answer worker"

# check_values KIND WORKERS POLICY LOSS [by-reference]: a job whose workers verify their results
check_values() {
	local kind=$1 n=$2 policy=$3 what all ends=1 elements=3000 segments
	[ "$kind" != whole ] || elements=$WHOLE
	segments=$(((elements + 255) / 256))
	what="$TYPE, $kind, $n workers, $policy, $4 % loss each way${5:+, $5}"
	lab set loss "$4" seed "$SEED" || bail "no loss"
	job numbers workers "$n" elements $elements type "$TYPE" payload $PAYLOAD ring 64 policy "$policy" "${@:5}"
	[ -z "${5-}" ] || export SAINA_SHARE=$SHARE
	# A late worker may fall behind by all rounds of the job.  ROUNDS is less than the ring keeps; bsp by
	# reference, which waits for all, runs until it is stopped.
	if [ "${5-}" ] && [ "$policy" = bsp ]; then
		ends=''
		start_all numbers 1000000 "$n" --elements $elements --values "$kind" --think-us 1000 --straggle 0.3
		check "$what: memory is in use" slowwait 20 shm_in_use numbers
		check "$what: rounds go on" rounds_go_on numbers "$ROUNDS"
		check "$what: memory is still in use" shm_in_use numbers
		stop_workers
	else
		start_all numbers "$ROUNDS" "$n" --elements $elements --values "$kind" --think-us 1000 --straggle 0.3
	fi
	export -n SAINA_SHARE
	check "$what: all results are as near to float64 as they must be" wait_all 90
	equal "$what: no result is left out" "0 0" "$(summary 0 unverified wrong)"
	if [ -n "$ends" ]; then
		equal "$what: all segments of all rounds are there" "$ROUNDS $((segments * ROUNDS))" "$(summary 0 rounds exact)"
	fi
	mapfile -t all < <(seq 0 $((n - 1)))
	check "$what: all workers have the same results" same_results "${all[@]}"
	[ "$policy" = bsp ] || check "$what: some were late" some_were_late "$n"
	if [ "$kind" = nan ]; then
		check "$what: gradients that are not finite are counted" test "$(counter numbers all non-finite)" -gt 0
	elif [ "$kind" = jump ] && [ "$policy" != fastest:k=1 ]; then
		check "$what: slots become coarser, and that is counted" test "$(counter numbers all coarsened)" -gt 0
	fi
	saina job del numbers
}

some_were_late() { # N workers
	local i sum=0
	for ((i = 0; i < $1; i++)); do
		sum=$((sum + $(summary "$i" late_segments)))
	done
	[ $sum -gt 0 ]
}

# late_policy N: prints a policy that does not wait for the slowest of N workers
late_policy() {
	echo "fastest:k=$(($1 > 2 ? $1 / 2 + 1 : 1))"
}

# 1. Four workers
if [ "${1-}" != all ]; then
	lab_up --workers 4 --bridge linux
	for kind in $KINDS; do
		check_values "$kind" 4 bsp 5
	done
	check_values whole 4 bsp 0
	check_values jump 4 "$(late_policy 4)" 5
	check_values nan 4 "$(late_policy 4)" 0 by-reference
	check_values jump 4 bsp 5 by-reference
	finished
	exit
fi

# 2. "all": two, four and sixteen
lab_up --workers 16 --bridge linux
for n in 2 4 16; do
	for kind in $KINDS; do
		check_values "$kind" "$n" bsp 0
		check_values "$kind" "$n" bsp 10
		check_values "$kind" "$n" "$(late_policy "$n")" 5
		check_values "$kind" "$n" bsp 5 by-reference
		check_values "$kind" "$n" "$(late_policy "$n")" 0 by-reference
	done
	check_values whole "$n" bsp 0
	check_values whole "$n" "$(late_policy "$n")" 5
	check_values whole "$n" bsp 0 by-reference
done
finished
