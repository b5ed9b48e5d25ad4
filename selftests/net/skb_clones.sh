#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The tc hook writes results where gradients were, but never into memory that others see:
#
#     w0 eth0 --- p0 [tc]      a socket of AF_PACKET on each of the four holds clones of
#     w1 eth0 --- p1 [tc]      all frames while rounds go on, and reads them afterwards
#
# 1. Two workers train, and four sockets hold what they send
# 2. Nothing was written into what the sockets hold
# 3. A result that a worker sends is found: the check can fail
# 4. The workers end: every sum was right

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

export SAINA_LAB_HOOK=tc
lab_up --workers 2 --bridge linux

out=/run/saina-lab/$LAB/seen
mkdir "$out"

# capture WORKER: captures what a worker sends, at both ends of its link, until $out/enough exists
capture() {
	in_worker "$1" python3 "$NET_DIR/skb_clones.py" eth0 "$out/enough" "10.190.0.1$1" >"$out/eth$1" &
	in_switch python3 "$NET_DIR/skb_clones.py" "p$1" "$out/enough" "10.190.0.1$1" >"$out/p$1" &
}

captured() { # FILE JQ
	tail -n 1 "$out/$1" | jq -c "$2"
}

all_listen() {
	[ "$(cat "$out"/* | grep -c ready)" -ge "$1" ]
}

# 1. Two workers train, and four sockets hold what they send
job seen workers 2 elements 20000 payload 352 policy bsp
start_all seen 1000000 2 --elements 20000 --think-us 5000
check "clones: rounds flow" slowwait 30 rounds_at_least seen 5

# 2. Nothing was written into what the sockets hold
for i in 0 1; do
	capture $i
done
captures=$(jobs -p | tail -n 4)
check "clones: four sockets capture" slowwait 10 all_listen 4
check "clones: rounds go on while they do" rounds_go_on seen 50
touch "$out/enough"
# shellcheck disable=SC2086
wait $captures
for i in 0 1; do
	for at in eth p; do
		check "clones: $at$i saw GSO batches of gradients" [ "$(captured $at$i '.gso_batches > 0 and (.grads | length) > 57')" = true ]
		equal "clones: $at$i saw only what a worker sends, each gradient always the same" "[]" "$(captured $at$i .wrong)"
	done
	equal "clones: worker $i's gradients that both ends of its link have seen, some at least, are the same" true \
		"$(jq -s '.[0].grads as $a | .[1].grads as $b | [$a | to_entries[] | select($b[.key] != null) | .value == $b[.key]] | length > 0 and all' \
			<(captured eth$i .) <(captured p$i .))"
done

# 3. A result that a worker sends is found: the check can fail
rm "$out"/*
capture 0
check "clones: two sockets capture" slowwait 10 all_listen 2
SWITCH_MAC=$(mac_of switch)
send_raw 0 type=2 job="$(job_field seen id)" repeat=3
touch "$out/enough"
# shellcheck disable=SC2046
wait $(jobs -p | tail -n 2)
matches "clones: a result among what a worker sends is found" "type 2" "$(captured eth0 .wrong)"

# 4. The workers end: every sum was right
stop_workers
check "clones: all sums are exact while others hold the frames" wait_all 30
check "clones: both workers have the same results" same_results 0 1
finished
