#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# saina bench on an existing bridge: what it reports, and that it leaves nothing.
#
#     sainad, br0 ---- w0 (the lab's)
#              \------ the bench's own workers, in namespaces saina-bench-PID-w*
#
# 1. A run, by messages and by shared memory, with another policy
# 2. What it refuses
# 3. Ctrl-C, and SIGKILL, after which the next run removes what was left

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

lab_up --workers 1
export SAINA_SHARE=/run/saina-lab/$LAB/run/share

bench() {
	in_switch "$B/saina" -s "$AGENT_SOCKET" "$@"
}

state() { # prints what the bench could leave: addresses, links, jobs and ports
	in_switch ip -4 -br address show dev br0 | tr -s ' '
	in_switch ls /sys/class/net | grep '^sb[0-9]*p'
	saina -j job show | jq -r '.[].name'
	saina -j port show | jq -r '.[].port'
}

namespaces() { # PID
	find /run/netns -name "saina-bench-$1-w*"
}

before=$(state)
unchanged() { # sainad may hear of a port's end a moment later
	[ "$before" = "$(state)" ]
}

# 1. A run, by messages and by shared memory, with another policy
# With fastest, a late worker's question may arrive when the others have gone on.
expected_log='asked for round [0-9]+, which is gone'
bench -j bench workers 3 policy fastest:k=2 seconds 0.05 -b 4K -e 16K -f 4 >"$WORK/report" 2>"$WORK/bench.err"
equal "bench: ends with status 0" 0 $? || diag "$(cat "$WORK/bench.err")"
equal "bench: measures each size by messages and by shared memory" "4096 messages 4096 reference 16384 messages 16384 reference" \
	"$(jq -r '[.[].rows[]|select(.by|IN("messages","reference"))|"\(.size) \(.by)"]|join(" ")' "$WORK/report")"
each_row() { # DESCRIPTION JQ: true of each row, with $n workers and $cpus processors
	equal "bench: $1" "rows, all so" "$(jq -r --argjson cpus "$(nproc)" "[.[] | .workers as \$n | .rows[] | [$2, .]] |
		if . == [] then \"no rows\" else ([.[] | select(.[0] | not)[1] | tojson] | if . == [] then \"rows, all so\" else .[] end) end" "$WORK/report")"
}
# shellcheck disable=SC2016 # $n and $cpus are variables of jq
each_row "all sums were checked, and all figures follow from time and size" \
	'(.wrong == 0 and .time_us > 0 and .rounds >= 1 and ((.algbw_gbs - .size / .time_us / 1000) | fabs) < 1e-9 and
		((.busbw_gbs - .algbw_gbs * 2 * ($n - 1) / $n) | fabs) < 1e-9)'
# shellcheck disable=SC2016
each_row "each row compares bound workers with free ones if there is more than one processor" '((.bound_to_free != null) == ($cpus > 1))'
peers=$(jq -r '[.[]|(.rows[].by, (.left_out|keys[]))|select(IN("Gloo","MPI"))]|unique|join(" ")' "$WORK/report")
equal "bench: each peer is in the table or left out with a reason" "Gloo MPI" "$peers"
matches "bench: says whether it pays" 'pays? here' "$(jq -r '.[].verdict' "$WORK/report")"
check "bench: leaves the bridge, jobs and ports as they were" slowwait 20 unchanged

# 2. What it refuses
refused() { # STATUS POINT ERE WORD...
	local said status
	said=$(bench bench "${@:4}" 2>&1 >/dev/null)
	status=$?
	equal "bench: $2 is refused with status $1" "$1" "$status"
	matches "bench: $2 is refused with a sentence" "$3" "$said"
}
refused 2 "a size of no bytes" 'bytes from 4 to 1G' -b 0
refused 2 "a policy with steps" 'has steps' policy ssp:2
refused 1 "a policy that does not exist" "'nope' is unknown" policy nope
refused 1 "a job beyond the limit of memory" 'memory-job.*-e SIZE makes smaller' -b 1G -e 1G
said=$("$B/saina" -s "$WORK/nobody" bench 2>&1)
matches "bench: without an agent it says how to get one" 'start sainad' "$said"
said=$(setpriv --reuid 65534 --clear-groups true 2>/dev/null && in_switch setpriv --reuid 65534 --clear-groups "$B/saina" -s "$AGENT_SOCKET" bench 2>&1)
matches "bench: without root it says so" 'needs root|sudo|ermission' "$said"
check "bench: refusals leave nothing" slowwait 20 unchanged

# 3. Ctrl-C, and SIGKILL, after which the next run removes what was left
interrupted() { # SIGNAL: sends it when both jobs are there; sets bench_pid and status
	nsenter --net="/run/netns/saina-$LAB-sw" -- "$B/saina" -s "$AGENT_SOCKET" bench workers 2 seconds 60 -e 64K >/dev/null 2>&1 &
	bench_pid=$!
	worker_pids[bench]=$bench_pid
	slowwait 60 jobs_there
	kill -"$1" "$bench_pid"
	wait "$bench_pid"
	status=$?
	unset "worker_pids[bench]"
}
jobs_there() {
	[ "$(saina -j job show | jq length)" = 2 ]
}
interrupted INT
equal "bench: Ctrl-C ends it with status 130" 130 "$status"
check "bench: Ctrl-C leaves nothing" slowwait 20 unchanged
equal "bench: Ctrl-C leaves no namespace" "" "$(namespaces "$bench_pid")"
interrupted KILL
check "bench: a killed one leaves its workers" [ -n "$(namespaces "$bench_pid")" ]
bench bench workers 2 seconds 0.05 -b 4K -e 4K >/dev/null
equal "bench: the next run removes them" "" "$(namespaces "$bench_pid")$(ls -d /tmp/saina-bench-"$bench_pid"-* 2>/dev/null)"
check "bench: after the next run the bridge, jobs and ports are as they were" slowwait 20 unchanged
finished
