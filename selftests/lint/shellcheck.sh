#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# No shell script of the project has a remark from shellcheck (.shellcheckrc).  A remark
# that is wrong is turned off at its line, with the reason.

set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=../tap.sh
. selftests/tap.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

find . \( -path ./.git -o -path ./build -o -path ./result -o -name __pycache__ \) -prune -o -type f -print0 |
	xargs -0 grep -lIEm1 '^#!.*(/|env )(ba)?sh( |$)|^# shellcheck shell=' | sort >"$tmp/scripts"
[ "$(wc -l <"$tmp/scripts")" -gt 40 ]
point $? "shellcheck: the scripts of the project are found ($(wc -l <"$tmp/scripts"))"
# Long ones take seconds: two at once, and a few at a time.
xargs -P 2 -n 4 shellcheck -f gcc <"$tmp/scripts" >"$tmp/remarks" 2>&1
point $? "shellcheck: no remark" || diag "$(cat "$tmp/remarks")"
plan
