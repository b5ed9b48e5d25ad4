#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# selftests/run itself: planted tests that pass, fail, skip, stop early, hang or leave
# something behind are reported as just that, and the right ones of a list are run.

set -u
top=$(readlink -f "$(dirname "$0")/../..")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# shellcheck source=../tap.sh
. "$top/selftests/tap.sh"

# plant NAME TIER LIMIT LINE...: a test that is a shell script of these lines
plant() {
	printf '%s\n' '#!/bin/sh' "${@:4}" >"$tmp/$1"
	chmod 755 "$tmp/$1"
	echo "$1 $2 host $3 $tmp/$1" >>"$tmp/tests.list"
}

# run EXPECTED-STATUS DESCRIPTION [ARGUMENT...]: its output is in $tmp/said
run() {
	local want=$1 what=$2 status
	shift 2
	env -u CI ${ci:+CI=true} SAINA_BUILD="$tmp" "$top/selftests/run" "$@" >"$tmp/said" 2>&1
	status=$?
	[ $status = "$want" ]
	point $? "run: $what: exit status $want" || diag "status $status: $(cat "$tmp/said")"
}

said() { # ERE DESCRIPTION
	grep -qE "$1" "$tmp/said"
	point $? "run: $2" || diag "$(cat "$tmp/said")"
}

last_line() { # TEXT DESCRIPTION
	[ "$(tail -n 1 "$tmp/said")" = "$1" ]
	point $? "run: $2" || diag "$(tail -n 5 "$tmp/said")"
}

plant good quick 10 'echo ok 1 - it is; echo ok 2 - too; echo 1..2'
plant streams quick 10 'echo 1..1; echo ok 1; echo 1..1; echo ok 1'
run 0 "tests that pass"
last_line "4 passed, 0 failed, 0 skipped" "points of all tests are counted in the last line"

plant long full 10 'echo ok 1; echo 1..1'
run 0 "a quick and a full test, without -f"
said '^# 2 tests in .*; 1 of the full tier were not run' "the tests of the full tier that were not run are counted"
echo "good full host 10 $tmp/streams" >>"$tmp/tests.list"
run 0 "a full run" -f
last_line "5 passed, 0 failed, 0 skipped" "a full test replaces the quick one of its name"
run 0 "a pattern runs tests of any tier" long
last_line "1 passed, 0 failed, 0 skipped" "a pattern runs nothing else"
: >"$tmp/seen"
for i in 1 2 3; do
	run 0 "shard $i of 3" -f -l -s $i/3
	cut -d' ' -f1 "$tmp/said" >>"$tmp/seen"
done
[ "$(sort "$tmp/seen" | xargs)" = "good long streams" ]
point $? "run: shards have each test once" || diag "$(cat "$tmp/seen")"
run 2 "a shard that does not exist is refused" -s 4/3
run 2 "a pattern that matches nothing is refused" no-such-test
run 2 "an unknown lane is refused" -L 5.10

# Everything below fails, each in its own way.
fails() { # NAME ERE DESCRIPTION
	run 1 "$3" "$1"
	said "$2" "$3: the reason is given"
}
plant bad quick 10 'echo not ok 1 - it is not; echo "# because"; echo 1..1; exit 1'
plant mute quick 10 'echo not ok 1 - it says so only; echo 1..1'
plant short quick 10 'echo ok 1 - and no more; echo 1..2'
plant shortskip quick 10 'echo "ok 1 - a # SKIP not here"; echo 1..2'
plant planless quick 10 'echo ok 1'
plant silent quick 10 'exit 0'
plant none quick 10 'echo 1..0'
plant status quick 10 'echo ok 1; echo 1..1; exit 3'
plant bails quick 10 'echo "Bail out! no more"; exit 1'
plant hangs quick 1 'sleep 1000'
# shellcheck disable=SC2016 # the planted script expands it
plant leaves quick 10 'ip netns add "left-$SAINA_TEST_RUN"; echo ok 1; echo 1..1'
plant process quick 10 'setsid sleep 1000 >/dev/null 2>&1 & echo ok 1; echo 1..1'
fails bad 'not ok 1 - it is not' "a test that fails"
said '^ +# because' "what a test says about a failure is shown"
fails mute 'not ok 1' "a test that fails with exit status 0"
fails short 'announced 2 results and gave 1' "a test that stops early"
fails shortskip 'announced 2 results and gave 1' "a test that skips one point and stops early"
fails planless 'did not announce' "a test without a plan"
fails silent 'did not announce' "a test that says nothing"
fails none 'announced no results' "a test with an empty plan"
fails status 'exit status 3' "a test that passes and exits with an error"
fails bails 'Bail out! no more' "a test that bails out"
fails hangs 'took longer than 1 s' "a test that hangs"
fails process 'left behind: process [0-9]+ \(sleep 1000\)' "a test that leaves a process"
if [ "$(id -u)" = 0 ]; then
	fails leaves 'left behind: /run/netns/left-' "a test that leaves a namespace"
	! ls /run/netns/left-t* >/dev/null 2>&1
	point $? "run: a namespace left behind is taken away"
fi

# Ctrl-C, and once more while the test that ran undoes what it did.
plant undoes quick 100 "trap 'touch $tmp/undoing; sleep 2; touch $tmp/undone; exit 1' TERM" "touch $tmp/begun" \
	'while sleep 0.1; do :; done'
until_there() { # FILE
	local i
	for ((i = 0; i < 200; i++)); do
		[ ! -e "$tmp/$1" ] || return 0
		sleep 0.1
	done
	return 1
}
env -u CI SAINA_BUILD="$tmp" "$top/selftests/run" undoes >"$tmp/said" 2>&1 &
pid=$!
until_there begun && kill -INT $pid && until_there undoing && kill -INT $pid && kill -TERM $pid
wait $pid
status=$?
[ $status = 130 ]
point $? "run: two more signals while it is cleaning up: exit status 130" || diag "status $status: $(cat "$tmp/said")"
[ -e "$tmp/undone" ]
point $? "run: two more signals while it is cleaning up: the test that ran has undone what it did" || diag "$(cat "$tmp/said")"

plant emulator quick 10 "[ -e $tmp/once ] || { touch $tmp/once; echo ok 1; exit 123; }" 'echo ok 1; echo ok 2; echo 1..2'
run 0 "a test in whose VM the emulator was at fault once" emulator
said 'emulator: the emulator was at fault .*: once more' "that the emulator was at fault is said"
last_line "2 passed, 0 failed, 0 skipped" "what came before the emulator's fault does not count"
plant emulators quick 10 'exit 123'
fails emulators 'exit status 123' "a test in whose VM the emulator is at fault again"

plant skips quick 10 'echo "1..0 # SKIP nothing to test here"; exit 4'
plant skips4 quick 10 'echo needs something; exit 4'
run 0 "tests that skip" skips
last_line "0 passed, 0 failed, 2 skipped" "skips are counted"
ci=1
run 1 "with CI=true, skips that are not expected" skips
said 'unexpected skip: 1..0 # SKIP nothing' "with CI=true, an unexpected skip is a failure"
plan
