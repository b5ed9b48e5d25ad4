#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# selftests/net/nomem.sh in the test VM, with nomem.ko, which makes allocations fail.
#
#	nomem_test.sh KERNEL SECONDS

set -u
top=$(readlink -f "$(dirname "$0")/../..")
B=${SAINA_BUILD:-$top/build}
kernel=$1
dir=$B/module/nomem-$kernel
mkdir -p "$dir"
cp -u "$top"/selftests/module/nomem/* "$dir"
"$top/selftests/vm/saina-vm" build-module -k "$kernel" "$dir" >"$dir.log" 2>&1 ||
	{ echo "Bail out! nomem.ko does not build for $kernel: $dir.log"; exit 1; }
exec "$top/selftests/in-vm" "$kernel" "$2" env SAINA_TEST_BACKEND=agent SAINA_TEST_NOMEM="$dir/nomem.ko" \
	"$top/selftests/net/nomem.sh"
