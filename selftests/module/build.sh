#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds saina.ko for Debian's KERNEL (6.1 or 6.12) in build/module/KERNEL, with
# BTF, all warnings (W=1) and, where sparse is installed, sparse (C=1).  Any
# warning about our files is an error.
#
#	selftests/module/build.sh KERNEL

set -eu
top=$(readlink -f "$(dirname "$0")/../..")
kernel=$1
B=${SAINA_BUILD:-$top/build}
dir=$B/module/$kernel
mkdir -p "$dir"
# Several tests may build it at once.
exec 9>"$dir.lock"
flock 9

# A copy of its own: kbuild writes beside the sources, and two kernels differ.
cd "$top"
find Kbuild kmod uapi -path kmod/bpf -prune -o \( -name '*.[ch]' -o -name Kbuild \) -print0 |
	xargs -0 cp -u --parents -t "$dir"
check=()
command -v sparse >/dev/null && check=(C=1)
log=$B/module/$kernel.log
"$top/selftests/vm/saina-vm" build-module -k "$kernel" "$dir" W=1 "${check[@]}" >"$log" 2>&1 || {
	cat "$log" >&2
	exit 1
}
if grep -nE "^($dir/)?(kmod|uapi|\./kmod).*(warning|error):" "$log" >&2; then
	echo "build.sh: warnings building saina.ko for $kernel" >&2
	exit 1
fi
echo "$dir/saina.ko"
