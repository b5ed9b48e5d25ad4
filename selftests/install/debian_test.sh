#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The Debian packages on a whole Debian 12 under systemd, in a VM without a network: installed by
# apt, upgraded during a job, purged.  debian_guest.sh runs in the VM.

set -u
top=$(readlink -f "$(dirname "$0")/../..")
# shellcheck source=../tap.sh
. "$top/selftests/tap.sh"
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP needs root"; exit 4; }
limit=4500
tmp=$(mktemp -d)
vm=
undo() {
	[ -z "$vm" ] || kill "$vm" 2>/dev/null
	wait
	rm -rf "$tmp"
}
trap undo EXIT
trap 'exit 130' INT TERM HUP

version=$(cat "$top/VERSION") next=$(cat "$top/VERSION")+next
export DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS-parallel=$(nproc)}
mkdir "$tmp/old" "$tmp/new" "$tmp/out"
for v in old:"$version" new:"$next"; do
	echo "# building the packages of ${v#*:}"
	"$top/tools/deb" "$tmp/${v%%:*}" "${v#*:}" >"$tmp/output" 2>&1 || { diag "$(tail -n 30 "$tmp/output")"; bail "no packages of ${v#*:}"; }
	mkdir "$tmp/out/${v%%:*}"
	mv "$tmp/${v%%:*}"/*_"${v#*:}"_*.deb "$tmp/out/${v%%:*}/"
done
rm -f "$tmp"/out/*/*-dbgsym_*
cp "$top/selftests/tap.sh" "$top/selftests/install/debian_guest.sh" "$tmp/out/"

echo "# a Debian 12 boots, emulated: half an hour and more"
"$top/selftests/vm/saina-vm" run --debian -m 4096 -t "$limit" -o "$tmp/out" -- \
	bash /run/vm/out/debian_guest.sh "$version" "$next" >"$tmp/log" 2>&1 &
vm=$!
wait "$vm"
rc=$? vm=
pass_on debian "$rc" "$tmp/log"
plan
