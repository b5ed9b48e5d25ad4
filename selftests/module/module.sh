#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds saina.ko for Debian's kernels and tests it in them (tools/saina-vm).  TAP;
# the VM fails the run when its kernel complains.
#
#	selftests/module/module.sh [KERNEL...]
#
# MESSAGES (default 1000000) random messages and LOOPS (100) of insmod and rmmod in
# each; SEED (1) of the random messages.  Every object of the caches that the module
# allocates from (its memory is charged to who asks, hence -cg-) is guarded and
# poisoned.

# shellcheck source=vm.sh
. "$(dirname "$(readlink -f "$0")")/vm.sh"

in_vm() { # KERNEL MODULE
	vm_run "$1" -t 2000 -e SEED="${SEED:-1}" -a 'slub_debug=FZP,kmalloc-cg-*' -- \
		"$MODULE_DIR/guest.sh" "$2" "$B" "${MESSAGES:-1000000}" "${LOOPS:-100}"
}

vm_kernels in_vm "$@"
