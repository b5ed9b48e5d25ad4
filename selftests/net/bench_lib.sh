# shellcheck shell=bash disable=SC2034,SC2154 # the tests that source it set report
# SPDX-License-Identifier: GPL-2.0-or-later
#
# For the tests of programs that measure and write a report: a directory $tmp, which is removed when
# the test ends, and a name for the labs of this test.  Sourced instead of lib.sh.

set -u
top=$(readlink -f "$(dirname "$0")/../..")
tmp=$(mktemp -d)
running=''	# a process that must not outlive the test
trap '[ -z "$running" ] || kill "$running"; rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM HUP

# shellcheck source=../tap.sh
. "$top/selftests/tap.sh"

# The labs carry this name, as labs of other tests may exist at the same time.
export SAINA_TEST_RUN=${SAINA_TEST_RUN:-t$$}

# leftovers: prints files of labs that selftests/bench has made and not removed.
leftovers() {
	find /run/netns /run/saina-lab -maxdepth 1 -name "*${SAINA_TEST_RUN}bench*" 2>/dev/null
}

# report_has DESCRIPTION JQ: true of the report, $report
report_has() {
	jq -e "$2" "$report" >/dev/null
	point $? "$1"
}
