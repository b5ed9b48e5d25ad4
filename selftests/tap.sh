# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# TAP for the scripts here, sourced.  A script says point for each result and plan
# at its end.

tap_n=0 tap_bad=0

point() { # STATUS DESCRIPTION: good if STATUS is 0
	tap_n=$((tap_n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $tap_n - $2"
	else
		echo "not ok $tap_n - $2"
		tap_bad=$((tap_bad + 1))
	fi
}

# plan: how many there were; its status says whether all were good.
plan() {
	echo "1..$tap_n"
	[ "$tap_bad" = 0 ]
}

diag() { # TEXT
	# shellcheck disable=SC2001
	sed 's/^/# /' <<<"$*"
}

bail() { # TEXT
	echo "Bail out! $*"
	exit 1
}
