#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds saina.ko for Debian's kernels and tests it in them (tools/saina-vm), one
# after the other.  TAP; the VM fails the run when its kernel complains.
#
#	selftests/module/module.sh [KERNEL...]
#
# MESSAGES (default 600000) random messages and LOOPS (100) of insmod and rmmod in
# each; SEED (1) of the random messages.

set -u
top=$(readlink -f "$(dirname "$0")/../..")
B=${SAINA_BUILD:-$top/build}
status=0
[ $# -gt 0 ] || set -- 6.1 6.12
for k in "$@"; do
	if ! ko=$("$top/selftests/module/build.sh" "$k"); then
		echo "Bail out! saina.ko does not build for $k"
		exit 1
	fi
	echo "# kernel $k"
	"$top/tools/saina-vm" run -k "$k" -t 480 -e SEED="${SEED:-1}" -a slub_debug=FZP -- \
		"$top/selftests/module/guest.sh" "$ko" "$B" "${MESSAGES:-600000}" "${LOOPS:-100}"
	ret=$?
	if [ $ret != 0 ]; then
		echo "# kernel $k: exit status $ret"
		status=1
	fi
done
exit $status
