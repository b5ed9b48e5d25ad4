# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# TAP for the scripts here, sourced.  A script calls point (or ok, check, equal, matches)
# for each result, and plan at its end.

tap_n=0 tap_bad=0
# How many times slower than a PC this machine is: deadlines are multiplied by it.
SLOW=${SAINA_SLOW:-1}
# No wait goes on after so many seconds of the test, so that there is time to show what hangs.
LONGEST=${SAINA_TEST_SECONDS:-}

point() { # STATUS DESCRIPTION: good if STATUS is 0; returns whether it is
	tap_n=$((tap_n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $tap_n - $2"
	else
		echo "not ok $tap_n - $2"
		tap_bad=$((tap_bad + 1))
		return 1
	fi
}

# plan: prints how many points there were; succeeds if all were good.
plan() {
	echo "1..$tap_n"
	[ "$tap_bad" = 0 ]
}

# pass_on PREFIX STATUS LOG: the points of another test, which has ended with STATUS, as
# points of this one; the rest of its output as remarks.  If the test announces another
# number of points, or none, that is a point that is bad.
pass_on() {
	local line n=0 bad=0 plan='' re='^(not )?ok\ ?([0-9]+)?\ ?-?\ ?(.*)$'
	while IFS= read -r line; do
		if [[ $line =~ $re ]]; then
			n=$((n + 1))
			[ -z "${BASH_REMATCH[1]}" ] || bad=1
			[ -z "${BASH_REMATCH[1]}" ]
			point $? "$1: ${BASH_REMATCH[3]}"
		elif [[ $line =~ ^1\.\.([0-9]+)(.*)$ ]]; then
			plan=${BASH_REMATCH[1]}
			[[ $plan != 0 || ${BASH_REMATCH[2]} != *"# SKIP"* ]] || point 0 "$1:${BASH_REMATCH[2]}"
		elif [[ $line == "Bail out!"* ]]; then
			bad=1
			point 1 "$1: $line"
		elif [ -n "$line" ]; then
			echo "# ${line#\# }"
		fi
	done <"$3"
	if [ "$2" = 124 ] || [ "$2" = 137 ]; then
		point 1 "$1: ends in time"
	elif [ "$plan" != $n ] && [ $bad = 0 ]; then
		point 1 "$1: gives the results it announces (announced: ${plan:-none}, given: $n, status $2)"
	elif [ "$2" != 0 ] && [ $bad = 0 ] && { [ "$2" != 4 ] || [ "$plan" != 0 ]; }; then
		point 1 "$1: ends with status 0 (status $2)"
	fi
}

diag() { # TEXT
	# shellcheck disable=SC2001
	sed 's/^/# /' <<<"$*"
}

bail() { # TEXT
	echo "Bail out! $*"
	exit 1
}

ok() {
	point 0 "$*"
}

not_ok() {
	point 1 "$*"
}

# check DESCRIPTION CMD...: ok if CMD succeeds; its output is shown if it fails.
check() {
	# CMD, if it is a function, sees the variables of this one.
	local tap_what=$1 tap_out=${WORK:-${tmp:-/tmp}}/checked
	shift
	# Not in a subshell: CMD may wait for our children.
	if "$@" >"$tap_out" 2>&1; then
		ok "$tap_what"
	else
		not_ok "$tap_what"
		diag "failed: $*"
		[ ! -s "$tap_out" ] || diag "$(tail -n 40 "$tap_out")"
		return 1
	fi
}

# equal DESCRIPTION EXPECTED GOT
equal() {
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		not_ok "$1"
		diag "expected: $2"
		diag "     got: $3"
		return 1
	fi
}

# matches DESCRIPTION ERE TEXT
matches() {
	if [[ $3 =~ $2 ]]; then
		ok "$1"
	else
		not_ok "$1"
		diag "expected to match: $2"
		diag "     got: $3"
		return 1
	fi
}

not() { # CMD...
	! "$@"
}

# A pipe that nobody writes to: waiting at it is a sleep without a process.  bash 5.2
# may crash when a trap exits from within `read -t': there it only takes a note.
exec {pause_fd}<> <(:)
pausing='' stopped=''

pause() {
	pausing=1
	read -rt 0.05 -u "$pause_fd" || true
	pausing=''
	[ -z "$stopped" ] || exit 130
}

stop() {
	if [ -n "$pausing" ]; then
		stopped=1
	else
		exit 130
	fi
}

# deadline SECONDS: from now, and at least a minute, so that a busy machine makes no failure.
deadline() {
	echo $((SECONDS + ($1 < 60 ? 60 : $1) * SLOW))
}

# slowwait SECONDS CMD...: waits until CMD succeeds; fails after deadline SECONDS.  Deadlines are
# generous: they are never a measurement.
slowwait() {
	wait_until "$(deadline "$1")" "${@:2}"
}

wait_until() { # DEADLINE CMD...
	local deadline=$1
	shift
	[ -z "$LONGEST" ] || [ "$deadline" -lt "$LONGEST" ] || deadline=$LONGEST
	until "$@" >/dev/null 2>&1; do
		((SECONDS < deadline)) || return 1
		pause
	done
}
