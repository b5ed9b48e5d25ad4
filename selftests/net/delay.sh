#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Frames held back at some ports, so that they overtake each other, with losses
# on top: late, duplicate and reordered packets change no sum.
#
#     w0, w1, w2: as they are     w3: 3 ms each way     w4: 8 ms in
#     w5: 5 ms out                w6, w7: lose 5 %
#     w1: also on a link of 50 Mbit/s
#
# Then three workers on links of 20 Mbit/s that lose nothing: a queue longer than
# the time-out must not make them send everything again and again.
#
# Then a Linux bridge, whose workers leave checksums to the device: what is held
# back on the way in gets its checksum all the same.

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# Emulated processors may take too long over a probe; it is set right later.
[ "$SLOW" = 1 ] || expected_log="gets no redirected frames"

lab_up --workers 8
echo "# seed $SEED"
check "worker 3 is 3 ms away" lab set 3 delay 3
check "worker 4 is 8 ms away, in" lab set 4 delay-in 8
check "worker 5 is 5 ms away, out" lab set 5 delay-out 5
check "worker 6 loses" lab set 6 loss 5 seed "$SEED"
check "worker 7 loses" lab set 7 loss 5 seed $((SEED + 7))
check "worker 1 has a slow link" lab rate 1 50mbit
equal "the port shows its delay" "3000 3000" \
	"$(sj port show p3 '.[0].injected | "\(.delay_in_us) \(.delay_out_us)"')"

for policy in bsp fastest:k=5; do
	job "${policy%:*}" workers 8 elements 20000 payload 256 ring 64 policy "$policy"
	start_all "${policy%:*}" 100000 8 --elements 20000 --think-us 2000 --cancel
	check "$policy: rounds flow" until_true 60 rounds_at_least "${policy%:*}" "$(less 25 5)"
	equal "$policy: policies not mixed" 0 "$(policy_mix "${policy%:*}")"
	[ $policy = bsp ] || check "$policy: late gradients were answered" [ "$(counter fastest all late)" -gt 0 ]
	stop_workers
	check "$policy: exact sums" wait_all 60
	check "$policy: the same results everywhere" same_results 0 1 2 3 4 5 6 7
done
check "frames were held back" [ "$(counter - - delayed)" -gt 100 ]

check "nothing is held back or lost any more" lab set delay 0 loss 0
for i in 0 1 2; do
	check "worker $i has a link of 20 Mbit/s" lab rate "$i" 20mbit
done
job slow workers 3 elements 100000 payload 352 policy bsp
start_all slow 5 3 --elements 100000
check "slow links: exact sums" wait_all 120
check "slow links: the same results everywhere" same_results 0 1 2
sent=0 resent=0
for i in 0 1 2; do
	sent=$((sent + $(summary "$i" sent)))
	resent=$((resent + $(summary "$i" resent)))
done
check "slow links: less was sent again ($resent) than for the first time ($sent)" \
	[ "$resent" -lt "$sent" ]
lab_down

if with_bridge linux; then
	lab_up --workers 2 --bridge linux
	equal "Linux bridge: checksums are left to the device" "tx-checksumming: on" \
		"$(lab exec 0 ethtool -k eth0 | grep '^tx-checksumming')"
	check "Linux bridge: worker 0 is 3 ms away, in" lab set 0 delay-in 3
	job linux workers 2 elements 5000 payload 256 policy bsp
	start_all linux 10 2 --elements 5000
	check "Linux bridge: exact sums" wait_all 60
	check "Linux bridge: the same results everywhere" same_results 0 1
	check "Linux bridge: frames were held back" [ "$(counter - - delayed)" -gt 100 ]
fi
finished
