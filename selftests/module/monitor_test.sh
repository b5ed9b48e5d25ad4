#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What saina monitor tells where the kernel has the jobs: a scripted sequence of
# changes and of what happens to real workers.
#
# In the test VM (selftests/in-vm); TAP.

here=$(dirname "$(readlink -f "$0")")
module=$SAINA_TEST_MODULE

# Read by lib.sh.
# shellcheck disable=SC2034
SAINA_TEST_PLANE=kernel
# shellcheck source=../net/lib.sh
. "$here/../net/lib.sh"

kill_worker() { # TAG
	kill -KILL "${worker_pids[$1]}"
	wait "${worker_pids[$1]}" 2>/dev/null
	unset "worker_pids[$1]"
}

# What has one order, whatever the machine's speed: states of the job and policies of
# its one; who joined, died, left of each worker.  As the expected JSON.
told() { # JQ SELECT, JQ OBJECT
	jq -c "select($1)|$2" "$WORK/events"
}

check "insmod" insmod "$module"
expected_log='worker 2 .* is dead|worker 2 asked for round'
lab_up --bridge linux --workers 3
events_start
agent_says -j monitor config >"$WORK/agent.events" 2>"$WORK/agent.monitor" </dev/null &
# It ends with the agent.
until_true 20 grep -q monitoring "$WORK/agent.monitor" || bail "saina monitor does not start"

check "limits are set" saina limits set jobs 99
check "which is told" until_true 60 event_seen '.event == "limits-changed" and .jobs == 99 and .plane == "kernel"'
check "also to the agent's subscribers" until_true 60 grep -q '"limits-changed".*"jobs":99,' "$WORK/agent.events"
check "limits are set by way of the agent" agent_says limits set jobs 98
check "which is told, too" until_true 60 event_seen '.event == "limits-changed" and .jobs == 98'

job news workers 3 elements 2003 id 11 policy fastest:k=3 heartbeat 200 dead 6000
start_all news 1000000 3 --elements 2003 --think-us 30000 --restarts --cancel
check "rounds are told" until_true 60 event_seen '.event == "round" and .round >= 3'
check "another k is set" saina job set news policy fastest:k=2
check "the swap is told, and the k that comes of it" until_true 60 \
	event_seen '.event == "policy" and .from == 1 and .to == 2 and .k == 2'
check "k is 3 again" saina job set news policy fastest:k=3
check "which is told" until_true 60 event_seen '.event == "policy" and .to == 3'
event_mark
kill_worker 2
check "a dead worker is told" until_true 60 event_seen '.event == "worker-dead" and .worker == 2'
check "and the k that comes of it" until_true 60 event_seen '.event == "k" and .from == 3 and .to == 2'
check "and segments with less than k" until_true 60 event_seen '.event == "degraded" and .contributors == 2'
event_mark
start 2 news 1000000 --elements 2003 --think-us 30000 --restarts --cancel
check "that it is back is told" until_true 60 \
	event_seen '.event == "worker-changed" and .worker == 2 and .state == "alive"'
check "and that it joined" until_true 60 event_seen '.event == "worker-joined" and .worker == 2'
event_mark
kill -TERM "${worker_pids[2]}"
check "that it leaves is told" until_true 60 event_seen '.event == "worker-left" and .worker == 2'
check "one that is late is not waited for" saina job set news policy fastest:k=2
event_mark
start 2 news 1000000 --elements 2003 --think-us 900000 --restarts --skip-stale
check "late gradients are told" until_true 100 event_seen '.event == "worker-late" and .worker == 2 and .late > 0'
check "and that it is slow" until_true 60 \
	event_seen '.event == "worker-changed" and .worker == 2 and .state == "slow"'
stop_workers
wait_all 90 >/dev/null
event_mark
check "the job is stopped" saina job set news state stopped
check "and deleted" saina job del news
check "a port is pulled out" lab port del 2
check "which the agent tells" until_true 20 event_seen '.event == "port" and .port_state == "gone"'
check "as a change, too" until_true 20 event_seen '.event == "port-changed" and .mode == "none"'
check "the end is told" until_true 20 event_seen '.event == "job-deleted"'

equal "the states of the job, in order" '["forming","running"]
["running","forming"]
["forming","stopped"]
["stopped","unknown"]' "$(told '.event == "job-state" and .from != "unknown"' '[.from,.to]')"
equal "the policies in force, in order" '[0,1]
[1,2]
[2,3]
[3,4]' "$(told '.event == "policy"' '[.from,.to]')"
equal "the life of worker 2" '"worker-joined"
"worker-dead"
"worker-joined"
"worker-left"
"worker-joined"
"worker-left"' "$(told '(.event|IN("worker-joined", "worker-dead", "worker-left")) and .worker == 2' .event)"
equal "the policies asked for, in order" '"fastest:k=3"
"fastest:k=2"
"fastest:k=3"
"fastest:k=2"' "$(told '.event == "job-changed"' .policy | uniq)"
equal "each limits-set once" '99
98' "$(told '.event == "limits-changed"' .jobs)"
equal "also by the agent" '99
98' "$(jq 'select(.event == "limits-changed").jobs' "$WORK/agent.events")"
equal "each event of the data path says of which job" '[11,"news"]' \
	"$(told '.event|IN("round", "k", "policy", "degraded", "worker-late")' '[.job_id,.job]' | uniq)"
equal "no token is told to anybody" 0 "$(grep -c token "$WORK/events")"

check "the agent is stopped" lab agent stop
check "nothing holds the module" until_true 20 rmmod saina
check "monitor says that the module is gone" until_true 20 grep -q 'saina.ko was unloaded' "$WORK/monitor.err"
wait "$events_pid"
equal "and ends" 1 $?
finished
