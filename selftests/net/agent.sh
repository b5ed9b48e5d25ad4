#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The agent goes and comes back under traffic: killed, or stopped with --keep, the
# XDP programs and the job go on; the next agent takes them over.
#
#     w0 .. w3 reduce all the time; p0 .. p3: XDP; sainad is killed, stopped and started
#
# 1. Four workers train
# 2. The agent is killed; the next one takes over
# 3. The agent is stopped with --keep; a policy comes into force without it
# 4. The workers end: every sum was right
# 5. A plain stop leaves nothing behind
# 6. So does Ctrl-C

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# 1. Four workers train
lab_up --workers 4 --hook xdp
# Only policies that wait for all four workers: with a smaller k nothing bounds how far a worker
# falls behind in some seconds on a busy machine, and after 64 rounds its results are gone.
job steady id 5 workers 4 elements 8192 payload 256 ring 64 policy bsp token t0ken \
	heartbeat 100 dead 5000
start_all steady 1000000 4 --elements 8192 --token t0ken --think-us 4000 --cancel
check "four workers: rounds flow" slowwait 20 rounds_at_least steady 10 || bail "no rounds"
generation=$(job_field steady generation)

check_taken_over() { # HOW
	local at
	equal "$1: the new agent has the same incarnation of the job" "$generation" "$(job_field steady generation)"
	equal "$1: all four workers are still members of the job" 4 "$(members steady)"
	check "$1: rounds go on with the new agent" rounds_go_on steady 20
	check "$1: the new agent takes another policy" saina job set steady policy "$2"
	check "$1: a policy set at the new agent comes into force" slowwait 10 policy_is steady "$2"
}

program_ids() { # of the programs on the switch's ports
	ip -n "saina-$LAB-sw" -j link show | jq -r '.[]|.xdp.prog.id // empty' | sort -u | xargs
}

pins() { # maps.debug and progs.debug are the filesystem's own
	find "/run/saina-lab/$LAB/bpf" -mindepth 1 ! -name "*.debug"
}

# The programs of $loaded are gone; fails if there were none.  The kernel frees a program a moment
# after its last user.
unloaded() {
	local id
	[ -n "$loaded" ] || return 1
	for id in $loaded; do
		! bpftool prog show id "$id" >/dev/null 2>&1 || return 1
	done
}

programs() { # ports of the switch with an XDP program
	ip -n "saina-$LAB-sw" -j link show | jq -r '.[]|select(.xdp)|.ifname' | xargs
}

# rounds_without_gap WORKER: each round in its log is the one after the round before.
rounds_without_gap() {
	field "$1" round | awk 'NR > 1 && $1 != last + 1 { print "after round " last ": " $1; bad = 1 }
		{ last = $1 } END { exit bad || !NR }'
}

all_ended() {
	local i
	for i in "${!worker_pids[@]}"; do
		slowwait "$1" worker_ended "$i" || return 1
		wait "${worker_pids[$i]}"
		unset "worker_pids[$i]"
	done
	return 0
}

# 2. The agent is killed; the next one takes over
# A pending policy outlives the agent, and comes into force without one.
next_is() { # POLICY FROM
	[ "$(saina_jq job show steady '.[0].policy_next|"\(.policy) \(.from)"')" = "$1 $2" ]
}
check "killed: a policy is set from a distant round on" saina policy set steady fastest:k=4,late=drop from 3000000
check "killed: the agent is killed" lab agent kill
check "killed: rounds go on without an agent" log_goes_on 20
check "killed: a new agent starts" lab agent start --keep
check "killed: the new agent knows the pending policy and its round" next_is fastest:k=4,late=drop 3000000
check "killed: the pending policy is cancelled at the new agent" saina policy cancel steady
check_taken_over killed fastest:k=4

# 3. The agent is stopped with --keep; a policy comes into force without it
from=$(($(job_field steady round) + 200))
check "kept: a policy is set from round $from on" saina policy set steady "timeout:60s,kmin=4" from $from
check "kept: an agent started with --keep is stopped" lab agent stop
equal "kept: the control socket is gone" gone "$([ -e "$AGENT_SOCKET" ] || echo gone)"
check "kept: rounds go on without an agent" log_goes_on 20
check "kept: rounds reach that of the pending policy" slowwait 60 log_at_least $((from + 5))
check "kept: a new agent starts" lab agent start
check "kept: the pending policy has come into force without an agent" policy_is steady "timeout:60s,kmin=4"
equal "kept: no policy is pending any more" null "$(saina_jq job show steady '.[0].policy_next')"
check_taken_over kept bsp
equal "agents come and go: no slot saw two policies" 0 "$(policy_mix steady)"

# 4. The workers end: every sum was right
# On SIGTERM workers verify all results before they end.
stop_workers
verify_sums "agents come and go" 30 0 1 2 3
check "agents come and go: no round was lost" rounds_without_gap 0

# 5. A plain stop leaves nothing behind
start_all steady 1000000 4 --elements 8192 --token t0ken --think-us 4000 --cancel
check "stopped: four workers train before the stop" slowwait 20 log_at_least 5
equal "stopped: the XDP program is on all four ports before the stop" 4 "$(programs | wc -w)"
loaded=$(program_ids)
check "stopped: the agent is stopped" lab agent stop
check "stopped: the XDP programs are unloaded" slowwait 10 unloaded
equal "stopped: no XDP program is left on a port" "" "$(programs)"
equal "stopped: no pinned object is left" "" "$(pins)"
equal "stopped: no socket is left" "" "$(find "/run/saina-lab/$LAB/run" "$AGENT_SOCKET" -type s 2>/dev/null)"
check "stopped: the workers end" all_ended 30
check "stopped: a fresh agent starts" lab agent start
if [ "$BACKEND" = kernel ]; then
	equal "stopped: the kernel still has the job" steady "$(job_field steady name)"
	equal "stopped: no worker is a member of the kernel's job" 0 "$(members steady)"
else
	equal "stopped: a fresh agent has no job" 0 "$(saina_jq job show length)"
fi

# 6. So does Ctrl-C
loaded=$(program_ids)
pid=$(lab agent status | tr -dc 0-9)
kill -INT "$pid"
check "SIGINT: the agent ends" slowwait 20 pid_gone "$pid"
equal "SIGINT: no XDP program is left on a port" "" "$(programs)"
check "SIGINT: the XDP programs are unloaded" slowwait 10 unloaded
equal "SIGINT: no pinned object is left" "" "$(pins)"
finished
