#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench-datapath, once, and with --cores and one batch for each number of cores: it counts what it
# measured, and fails if a message took another branch than intended.
B=${SAINA_BUILD:-build}
# shellcheck source=../tap.sh
. "$(dirname "$0")/../tap.sh"
[ "$(id -u)" = 0 ] || { echo "needs root"; exit 4; }

check "bench-datapath: every message took its branch" "$B/bench-datapath" -j -n 1
report=$("$B/bench-datapath" -c -j -n 1)
equal "bench-datapath --cores: every message took its branch" 0 $?
equal "bench-datapath --cores: the first row is one core, the last all of them" "cores: 1 cores: $(nproc)" \
	"$(echo "$report" | jq -r '[.rows[0, -1].branch] | join(" ")')"
equal "bench-datapath --cores: times are positive, and ratios those to one core" "" \
	"$(echo "$report" | jq -c '.rows[0].ns as $one | .rows[] | select(.ns <= 0 or ((.ns / .ratio / $one - 1) | fabs) > 1e-3)')"
plan
