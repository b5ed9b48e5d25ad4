#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# `make bench-policies' in its smallest form: everything is measured, the report is complete,
# nothing is left behind.  The figures are not judged.

# shellcheck source=bench_lib.sh
. "$(dirname "$0")/bench_lib.sh"
report=$tmp/out/bench-policies.json

[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP needs root"; exit 4; }
python3 "$top/selftests/bench/policies.py" --quick --out "$tmp/out" >"$tmp/log" 2>&1
point $? "bench-policies: a small run ends well"
sed 's/^/# /' "$tmp/log"
report_has "bench-policies: time-outs, k, the window and groups are measured" \
	'.complete and ([.rows[].name] | length) == 9'
report_has "bench-policies: no result comes before its time-out" \
	'[.rows[] | select(.name | startswith("time-out")) | .median_ms] | length == 6 and all(. >= 0)'
report_has "bench-policies: both runs of the window have a time" '[.rows[] | select(.ssp_ms) | .ssp_ms, .bsp_ms] | length == 2 and all(. > 0)'
report_has "bench-policies: the controller has made groups, and all workers stepped without, with one and with these" \
	'[.rows[] | select(.policy) | (.policy | test("^grouped:g=([2-9]|1[0-6]),groups=")), (.undelayed_steps_per_second, .one_group_steps_per_second, .steps_per_second | . > 0)]
	== [true, true, true, true]'
check "bench-policies: a run that ended leaves nothing behind" [ "$(leftovers)" = "" ]
refused=$(python3 "$top/selftests/bench/policies.py" --only speed --out "$tmp/out" 2>&1)
[ $? = 2 ] && [[ $refused == *'"speed" is none of time-out, k, window, groups'* ]]
point $? "bench-policies: a part that does not exist is refused with those that do"
plan
