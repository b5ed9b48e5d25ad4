#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench-scale, with one batch for each hook and number of cores: it counts what it measured, and
# fails if a message took another branch than intended.
B=${SAINA_BUILD:-build}
# shellcheck source=../tap.sh
. "$(dirname "$0")/../tap.sh"
[ "$(id -u)" = 0 ] || { echo "needs root"; exit 4; }

matches "bench-scale: --lookup is refused" "option of bench-datapath" "$("$B/bench-scale" --lookup 2>&1)"
report=$("$B/bench-scale" -j -n 1)
equal "bench-scale: every message took its branch" 0 $?
equal "bench-scale: each hook on 1 to all cores" "$(for h in xdp tc reference; do seq -f "$h %g" "$(nproc)"; done)" \
	"$(echo "$report" | jq -r '.rows[]|"\(.hook) \(.cores)"')"
equal "bench-scale: rates follow from times" "" \
	"$(echo "$report" | jq -c '.rows[]|select(.ns < 1 or ((.messages_per_s * .ns / .cores / 1e9 - 1) | fabs) > 1e-3)')"
plan
