#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Losses on both directions of every link, from 0 to 20 %, seeded:
#
#     w0 .. w7 --- p0 .. p7 [lost in, lost out] --- slot machine
#
# Every round completes with exactly the right sums at every worker.

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

lab_up --workers 8
echo "# seed $SEED"

# lossy PERCENT POLICY ROUNDS TYPE
lossy() {
	local name="l$1-${2%%:*}-$4" lost rounds
	rounds=$(less "$3" 4)
	check "$1 % loss is set on every port" lab set loss "$1" seed "$SEED" || return
	lost=$(injected)
	job "$name" workers 8 elements 20000 payload 256 ring 32 policy "$2"
	start_all "$name" "$rounds" 8 --type "$4" --elements 20000
	check "$1 % loss each way, $2, $4: all sums of eight workers are exact" wait_all 60
	equal "$1 % loss each way, $2, $4: all segments of all rounds are there" "$rounds $((79 * rounds)) 0" \
		"$(summary 0 rounds exact unverified)"
	check "$1 % loss each way, $2, $4: all workers have the same results" same_results 0 1 2 3 4 5 6 7
	if [ "$1" = 0 ]; then
		equal "0 % loss: no frame was dropped on purpose" "$lost" "$(injected)"
	else
		check "$1 % loss each way, $2, $4: frames were dropped on purpose, in and out" lost_both
	fi
	saina job del "$name"
}

injected() {
	echo "$(counter - - injected-in) $(counter - - injected-out)"
}

lost_both() {
	local now
	now=$(injected)
	[ "${now% *}" -gt "${lost% *}" ] && [ "${now#* }" -gt "${lost#* }" ]
}

lossy 0 bsp 20 int32
lossy 1 bsp 20 int32
lossy 5 fastest:k=6 20 int32
lossy 5 bsp 10 float32
lossy 20 bsp 15 int32
lossy 20 fastest:k=5 15 int32
lossy 20 fastest:k=6,late=drop 10 int32
finished
