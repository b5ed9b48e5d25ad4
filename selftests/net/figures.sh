#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# `make figures' in its quick form, with real workers: it is interrupted, goes on, and its report is
# complete.  Values are not compared with those of the models, as this machine may have other work;
# but no round may be shorter than its computation.

# shellcheck source=bench_lib.sh
. "$(dirname "$0")/bench_lib.sh"
build=${SAINA_BUILD:-$top/build}
report=$tmp/out/figures.json

[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP needs root"; exit 4; }
# Results are kept in build/figures: this build directory links to the other, without its results.
mkdir "$tmp/build"
ln -s "$build"/* "$tmp/build/"
rm -f "$tmp/build/figures"
export SAINA_BUILD=$tmp/build

kept() {
	[ "$(find "$tmp/build/figures" -name '*.json' 2>/dev/null | wc -l)" -ge "$1" ]
}

/usr/bin/python3 "$top/selftests/figures" --quick --only timeout,order,basu,serene --at-once 2 --out "$tmp/out" >"$tmp/log" 2>&1 &
running=$!
slowwait 60 kept 2
kill -INT "$running"
wait "$running"
check "figures: an interrupted run ends with status 130" [ $? = 130 ]
running=''
check "figures: an interrupted run leaves nothing behind" [ "$(leftovers)" = "" ]
report_has "figures: the report of an interrupted run has what was measured, and is not complete" \
	'(.complete | not) and ([.rows[] | select(.measured)] | length) >= 1'

/usr/bin/python3 "$top/selftests/figures" --quick --only timeout,order,basu,serene --out "$tmp/out" >"$tmp/log" 2>&1
point $? "figures: the same command goes on and ends well"
sed 's/^/# /' "$tmp/log"
check "figures: what was measured before is kept" grep -qE '^figures: [2-9] of 1?[0-9]+ runs are kept' "$tmp/log"
check "figures: progress says how long the rest takes" grep -qE '^\[[0-9]+:[0-9]{2}, [0-9]+ (s|min) left\] (serene|order|timeout|basu) ' "$tmp/log"
report_has "figures: every value of all four figures is measured" \
	'.complete and ([.rows[].figure] | unique) == ["basu", "order", "serene", "timeout"] and ([.rows[] | .measured] | all(. > 0))'
report_has "figures: no round ends before its k-th gradient is computed" \
	'[.rows[] | select(.figure == "order")] | length == 4 and all(.measured >= 0.99 * .same_draws)'
report_has "figures: the controller has made groups" '[.rows[].chosen | select(.)] | length == 1 and all(test("^grouped:g=([2-9]|1[0-6]),groups="))'
check "figures: there are pictures" [ "$(find "$tmp/out" -name 'figure-*.svg' -size +2k | wc -l) $(find "$tmp/out" -name 'figure-*.png' -size +2k | wc -l)" = "4 4" ]
check "figures: a run that ended leaves nothing behind" [ "$(leftovers)" = "" ]

/usr/bin/python3 "$top/selftests/figures" --quick --only accuracy --seeds 1 --out "$tmp/out" >"$tmp/log" 2>&1
point $? "accuracy: a small grid ends well"
sed 's/^/# /' "$tmp/log"
report=$tmp/out/accuracy.json
report_has "accuracy: with plain gradient descent, bsp reaches 85 % at its best rate" \
	'.complete and ([.best[] | select(.setting.kind == "bsp" and .setting.optimiser == "sgd") | .times["85"]] | length == 1 and all(. > 0))'
report_has "accuracy: of the rules for late gradients, each has a best rate" \
	'[.best[] | select(.setting.finish and .setting.optimiser == "momentum") | .rate] | length == 5 and all(. > 0)'
check "accuracy: the rules for late gradients have a table" grep -q '^Late gradients, every gradient is finished' "$tmp/out/accuracy.txt"

/usr/bin/python3 "$top/selftests/figures" --quick --only deadline,real,fashion --at-once 2 --out "$tmp/out" >"$tmp/log" 2>&1
point $? "deadline, real, fashion: small runs end well"
sed 's/^/# /' "$tmp/log"
report=$tmp/out/fashion.json
report_has "fashion: each run has learned something, and only policies that do not wait for all have late gradients" \
	'.complete and ([.rows[] | .final > 30 and (.late > 0) == (.policy != "bsp")] == [true, true, true])'
report=$tmp/out/real.json
report_has "real: workers that train reach 85 %, with some gradients late, and so does the simulation" \
	'.complete and (.rows | length == 1) and ([.rows[] | .real > 0 and .simulated > 0 and .slower > 0.5] | all)'
report=$tmp/out/deadline.json
report_has "deadline: each rule has gradients in its sums, and k has those it waits for" \
	'.complete and (.rows | length == 5 and all(.rate > 0)) and ([.rows[] | select(.rule == "k=3") | .count] == [3])'
report_has "deadline: the controller has decided" '[.rows[] | select(.rule == "deadline") | .decisions | length] | .[0] > 0'

printf '5\n-1\n' >"$tmp/times"
refused=$("$build/saina-allreduce" -a 10.0.0.1 --think-from "$tmp/times" 2>&1)
[ $? = 2 ] && [[ $refused == *"entry 2 must be a number from 0 to"* ]]
point $? "saina-allreduce: a file of times with another word in it is refused"
plan
