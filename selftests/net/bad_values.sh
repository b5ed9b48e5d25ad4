#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Workers whose numbers spoil the results of all are named: by an event, in the agent's log, in job
# show and worker show, and by counters.
#
#     w0, w2: good values --- p0, p2  br0 (Linux bridge)  p1 --- w1: NaN, or values that are much larger
#
# 1. A worker that sends NaN
# 2. A worker whose values are much larger than those of all others, which comes last, and first
# 3. A worker that reduces float32 where the others reduce int32

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

expected_log="its block scale is coarser than all others'|has no sum"
LOG=/run/saina-lab/$LAB/sainad.log
SHAPE=(--elements 3000 --no-verify)

# trouble JOB ERE: job show says that
trouble() {
	[[ $(agent_saina -j job show "$1" | jq -r '.[0].trouble // ""') =~ $2 ]]
}

of_worker() { # JOB WORKER: the trouble that worker show prints
	agent_saina -j worker show "$1" "$2" | jq -r '.[0].trouble // ""'
}

events_are() { # EVENT FIELD JOB TOTAL: their numbers add up to that
	[ "$(events "select(.event == \"$1\" and .job == \"$3\").$2" | awk '{ n += $1 } END { print n + 0 }')" = "$4" ]
}

lines() { # ERE: of the agent's log
	grep -cE "$1" "$LOG"
}

two_events() {
	[ "$(events 'select(.event == "worker-coarsened").event' | wc -l)" -ge 2 ]
}

# 1. A worker that sends NaN
lab_up --workers 3 --bridge linux
events_start

# So short that the workers may have ended before job show is asked.
job nan workers 2 elements 3000 payload 256 policy bsp
start 0 nan 30 "${SHAPE[@]}" --values large
start 1 nan 30 "${SHAPE[@]}" --values nan
check "NaN: both workers end" wait_all 60
equal "saina-allreduce --no-verify: the residual is not called exact" unchecked "$(summary 0 residual)"
sent=$(counter nan 1 non-finite)
check "NaN: gradients are counted for the worker that sent them" test "$sent" -gt 0
equal "NaN: no gradient is counted for the other worker" 0 "$(counter nan 0 non-finite)"
check "NaN: job show names the worker and the number of gradients" slowwait 30 trouble nan \
	"^worker 1 \(.+\) sent NaN or infinity in $sent segments, the last before round [0-9]+$"
matches "NaN: worker show names NaN, too" '^sent NaN or infinity in' "$(of_worker nan 1)"
equal "NaN: worker show says nothing of the other worker" "" "$(of_worker nan 0)"
check "NaN: events name as many gradients as the worker has sent" slowwait 30 events_are worker-nonfinite nonfinite nan "$sent"
equal "NaN: all events are of that worker" 1 "$(events 'select(.event == "worker-nonfinite").worker' | sort -u)"
equal "NaN: one line of the agent's log names the worker" 1 "$(lines 'job nan: worker 1 \(.+\) sent NaN or infinity')"

# 2. A worker whose values are much larger than those of all others
# Values near 0.001 of worker 0, which begins most slots, and of 1000 and more of worker 1.
event_mark
job coarse workers 2 elements 3000 payload 256 policy bsp
start 0 coarse 1000000 "${SHAPE[@]}" --values spike
start 1 coarse 1000000 "${SHAPE[@]}" --values large --think-us 2000
check "coarse: an event names the worker that makes slots coarser" slowwait 60 event_seen \
	'.event == "worker-coarsened" and .job == "coarse" and .worker == 1 and .coarsened > .slots * 0.9 and .slots >= 12 * 16'
check "coarse: job show names the worker" slowwait 30 trouble coarse \
	'^worker 1 \(.+\) made the scale of [0-9]+ % of its slots coarser: small values of others are rounded away$'
equal "coarse: worker show says nothing of the other worker" "" "$(of_worker coarse 0)"
check "coarse: events go on while slots become coarser" slowwait 60 two_events
equal "coarse: no event is of another worker" 1 "$(events 'select(.event == "worker-coarsened").worker' | sort -u)"
equal "coarse: one line of the agent's log names the worker" 1 "$(lines "job coarse: worker 1 \\(.+\\): its block scale is coarser")"
stop_workers

# The same, but worker 1 begins most slots.
event_mark
job first workers 2 elements 3000 payload 256 policy bsp
start 0 first 1000000 "${SHAPE[@]}" --values spike --think-us 2000
start 1 first 1000000 "${SHAPE[@]}" --values large
check "first: an event names the worker that makes slots coarser before others come" slowwait 60 event_seen \
	'.event == "worker-coarsened" and .job == "first" and .worker == 1'
check "first: job show names the worker" slowwait 30 trouble first '^worker 1 \(.+\) made the scale of [0-9]+ % of its slots coarser'
equal "first: worker show says nothing of the other worker" "" "$(of_worker first 0)"
stop_workers

# 3. A worker that reduces float32 where the others reduce int32
event_mark
job types workers 3 elements 3000 payload 256 policy bsp
start 0 types 10 "${SHAPE[@]}" --type int32
start 1 types 10 "${SHAPE[@]}" --type float32
start 2 types 10 "${SHAPE[@]}" --type int32
for w in 0 1 2; do
	check "types: worker $w ends with an error that names who started which type" slowwait 60 grep -q \
		"workers 0,2 started int32, worker 1 float32 (this is worker $w)" "$WORK/$w.err"
done
wait_all 60 >/dev/null
check "types: an event names the workers of each type" slowwait 30 event_seen \
	'.event == "types" and .job == "types" and .int32 == [0, 2] and .float32 == [1] and .round == 0'
check "types: job show names the worker that differs" slowwait 30 trouble types \
	'^worker 1 \(.+\) started float32 where others started int32, the last time in round 0$'
equal "types: worker show says nothing of the others" "" "$(of_worker types 0)$(of_worker types 2)"
equal "types: one line of the agent's log names the worker" 1 \
	"$(lines 'job types: round 0 has no sum: worker 1 \(.+\) started float32, and others int32')"
events_stop
finished
