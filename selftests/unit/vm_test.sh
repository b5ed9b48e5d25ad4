#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# How tools/saina-vm judges the log of a kernel: trouble fails a run whatever the script's status
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
	"$top/tools/saina-vm" run -k 6.1 -m 512 -c 1 -o "$tmp/out" -t 200 -- \
		sh -c 'for line; do echo "<4>$line" >/dev/kmsg; done; exit 7' sh "$@" >"$tmp/output" 2>&1
	check "vm: $what: exit status $want" [ $? = "$want" ] || diag "$(cat "$tmp/output")"
}

panic="Kernel panic - not syncing: planted"
run 7 "a kernel without trouble: the script's" "nothing of interest"
run 121 "a warning" "WARNING: planted"
run 123 "a breakpoint that memory does not have" "int3: 0000 [#1] PREEMPT SMP" "Code: 00 fb 0f <1f> 44" "$panic"
run 121 "a breakpoint that memory has" "int3: 0000 [#1] PREEMPT SMP" "Code: 00 fb cc <1f> 44" "$panic"
run 121 "trouble before such a breakpoint" "WARNING: planted" "int3: 0000 [#1] PREEMPT SMP" "Code: 00 fb 0f <1f> 44" "$panic"
plan
