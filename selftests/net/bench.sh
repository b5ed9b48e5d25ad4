#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# `make bench' and `make bench-control' in their smallest form: every contender reduces, every sum is
# right, reports are complete, nothing is left behind.  Times are not judged.  The programs make the labs.
#
# 1. make bench: a small run
# 2. It is interrupted
# 3. Open MPI hangs
# 4. Bad usage
# 5. make bench-control

# shellcheck source=bench_lib.sh
. "$(dirname "$0")/bench_lib.sh"
bench=(/usr/bin/python3 "$top/selftests/bench")
report=$tmp/out/bench.json
# The sockets of the bench's groups are below it: their processes are found by them, and no others.
export TMPDIR=$tmp

[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP needs root"; exit 4; }
/usr/bin/python3 -c 'import mpi4py, torch' 2>/dev/null || { echo "1..0 # SKIP no peers: tools/install-deps bench"; exit 4; }

# 1. make bench: a small run
"${bench[@]}" --workers 2 --sizes 64K --links unlimited,1gbit/256kb --seconds 0.05 --out "$tmp/out" >"$tmp/log" 2>&1
point $? "bench: a small run ends well"
sed 's/^/# /' "$tmp/log"
report_has "bench: libsaina and the peers are measured, these with and without SAINA's program on the ports; shared memory where no link is limited, 16 bits where it is" \
	'.complete and ([.rows[] | select(.link == "unlimited").by] == ["messages", "reference", "Gloo", "MPI", "Gloo-beside", "MPI-beside"])
	and ([.rows[] | select(.link == "1gbit/256kb").by] == ["messages", "int16", "Gloo", "MPI", "Gloo-beside", "MPI-beside"])'
report_has "bench: all sums were checked, and all figures follow from times" \
	'.rows | length == 12 and all(.wrong == 0 and .rounds >= 3 and .time_us > 0 and ((.algbw_gbs - .size / .time_us / 1000) | fabs) < 1e-9)'
# shellcheck disable=SC2016 # $r and $t are variables of jq
report_has "bench: the best peer is the fastest one without SAINA's program on its ports" \
	'.rows as $r | [$r[] | select(.by == "messages") as $t | $t.to_best_peer * $t.time_us -
		([$r[] | select(.link == $t.link and (.by == "Gloo" or .by == "MPI")).time_us] | min) | fabs] | length == 2 and all(. < 1e-6)'
report_has "bench: only messages on a limited link have a bound" '[.rows[] | select(.to_bound) | [.link, .by]] == [["1gbit/256kb", "messages"]]'
report_has "bench: peers beside are compared with those on bare ports" '[.rows[] | select(.by == "Gloo-beside").to_bare > 0] == [true, true]'
report_has "bench: no bar of four workers is measured" '.bars | length > 10 and all((.workers | contains([2])) or .verdict == "not measured")'
check "bench: a run that ended leaves nothing behind" [ "$(leftovers)" = "" ]

# 2. It is interrupted
"${bench[@]}" --workers 2 --sizes 64K --out "$tmp/out" >"$tmp/log" 2>&1 &
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

# 3. Open MPI hangs
# One process of Open MPI is stopped in each of its turns, so that it hangs; the bench reports turns on a terminal.
rm -f "$report"
script -qefc "${bench[*]} --workers 2 --sizes 64K --hook xdp --seconds 0.9 --out '$tmp/out'" "$tmp/log" >/dev/null 2>&1 &
running=$!
while kill -0 "$running" 2>/dev/null; do
	# The process is looked up before the turn is read, so it belongs to that turn or to an earlier one.
	rank=$(pgrep -n -f "^[^ ]*python3 .*peer.py mpi $tmp/.*/openmpi/socket")
	if [ "$rank" ] && tail -c 200 "$tmp/log" | tr '\r' '\n' | tail -n 1 | grep -qE 'MPI, turn'; then
		kill -STOP "$rank" 2>/dev/null
	fi
	sleep 0.05
done
wait "$running"
check "bench: a run in which Open MPI hangs ends, with status 3 for what was left out" [ $? = 3 ]
running=''
tr '\r' '\n' <"$tmp/log" | sed 's/^/# /'
report_has "bench: a peer that hangs again and again has no row, and the others have" \
	'([.rows[].by] == ["messages", "reference", "Gloo", "Gloo-beside", "MPI-beside"]) and (.left_out | length == 1 and (to_entries[0] | (.key | contains(": MPI")) and (.value | contains("did not return"))))'
report_has "bench: the report says which hook the ports had" '.rows | all(.hook == "xdp")'
! pgrep -f "peer.py mpi $tmp/.*/openmpi/socket" >/dev/null
point $? "bench: no process of a peer that did not return is left"

# 4. Bad usage
output=$("${bench[@]}" --sizes 3 2>&1)
[ $? = 2 ] && [[ $output == *'"3" must be bytes from 1K to 64M'* ]]
point $? "bench: an invalid size is a usage error with a message"
output=$(SAINA_BUILD=$tmp "${bench[@]}" --out "$tmp/out" 2>&1)
[ $? = 1 ] && [[ $output == *"is missing: run \`make'"* ]]
point $? "bench: a program that was not built is named, with the command that builds it"

# 5. make bench-control
report=$tmp/out/bench-control.json
/usr/bin/python3 "$top/selftests/bench/control.py" --quick --out "$tmp/out" >"$tmp/log" 2>&1
point $? "bench-control: a small run ends well"
sed 's/^/# /' "$tmp/log"
report_has "bench-control: time-outs and k are measured" '.complete and (.rows | length) == 7'
report_has "bench-control: no result comes before its time-out" \
	'[.rows[] | select(.name | startswith("time-out")) | .median_ms] | length == 6 and all(. >= 0)'
check "bench-control: a run that ended leaves nothing behind" [ "$(leftovers)" = "" ]
plan
