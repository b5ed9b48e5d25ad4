# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# TAP for the scripts here, sourced.  A script says point for each result and plan
# at its end.

tap_n=0 tap_bad=0

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

# plan: how many there were; its status says whether all were good.
plan() {
	echo "1..$tap_n"
	[ "$tap_bad" = 0 ]
}

# pass_on PREFIX STATUS LOG: the points of another test, which has ended with STATUS, as
# points of this one; the rest of what it said as remarks.  A test that announces another
# number of points, or none, has a point that is bad.
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
