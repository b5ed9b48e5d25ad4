#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Losses on both directions of every link, from 0 to 20 %, seeded:
#
#     w0 .. w7 --- p0 .. p7 [lost in, lost out] --- slot machine
#
# Every round completes with exactly the right sums at every worker.
#
#	loss.sh [jumbo]		jumbo: MTU 9000, payloads 1024 and 2048
#
# 1. A loss is set on every port
# 2. Eight workers reduce
# 3. No sum is wrong or missing, and frames were lost

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

payload=256 elements=20000
echo "# seed $SEED"

# lossy PERCENT POLICY ROUNDS TYPE
lossy() {
	local name="l$1-${2%%:*}-$4" lost rounds segments=$(((elements + payload - 1) / payload)) what
	what="$1 % loss${jumbo:+, payload $payload}"
	rounds=$(shrink "$3" 4)

	# 1. A loss is set on every port
	check "$what is set on every port" lab set loss "$1" seed "$SEED" || return
	lost=$(injected)

	# 2. Eight workers reduce
	job "$name" workers 8 elements "$elements" payload "$payload" ring 32 policy "$2"
	start_all "$name" "$rounds" 8 --type "$4" --elements "$elements"
	what="$1 % loss each way${jumbo:+, payload $payload}, $2, $4"
	check "$what: all sums of eight workers are exact" wait_all 60

	# 3. No sum is wrong or missing, and frames were lost
	equal "$what: all segments of all rounds are there" "$rounds $((segments * rounds)) 0" \
		"$(summary 0 rounds exact unverified)"
	check "$what: all workers have the same results" same_results 0 1 2 3 4 5 6 7
	if [ "$1" = 0 ]; then
		equal "${what%% each*}: no frame was dropped on purpose" "$lost" "$(injected)"
	else
		check "$what: frames were dropped on purpose, in and out" lost_both "$lost"
	fi
	[ -z "$jumbo" ] || equal "$what: no result was relayed by the agent" "0 0" \
		"$(counter "$name" all relayed) $(counter "$name" all no-memory)"
	saina job del "$name"
}

jumbo=''
if [ "${1-}" = jumbo ]; then
	# On a Linux bridge: with Open vSwitch's userspace datapath the agent would relay such results.
	jumbo=1 elements=60000
	lab_up --workers 8 --bridge linux --mtu 9000
	for payload in 1024 2048; do
		lossy 0 bsp 10 int32
		lossy 5 bsp 10 float32
		lossy 20 bsp 10 int32
		lossy 20 fastest:k=5 10 int32
		lossy 20 fastest:k=6,late=drop 10 int32
	done
	finished
	exit
fi

lab_up --workers 8
lossy 0 bsp 20 int32
lossy 1 bsp 20 int32
lossy 5 fastest:k=6 20 int32
lossy 5 bsp 10 float32
lossy 20 bsp 15 int32
lossy 20 fastest:k=5 15 int32
lossy 20 fastest:k=6,late=drop 10 int32
finished
