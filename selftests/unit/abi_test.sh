#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The binary interface of libsaina is the one that userland/lib/libsaina.abi describes: programs
# that were built against the stored interface run with this library.  `make abi' stores the present
# one, which is a decision: a change that abidiff calls incompatible needs a new SONAME.
#
#	abi_test.sh --describe LIBRARY	prints the description of a library, for `make abi'

set -u
top=$(readlink -f "$(dirname "$0")/../..")
B=${SAINA_BUILD:-$top/build}
stored=$top/userland/lib/libsaina.abi
library=$B/libsaina.so.0

# describe LIBRARY: the interface that saina.h declares.  abidw knows that header by the path that the
# compiler was given.  Opaque types stay opaque.
describe() {
	(cd "$top" && exec abidw --exported-interfaces-only --drop-private-types --header-file userland/lib/saina.h \
		--no-corpus-path --no-comp-dir-path --no-show-locs --no-elf-needed "$1")
}
if [ "${1-}" = --describe ]; then
	describe "$(realpath "$2")"
	exit
fi

for p in abidiff abidw; do
	command -v $p >/dev/null && continue
	echo "1..0 # SKIP $p is not installed (abigail-tools)"
	exit 4
done
if ! grep -q "architecture='elf-amd-x86_64'" "$stored" || [ "$(uname -m)" != x86_64 ]; then
	echo "1..0 # SKIP the description is of x86_64"
	exit 4
fi

# shellcheck source=../tap.sh
. "$top/selftests/tap.sh"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# compare FIRST SECOND: the changes are in $tmp/output; the status is abidiff's, a sum of 4 for any
# change and 8 for one that breaks programs
compare() {
	local status
	abidiff "$1" "$2" >"$tmp/output" 2>&1
	status=$?
	# 1 and 2: it could not compare; above 15: it was killed
	if [ $((status & 3)) != 0 ] || [ $status -ge 16 ]; then
		bail "abidiff, status $status: $(tail -n 2 "$tmp/output")"
	fi
	return $status
}

describe "$library" >"$tmp/now.abi" || bail "abidw cannot read $library"
compare "$stored" "$tmp/now.abi"
status=$?
point $((status & 8)) "libsaina: programs built with the interface that is stored run with this library" ||
	diag "$(cat "$tmp/output")"
point $((status & ~8)) "libsaina: the interface that is stored is that of this library (make abi)" ||
	diag "$(cat "$tmp/output")"

# Planted differences are found, and named.
grep -v "elf-symbol name='saina_wait'" "$stored" >"$tmp/less.abi"
compare "$stored" "$tmp/less.abi"
point $((!($? & 8))) "libsaina: a function that is gone would be found"
point $((!$(grep -c "saina_wait" "$tmp/output"))) "libsaina: a function that is gone would be named"
grep -q "name='saina_stats' size-in-bits='" "$stored" || bail "no struct saina_stats in $stored"
sed "/name='saina_stats'/,/<\/class-decl>/{s/layout-offset-in-bits='64'/layout-offset-in-bits='128'/}" "$stored" >"$tmp/moved.abi"
compare "$stored" "$tmp/moved.abi"
point $((!$?)) "libsaina: a member of a structure that moves would be found"
point $((!$(grep -c "saina_stats" "$tmp/output"))) "libsaina: the structure whose member moves would be named"
plan
