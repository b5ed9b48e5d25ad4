#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The module as DKMS builds it, for both kernels, in source and build trees of this test.  On 6.1
# that gives a module without BTF: reload_test.sh tests what works with such a module.
#
#	selftests/module/dkms_test.sh

set -u
top=$(readlink -f "$(dirname "$0")/../..")
B=${SAINA_BUILD:-$top/build}
cache=$("$top/selftests/vm/saina-vm" cache)
version=$(cat "$top/VERSION")
# shellcheck source=../tap.sh
. "$top/selftests/tap.sh"

command -v dkms >/dev/null || { echo "1..0 # SKIP dkms is not installed (apt-get install dkms)"; exit 4; }
"$top/selftests/vm/saina-vm" fetch --missing 6.1 6.12 >/dev/null || exit 1
mkdir -p "$B/module"
work=$(mktemp -d "$B/module/dkms.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

make -s -C "$top" install-dkms DESTDIR="$work" B="$B" >/dev/null
point $? "dkms: make install-dkms succeeds"
mkdir -p "$work/tree"
args=(--sourcetree "$work/usr/src" --dkmstree "$work/tree")
dkms add "${args[@]}" "saina/$version" >"$work/log" 2>&1
point $? "dkms: dkms add takes the sources"
for k in 6.1 6.12; do
	release=$(cat "$cache/$k/release")
	dkms build "${args[@]}" --kernelsourcedir "$cache/$k/headers" -k "$release" "saina/$version" \
		>>"$work/log" 2>&1
	point $? "dkms: the module is built for $k"
	[ "$k" = 6.12 ] || continue
	ko=$(find "$work/tree/saina/$version/$release" -name 'saina.ko*' 2>/dev/null | head -n 1)
	case $ko in
	*.xz) xz -d "$ko"; ko=${ko%.xz} ;;
	*.zst) zstd -q -d --rm "$ko"; ko=${ko%.zst} ;;
	esac
	# shellcheck disable=SC2016
	"$top/selftests/vm/saina-vm" run -k "$k" -M "$ko" -e SAINA_CONTROL=kernel -e T="$B/saina" -- bash -c '
		"$T" job add a elements 5 workers 1 >/dev/null && "$T" -j job show | grep -q "\"name\":\"a\"" &&
		rmmod saina' >>"$work/log" 2>&1
	point $? "dkms: the module is loaded on $k and takes a job"
done
[ $tap_bad = 0 ] || sed 's/^/# /' "$work/log"
plan
