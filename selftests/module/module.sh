#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds saina.ko for Debian's kernels and tests it in them (tools/saina-vm).  TAP; the VM fails the run when its kernel complains.
#
#	selftests/module/module.sh [KERNEL...]
#
# MESSAGES (default 600000) random messages and LOOPS (100) of insmod and rmmod in
# each; SEED (1) of the random messages.

# shellcheck source=vm.sh
. "$(dirname "$(readlink -f "$0")")/vm.sh"

in_vm() { # KERNEL MODULE
	vm_run "$1" -t 1200 -e SEED="${SEED:-1}" -a slub_debug=FZP -- \
		"$MODULE_DIR/guest.sh" "$2" "$B" "${MESSAGES:-600000}" "${LOOPS:-100}"
}

vm_kernels in_vm "$@"
