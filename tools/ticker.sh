# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Progress lines during a long step that prints nothing.  Sourced by
# tools/demo, tools/demo-vm, tools/deb and tools/quickstart, which have say().

ticker=''

# ticker_start TEXT [FILE]: says TEXT and the time every three seconds, until
# ticker_stop or until FILE is there.
ticker_start() {
	(
		# Reading a pipe without a writer is a pause without a process, which could be left behind.
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
