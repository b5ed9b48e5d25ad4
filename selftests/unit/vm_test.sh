#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# How selftests/vm/saina-vm judges the log of a kernel: trouble fails a run whatever the script's status
# is.  A breakpoint trap where memory holds no breakpoint is the emulator's fault; where memory
# holds one it is not.

set -u
top=$(readlink -f "$(dirname "$0")/../..")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# shellcheck source=../tap.sh
. "$top/selftests/tap.sh"

run() { # EXPECTED-STATUS DESCRIPTION LINE...: a script that has the kernel log these lines
	local want=$1 what=$2
	shift 2
	# shellcheck disable=SC2016 # the VM's shell expands it
	"$top/selftests/vm/saina-vm" run -k 6.1 -m 512 -c 1 -o "$tmp/out" -t 200 -- \
		sh -c 'for line; do echo "<4>$line" >/dev/kmsg; done; exit 7' sh "$@" >"$tmp/output" 2>&1
	check "vm: $what: exit status $want" [ $? = "$want" ] || diag "$(cat "$tmp/output")"
}

panic="Kernel panic - not syncing: planted"
run 7 "a kernel without trouble: the script's" "nothing of interest"
run 121 "a warning" "WARNING: planted"
run 123 "a breakpoint that memory does not have" "int3: 0000 [#1] PREEMPT SMP" "Code: 00 fb 0f <1f> 44" "$panic"
run 121 "a breakpoint that memory has" "int3: 0000 [#1] PREEMPT SMP" "Code: 00 fb cc <1f> 44" "$panic"
run 121 "trouble before such a breakpoint" "WARNING: planted" "int3: 0000 [#1] PREEMPT SMP" "Code: 00 fb 0f <1f> 44" "$panic"

stall() { # BYTE: a processor that comes back to a breakpoint again and again; BYTE: what memory has there
	stalled=("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:"
		"RIP: 0010:asm_exc_int3+0x0/0x40" "Code: 66 90 <0f> 01 ca" "Call Trace:"
		"RIP: 0010:planted+0x3e/0x120" "Code: 48 ab $1 <1f> 44" "$panic")
}
stall 0f
run 123 "a stall at a breakpoint that memory does not have" "${stalled[@]}"
stall cc
run 121 "a stall at a breakpoint that memory has" "${stalled[@]}"
run 121 "a stall elsewhere" "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:" \
	"RIP: 0010:planted+0x3e/0x120" "Code: 48 ab 0f <1f> 44" "$panic"
plan
