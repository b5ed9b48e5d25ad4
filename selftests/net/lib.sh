# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# For the tests in this directory: a lab (drawn on top of tools/saina-lab), TAP
# and workers.
#
#     saina-$LAB-sw: sainad, saina, OVS or bridge br0 10.190.0.1
#         p0 |      p1 |      ...           <- XDP
#     saina-$LAB-w0 eth0   w1 eth0  ...     10.190.0.10, .11, ..: saina-allreduce
#
# A test calls lab_up, adds jobs, starts workers, calls check/ok/not_ok for its points, and
# finished at its end; what it started ends with it, however it ends.

set -u

NET_DIR=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")")
TOP=$(readlink -f "$NET_DIR/../..")
B=${SAINA_BUILD:-$TOP/build}
export SAINA_BUILD=$B
TEST=$(basename "$0" .sh)
LAB=${SAINA_TEST_RUN:-t$$}.${TEST//-/_}
LAB_TOOL=$TOP/tools/saina-lab
RAWSEND=$B/selftests/rawsend
AGG=10.190.0.1
SEED=${SAINA_TEST_SEED:-20240731}
AGENT_SOCKET=/run/saina-lab/$LAB/control
# Long tests divide their numbers of rounds by this (shrink).
SHRINK=${SAINA_TEST_SHRINK:-1}
# The bridges of tests that use more than one.
BRIDGES=${SAINA_TEST_BRIDGES:-ovs linux}
# The hook of the ports.  The bridge depends on it: tc needs a Linux bridge.
# "mixed": XDP on every other port, tc on the rest.
HOOK=${SAINA_TEST_HOOK:-auto}
export SAINA_LAB_HOOK=$HOOK
DEFAULT_BRIDGE=ovs
case $HOOK in
auto|xdp) ;;
tc)	DEFAULT_BRIDGE=linux BRIDGES=linux ;;
mixed)	DEFAULT_BRIDGE=linux BRIDGES=linux SAINA_LAB_HOOK=tc ;;
*)	echo "SAINA_TEST_HOOK=$HOOK: auto, xdp, tc or mixed"
	exit 2 ;;
esac
# The backend, which has the jobs: the agent, or the kernel (saina.ko, in the switch's namespace).
BACKEND=${SAINA_TEST_BACKEND:-agent}
tool_opts=()
case $BACKEND in
agent)	export SAINA_CONTROL=$AGENT_SOCKET ;;
kernel)	export SAINA_CONTROL=kernel SAINA_CTL_SOCKET=$AGENT_SOCKET
	tool_opts=(-n "saina-$LAB-sw") ;;
*)	echo "SAINA_TEST_BACKEND=$BACKEND: agent or kernel"
	exit 2 ;;
esac

# shellcheck source=../tap.sh
. "$NET_DIR/../tap.sh"
# shellcheck source=json.sh
. "$NET_DIR/json.sh"

complete=''
# Lines of the agent's log that a test expects; others that complain are failures.
expected_log='^$'

shrink() { # N [LEAST]
	local n=$(($1 / SHRINK))
	echo $((n < ${2:-1} ? ${2:-1} : n))
}

with_bridge() { # ovs|linux
	[[ " $BRIDGES " == *" $1 "* ]]
}

# A zombie counts as gone.
pid_gone() {
	local stat=
	read -r stat 2>/dev/null <"/proc/$1/stat"
	# The name, in parentheses, may hold anything.
	stat=${stat##*) }
	[ -z "$stat" ] || [ "${stat%% *}" = Z ]
}

# --- lab -------------------------------------------------------------------

WORK=$(mktemp -d "${TMPDIR:-/tmp}/saina-$LAB.XXXXXX")
declare -A worker_pids=() job_ids=()
worker_program=("$B/saina-allreduce")
# A worker that gets SIGTERM finishes its round, also on a busy machine.
stop_options=(--stop-ms $((60000 * SLOW)))

finish() {
	local status=$? pid
	trap '' INT TERM HUP
	trap - EXIT
	stopped=''
	for pid in "${worker_pids[@]}"; do
		kill -KILL "$pid" 2>/dev/null
	done
	if [ "$tap_bad$complete" != 01 ] && [ -r "/run/saina-lab/$LAB/sainad.log" ]; then
		diag "end of the agent's log:"
		diag "$(tail -n 30 "/run/saina-lab/$LAB/sainad.log")"
	fi
	[ ! -d "/run/saina-lab/$LAB" ] || lab_down
	if [ "$tap_bad" != 0 ] || [ -z "$complete" ]; then
		for pid in "$WORK"/*.err; do
			[ ! -s "$pid" ] || diag "$(basename "$pid"): $(tail -n 4 "$pid")"
		done
	fi
	rm -rf "$WORK"
	# A test that did not reach finished() prints no plan, which is a failure.
	[ -n "$complete" ] && plan && exit 0
	exit $((status ? status : 1))
}

# The last line of every test.
finished() {
	complete=1
}

trap finish EXIT
trap stop INT TERM HUP

[ "$(id -u)" = 0 ] || { echo "needs root"; exit 4; }

lab() { # VERB...: saina-lab on this test's lab
	local verb=$1
	shift
	"$LAB_TOOL" "$verb" "$LAB" "$@"
}

lab_up() {
	local i
	lab up --owner $$ --bridge "$DEFAULT_BRIDGE" "$@" || bail "the lab did not come up"
	[ "$HOOK" != mixed ] && return
	for i in $(saina_jq port show '.[].name' | grep '^p[0-9]*[13579]$'); do
		saina port set "$i" hook xdp || bail "port $i does not change to XDP"
	done
}

# Takes the lab down; fails for errors and warnings of its agent that expected_log does not match.
lab_down() {
	local log=/run/saina-lab/$LAB/sainad.log complaints
	complaints=$(grep -aE '(error|warn(ing)?)[]:> ]' "$log" 2>/dev/null | grep -avE "$expected_log")
	if [ -n "$complaints" ]; then
		not_ok "the agent complained of nothing unexpected"
		diag "$complaints"
	fi
	lab down || not_ok "the lab could be taken down"
}

# Not `saina-lab exec', which takes long to start in the test VM.
in_worker() { # WORKER CMD...: in a worker's namespace
	nsenter --net="/run/netns/saina-$LAB-w$1" -- "${@:2}"
}

in_switch() { # CMD...: in the switch's namespace
	nsenter --net="/run/netns/saina-$LAB-sw" -- "$@"
}

saina() {
	"$B/saina" "${tool_opts[@]}" "$@"
}

# Asks the agent: it alone has the counters of the data path, whatever the backend.
agent_saina() {
	"$B/saina" -s "$AGENT_SOCKET" "$@"
}

# saina_jq OBJECT ... JQ: the tool's JSON through jq
saina_jq() {
	local filter=${*: -1}
	saina -j "${@:1:$#-1}" | jq -r "$filter"
}

# job NAME [saina job add's words]: makes a job.  Tests about death give dead-ms.  The default is
# long, so that no worker of a busy machine is declared dead.
job() {
	local out i dead=15000 words=("$@")
	for ((i = 1; i < $# - 1; i++)); do
		[ "${words[i]}" = dead ] || continue
		dead=${words[i + 1]}
		words=("${words[@]:0:i}" "${words[@]:i+2}")
		break
	done
	dead=$((dead * SLOW > 65535 ? 65535 : dead * SLOW))
	out=$(saina -j job add "${words[@]}" dead $dead 2>&1) || bail "no job $1: $out"
	job_ids[$1]=$(json_value id "$out")
}

job_field() { # JOB FIELD
	json_value "$2" "$(saina -j job show "$1")"
}

policy_mix() { # JOB: slots that saw two policies
	json_value policy_mix "$(agent_saina -j job show "$1")"
}

shm_status() { # JOB: state of its shared memory, as job show prints it
	json_value reference "$(agent_saina -j job show "$1")"
}

shm_in_use() { # JOB
	[ "$(shm_status "$1")" = "in use" ]
}

agent_pid() {
	cut -d' ' -f1 "/run/saina-lab/$LAB/sainad.pid"
}

agent_descriptors() {
	find "/proc/$(agent_pid)/fd" -mindepth 1 | wc -l
}

members() { # JOB: how many workers are waited for
	json_length active "$(saina -j job show "$1")"
}

# counter JOB WORKER|all|- NAME: of one worker, of all, or of no job at all.  Prints nothing
# for a counter that does not exist.
counter() {
	local scope=("$1" "$2")
	[ "$2" != all ] || scope=("$1")
	[ "$1" != - ] || scope=(global)
	# "all": also those that are 0
	json_sum "$3" "$(saina -j stats show "${scope[@]}" all)"
}

# counter_of JOB WORKER|global NAME
counter_of() {
	if [ "$2" = global ]; then
		counter - - "$3"
	else
		counter "$@"
	fi
}

counter_is() { # JOB WORKER|global NAME N
	[ "$(counter_of "${@:1:3}")" = "$4" ]
}

counter_at_least() { # JOB WORKER|global NAME N
	[ "$(counter_of "${@:1:3}")" -ge "$4" ]
}

# Frames that were dropped on purpose: "IN OUT".
injected() {
	echo "$(counter - - injected-in) $(counter - - injected-out)"
}

# Have both numbers grown?
lost_both() { # BEFORE: output of injected
	local now
	now=$(injected)
	[ "${now% *}" -gt "${1% *}" ] && [ "${now#* }" -gt "${1#* }" ]
}

mac_of() { # WORKER|switch
	if [ "$1" = switch ]; then
		ip -n "saina-$LAB-sw" -j link show br0 | jq -r ".[0].address"
	else
		ip -n "saina-$LAB-w$1" -j link show eth0 | jq -r '.[0].address'
	fi
}

# send_raw WORKER KEY=VALUE...: sends forged frames from a worker's namespace; SWITCH_MAC is set
send_raw() {
	local from=$1
	shift
	in_worker "$from" "$RAWSEND" eth0 "dmac=$SWITCH_MAC" "$@"
}

# --- workers ---------------------------------------------------------------

# start_as TAG WORKER NODE JOB ROUNDS [saina-allreduce's options]: starts a worker in the
# background, in the namespace of worker NODE.  Its messages are in $WORK/TAG.err, its summary in
# $WORK/TAG.out, a line for each round in $WORK/TAG.log.
start_as() {
	local tag=$1 id=${job_ids[$4]-}
	[ -n "$id" ] || id=$(job_field "$4" id)
	# Emptied, not removed: it may have been given to the worker's user.
	: >"$WORK/$tag.log"
	# Not by a function: $! would be the process id of a shell around it.
	nsenter --net="/run/netns/saina-$LAB-w$3" -- "${worker_program[@]}" --aggregator "$AGG" --job "$id" \
		--worker "$2" --rounds "$5" --seed "$SEED" --log "$WORK/$tag.log" --json \
		--join-timeout-ms $((20000 * SLOW)) "${stop_options[@]}" "${@:6}" \
		>"$WORK/$tag.out" 2>"$WORK/$tag.err" </dev/null &
	worker_pids[$tag]=$!
}

# start WORKER JOB ROUNDS [options]: a worker in its own namespace
start() {
	start_as "$1" "$1" "$1" "${@:2}"
}

# start_all JOB ROUNDS N [options]: workers 0 .. N-1
start_all() {
	local i
	for ((i = 0; i < $3; i++)); do
		start "$i" "$1" "$2" "${@:4}"
	done
}

# dump_hang WORKER: the state of a worker that does not end, and of its jobs
dump_hang() {
	local job pid=${worker_pids[$1]}
	for job in "${!job_ids[@]}"; do
		saina -j job show "$job" | jq -c . 2>/dev/null
		agent_saina -j stats show "$job" | jq -c '.[] | [.worker, .counters]' 2>/dev/null
	done
	echo "threads: $(sed 's/$/ /' "/proc/$pid/task"/*/wchan | tr -d '\n')"
	# Twice, to show which counters change.
	for job in 1 2; do
		nsenter --net="/proc/$pid/ns/net" -- sh -c '
			ss -unmaH | tr -s " "
			nstat -asz UdpInDatagrams UdpInErrors UdpInCsumErrors UdpRcvbufErrors \
				UdpOutDatagrams IpReasmFails | grep -v "^#" | tr -s " \n" " "
			echo
			ip -s -s -j link show eth0 | jq -c ".[0].stats64"'
		sleep 1
	done
}

# wait_all SECONDS: waits until all workers have ended; succeeds if all ended with
# status 0, that is if every sum was right.  Fails if there is no worker.
wait_all() {
	local i bad=0 status deadline
	[ ${#worker_pids[@]} -gt 0 ] || { echo "no worker was started"; return 1; }
	deadline=$(deadline "$1")
	for i in "${!worker_pids[@]}"; do
		if ! wait_until "$deadline" worker_ended "$i"; then
			echo "worker $i does not end"
			[ $bad = 1 ] || dump_hang "$i"
			kill -KILL "${worker_pids[$i]}"
			bad=1
		fi
		wait "${worker_pids[$i]}"
		status=$?
		unset "worker_pids[$i]"
		[ $status = 0 ] || {
			bad=1
			echo "worker $i: status $status: $(tail -n 3 "$WORK/$i.err")"
		}
	done
	return $bad
}

# verify_sums WHAT SECONDS WORKER...: two points: all workers end and every sum was right; the
# named ones have the same results
verify_sums() {
	check "$1: all sums are exact" wait_all "$2"
	check "$1: all workers have the same results" same_results "${@:3}"
}

# verify_models WHAT SECONDS WORKER...: the same of workers that take steps
verify_models() {
	check "$1: every model has all updates of all workers, once" wait_all "$2"
	equal "$1: all workers have the same model in the end" "" "$(same_models "${@:3}")"
}

worker_ended() {
	pid_gone "${worker_pids[$1]}"
}

# worker_reap WORKER: waits for a worker that ends by itself; sets status to its exit status
worker_reap() {
	wait "${worker_pids[$1]}"
	status=$?
	unset "worker_pids[$1]"
}

worker_kill() { # WORKER
	kill -KILL "${worker_pids[$1]}"
	worker_reap "$1" 2>/dev/null
}

# stop_workers: asks them to end after the round at hand
stop_workers() {
	kill -TERM "${worker_pids[@]}" 2>/dev/null
}

rounds_at_least() { # JOB ROUND: the job has opened it
	[ "$(job_field "$1" round)" -ge "$2" ]
}

rounds_go_on() { # JOB N: so many more open, or so many steps are made
	local at
	at=$(job_field "$1" round)
	slowwait 20 rounds_at_least "$1" $((at + $2))
}

log_goes_on() { # N: worker 0 logs so many more rounds; for this no agent is needed
	slowwait 20 log_at_least $(($(log_round) + $1))
}

steps_of() { # WORKER: rounds or steps in its log
	wc -l <"$WORK/$1.log"
}

steps_at_least() { # WORKER N
	[ "$(steps_of "$1")" -ge "$2" ]
}

policy_is() { # JOB POLICY: in force; its canonical form may say more
	local now
	now=$(job_field "$1" policy_active)
	[[ $now == "$2" || $now == "$2,"* ]]
}

same_models() { # WORKER...: prints the checksums of their models (--steps) unless all are the same
	local i one crc=""
	for i in "$@"; do
		one=$(summary "$i" crc)
		crc+=" ${one:-none}"
	done
	[[ $crc != *none* ]] && [ "$(xargs -n1 <<<"$crc" | sort -u | wc -l)" = 1 ] || echo "models:$crc"
}

in_force() { # JOB SEQ
	[ "$(job_field "$1" policy_active_seq)" = "$2" ]
}

# --- events ------------------------------------------------------------------

events_start() {
	# Emptied here, not by the child: it may hold events of an earlier monitor.
	: >"$WORK/events"
	: >"$WORK/monitor.err"
	"$B/saina" "${tool_opts[@]}" -j monitor all >"$WORK/events" 2>"$WORK/monitor.err" </dev/null &
	events_pid=$!
	event_mark
	slowwait 10 grep -q monitoring "$WORK/monitor.err" || bail "saina monitor does not start"
}

events_stop() {
	kill -TERM "$events_pid" 2>/dev/null
	wait "$events_pid"
}

events() { # JQ
	jq -r "$1" "$WORK/events"
}

# event_mark: event_seen() does not look at events before it.  A worker may have been slow,
# and alive again, before it is killed.
event_mark() {
	events_marked=$(wc -l <"$WORK/events")
}

event_seen() { # JQ SELECT: since the last mark
	[ -n "$(tail -n +$((events_marked + 1)) "$WORK/events" | jq -r "select($1)|.event")" ]
}

k_is() { # JOB K
	[ "$(job_field "$1" k)" = "$2" ]
}

worker_state_is() { # JOB WORKER STATE
	[ "$(json_value state "$(saina -j worker show "$1" "$2")")" = "$3" ]
}

# Some slots also wait for workers whose windows end before the pool does.
missing_is() { # JOB WORKER: all open slots wait for this worker, some for it alone
	local all
	all=$(saina -j slot show "$1")
	[ "$(json_count slot "$all")" = "$(json_count worker "$all" "$2")" ] &&
		[[ $all =~ \"missing\":\[\{\"worker\":$2,[^}]*\}\] ]]
}

# join_error WORKER NODE JOB [options]: runs saina-allreduce in the foreground and
# prints its error, or "not refused".
join_error() {
	start_as refused "$1" "$2" "$3" 1 "${@:4}"
	slowwait 30 worker_ended refused || kill -KILL "${worker_pids[refused]}"
	if wait "${worker_pids[refused]}"; then
		echo "not refused"
	else
		cat "$WORK/refused.err"
	fi
	unset "worker_pids[refused]"
}
