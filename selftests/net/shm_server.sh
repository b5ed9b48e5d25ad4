#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The socket by which sainad hands out shared memory, which every user of the host may connect to:
#
#     w0, w1: workers of a job with shared memory
#     shm_server.py: clients of the socket that send wrong requests, flood it, or say nothing, as user 65534
#
# and what a worker's process can see once the worker is dead.
#
# 1. Two workers with shared memory
# 2. Wrong requests
# 3. Messages with descriptors
# 4. Connections that say nothing
# 5. A process that outlives its worker

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

ASK=$NET_DIR/shm_server.py
SAINA_SHM_VERSION=$(awk '$2 == "SAINA_SHM_VERSION" { print $3 }' "$TOP/uapi/saina/shm.h")
export SAINA_SHM_VERSION
METRICS=$WORK/metrics
echo "metrics = \"unix:$METRICS\";" >"$WORK/lines"
lab_up --workers 2 --bridge linux --config "$WORK/lines"
SAINA_SHARE=/run/saina-lab/$LAB/run/share
export SAINA_SHARE

nobody() { # CMD...
	setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs "$@"
}

# The answer may be 250 ms old: to see what has just happened, wait for counted_is.
counted() { # METRIC
	"$NET_DIR/metrics.py" get "$METRICS" >"$WORK/metrics.txt"
	"$NET_DIR/metrics.py" value "saina_agent_$1_total" < <(tail -n +2 "$WORK/metrics.txt") | sed 's/\.0$//'
}

counted_is() { # METRIC N
	[ "$(counted "$1")" = "$2" ]
}

session_of() { # WORKER
	echo "0x$(json_value session "$(saina -j worker show local "$1")")"
}

has_lines() { # FILE N
	[ "$(wc -l <"$1")" -ge "$2" ]
}

install -m 755 "$ASK" "$WORK/shm_server.py"
chmod 711 "$WORK"

# 1. Two workers with shared memory
job local workers 2 elements 8192 payload 256 by-reference dead 3000 heartbeat 100
start_all local 1000000 2 --elements 8192 --think-us 2000 --restarts
check "two workers: memory is in use" slowwait 20 shm_in_use local || bail "no memory"
id=$(job_field local id)
pool=$(job_field local pool)

# 2. Wrong requests
session=$(session_of 1)
ask() { # VERSION JOB WORKER SESSION [BYTES]
	nobody "$WORK/shm_server.py" ask "$SAINA_SHARE" "$@"
}
refused="is not admitted in this session"
matches "a request with a wrong session is refused" "^13 .*$refused" "$(ask "$SAINA_SHM_VERSION" "$id" 1 1)"
matches "a request for worker 0 with the session of worker 1 is refused" "^13 .*$refused" "$(ask "$SAINA_SHM_VERSION" "$id" 0 "$session")"
matches "a request for a worker that cannot be is refused" "^13 .*$refused" "$(ask "$SAINA_SHM_VERSION" "$id" 255 "$session")"
matches "a request for a job that cannot be is refused" "^13 .*$refused" "$(ask "$SAINA_SHM_VERSION" 65535 1 "$session")"
matches "another version is refused with a sentence" "^71 version $((SAINA_SHM_VERSION + 1)) " "$(ask $((SAINA_SHM_VERSION + 1)) "$id" 1 "$session")"
matches "half a request is refused with a sentence" "^71 .* 16 bytes, not 8:" "$(ask "$SAINA_SHM_VERSION" "$id" 1 "$session" 8)"
matches "one byte too many is refused with a sentence" "^71 .* 16 bytes, not 17:" "$(ask "$SAINA_SHM_VERSION" "$id" 1 "$session" 17)"
matches "a long request is refused with a sentence" "^71 .* 16 bytes, not 60000:" "$(ask "$SAINA_SHM_VERSION" "$id" 1 "$session" 60000)"
matches "an empty request is refused with a sentence" "^74 .*one struct" "$(ask "$SAINA_SHM_VERSION" "$id" 1 "$session" 0)"
equal "nine refusals are counted" 9 "$(counted share_refused)"

# 3. Messages with descriptors
before=$(agent_descriptors)
at=$(job_field local round)
flood_of=$(shrink 20000 2000)
taken=$(nobody "$WORK/shm_server.py" flood "$SAINA_SHARE" "$flood_of")
diag "$taken of $flood_of messages with descriptors were taken by the kernel"
check "messages with descriptors: those that the kernel took are counted" slowwait 10 counted_is foreign_descriptors "$taken"
check "messages with descriptors: the other connections, without a request, are counted" \
	slowwait 10 counted_is share_silent $((flood_of - taken)) || diag "$(counted share_silent) of $((flood_of - taken))"
same_descriptors() {
	[ "$(agent_descriptors)" -le "$before" ]
}
check "messages with descriptors: sainad has no more descriptors than before" slowwait 10 same_descriptors ||
	diag "$before before, now: $(ls -l "/proc/$(agent_pid)/fd")"
check "messages with descriptors: rounds go on" slowwait 20 rounds_at_least local $((at + 20))
check "messages with descriptors: memory is still in use" shm_in_use local

nobody "$WORK/shm_server.py" flood "$AGENT_SOCKET" 1000 >"$WORK/control"
check "messages with descriptors to the control socket: sainad has no more descriptors than before" \
	slowwait 10 same_descriptors
check "messages with descriptors to the control socket: sainad serves other clients" agent_saina job show

# 4. Connections that say nothing
granted=$(counted share_granted)
silent_before=$((flood_of - taken))
nobody "$WORK/shm_server.py" silent "$SAINA_SHARE" 300 >"$WORK/silent" &
silent=$!
check "300 silent connections of one user are made" slowwait 20 has_lines "$WORK/silent" 1
kill -TERM "${worker_pids[1]}"
worker_reap 1
start 1 local 1000000 --elements 8192 --think-us 2000 --restarts
check "silent connections: a worker that joins meanwhile has its memory" slowwait 20 shm_in_use local
more_granted() {
	[ "$(counted share_granted)" -gt "$granted" ]
}
check "silent connections: its request was granted" slowwait 20 more_granted
wait $silent
matches "silent connections: each is refused or closed" "refused [0-9]+ closed [0-9]+" "$(tail -n 1 "$WORK/silent")"
read -r _ refused _ closed < <(tail -n 1 "$WORK/silent")
check "silent connections: all that were closed are counted" slowwait 10 counted_is share_silent $((silent_before + closed)) ||
	diag "$(counted share_silent), not $silent_before + $closed"
check "silent connections: all that were refused are counted" slowwait 10 counted_is share_crowded "$refused" ||
	diag "$(counted share_crowded), not $refused"
check "silent connections: some were refused" [ "$(counted share_crowded)" -gt 0 ]
check "silent connections: sainad has no more descriptors than before" slowwait 10 same_descriptors

# 5. A process that outlives its worker
# outlives WHAT HOW BACK: a process has mapped the memory of worker 1, whose worker ends by HOW while
# sainad is away; BACK undoes HOW; then the process sees nothing of the next session
outlives() {
	local session new keeper
	session=$(session_of 1)
	mkfifo "$WORK/look"
	"$ASK" keep "$SAINA_SHARE" "$id" 1 "$session" "$pool" $((64 + 4 * 256)) <"$WORK/look" >"$WORK/kept" &
	keeper=$!
	exec {look}>"$WORK/look"
	check "$1: a process has mapped the array of worker 1" slowwait 20 has_lines "$WORK/kept" 1
	echo >&"$look"
	check "$1: the process sees gradients of that session" slowwait 20 grep -q "$session" "$WORK/kept"
	check "$1: the agent is killed" lab agent kill
	worker_kill 1
	expected_log="worker 1 .* is dead|port p1|left it"
	$2
	check "$1: a new agent starts" lab agent start
	check "$1: worker 1 is dead" slowwait 30 worker_state_is local 1 dead
	$3
	start 1 local 1000000 --elements 8192 --think-us 2000 --restarts
	check "$1: a new worker 1 has its memory" slowwait 30 shm_in_use local
	check "$1: rounds go on" rounds_go_on local 20
	new=$(session_of 1)
	echo >&"$look"
	check "$1: the process looks at its array" slowwait 20 has_lines "$WORK/kept" 3
	equal "$1: the process does not see gradients of the new worker 1" "" "$(grep -o "$new" "$WORK/kept")"
	check "$1: the session is a new one" [ "$new" != "$session" ]
	check "$1: more rounds" rounds_go_on local 5
	echo >&"$look"
	check "$1: the process looks at the results that it has mapped" slowwait 20 has_lines "$WORK/kept" 4
	equal "$1: the process does not see new results" "" \
		"$(tail -n 2 "$WORK/kept" | grep -o 'round .*' | uniq -u)"
	echo end >&"$look"
	exec {look}>&-
	wait $keeper
	rm "$WORK/look" "$WORK/kept"
}
died_by_kernel() {
	saina worker set local 1 state dead || not_ok "saina.ko does not declare worker 1 dead"
}
outlives "a worker dies while the agent is away" true true
outlives "a worker's port goes while the agent is away" "lab port del 1" "lab port add 1"
[ "$BACKEND" = agent ] || outlives "saina.ko declares a worker dead while the agent is away" died_by_kernel true
stop_workers
check "hostile clients: all sums are exact" wait_all 60
check "hostile clients: the same results" same_results 0 1
finished
