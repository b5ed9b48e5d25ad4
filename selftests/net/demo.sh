#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The demo in small, over Open vSwitch and over a Linux bridge: all runs end, the
# workers of each have the same model to the last bit, it has learned something,
# the table and the picture are there; and BSP ends with the same accuracy
# whatever the bridge.  (Not with the same bits: where workers' scales differ, the
# rounding of a sum depends on the order of arrival.)
#
#	demo.sh [BRIDGE...]	only over these, and three of the five runs

set -u
top=$(readlink -f "$(dirname "$0")/../..")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM HUP

# shellcheck source=../tap.sh
. "$top/selftests/tap.sh"

# result_has FILE JQ-EXPRESSION: true of the table
result_has() {
	jq -e "$2" "$1/result.json" >/dev/null 2>&1
}

[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP needs root"; exit 4; }
policies='["bsp", "sfcd:k0=4,sth=0.4,cth=5", "ssp:2"]' only=bsp,sfcd,ssp
[ $# != 0 ] || {
	policies='["bsp", "fastest:k=6", "sfcd:k0=4,sth=0.4,cth=5", "ssp:2", "grouped:g=2"]' only=bsp,fastest,sfcd,ssp,grouped
	set -- ovs linux
}
check "steps are not simulated, which is said" grep -q "ssp and grouped cannot be simulated" <("$top/tools/demo" --simulate --only ssp 2>&1)
mkdir -p "$tmp/earlier/runs/bsp"
for refused in "--sfcd sfcd:k0=99" "--target 101"; do
	# shellcheck disable=SC2086 # words
	"$top/tools/demo" --simulate $refused --out "$tmp/earlier" >"$tmp/log" 2>&1
	point $((! $?)) "simulated with $refused: refused"
	check "simulated with $refused: the runs of an earlier demo are kept" [ -d "$tmp/earlier/runs/bsp" ]
done
for bridge; do
	out=$tmp/$bridge
	"$top/tools/demo" --quick --only "$only" --rounds 24 --base 20 --bridge "$bridge" --out "$out" >"$tmp/log" 2>&1
	point $? "$bridge: the demo ends with status 0"
	sed 's/^/# /' "$tmp/log"
	check "$bridge: the table has all runs" result_has "$out" "[.runs[].policy] == $policies"
	check "$bridge: the eight models of each run are identical" \
		result_has "$out" '.runs | all(.models_identical and .workers == 8 and .rounds == 24)'
	# ten classes: guessing has 0.1
	check "$bridge: the models have learned" result_has "$out" '.runs | all(.final_accuracy > 0.5)'
	check "$bridge: no gradient is late under BSP and in steps, at most a quarter under fastest:k=6" \
		result_has "$out" '.runs | all((.run | IN("bsp", "ssp", "grouped") | not) or .late_share == 0) and
			all(.run != "fastest" or .late_share > 0 and .late_share <= 0.26)'
	check "$bridge: the table has the flips and k of the rounds of SFCD" \
		result_has "$out" '.runs[] | select(.run == "sfcd").sfcd | length >= 20 and all(.flip_share >= 0 and .flip_share <= 1 and .k >= 4 and .k <= 8)'
	check "$bridge: the picture is a PNG file" \
		[ "$(head -c 8 "$out/demo.png" | od -An -tx1 | tr -d ' ')" = 89504e470d0a1a0a ]
	check "$bridge: the picture of README is an SVG file" grep -q '</svg>' "$out/demo.svg"
done
if [ $# != 1 ]; then
	jq -es '(.[0].runs[0].final_accuracy - .[1].runs[0].final_accuracy) | fabs < 0.02' \
		"$tmp/ovs/result.json" "$tmp/linux/result.json" >/dev/null
	point $? "BSP: the final accuracies over both bridges differ by less than 2 points"
fi
plan
