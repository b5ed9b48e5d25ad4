#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# make check-debug: the tests of saina.ko in the kernel named debug, which has
# KASAN, lockdep, kmemleak and more (selftests/vm/debug.config).  First it shows that
# each of them works: the module in faults/ commits a fault for each, and the VM
# must fail.  TAP; the last line is a summary.
#
#	selftests/module/debug.sh [PATTERN]	only steps whose name holds PATTERN
#
# That kernel, emulated, is some hundred times slower than this machine's, so there
# is less to do than on the others: MESSAGES (default 20000) random messages and
# LOOPS (10) of insmod and rmmod.

set -u
top=$(readlink -f "$(dirname "$0")/../..")
here=$top/selftests/module
B=${SAINA_BUILD:-$top/build}
messages=${MESSAGES:-20000} loops=${LOOPS:-10}
pattern=${1-}
EX_KERNEL=121
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
vm_pid=
# The VM ends with its saina-vm, which does not end by itself when this script gets a signal.
trap '[ -z "$vm_pid" ] || { kill -TERM "$vm_pid"; wait "$vm_pid"; }; exit 130' INT TERM HUP

# shellcheck source=../tap.sh
. "$top/selftests/tap.sh"

vm() { # COMMAND...
	"$@" &
	vm_pid=$!
	wait "$vm_pid"
	set -- $?
	vm_pid=
	return "$1"
}

wanted() { # NAME
	[[ $1 == *$pattern* ]]
}

# fault NAME ERE: a report that matches is in the kernel log, and is of a kind that fails a VM.
fault() {
	local line
	line=$(grep -aE "$2" "$tmp/vm/dmesg.log" | head -n 1)
	[ -n "$line" ] && grep -qE -f <(grep -v '^#' "$top/selftests/vm/splat") <<<"$line"
	point $? "debug kernel: a fault of the kind \"$1\" is reported"
}

# All faults in one VM, which takes a minute to start.  Those for lockdep come before the
# rest: its first report turns it off.
faults() {
	local rc
	wanted faults || return
	# shellcheck disable=SC2016
	vm "$top/selftests/vm/saina-vm" run -k debug -t 900 -o "$tmp/vm" -a kasan_multi_shot -- "$here/leakscan.sh" sh -c '
		ko=$1; shift
		for fault; do insmod "$ko" fault=$fault && rmmod faults; done' sh "$B/module/faults/faults.ko" \
		none sleep-in-atomic no-rcu-lock inverse-locks free-active-timer use-after-free \
		out-of-bounds leak >"$tmp/out" 2>"$tmp/err"
	rc=$?
	check "debug kernel: a VM whose kernel reports a fault fails (status $rc)" [ $rc = $EX_KERNEL ]
	fault "sleep in atomic context" 'sleeping function called from invalid context.*faults'
	fault "RCU pointer without a lock" 'suspicious RCU usage'
	fault "locks in inverse order" 'possible circular locking'
	fault "freed with an active timer" 'ODEBUG: free active'
	fault "use after free" 'KASAN: .*use-after-free in use_after_free'
	fault "write beyond the end" 'KASAN: .*out-of-bounds in out_of_bounds'
	fault "leak" 'kmemleak: [0-9]+ new suspected'
}

# step NAME LIMIT COMMAND...: runs a test in a VM; its points, and no report of the kernel.
step() {
	local name=$1 rc start=$SECONDS
	wanted "$name" || return
	vm "$top/selftests/in-vm" debug "$2" "$here/leakscan.sh" "${@:3}" >"$tmp/out" 2>"$tmp/err"
	rc=$?
	[ $rc = 0 ] || sed 's/^/#   /' "$tmp/err" | head -n 60
	pass_on "$name" $rc "$tmp/out"
	echo "# $name: $((SECONDS - start)) s"
}

"$here/build.sh" debug >/dev/null || { echo "Bail out! saina.ko does not build for debug"; exit 1; }
mkdir -p "$B/module/faults"
cp -u "$here"/faults/* "$B/module/faults"
"$top/selftests/vm/saina-vm" build-module -k debug "$B/module/faults" >"$B/module/faults.log" 2>&1 ||
	{ echo "Bail out! faults.ko does not build: $B/module/faults.log"; exit 1; }

echo "# $messages random messages and $loops loops: fewer than on the other kernels"
faults
export SAINA_SLOW=40
step "saina.ko" 3600 "$here/guest.sh" "$messages" "$loops"
step "saina.ko when memory is short" 1800 "$here/failmem.sh" "$messages"
for t in float_test backend_test; do
	step "$t" 3600 "$here/$t.sh"
done

[ "$tap_n" -gt 0 ] || bail "no step has \"$pattern\" in its name"
plan
echo "check-debug: $((tap_n - tap_bad)) passed, $tap_bad failed"
[ $tap_bad = 0 ]
