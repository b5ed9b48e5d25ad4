# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Progress lines during a long step that prints nothing.  Sourced by tools/demo,
# selftests/vm/demo-vm, tools/deb and tools/quickstart/common.sh, which define say().

ticker=''

# ticker_start TEXT [FILE]: prints TEXT and the seconds since the start every three
# seconds, until ticker_stop, or until FILE exists.
ticker_start() {
	(
		# Reading from a pipe that nobody writes to is a pause; a sleep(1) could be left behind.
		exec 9<> <(:)
		from=$SECONDS
		while ! read -r -t 3 -u 9 && { [ -z "${2-}" ] || [ ! -e "$2" ]; }; do
			say "$1 ($((SECONDS - from)) s)"
		done
	) &
	ticker=$!
}

ticker_stop() {
	[ -n "$ticker" ] || return 0
	{
		kill "$ticker"
		wait "$ticker"
	} 2>/dev/null
	ticker=''
}
