#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Jobs of float32 and bfloat16: saina.ko sums them for the XDP program, workers in
# namespaces check every sum against a float reference (userland/examples/
# verify_float.c).  In the test VM (tools/saina-vm), on each kernel; TAP.
#
#	selftests/module/float_test.sh [KERNEL...]
#	selftests/module/float_test.sh --guest MODULE	(in the VM)

here=$(dirname "$(readlink -f "$0")")
if [ "${1-}" != --guest ]; then
	# shellcheck source=vm.sh
	. "$here/vm.sh"
	# shellcheck disable=SC2317
	in_vm() { # KERNEL MODULE
		vm_run "$1" -t 900 -e SAINA_SLOW=10 -e SAINA_TEST_PLANE=kernel -- \
			"$here/float_test.sh" --guest "$2"
	}
	vm_kernels in_vm "$@"
	exit
fi
module=$2

# shellcheck source=../net/lib.sh
. "$here/../net/lib.sh"

not() {
	! "$@"
}

check "insmod" insmod "$module"
lab_up --workers 3 --bridge linux

job f32 workers 2 elements 2003 type float32
start_all f32 3 2 --elements 2003
check "float32: two workers" wait_all 60
check "float32: the same results everywhere" same_results 0 1
equal "float32: every segment exact, nothing counted as out of place" "24 0 0" \
	"$(summary 0 exact bounded unverified)"
job b16 workers 3 elements 2003 type bfloat16
start_all b16 3 3 --elements 2003
check "bfloat16: three workers" wait_all 60
check "bfloat16: the same results everywhere" same_results 0 1 2
equal "bfloat16: every segment exact" "24 0 0" "$(summary 0 exact bounded unverified)"
finished
