#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# These tests in the kselftest tree of Debian's linux-source-6.1, dropped there and
# run by the kernel's own runner: what is good is reported as good, and planted
# tests that fail, skip, hang or leave something behind as just that; the same
# once installed.  All of them would take twice the time of `make check': it runs
# one of each kind.

set -u
top=$(readlink -f "$(dirname "$0")/..")
B=${SAINA_BUILD:-$top/build}
names=(oracle_test jobcore_test tool_args_test defects_test net-lab)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM HUP
# The copy is built and run on its own.
export -n SAINA_BUILD
unset MAKEFLAGS MAKELEVEL SAINA_TESTS SAINA_TOP SAINA_TEST_RUN

# shellcheck source=tap.sh
. "$top/selftests/tap.sh"

# said FILE ERE DESCRIPTION: the runner said such a line.
said() {
	grep -qE "^$2\$" "$1"
	point $? "$3"
}

[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP needs root"; exit 4; }

# --- the conventions, as far as files tell --------------------------------------
strange=$(grep -vE '^(#.*|timeout=[0-9]+)$' "$top/selftests/settings")
[ -z "$strange" ]
point $? "settings has only what kselftest's runner knows"
max=$(awk '!/^#/ && $2 > max { max = $2 } END { print max }' "$top/selftests/timeouts")
[ "$(sed -n 's/^timeout=//p' "$top/selftests/settings")" -gt "$max" ]
point $? "its time limit is above all of ours"
! grep -vE '^CONFIG_[A-Z0-9_]+=[ym]$' "$top/selftests/config"
point $? "config has only options"
mapfile -t all < <(SAINA_BUILD=$B "$top/selftests/run" -l | sed 's/ .*//;s|/|-|')
[ ${#all[@]} -gt 0 ] && [ -z "$(printf '%s\n' "${all[@]}" | sort | uniq -d)" ]
point $? "no two tests have the same name"

# --- the kernel's tree -------------------------------------------------------------
archive=$("$top/tools/saina-vm" source) || bail "no linux-source-6.1"
# Unpacking takes ten seconds: once for each version.
tree=${archive%/*}/kselftest
if [ ! -d "$tree" ]; then
	part=$(mktemp -d "$tree.XXXXXX") || bail "cannot make a directory beside $archive"
	tar -C "$part" -xJf "$archive" --strip-components=1 --wildcards \
		'*/scripts/subarch.include' '*/tools/testing/selftests/Makefile' \
		'*/tools/testing/selftests/*.mk' '*/tools/testing/selftests/*.sh' \
		'*/tools/testing/selftests/*.h' '*/tools/testing/selftests/kselftest/*' ||
		bail "cannot unpack $archive"
	chmod 755 "$part"
	mv -T "$part" "$tree" 2>/dev/null || rm -rf "$part"
fi
cp -r "$tree" "$tmp/linux"
kself=$tmp/linux/tools/testing/selftests
SAINA_BUILD=$B "$top/selftests/drop" --built "$tmp/linux" >"$tmp/log" || bail "drop: $(cat "$tmp/log")"
dropped=$kself/saina

# --- planted tests --------------------------------------------------------------------
plant() { # NAME LINE...
	printf '%s\n' '#!/bin/sh' "${@:2}" >"$dropped/src/selftests/unit/$1.sh"
	chmod 755 "$dropped/src/selftests/unit/$1.sh"
	planted+=("$1")
}
planted=()
plant good 'echo ok 1 - it is; echo 1..1'
plant bad 'echo not ok 1 - it is not; echo 1..1; exit 1'
plant mute 'echo not ok 1 - it says so only; echo 1..1'
plant short 'echo ok 1 - and no more; echo 1..2'
plant skipped 'echo "1..0 # SKIP nothing to test here"; exit 4'
plant silent 'exit 3'
plant hangs 'sleep 1000'
plant leaves 'ip netns add "left-$SAINA_TEST_RUN"; echo ok 1; echo 1..1'
echo "CHECKS += $(printf 'selftests/unit/%s.sh ' "${planted[@]}")" >>"$dropped/src/selftests/build.mk"
echo "hangs 2" >>"$dropped/src/selftests/timeouts"

# --- run in the tree ---------------------------------------------------------------------
make -C "$kself" TARGETS=saina SAINA_TESTS="${names[*]} ${planted[*]}" run_tests >"$tmp/log" 2>&1
point $? "make TARGETS=saina run_tests"
said "$tmp/log" 'TAP version 13' "a TAP stream"
said "$tmp/log" "1\\.\\.$((${#names[@]} + ${#planted[@]}))" "with a plan"
for t in "${names[@]}" good; do
	said "$tmp/log" "ok [0-9]+ selftests: saina: $t" "$t passes there"
done
said "$tmp/log" 'not ok [0-9]+ selftests: saina: bad # exit=1' "a test that fails, fails"
said "$tmp/log" 'not ok [0-9]+ selftests: saina: mute # exit=1' "so does one that only says so"
said "$tmp/log" 'not ok [0-9]+ selftests: saina: short # exit=1' "and one that stops early"
said "$tmp/log" 'not ok [0-9]+ selftests: saina: silent # exit=1' "and one that says nothing but its status"
said "$tmp/log" 'not ok [0-9]+ selftests: saina: hangs # exit=1' "and one that hangs"
said "$tmp/log" '# +took longer than 2 s' "which is said"
said "$tmp/log" 'not ok [0-9]+ selftests: saina: leaves # exit=1' "and one that leaves a namespace behind"
said "$tmp/log" 'ok [0-9]+ selftests: saina: skipped # SKIP' "a skip is a skip"
make -C "$kself" TARGETS=saina SAINA_TESTS=no_such_test run_tests >"$tmp/none" 2>&1
grep -q 'no test no_such_test; there are: .*net-basic' "$tmp/none"
point $? "a test that is not there is refused, with those that are"

# --- installed ------------------------------------------------------------------------------
make -C "$kself" TARGETS=saina KSFT_INSTALL_PATH="$tmp/inst" install >"$tmp/install" 2>&1
point $? "make install"
listed=$("$tmp/inst/run_kselftest.sh" -l | sort | xargs)
[ "$listed" = "$(printf 'saina:%s\n' "${all[@]}" "${planted[@]}" | sort | xargs)" ]
point $? "run_kselftest.sh lists all tests of make check"
rm -rf "$dropped"
"$tmp/inst/run_kselftest.sh" -t saina:oracle_test \
	-t saina:tool_args_test -t saina:bad -t saina:skipped >"$tmp/inst.log" 2>&1
point $? "run_kselftest.sh, the tree being gone"
said "$tmp/inst.log" 'ok 1 selftests: saina: oracle_test' "an installed program passes"
said "$tmp/inst.log" 'ok 2 selftests: saina: tool_args_test' "another one, too"
said "$tmp/inst.log" 'not ok 3 selftests: saina: bad # exit=1' "what fails, fails"
said "$tmp/inst.log" 'ok 4 selftests: saina: skipped # SKIP' "and a skip is a skip"

if [ $tap_bad -gt 0 ]; then
	for f in log install inst.log; do
		[ ! -e "$tmp/$f" ] || grep -v '^# ok ' "$tmp/$f" | tail -n 40 | sed "s/^/# $f: /"
	done
fi
plan
