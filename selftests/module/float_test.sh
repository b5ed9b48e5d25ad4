#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Jobs of float32 and bfloat16: saina.ko sums them for the XDP program, workers in
# namespaces check every sum against a float reference (userland/allreduce/
# verify_float.c).
#
#	float_test.sh [losses]	only losses
#
#     switch: saina.ko, sainad, br0 (Linux bridge) --- w0, w1, w2
#
# In the test VM (selftests/in-vm); TAP.
#
# 1. "losses": only losses
# 2. Two contributors: addition is commutative, so the order does not matter
# 3. Three: exact where nothing is rounded, else as near as roundings allow
# 4. Losses
# 5. A straggler: late results, residuals
# 6. SFCD: every sign flips in every round
# 7. Workers that do not fit
# 8. Long frames: in pieces from a page on, their results leave by tc
# 9. Without saina.ko

here=$(dirname "$(readlink -f "$0")")
module=$SAINA_TEST_MODULE

# shellcheck source=../net/lib.sh
. "$here/../net/lib.sh"

elements=2003 segments=6

# train NAME WORKERS ROUNDS [saina-allreduce's options]: in a job of that name
train() {
	local name=$1 n=$2 rounds=$3 i tags=()
	start_all "$name" "$rounds" "$n" --elements "$elements" "${@:4}"
	check "$name: all sums of $n workers are right" wait_all 60
	for ((i = 0; i < n; i++)); do
		tags+=("$i")
	done
	check "$name: all workers have the same results, bit for bit" same_results "${tags[@]}"
}

# sums NAME ROUNDS BOUNDED: of the segments of worker 0, all but BOUNDED are known to the bit; the
# sums of those depend on the order of addition
sums() {
	equal "$1: segments whose sum is known to the bit: all but $3" "$(($2 * segments)) $3 0" \
		"$(summary 0 exact bounded unverified)"
}

# straggle TYPE [saina job add's words]: each sum has the gradients of two workers; the third is late
straggle() {
	local name=late-$1${3+-$3}
	job "$name" workers 3 elements "$elements" type "$1" policy fastest:k=2 "${@:2}"
	start 2 "$name" 8 --elements "$elements" --think-us 300000
	start 0 "$name" 8 --elements "$elements" --think-us 20000
	start 1 "$name" 8 --elements "$elements" --think-us 20000
	check "$name, a straggler: all sums are right, and so are the residuals" wait_all 90
	check "$name, a straggler: all workers have the same results" same_results 0 1 2
	equal "$name, a straggler: two contributors in each sum" "2 2" "$(minmax 0 count_min count_max)"
	check "$name, a straggler: it is late for some segments" test "$(total 2 late_segments)" -gt 0
	saina job del "$name"
}

# lossy TYPE [saina job add's words]: a fifth of the messages to the switch is lost, and a fifth
# of the frames from it; each gradient is counted once all the same
lossy() {
	local name=lossy-$1${3+-$3} rounds=12 lost
	check "$name: 20 % loss is set on every port" lab set loss 20 seed "$SEED"
	lost=$(injected)
	job "$name" workers 3 elements "$elements" type "$1" "${@:2}"
	train "$name" 3 "$rounds"
	sums "$name" "$rounds" 0
	check "$name: frames were dropped on purpose, in and out" lost_both "$lost"
	check "$name: messages were sent again" test "$(total 0 resent)" -gt 0
	saina job del "$name"
	check "$name: loss is set to 0 again" lab set loss 0
}

# 1. "losses": only losses
# Jumbo results leave by tc with either hook.
hook=${SAINA_TEST_HOOK:-xdp}
check "saina.ko is loaded" insmod "$module"
echo "# seed $SEED"
lab_up --workers 3 --bridge linux --hook "$hook"
if [ "${1-}" = losses ]; then
	lossy float32
	lossy bfloat16
	lab_down
	lab_up --workers 3 --bridge linux --mtu 9000 --hook "$hook"
	elements=5003 segments=3
	lossy float32 payload 2048
	lossy bfloat16 payload 2048
	lab_down
	check "saina.ko is unloaded" slowwait 20 rmmod saina
	finished
	exit
fi

# 2. Two contributors: addition is commutative, so the order does not matter
# (with and without the vector unit: kfunc_test)
for type in float32 bfloat16; do
	job $type workers 2 elements 2003 type $type
	train $type 2 3 --signs wild
	sums $type 3 0
	saina job del $type
done

# 3. Three: exact where nothing is rounded, else as near as roundings allow
job f32 workers 3 elements 2003 type float32
train f32 3 3
sums f32 3 0
saina job del f32
job wild workers 3 elements 2003 type float32
train wild 3 3 --signs wild
sums wild 3 $((3 * segments))
saina job del wild
job b16 workers 3 elements 2003 type bfloat16
train b16 3 3
sums b16 3 0
saina job del b16

# 4. Losses
for type in float32 bfloat16; do
	lossy $type
done

# 5. A straggler: late results, residuals
for type in float32 bfloat16; do
	straggle $type
done

# 6. SFCD: every sign flips in every round
job sfcd workers 2 elements 2003 type float32 policy sfcd:k0=1,sth=0.5,cth=2,stride=1
start_all sfcd 24 2 --elements 2003 --signs flip --think-us 50000
check "float32, SFCD: all sums are right" wait_all 60
equal "float32, SFCD: k has grown with the flipped signs" 2 "$(last_field 0 k)"
saina job del sfcd

# 7. Workers that do not fit
job f32 workers 1 elements 2003 type float32
matches "join: a worker of int32 is refused by a job of float32" "create the job with type int32" \
	"$(join_error 0 0 f32 --type int32)"
job long workers 1 elements 2003 type bfloat16 payload 1024
matches "join: a message that does not fit the MTU is refused, with the MTU needed" "2124" \
	"$(join_error 0 0 long)"
matches "doctor: says that the MTU of the ports is too small for the job" "messages of job long take 2124" \
	"$(in_switch "$B/saina" doctor host config "/run/saina-lab/$LAB/sainad.conf")"
lab_down

# 8. Long frames: in pieces from a page on, their results leave by tc
lab_up --workers 3 --bridge linux --mtu 9000 --hook "$hook"
equal "mtu 9000: all ports have the hook $hook" "$hook $hook $hook" \
	"$(saina_jq port show '[.[].hook]|join(" ")')"
elements=5003
for type in float32 bfloat16; do
	name=$type-2048 segments=3
	job "$name" workers 3 elements $elements type $type payload 2048
	train "$name" 3 3
	sums "$name" 3 0
	equal "$name, mtu 9000: no result is relayed" "0 0" \
		"$(counter "$name" all relayed) $(counter "$name" all no-memory)"
	saina job del "$name"
	lossy $type payload 2048
	straggle $type payload 2048
done
lab_down
check "saina.ko is unloaded" slowwait 20 rmmod saina

# 9. Without saina.ko
unset SAINA_CONTROL
lab_up --workers 1 --bridge linux
matches "agent without saina.ko: a job of float32 is refused, with what it needs" "sums of floats need saina.ko" \
	"$("$B/saina" -s "$AGENT_SOCKET" job add f workers 1 elements 1 type float32 2>&1)"
finished
