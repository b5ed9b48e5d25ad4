#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# No round opens further ahead of a live worker than the policy's lead, so no worker is lost because
# it is slow.
#
#     w0 .. w2: quick        w3: is stopped for a while, and stays alive
#
# 1. The others wait, it is named, and it goes on
# 2. The same with shared memory
# 3. What the log advises: the others go on
# 4. lead=none: the others go on, and it ends

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

lab_up --workers 4
SAINA_SHARE=/run/saina-lab/$LAB/run/share
export SAINA_SHARE
events_start

expected_log="worker 3 asked for round [0-9]+, which is gone"

SHAPE=(--elements 8192 --think-us 2000)

named() { # JOB: job show says whom the round waits for
	[[ $(agent_saina -j job show "$1" | jq -r '.[0].trouble // ""') =~ ^"worker 3 ("[^\)]+") is 5 rounds behind: round "[0-9]+" waits for it (lead 4)"$ ]]
}

quiet() { # JOB: job show has nothing to say
	[ "$(agent_saina -j job show "$1" | jq -r '.[0].trouble')" = null ]
}

refused() { # JOB N: so many gradients were refused because of the lead
	[ "$(counter "$1" all lead)" -ge "$2" ]
}

waits() { # JOB [WORD...]: a job with a ring of 8 rounds and lead=4, whose others wait for worker 3
	local name=$1 round
	job "$name" workers 4 elements 8192 payload 256 ring 8 policy fastest:k=3,lead=4 dead 60000 "${@:2}"
	start_all "$name" 0 4 "${SHAPE[@]}"
	check "$name: rounds flow" slowwait 60 rounds_at_least "$name" 10
	event_mark
	kill -STOP "${worker_pids[3]}"
	check "$name: job show names the worker that the next round waits for" slowwait 60 named "$name"
	matches "$name: worker show says how far the worker is behind" '^5 rounds behind: round [0-9]+ waits for it \(lead 4\)$' \
		"$(agent_saina -j worker show "$name" 3 | jq -r '.[0].trouble')"
	equal "$name: worker show says nothing of another" null "$(agent_saina -j worker show "$name" 1 | jq -r '.[0].trouble')"
	check "$name: an event names the worker that is behind" slowwait 60 event_seen \
		".event == \"worker-behind\" and .job == \"$name\" and .worker == 3 and .behind == 5 and .lead == 4"
	round=$(job_field "$name" round)
	check "$name: the others send their gradients again" slowwait 60 refused "$name" $(($(counter "$name" all lead) + 10))
	equal "$name: no round opens" "$round" "$(job_field "$name" round)"
	kill -CONT "${worker_pids[3]}"
	check "$name: it goes on, and so do the others" rounds_go_on "$name" 20
	check "$name: job show says nothing any more" slowwait 60 quiet "$name"
	stop_workers
	verify_sums "$name" 60 0 1 2 3
}

# 1. The others wait, it is named, and it goes on
waits messages
saina job del messages

# 2. The same with shared memory
waits memory by-reference
saina job del memory

# 3. What the log advises: the others go on
advice() { # JOB COMMAND...: runs the command that the log advises, while the job waits
	job "$1" workers 4 elements 8192 payload 256 ring 8 policy fastest:k=3,lead=4 dead 60000
	start_all "$1" 0 4 "${SHAPE[@]}"
	check "$1: rounds flow" slowwait 60 rounds_at_least "$1" 10
	kill -STOP "${worker_pids[3]}"
	check "$1: a round waits" slowwait 60 named "$1"
	check "$1: the log says what can be done" slowwait 60 grep -q \
		"job $1: worker 3 (.*) is 5 rounds behind: .* to go on without this worker: a policy with lead=none, or .saina worker set $1 3 state dead" \
		"/run/saina-lab/$LAB/sainad.log"
	saina "${@:2}"
	check "$1: with '${*:2}' the others go on" rounds_go_on "$1" 40
	worker_kill 3
	# Else the worker that ends last waits for it until it is found dead.
	saina worker set "$1" 3 state dead
	stop_workers
	verify_sums "$1" 60 0 1 2
	saina job del "$1"
}
advice unbound policy set unbound fastest:k=3,lead=none
advice dead worker set dead 3 state dead

# 4. lead=none: the others go on, and it ends
job none workers 4 elements 8192 payload 256 ring 8 policy fastest:k=3 dead 60000
start_all none 0 4 "${SHAPE[@]}"
check "none: rounds flow" slowwait 60 rounds_at_least none 10
kill -STOP "${worker_pids[3]}"
# Not before: with lead=none a busy host may leave another worker behind for good.
check "none: the policy is set" saina policy set none fastest:k=3,lead=none
check "none: the others go on" rounds_go_on none 40
kill -CONT "${worker_pids[3]}"
check "none: results that it needs are gone: it ends" slowwait 60 worker_ended 3
matches "none: it says that the results are gone" "ring|gone|Stale" "$(tail -n 3 "$WORK/3.err")"
worker_reap 3
stop_workers
verify_sums "none" 60 0 1 2
events_stop
finished
