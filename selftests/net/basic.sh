#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Eight workers, all waited for, without faults: with int32 and with float32,
# on Open vSwitch and on a Linux bridge, MTU 1500 and 9000, with the largest
# payload of each MTU.  Every payload size: trace_test and lib_job_test.
#
#     w0 .. w7 --- p0 .. p7 --- br0 (Open vSwitch, then a Linux bridge)
#
# 1. MTU 1500
# 2. Workers without privileges, two behind each port
# 3. The example of libsaina(3)
# 4. The other bridge
# 5. MTU 9000

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# reduce NAME PAYLOAD TYPE ELEMENTS ROUNDS
reduce() {
	local segments=$((($4 + $2 - 1) / $2)) rounds
	rounds=$(shrink "$5" 3)
	job "$1" workers 8 elements "$4" payload "$2"
	start_all "$1" "$rounds" 8 --type "$3" --elements "$4"
	verify_sums "$BRIDGE, mtu $MTU, payload $2, $3" 60 0 1 2 3 4 5 6 7
	equal "$BRIDGE, mtu $MTU, payload $2, $3: all rounds and segments are there, all eight workers in each" \
		"$rounds $((rounds * segments)) 0 exact 8 8" \
		"$(summary 7 rounds exact unverified residual) $(minmax 7 count_min count_max)"
	saina job del "$1"
}

# 1. MTU 1500
BRIDGE=$DEFAULT_BRIDGE MTU=1500
lab_up --workers 8
# Not a multiple of the payload, so that the last segment is padded.
reduce i352 352 int32 10007 20
reduce f256 256 float32 10007 20
reduce tiny 64 int32 1 10
job gaps workers 1 elements 2560 payload 256
matches "saina-allreduce: buckets that leave no room for elements are refused" "10 buckets do not fit the job of 2560 elements" \
	"$(in_worker 0 "$B/saina-allreduce" --aggregator "$AGG" --job gaps --buckets 10 2>&1)"
saina job del gaps

# 2. Workers without privileges, two behind each port
# Four workers behind two ports, as the user nobody.
chmod 711 "$WORK"
mkdir "$WORK/bin"
cp "$B/saina-allreduce" "$WORK/bin"
worker_program=(setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs "$WORK/bin/saina-allreduce")
job shared workers 4 elements 5000 payload 256 policy bsp
for i in 0 1 2 3; do
	# That user writes the log.
	install -o 65534 /dev/null "$WORK/$i.log"
	start_as $i $i $((i / 2)) shared "$(shrink 20)" --elements 5000
done
equal "unprivileged workers: the process has no capability" 0000000000000000 \
	"$(in_worker 0 "${worker_program[@]::6}" sed -n 's/^CapEff:\t//p' /proc/self/status)"
verify_sums "unprivileged workers, two behind each port" 60 0 1 2 3
equal "unprivileged workers, two behind each port: all four are in every sum" "4 4" "$(minmax 3 count_min count_max)"
worker_program=("$B/saina-allreduce")

saina job del shared

# 3. The example of libsaina(3)
job line elements 2 workers 4
for i in 0 1 2 3; do
	in_worker $i env SAINA_AGGREGATOR="$AGG" SAINA_JOB=line "$B/example-fit" >"$WORK/fit.$i" 2>"$WORK/fit.$i.err" &
	worker_pids[$i]=$!
done
check "the example of libsaina(3): four workers end well" wait_all 60
equal "the example of libsaina(3): all four have the same model, fitted to the data of all" \
	"y = 3.0000 x + 1.0000 (last mean over 4 workers)" "$(sort -u "$WORK"/fit.?)"
lab_down

# 4. The other bridge
if with_bridge ovs && with_bridge linux; then
	BRIDGE=linux
	lab_up --workers 8 --bridge linux
	reduce i256 256 int32 10007 20
	reduce f64 64 float32 10007 20
	lab_down
fi

# 5. MTU 9000
BRIDGE=$DEFAULT_BRIDGE MTU=9000
lab_up --workers 8 --mtu 9000
reduce i2048 2048 int32 20011 20
reduce f1024 1024 float32 20011 10
reduce i256 256 int32 10007 10
lab_down

if with_bridge ovs && with_bridge linux; then
	BRIDGE=linux
	lab_up --workers 8 --mtu 9000 --bridge linux
	reduce i2048 2048 int32 20011 10
	lab_down
fi
finished
