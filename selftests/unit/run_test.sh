#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# selftests/run itself: planted tests that pass, fail, fail once, skip, stop early, hang, cannot
# be started or leave something behind are reported as such, and the right ones of a list are run.

set -u
top=$(readlink -f "$(dirname "$0")/../..")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# shellcheck source=../tap.sh
. "$top/selftests/tap.sh"

# plant NAME TIER LIMIT LINE...: a test that is a shell script of these lines, in $lane
lane=host
plant() {
	printf '%s\n' '#!/bin/sh' "${@:4}" >"$tmp/$1"
	chmod 755 "$tmp/$1"
	echo "$1 $2 $lane $3 $tmp/$1" >>"$tmp/tests.list"
}

# run EXPECTED-STATUS DESCRIPTION [ARGUMENT...]: its output is in $tmp/output; $wrap is what runs it
wrap=()
run() {
	local want=$1 what=$2 status
	shift 2
	"${wrap[@]}" env -u CI ${ci:+CI=true} SAINA_BUILD="$tmp" "$top/selftests/run" "$@" >"$tmp/output" 2>&1
	status=$?
	check "run: $what: exit status $want" [ $status = "$want" ] || diag "status $status: $(cat "$tmp/output")"
}

output_has() { # ERE DESCRIPTION
	check "run: $2" grep -qE "$1" "$tmp/output" || diag "$(cat "$tmp/output")"
}

last_line() { # TEXT DESCRIPTION
	check "run: $2" [ "$(tail -n 1 "$tmp/output")" = "$1" ] || diag "$(tail -n 5 "$tmp/output")"
}

plant good quick 10 'echo ok 1 - it is; echo ok 2 - too; echo 1..2'
plant streams quick 10 'echo 1..1; echo ok 1; echo 1..1; echo ok 1'
run 0 "tests that pass"
last_line "4 passed, 0 failed, 0 skipped" "points of all tests are counted in the last line"

plant long full 10 'echo ok 1; echo 1..1'
run 0 "a quick and a full test, without -f"
output_has '^# 2 tests in .*; 1 of the full tier were not run' "the tests of the full tier that were not run are counted"
echo "good full host 10 $tmp/streams" >>"$tmp/tests.list"
run 0 "a full run" -f
last_line "5 passed, 0 failed, 0 skipped" "a full test replaces the quick one of its name"
run 0 "a pattern runs tests of any tier" long
last_line "1 passed, 0 failed, 0 skipped" "a pattern runs nothing else"
: >"$tmp/seen"
for i in 1 2 3; do
	run 0 "shard $i of 3" -f -l -s $i/3
	cut -d' ' -f1 "$tmp/output" >>"$tmp/seen"
done
check "run: shards have each test once" [ "$(sort "$tmp/seen" | xargs)" = "good long streams" ] || diag "$(cat "$tmp/seen")"
run 2 "a shard that does not exist is refused" -s 4/3
run 2 "a pattern that matches nothing is refused" no-such-test
run 2 "an unknown lane is refused" -L 5.10
run 2 "less than one test at once is refused" -j 0
: >"$tmp/tests.list"

# Each of these tests ends when all have begun.
meets() { # NAME
	plant "$1" quick 60 "touch $tmp/$1.begun" "until [ \"\$(echo $tmp/*.begun | wc -w)\" = 3 ]; do sleep 0.05; done" 'echo ok 1; echo 1..1'
}
meets one
meets two
lane=unit
meets three
lane=host
run 0 "two tests of the lane host and one of unit run side by side"
last_line "3 passed, 0 failed, 0 skipped" "two tests of the lane host and one of unit run side by side"
run 0 "with one test at a time" -j 1
run 0 "a lane that is named" -L unit
last_line "1 passed, 0 failed, 0 skipped" "in a lane that is named its tests run, and no other"
plant wood quick 10 'echo ok 1; echo 1..1'
plant woodwood quick 10 'echo ok 1; echo 1..1'
run 0 "a part of names" wood
last_line "2 passed, 0 failed, 0 skipped" "a pattern runs all tests whose names contain it"
run 0 "a whole name" wood@host
last_line "1 passed, 0 failed, 0 skipped" "a pattern that is the whole NAME@LANE of a test runs that one only"

# Everything below fails, each in its own way.
fails() { # NAME ERE DESCRIPTION
	run 1 "$3" "$1"
	output_has "$2" "$3: the reason is given"
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
echo "unmade quick host 10 $tmp/no-such-program" >>"$tmp/tests.list"
plant process quick 10 'setsid sleep 1000 >/dev/null 2>&1 & echo ok 1; echo 1..1'
fails bad 'not ok 1 - it is not' "a test that fails"
output_has '^ +# because' "what a test says about a failure is shown"
fails mute 'not ok 1' "a test that fails with exit status 0"
fails short 'announced 2 results and gave 1' "a test that stops early"
fails shortskip 'announced 2 results and gave 1' "a test that skips one point and stops early"
fails planless 'did not announce' "a test without a plan"
fails silent 'did not announce' "a test that says nothing"
fails none 'announced no results' "a test with an empty plan"
fails status 'exit status 3' "a test that passes and exits with an error"
fails bails 'Bail out! no more' "a test that bails out"
fails hangs 'took longer than 1 s' "a test that hangs"
fails unmade 'Bail out! cannot start the test: .*No such file' "a test whose program does not exist"
fails process 'left behind: process [0-9]+ \(sleep 1000\)' "a test that leaves a process"
if [ "$(id -u)" = 0 ]; then
	fails leaves 'left behind: /run/netns/left-' "a test that leaves a namespace"
	! ls /run/netns/left-t* >/dev/null 2>&1
	point $? "run: a namespace left behind is taken away"
fi

# A failed test is run once more, at the end.
# once NAME: a test that fails the first time only
once() {
	plant "$1" quick 60 "[ -e $tmp/$1.ran ] || { touch $tmp/$1.ran; echo 'not ok 1 - too early'; echo 1..1; exit 1; }" \
		"echo ran $1 >>$tmp/order" 'echo ok 1; echo ok 2; echo 1..2'
}
once flake1
plant steady quick 60 "echo ran steady >>$tmp/order" 'echo ok 1; echo 1..1'
run 0 "a test that fails only the first time" flake1 steady
output_has '^flake1 .* 1 NOT OK ' "the first failure of a test is shown"
output_has '^flaky: flake1$' "a test that passes when run again is called flaky, on a line of its own"
output_has '^ +not ok 1 - too early' "what a flaky test failed in is shown"
output_has '^# 2 tests in .*, 1 flaky' "flaky tests are counted apart"
last_line "3 passed, 0 failed, 0 skipped" "of a flaky test the second run is counted, and the first is not"
check "run: a failed test is run again after all others" \
	[ "$(xargs <"$tmp/order")" = "ran steady ran flake1" ] || diag "$(cat "$tmp/order")"
grep -q 'not ok 1 - too early' "$tmp/test-logs/flake1.log.first" && grep -q '^ok 2' "$tmp/test-logs/flake1.log"
point $? "run: what a flaky test said both times is kept"
once flake2
rm "$tmp/flake1.ran"
run 0 "two flaky tests" flake
last_line "4 passed, 0 failed, 0 skipped" "two flaky tests are no failure"
once flake3
rm -f "$tmp"/flake?.ran
run 1 "three flaky tests" flake
output_has '3 tests are flaky: at most 2 may be' "three flaky tests: the reason is given"
last_line "6 passed, 1 failed, 0 skipped" "three flaky tests are a failure"
rm -f "$tmp"/flake?.ran
run 1 "a flaky test beside one that fails twice" flake1 bad
output_has '^flaky: flake1$' "a flaky test beside one that fails twice is called flaky"
check "run: a test that fails twice is not called flaky" not grep -q '^flaky: bad' "$tmp/output" || diag "$(cat "$tmp/output")"
last_line "2 passed, 1 failed, 0 skipped" "a test that fails twice is counted once"
plant away quick 60 "[ ! -e $tmp/away.ran ] || { echo '1..0 # SKIP gone'; exit 4; }" "touch $tmp/away.ran" \
	'echo not ok 1; echo 1..1; exit 1'
run 1 "a test that fails, and skips when run again" away
last_line "0 passed, 1 failed, 0 skipped" "a skip does not make up for a failure"
for i in 1 2 3 4 5 6; do
	plant six$i quick 60 "echo ran >>$tmp/sixes" 'echo not ok 1; echo 1..1'
done
run 1 "six tests that fail" six
output_has '^# 6 tests failed: none is run again' "a line says that none of many failed tests is run again"
check "run: of many failed tests none is run again" [ "$(wc -l <"$tmp/sixes")" = 6 ] || diag "$(cat "$tmp/sixes")"

# --repeat
plant fourth quick 60 "echo x >>$tmp/fourth.runs" "n=\$(wc -l <$tmp/fourth.runs)" \
	"[ \$n != 4 ] || { echo 'not ok 1 - the fourth'; echo 1..1; exit 1; }" 'echo ok 1; echo 1..1'
run 1 "--repeat, a test of which one run fails" --repeat 10 fourth
check "run: --repeat 10 runs a test ten times, and not once more" [ "$(wc -l <"$tmp/fourth.runs")" = 10 ] || diag "$(cat "$tmp/output")"
output_has '^# fourth: 9 of 10 runs without a failure' "--repeat says how many runs were good"
check "run: --repeat calls nothing flaky" not grep -q '^flaky' "$tmp/output" || diag "$(cat "$tmp/output")"
last_line "9 passed, 1 failed, 0 skipped" "--repeat counts all runs"
grep -q 'not ok 1 - the fourth' "$tmp/test-logs/fourth.4.log" && [ -s "$tmp/test-logs/fourth.10.log" ]
point $? "run: --repeat keeps what each run said"
run 0 "--repeat, a test that passes" -r 2 steady
last_line "2 passed, 0 failed, 0 skipped" "-r is --repeat"
run 2 "--repeat 0 is refused" --repeat 0 steady
output_has '^run: --repeat 0: must be at least 1' "--repeat 0 is refused with the reason"
run 2 "--repeat without a number is refused" --repeat steady

# The tests that took longest.
for i in 1 2 3 4 5 6; do
	plant wait$i quick 60 'echo ok 1; echo 1..1'
done
run 0 "six tests" wait
output_has '^# longest: wait[1-6] [0-9]+ s(, wait[1-6] [0-9]+ s){4}$' "the five tests that took longest are named"

# What is on the host afterwards.  In a network and mounts of its own.
# This bpftool lists a program once a test has made the file $tmp/program.
mkdir "$tmp/bin"
cat >"$tmp/bin/bpftool" <<SH
#!/bin/sh
[ -e $tmp/program ] && echo '[{"id":7,"name":"saina_xdp"}]' || echo '[]'
SH
chmod 755 "$tmp/bin/bpftool"
# host EXPECTED-STATUS WORDS DESCRIPTION COMMAND...: a run with CI=true of a test that does COMMAND reports
# WORDS as left behind; no WORDS: nothing
host() {
	local status=$1 words=$2 what=$3
	: >"$tmp/tests.list"
	plant host quick 60 "${@:4}" 'echo ok 1; echo 1..1'
	run "$status" "$what" host
	if [ -n "$words" ]; then
		output_has "host: left behind: $words\$" "$what: is reported"
	else
		check "run: $what: is not reported" not grep -q '^# new on the host' "$tmp/output" || diag "$(cat "$tmp/output")"
	fi
}
if [ "$(id -u)" = 0 ]; then
	cp "$tmp/tests.list" "$tmp/tests.before"
	ci=1
	# The file among has commands that run beside it.
	# shellcheck disable=SC2016 # sh expands it
	wrap=(env -u SAINA_TEST_RUN unshare -mnpf --mount-proc sh -ec 'mount -t tmpfs run /run; mkdir -p /run/netns /run/saina-lab
		mount -t tmpfs bpf /sys/fs/bpf; PATH="$1:$PATH"; eval "$(cat "$1/among")"; shift; "$@"' sh "$tmp/bin")
	: >"$tmp/bin/among"
	host 0 '' "the kernel's own pins in a bpffs" 'touch /sys/fs/bpf/maps.debug /sys/fs/bpf/progs.debug'
	host 1 'pin /sys/fs/bpf/saina-left' "a pin" 'touch /sys/fs/bpf/saina-left'
	host 0 '' "a link that the kernel makes when it loads a module" 'ip link add ifb0 type ifb'
	host 1 'lab /run/saina-lab/gone/' "a lab whose owner is gone" 'mkdir /run/saina-lab/gone' \
		'echo 1 1 >/run/saina-lab/gone/owner.pid'
	# shellcheck disable=SC2016 # the planted script expands it
	host 0 '' "a lab whose owner is alive, and its namespace" 'mkdir /run/saina-lab/theirs' 'touch /run/netns/saina-theirs-sw' \
		'echo "1 $(sed "s/.*) //" /proc/1/stat | cut -d" " -f20)" >/run/saina-lab/theirs/owner.pid'
	host 1 'link left0; program 7 saina_xdp' "a link and a program" 'ip link add left0 type ifb' "touch $tmp/program"
	rm "$tmp/program"
	host 1 'namespace /run/netns/saina-beside7.basic-sw' "a namespace of no run that goes on" \
		'touch /run/netns/saina-beside7.basic-sw'
	echo 'SAINA_TEST_RUN=beside7 sleep 1000 &' >"$tmp/bin/among"
	host 0 '' "a namespace of another run that goes on" 'touch /run/netns/saina-beside7.basic-sw'
	# It is not known which of the two runs has loaded it.
	host 0 '' "a program, beside another run" "touch $tmp/program"
	host 1 'namespace /run/netns/saina-left-sw' "a namespace of none, beside another run" \
		'touch /run/netns/saina-left-sw'
	wrap=()
	ci=
	mv "$tmp/tests.before" "$tmp/tests.list"
fi

# Ctrl-C, and once more while the test that ran undoes what it did.
plant undoes quick 100 "trap 'touch $tmp/undoing; sleep 2; touch $tmp/undone; exit 1' TERM" "touch $tmp/begun" \
	'while sleep 0.1; do :; done'
until_there() { # FILE
	slowwait 20 [ -e "$tmp/$1" ]
}
env -u CI SAINA_BUILD="$tmp" "$top/selftests/run" undoes >"$tmp/output" 2>&1 &
pid=$!
until_there begun && kill -INT $pid && until_there undoing && kill -INT $pid && kill -TERM $pid
wait $pid
status=$?
check "run: two more signals while it is cleaning up: exit status 130" [ $status = 130 ] || diag "status $status: $(cat "$tmp/output")"
check "run: two more signals while it is cleaning up: the test that ran has undone what it did" \
	[ -e "$tmp/undone" ] || diag "$(cat "$tmp/output")"

plant emulator quick 10 "[ -e $tmp/once ] || { touch $tmp/once; echo ok 1; exit 123; }" 'echo ok 1; echo ok 2; echo 1..2'
run 0 "a test in whose VM the emulator was at fault once" emulator
output_has 'emulator: the emulator was at fault .*: running it again' "a line says that the emulator was at fault"
last_line "2 passed, 0 failed, 0 skipped" "what came before the emulator's fault does not count"
plant emulators quick 10 'exit 123'
fails emulators 'exit status 123' "a test in whose VM the emulator is at fault again"

plant skips quick 10 'echo "1..0 # SKIP nothing to test here"; exit 4'
plant skips4 quick 10 'echo needs something; exit 4'
run 0 "tests that skip" skips
last_line "0 passed, 0 failed, 2 skipped" "skips are counted"
ci=1
run 1 "with CI=true, skips that are not expected" skips
output_has 'unexpected skip: 1..0 # SKIP nothing' "with CI=true, an unexpected skip is a failure"
plan
