#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# make demo-vm in small: the three runs in a VM with saina.ko and Open vSwitch's
# kernel datapath end as they do without a VM; Ctrl-C leaves no VM behind.
#
#	selftests/module/demo_vm_test.sh [KERNEL]
#
# 1. Ctrl-C: a terminal sends it to all processes
# 2. A whole run

set -u
top=$(readlink -f "$(dirname "$0")/../..")
kernel=${1-6.12}
tmp=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -TERM "$pid"; rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM HUP

# shellcheck source=../tap.sh
. "$top/selftests/tap.sh"

# result_has JQ-EXPRESSION: true of the table
result_has() {
	jq -e "$1" "$tmp/out/result.json" >/dev/null 2>&1
}

output_has() { # WORDS
	grep -qF "$1" "$tmp/log"
}

in_group() { # PROCESS-GROUP: who is left of it
	pgrep -g "$1" -l
}

[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP needs root"; exit 4; }

# 1. Ctrl-C: a terminal sends it to all processes
setsid env --default-signal=INT "$top/selftests/vm/demo-vm" --kernel "$kernel" --out "$tmp/out" >"$tmp/log" 2>&1 &
pid=$!
# The VM is up, or the run has ended.  The first minute in the VM is set-up.
vm_up() {
	[ -e "$tmp/out/up" ] || ! kill -0 "$pid" 2>/dev/null
}
slowwait 600 vm_up
check "demo-vm: the VM comes up" [ -e "$tmp/out/up" ]
kill -INT -- "-$pid"
wait "$pid"
status=$?
check "demo-vm, Ctrl-C: ends with status 130 ($status)" [ $status = 130 ]
output_has "demo-vm: stopped"
point $? "demo-vm, Ctrl-C: says that it is stopped"
slowwait 20 not in_group "$pid"
check "demo-vm, Ctrl-C: no process is left" [ -z "$(in_group "$pid")" ] || diag "$(in_group "$pid")"
[ $tap_bad = 0 ] || diag "$(cat "$tmp/log")"
pid=
rm -rf "$tmp/out"

# 2. A whole run
"$top/selftests/vm/demo-vm" --kernel "$kernel" --out "$tmp/out" --rounds 16 >"$tmp/log" 2>&1
point $? "demo-vm: ends with status 0"
diag "$(cat "$tmp/log")"
output_has "jobs are configured in the kernel, by netlink"
point $? "demo-vm: saina.ko has the jobs"
check "demo-vm: the table has three runs" \
	result_has '[.runs[].policy] == ["bsp", "fastest:k=3", "sfcd:k0=2,sth=0.25,cth=5"]'
check "demo-vm: the four models of each run are identical" \
	result_has '.runs | all(.models_identical and .workers == 4 and .rounds == 16)'
check "demo-vm: no gradient is late under BSP, at most a quarter under fastest:k=3" \
	result_has '.runs | .[0].late_share == 0 and .[1].late_share > 0 and .[1].late_share <= 0.26'
check "demo-vm: the table has the flips and k of the rounds of SFCD" \
	result_has '.runs[2].sfcd | length >= 12 and all(.flip_share >= 0 and .flip_share <= 1 and .k >= 2 and .k <= 4)'
check "demo-vm: the picture is a PNG file" \
	[ "$(head -c 8 "$tmp/out/demo.png" | od -An -tx1 | tr -d ' ')" = 89504e470d0a1a0a ]
check "demo-vm: the kernel log is kept" [ -s "$tmp/out/dmesg.log" ]
plan
