#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# `make bench' in its smallest form: every contender reduces, every sum is right, the
# report is complete, nothing is left behind.  Times are not judged.  selftests/bench makes the labs,
# of two workers on a Linux bridge.
#
# 1. A small run
# 2. GRO is switched on and off
# 3. A run with strains
# 4. A run that is interrupted
# 5. Open MPI hangs
# 6. Bad usage

# shellcheck source=bench_lib.sh
. "$(dirname "$0")/bench_lib.sh"
build=${SAINA_BUILD:-$top/build}
report=$tmp/out/bench.json

[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP needs root"; exit 4; }
for p in saina gloo openmpi; do
	[ -x "$build/bench-$p" ] || { echo "1..0 # SKIP no bench-$p: make bench-deps bench-programs"; exit 4; }
done

# 1. A small run
python3 "$top/selftests/bench" --workers 2 --sizes 64KiB --links unlimited,1gbit/256kb --seconds 0.05 \
	--out "$tmp/out" >"$tmp/log" 2>&1
point $? "bench: a small run ends well"
sed 's/^/# /' "$tmp/log"
report_has "bench: all rows of the plan are in the report" \
	'.complete and ([.rows[] | [.link, .workers, .bytes]] == [["unlimited", 2, 65536], ["1gbit/256kb", 2, 65536]])'
report_has "bench: libsaina, Gloo and Open MPI are measured, the peers with and without SAINA's program on the ports" \
	'.rows | all(.series | del(.["libsaina, by reference"], .["libsaina, int16"]) | keys == ["Gloo halving", "Gloo halving, beside", "Gloo ring", "Gloo ring, beside",
		"MPI default", "MPI default, beside", "MPI ring", "MPI ring, beside", "libsaina", "libsaina, GRO off", "libsaina, advised"])'
report_has "bench: libsaina by reference is measured where no link is limited" \
	'[.rows[] | .series | has("libsaina, by reference")] == [true, false]'
report_has "bench: elements of 16 bits are measured where links are limited, and compared with 32" \
	'[.rows[] | .series | has("libsaina, int16")] == [false, true] and ([.rows[].int16_to_int32 > 0] == [false, true])'
report_has "bench: every contender has verified all sums of two rounds of both workers" '[.rows[].series[]] | all(.verified and .verified_sums == 65536)'
report_has "bench: peers are measured with GRO off and on, bound and free, and the fastest counts" \
	'[.rows[].series[] | select(.ours | not)] | all((.gbps_by_setting | keys) ==
		["GRO off, bound", "GRO off, free", "GRO on, bound", "GRO on, free"] and .goodput_gbps == ([.gbps_by_setting[]] | max))'
report_has "bench: so is libsaina, bound and free" \
	'[.rows[].series[] | select(.ours)] | all((.gbps_by_setting | length) == 2 and .goodput_gbps == ([.gbps_by_setting[]] | max))'
report_has "bench: a new job has a time of its first all-reduce, an old one has not" \
	'[.rows[].series.libsaina.first_ns > 0] == [true, false]'
report_has "bench: no row is left out, and no bar of four workers is measured" \
	'.left_out == [] and (.bars | length > 20 and all((.bar | contains("N = 4:") | not) or .verdict == "not measured"))'
report_has "bench: every contender has a median between its quartiles" '[.rows[].series[]] |
	all(.samples >= 3 and .first_quartile_ns <= .median_ns and .median_ns <= .third_quartile_ns and .goodput_gbps > 0)'
report_has "bench: every contender sent at least half of its tensor through the ports" \
	'[.rows[].series | del(.["libsaina, by reference"], .["libsaina, int16"])[]] | all(.port_bytes_per_byte >= 0.5)'
report_has "bench: with elements of 16 bits half of that" \
	'[.rows[].series["libsaina, int16"] // empty | .port_bytes_per_byte] | length == 1 and all(. >= 0.25 and . < 0.8)'
# shellcheck disable=SC2016 # $best is a variable of jq
report_has "bench: the best peer is the fastest one without SAINA's program on its ports" \
	'.rows | all(.series[.best_peer].goodput_gbps as $best |
		([.series[] | select((.ours or .beside) | not) | .goodput_gbps] | max) == $best)'
report_has "bench: only a limited link has a bound" '[.rows[].bound_gbps] | .[0] == null and .[1] > 0.8 and .[1] < 1'
check "bench: the table has a line for each row" [ "$(grep -c '64 KiB |' "$tmp/out/bench.txt")" = 2 ]
check "bench: the table has the bars" grep -q 'N = 2: to the payload bound' "$tmp/out/bench.txt"
check "bench: a run that ended leaves nothing behind" [ "$(leftovers)" = "" ]

# 2. GRO is switched on and off
"$top/tools/saina-lab" up "${SAINA_TEST_RUN}benchgro" --workers 2 --bridge linux --no-agent --gro off --owner $$ >/dev/null
gro_is() {
	local w
	for w in 0 1; do
		ip netns exec "saina-${SAINA_TEST_RUN}benchgro-w$w" ethtool -k eth0 | grep -q "^generic-receive-offload: $1" || return 1
	done
}
set_gro() {
	python3 - "$top/selftests/bench" "${SAINA_TEST_RUN}benchgro" "$1" <<'PY'
import sys
sys.dont_write_bytecode = True
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/../lab"]
from lab import Lab
from plan import Place
lab = Lab(Place("linux", 1500, 2), agent=False)
lab.name = sys.argv[2]
lab.gro = None
lab.set_gro(sys.argv[3] == "on")
PY
}
gro_is off && set_gro on && gro_is on && set_gro off && gro_is off
point $? "bench: GRO is switched on and off at all workers"
"$top/tools/saina-lab" down "${SAINA_TEST_RUN}benchgro" >/dev/null

# 3. A run with strains
python3 "$top/selftests/bench" --workers 2 --sizes 64KiB --hook xdp --strain overload,loss,tcp --seconds 0.05 --out "$tmp/out" >"$tmp/log" 2>&1
point $? "bench: a run with strains ends well"
sed 's/^/# /' "$tmp/log"
report_has "bench: strained rows have libsaina with and without, verified, and no peers" \
	'[.rows[:2][] | [.strain, (.series | keys)]] == [["overload", ["libsaina", "libsaina, overload"]], ["loss", ["libsaina", "libsaina, loss"]]]
	and ([.rows[:2][].series[]] | all(.verified and .sent > 0))'
report_has "bench: busy loops take a share of the processors, and messages are lost and sent again only under loss" \
	'(.rows[0] | .share_left > 0 and .share_left < 1 and .to_share > 0 and .p99_to_median >= 1) and
	(.rows[1].series | .["libsaina, loss"].resent > .["libsaina"].resent)'
report_has "bench: a TCP stream is measured through ports with and without SAINA's program" \
	'.rows[2] | .strain == "tcp" and (.series | keys) == ["bare", "beside"] and (.series | all(.goodput_gbps > 0 and .goodput_gbps == ([.gbps_by_gro[]] | max))) and .to_bare > 0'
report_has "bench: the report says which hook the ports had" '.rows | all(.hook == "xdp")'
check "bench: the table says which hook the ports had" grep -q 'hook xdp' "$tmp/out/bench.txt"
! pgrep -f "while True: pass ${SAINA_TEST_RUN}bench" >/dev/null
point $? "bench: no busy loop is left"

# 4. A run that is interrupted
python3 "$top/selftests/bench" --workers 2 --sizes 64KiB --out "$tmp/out" >"$tmp/log" 2>&1 &
running=$!
lab_is_up() {
	[ "$(leftovers | wc -l)" -ge 3 ]
}
slowwait 30 lab_is_up
kill -INT "$running"
wait "$running"
check "bench: an interrupted run ends with status 130" [ $? = 130 ]
running=''
check "bench: an interrupted run leaves nothing behind" [ "$(leftovers)" = "" ]

# 5. Open MPI hangs
# One process of Open MPI is stopped in each of its turns, so that it hangs; the bench reports that
# on a terminal.
script -qefc "python3 '$top/selftests/bench' --workers 2 --sizes 64KiB --seconds 0.9 --out '$tmp/out'" "$tmp/log" >/dev/null 2>&1 &
running=$!
while kill -0 "$running" 2>/dev/null; do
	# The process is looked up before the turn is read, so it belongs to that turn or to an earlier one.
	rank=$(pgrep -n -f "^[^ ]*bench-openmpi .*/openmpi/socket")
	if [ "$rank" ] && tail -c 200 "$tmp/log" | tr '\r' '\n' | tail -n 1 | grep -qE 'MPI (default|ring), turn'; then
		kill -STOP "$rank" 2>/dev/null
	fi
	sleep 0.05
done
wait "$running"
check "bench: a run in which Open MPI hangs ends, with status 3 for what was left out" [ $? = 3 ]
running=''
# The logs of a peer that hung are kept.
sed -n 's/.*what the contenders said is in \([^[:space:]]*\).*/\1/p' "$tmp/log" | xargs -r rm -rf
tr '\r' '\n' <"$tmp/log" | sed 's/^/# /'
report_has "bench: a peer that hangs again and again is left out of its row, and the others are not" \
	'.rows | length == 1 and all((.left_out | keys) == ["MPI default", "MPI ring"] and (.series | has("MPI default, beside") and has("Gloo ring")))'
grep -q '64 KiB.*MPI default left out' "$tmp/out/bench.txt" && grep -q '^bench: left out: .*64 KiB: MPI ring: hung' "$tmp/log"
point $? "bench: the table and the end of the output say who hung and was left out"
! pgrep -f '^[^ ]*bench-openmpi .*/openmpi/socket' >/dev/null
point $? "bench: no process of a peer that hung is left"

# 6. Bad usage
output=$(python3 "$top/selftests/bench" --sizes 3 2>&1)
[ $? = 2 ] && [[ $output == *'"3" is not a size from 1KiB to 64MiB'* ]]
point $? "bench: an invalid size is a usage error with a message"
output=$(SAINA_BUILD=$tmp python3 "$top/selftests/bench" --out "$tmp/out" 2>&1)
[ $? = 1 ] && [[ $output == *"is missing: run \`make all bench-programs'"* ]]
point $? "bench: a program that was not built is named, with the command that builds it"
plan
