#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Workers that share memory with the data path.  Each sum is verified by each
# worker, whichever way it came.
#
#     w0 .. w3 --- p0 .. p3 --- slot machine
#       \..............memory........./
#
#	shm.sh [ovs]		ovs: on Open vSwitch, where all ports have XDP; without section 9
#
# 1. Jobs that have no shared memory
# 2. Four workers with shared memory: gradients do not cross the ports
# 3. A worker dies and comes back, first without the socket
# 4. The agent is killed and started
# 5. The data path is removed, too
# 6. Losses, stragglers, floats
# 7. Shared memory only: segments are longer than the MTU
# 8. Open vSwitch: three workers leave at once
# 9. A Linux bridge: XDP instead of tc

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

bridge=${1:-linux}
lab_up --workers 4 --bridge "$bridge"
SAINA_SHARE=/run/saina-lab/$LAB/run/share
export SAINA_SHARE

not_in_use() { # JOB
	[[ $(shm_status "$1") == "not in use"* ]]
}

# Bytes that the switch got from the workers.
port_bytes() {
	in_switch cat /proc/net/dev | awk '/p[0-9]+:/ { n += $2 } END { print n }'
}

# bytes_a_round JOB: bytes that cross the ports in a round; fails if rounds do not go on
bytes_a_round() {
	local at bytes
	at=$(job_field "$1" round)
	bytes=$(port_bytes)
	slowwait 20 rounds_at_least "$1" $((at + 20)) || return 1
	echo $((($(port_bytes) - bytes) / ($(job_field "$1" round) - at)))
}

# Half of a round of 8192 elements of four workers: rounds go on while bytes and rounds are read,
# one after the other.
HALF_ROUND=$((4 * 8192 * 4 / 2))

# Do gradients cross the ports?
crosses() { # JOB
	local bytes
	bytes=$(bytes_a_round "$1") || { echo "rounds do not go on"; return 1; }
	echo "# $bytes bytes a round"
	[ "$bytes" -gt $HALF_ROUND ]
}

crosses_not() { # JOB
	local bytes
	bytes=$(bytes_a_round "$1") || { echo "rounds do not go on"; return 1; }
	echo "# $bytes bytes a round"
	[ "$bytes" -le $HALF_ROUND ]
}

# 1. Jobs that have no shared memory
matches "a job of floats with shared memory is refused with a sentence" \
	"(only jobs of int32 and int16 can share memory|sums of floats need saina.ko)" "$(saina job add floats elements 100 workers 2 type float32 by-reference 2>&1)"
job messages workers 4 elements 8192 payload 256
start_all messages 20 4 --elements 8192
check "a job without shared memory: all sums are exact" wait_all 60
equal "a job without shared memory: job show says nothing of memory" null "$(agent_saina -j job show messages | jq -r '.[0].reference')"
saina job del messages

# 2. Four workers with shared memory: gradients do not cross the ports
job shared workers 4 elements 8192 payload 256 by-reference dead 3000 heartbeat 100
check "no worker has joined: memory is not in use" not_in_use shared
start_all shared 1000000 4 --elements 8192 --think-us 2000 --restarts
check "four workers: memory is in use" slowwait 20 shm_in_use shared
check "four workers: rounds flow" slowwait 20 rounds_at_least shared 10
check "four workers: gradients do not cross the ports" slowwait 30 crosses_not shared

# 3. A worker dies and comes back, first without the socket
worker_kill 2
expected_log="worker 2 .* is dead"
check "a worker that was killed is declared dead" slowwait 30 worker_state_is shared 2 dead
check "a worker died: rounds go on" rounds_go_on shared 20
check "a worker died: memory is in use by the others" slowwait 10 shm_in_use shared
SAINA_SHARE='' start 2 shared 1000000 --elements 8192 --think-us 2000 --restarts
check "a worker that knows no socket joins" slowwait 30 worker_state_is shared 2 alive
check "a worker that knows no socket: no worker uses memory" slowwait 20 not_in_use shared
matches "a worker that knows no socket is named" "worker 2 .* has not asked for its array" "$(shm_status shared)"
at=$(job_field shared round)
check "a worker that knows no socket: rounds go on" rounds_go_on shared 20
check "a worker that knows no socket: gradients cross the ports" slowwait 30 crosses shared
check "a worker that knows no socket is counted" slowwait 20 counted_in 0 2 $((at + 5))
kill -TERM "${worker_pids[2]}"
check "a worker that knows no socket leaves" slowwait 30 worker_state_is shared 2 left
worker_reap 2
check "a worker that knows no socket has left: the others use memory again" slowwait 20 shm_in_use shared
start 2 shared 1000000 --elements 8192 --think-us 2000 --restarts
check "a worker is back, with the socket: all four use memory" slowwait 30 shm_in_use shared
check "a worker is back, with the socket: gradients do not cross the ports" slowwait 30 crosses_not shared

# 4. The agent is killed and started
lab agent kill
check "the agent was killed: rounds go on" log_goes_on 20
check "a new agent starts" lab agent start
check "a new agent: memory is in use" slowwait 20 shm_in_use shared
check "a new agent: rounds go on" rounds_go_on shared 20
check "a new agent: gradients do not cross the ports" slowwait 30 crosses_not shared

# 5. The data path is removed, too
last_round() {
	tail -n 1 "$WORK/0.log" | jq .round
}
lab agent kill
at=$(last_round)
# Loading the programs takes a busy machine so long that workers report the silence.
expected_log="worker 2 .* is dead|jobs are known from before, but the data path is gone|is there a firewall on the way"
find "/run/saina-lab/$LAB/bpf" -mindepth 1 ! -name "*.debug" -delete
check "the data path is gone: a new agent starts" lab agent start
check "the data path is gone: rounds go on" slowwait 60 rounds_at_least shared $((at + 20))
check "the data path is gone: the job begins where its workers were" [ "$(job_field shared round)" -lt $((at + 1000000)) ]
check "the data path is gone: memory is in use" slowwait 30 shm_in_use shared
check "the data path is gone: rounds go on by shared memory" rounds_go_on shared 20
check "the data path is gone: gradients do not cross the ports" slowwait 30 crosses_not shared
stop_workers
check "workers and agents come and go: all sums are exact" wait_all 60
check "workers and agents come and go: the same results" same_results 0 1
saina job del shared

# 6. Losses, stragglers, floats
# lossy PERCENT POLICY TYPE [options]
lossy() {
	local rounds segments=79
	rounds=$(shrink 60 10)
	[ -z "$only" ] || segments=10
	lab set loss "$1" seed "$SEED" || bail "no loss"
	if [ -n "$only" ]; then
		job lossy workers 4 elements 20000 pool 4 ring 64 policy "$2" by-reference-only
	else
		job lossy workers 4 elements 20000 payload 256 ring 64 policy "$2" by-reference
	fi
	start_all lossy "$rounds" 4 --elements 20000 --type "$3" "${@:4}"
	check "$1 % loss, $2, $3$only: all sums are exact" wait_all 90
	equal "$1 % loss, $2, $3$only: all segments of all rounds are there" \
		"$rounds $((segments * rounds)) 0" "$(summary 0 rounds exact unverified)"
	check "$1 % loss, $2, $3$only: the same results" same_results 0 1 2 3
	check "$1 % loss, $2, $3$only: gradients were stored" test "$(counter lossy all stored)" -gt 0
	saina job del lossy
}
only=''
lossy 0 fastest:k=2 int32 --think-us 500 --straggle 0.3
lossy 5 bsp float32
lossy 20 bsp int32
lossy 20 fastest:k=3,late=drop int32

# 7. Shared memory only: segments are longer than the MTU
has_done() { # JOB WORKER ROUND
	[ "$(json_value round "$(saina -j worker show "$1" "$2")")" -ge "$3" ]
}

only=", only"
lossy 0 fastest:k=2,lead=none int32 --think-us 500 --straggle 0.3
lossy 5 bsp float32
lossy 20 fastest:k=3,late=drop int32
# The ring keeps the results of many rounds: worker 3 reads those that it has missed there.
job behind workers 4 elements 20000 pool 4 ring 64 policy fastest:k=2,lead=none by-reference-only
start_all behind 1000000 4 --elements 20000 --think-us 100000
check "only: rounds flow" slowwait 30 rounds_at_least behind 3
kill -STOP "${worker_pids[3]}"
check "only: rounds go on without worker 3" rounds_go_on behind 5
missed=$(job_field behind round)
kill -CONT "${worker_pids[3]}"
check "only: worker 3 has the results that it has missed" slowwait 30 has_done behind 3 "$missed"
stop_workers
check "only: all sums are exact" wait_all 60
check "only: the same results" same_results 0 1 2 3
saina job del behind
job alone workers 2 elements 20000 by-reference-only
equal "only: 2048 elements a segment" "2048 16" "$(job_field alone payload) $(job_field alone pool)"
matches "only: a policy with steps is refused" "ssp needs messages, and job .* is by-reference-only" \
	"$(saina job set alone policy ssp:w=2 2>&1)"
matches "only: a job of floats is refused" "(only jobs of int32 and int16 can share memory|sums of floats need saina.ko)" \
	"$(saina job add floats elements 100 workers 2 type float32 by-reference-only 2>&1)"
SAINA_SHARE='' start 0 alone 10 --elements 20000
worker_reap 0
equal "only: a worker without the socket ends with an error" 3 "$status"
matches "only: it says what to do" "is by-reference-only: SAINA_SHARE is not set" "$(cat "$WORK/0.err")"
saina job del alone
lab_down

# 8. Open vSwitch: three workers leave at once
one_is_left() { # JOB
	[ "$(members "$1")" = 1 ]
}

if [ "$bridge" = ovs ]; then
	# While the agent is stopped, rounds go on up to the lead.  It gets all three LEAVEs at once.
	lab_up --workers 4 --bridge ovs
	expected_log="asked for round [0-9]+, which is gone"
	job leavers workers 4 elements 8192 payload 256 ring 64 policy fastest:k=1 by-reference heartbeat 1000 dead 60000
	start_all leavers 1000000 4 --elements 8192 --think-us 2000
	check "three workers leave at once: memory is in use" slowwait 20 shm_in_use leavers
	kill -STOP "$(agent_pid)"
	for w in 1 2 3; do
		kill -TERM "${worker_pids[$w]}"
	done
	for w in 1 2 3; do
		worker_reap "$w"
	done
	kill -CONT "$(agent_pid)"
	check "three workers leave at once: the agent hears of them" slowwait 20 one_is_left leavers
	equal "three workers leave at once: the ring is replaced once" 0xe \
		"$(grep -oP 'job leavers: shared memory of workers \(mask \K0x[0-9a-f]+' "/run/saina-lab/$LAB/sainad.log" | xargs)"
	check "three workers leave at once: the fourth goes on by shared memory" rounds_go_on leavers 20
	stop_workers
	check "three workers leave at once: all sums are exact" wait_all 60
	lab_down
	finished
	exit
fi

# 9. A Linux bridge: XDP instead of tc
lab_up --workers 4 --bridge linux --hook xdp
job xdp workers 4 elements 8192 payload 256 by-reference
start_all xdp 1000000 4 --elements 8192 --think-us 2000
check "by XDP: memory is in use" slowwait 20 shm_in_use xdp
check "by XDP: gradients do not cross the ports" slowwait 30 crosses_not xdp
lab set loss 10 seed "$SEED"
check "by XDP, 10 % loss: rounds go on" rounds_go_on xdp 20
lab set loss 0 seed "$SEED"
stop_workers
check "by XDP: all sums are exact" wait_all 60
check "by XDP: the same results" same_results 0 1 2 3
finished
