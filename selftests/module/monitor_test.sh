#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What saina monitor prints where the kernel has the jobs: a scripted sequence of
# changes, deaths and joins with real workers.
#
#     switch: saina.ko, sainad, two saina monitor, br0 (Linux bridge) --- w0, w1, w2
#
# In the test VM (selftests/in-vm); TAP.
#
# 1. Limits
# 2. A job: policies, a death, joins, a late worker
# 3. The order of all events
# 4. saina.ko is unloaded under saina monitor

here=$(dirname "$(readlink -f "$0")")
module=$SAINA_TEST_MODULE

# Read by lib.sh.
# shellcheck disable=SC2034
SAINA_TEST_BACKEND=kernel
# shellcheck source=../net/lib.sh
. "$here/../net/lib.sh"

# events_of SELECT OBJECT (both for jq): events whose order does not depend on the machine's
# speed: the states and the policies of one job; joins, deaths and leaves of one worker.
events_of() {
	jq -c "select($1)|$2" "$WORK/events"
}

check "saina.ko is loaded" insmod "$module"
expected_log='worker 2 .* is dead|worker 2 asked for round'
lab_up --bridge linux --workers 3
events_start
agent_saina -j monitor config >"$WORK/agent.events" 2>"$WORK/agent.monitor" </dev/null &
# It ends with the agent.
slowwait 20 grep -q monitoring "$WORK/agent.monitor" || bail "saina monitor does not start"

# 1. Limits
check "limits are set in the kernel" saina limits set jobs 99
check "monitor: limits-changed is sent after limits are set in the kernel" slowwait 60 event_seen '.event == "limits-changed" and .jobs == 99 and .backend == "kernel"'
check "monitor at the agent: limits-changed is sent after limits are set in the kernel" slowwait 60 grep -q '"limits-changed".*"jobs":99,' "$WORK/agent.events"
check "limits are set at the agent" agent_saina limits set jobs 98
check "monitor: limits-changed is sent after limits are set at the agent" slowwait 60 event_seen '.event == "limits-changed" and .jobs == 98'

# 2. A job: policies, a death, joins, a late worker
job news workers 3 elements 2003 id 11 policy fastest:k=3 token t0ken heartbeat 200 dead 6000
start_all news 1000000 3 --elements 2003 --token t0ken --think-us 30000 --restarts --cancel
check "monitor: round is sent when a round is done" slowwait 60 event_seen '.event == "round" and .round >= 3'
check "the policy of a running job is set to another k" saina job set news policy fastest:k=2
check "monitor: policy is sent, with the new k, when another policy comes into force" slowwait 60 \
	event_seen '.event == "policy" and .from == 1 and .to == 2 and .k == 2'
check "the policy of a running job is set back" saina job set news policy fastest:k=3
check "monitor: policy is sent when the old policy comes into force again" slowwait 60 event_seen '.event == "policy" and .to == 3'
event_mark
worker_kill 2
check "monitor: worker-dead is sent when a worker is declared dead" slowwait 60 event_seen '.event == "worker-dead" and .worker == 2'
check "monitor: k is sent when a death lowers k" slowwait 60 event_seen '.event == "k" and .from == 3 and .to == 2'
check "monitor: degraded is sent for segments with fewer than k contributors" slowwait 60 event_seen '.event == "degraded" and .contributors == 2'
event_mark
start 2 news 1000000 --elements 2003 --token t0ken --think-us 30000 --restarts --cancel
check "monitor: worker-changed is sent when a dead worker is alive again" slowwait 60 \
	event_seen '.event == "worker-changed" and .worker == 2 and .state == "alive"'
check "monitor: worker-joined is sent when a dead worker joins again" slowwait 60 event_seen '.event == "worker-joined" and .worker == 2'
event_mark
kill -TERM "${worker_pids[2]}"
check "monitor: worker-left is sent when a worker leaves" slowwait 60 event_seen '.event == "worker-left" and .worker == 2'
check "the policy is set to fastest:k=2, which does not wait for a third worker" saina job set news policy fastest:k=2
event_mark
start 2 news 1000000 --elements 2003 --token t0ken --think-us 900000 --restarts --skip-stale
check "monitor: worker-late is sent when gradients are late" slowwait 100 event_seen '.event == "worker-late" and .worker == 2 and .late > 0'
check "monitor: worker-changed is sent when a worker is slow" slowwait 60 \
	event_seen '.event == "worker-changed" and .worker == 2 and .state == "slow"'
stop_workers
wait_all 90 >/dev/null
event_mark
check "a job without workers is stopped" saina job set news state stopped
check "a stopped job is deleted" saina job del news
check "a port is removed" lab port del 2
check "monitor: port is sent when a port is removed" slowwait 20 event_seen '.event == "port" and .port_state == "gone"'
check "monitor: port-changed is sent when a port is removed" slowwait 20 event_seen '.event == "port-changed" and .mode == "none"'
check "monitor: job-deleted is sent when a job is deleted" slowwait 20 event_seen '.event == "job-deleted"'

# 3. The order of all events
equal "monitor: job-state is sent for each state of the job, in order" '["forming","running"]
["running","forming"]
["forming","stopped"]
["stopped","unknown"]' "$(events_of '.event == "job-state" and .from != "unknown"' '[.from,.to]')"
equal "monitor: policy is sent for each policy that comes into force, in order" '[0,1]
[1,2]
[2,3]
[3,4]' "$(events_of '.event == "policy"' '[.from,.to]')"
equal "monitor: the events of worker 2 have the right order" '"worker-joined"
"worker-dead"
"worker-joined"
"worker-left"
"worker-joined"
"worker-left"' "$(events_of '(.event|IN("worker-joined", "worker-dead", "worker-left")) and .worker == 2' .event)"
equal "monitor: job-changed is sent for each policy that is set, in order" '"fastest:k=3"
"fastest:k=2"
"fastest:k=3"
"fastest:k=2"' "$(events_of '.event == "job-changed"' .policy | uniq)"
equal "monitor: limits-changed is sent once for each change" '99
98' "$(events_of '.event == "limits-changed"' .jobs)"
equal "monitor at the agent: limits-changed is sent once for each change" '99
98' "$(jq 'select(.event == "limits-changed").jobs' "$WORK/agent.events")"
equal "monitor: each event of the data path names its job" '[11,"news"]' \
	"$(events_of '.event|IN("round", "k", "policy", "degraded", "worker-late")' '[.job_id,.job]' | uniq)"
equal "monitor: no event has the token" 0 "$(grep -cE 'token|t0ken' "$WORK/events")"

# 4. saina.ko is unloaded under saina monitor
check "the agent is stopped at the end" lab agent stop
check "saina.ko is unloaded after the agent was stopped" slowwait 20 rmmod saina
check "monitor: says that saina.ko was unloaded" slowwait 20 grep -q 'saina.ko was unloaded' "$WORK/monitor.err"
wait "$events_pid"
equal "monitor: ends with status 1 when saina.ko is unloaded" 1 $?
finished
