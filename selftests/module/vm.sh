# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# For the scripts here that test in the VM: builds saina.ko for each kernel and runs
# the VMs of all kernels at once.

set -u
MODULE_DIR=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
TOP=$(readlink -f "$MODULE_DIR/../..")
B=${SAINA_BUILD:-$TOP/build}

# vm_run KERNEL ARGUMENTS OF saina-vm run...
vm_run() {
	local status
	"$TOP/tools/saina-vm" run -k "$1" -e SAINA_BUILD="$B" "${@:2}" 2>&1
	status=$?
	[ $status = 0 ] || echo "# kernel $1: exit status $status"
	return $status
}

# vm_kernels FUNCTION [KERNEL...]: FUNCTION KERNEL MODULE, for both if none is named, and
# at once (SAINA_VM_JOBS=1: one after the other).  What they say comes in order.
vm_kernels() {
	local fn=$1 k ko said bad=0 running=0
	local -A pid=()
	shift
	[ $# -gt 0 ] || set -- 6.1 6.12
	said=$(mktemp -d) || exit 1
	# shellcheck disable=SC2064
	trap "vm_end; rm -rf '$said'" EXIT
	trap 'exit 130' INT TERM HUP
	for k; do
		if ! ko=$("$MODULE_DIR/build.sh" "$k"); then
			echo "Bail out! saina.ko does not build for $k"
			exit 1
		fi
		((running < ${SAINA_VM_JOBS:-2})) || wait -n
		running=$((running + 1))
		: >"$said/$k"
		{
			"$fn" "$k" "$ko" >"$said/$k"
			echo $? >"$said/$k.status"
		} &
		pid[$k]=$!
		vm_pids+=($!)
	done
	for k; do
		echo "# kernel $k"
		tail -n +1 -f --pid="${pid[$k]}" "$said/$k" &
		wait $!
		[ "$(cat "$said/$k.status" 2>/dev/null)" = 0 ] || bad=1
	done
	return $bad
}

# Interrupted: the VMs end with their saina-vm.
vm_pids=()
vm_end() {
	local p
	for p in "${vm_pids[@]}"; do
		pkill -TERM -P "$p" 2>/dev/null
		kill -TERM "$p" 2>/dev/null
	done
}
