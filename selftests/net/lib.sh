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
# A test calls lab_up, adds jobs, starts workers and says check/ok/not_ok; what
# it started ends with it, however it ends.

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
export SAINA_CONTROL=/run/saina-lab/$LAB/control

tap_n=0 tap_bad=0 complete=''
# Lines of the agent's log that a test expects; others that complain are failures.
expected_log='^$'

# --- TAP -------------------------------------------------------------------

ok() {
	tap_n=$((tap_n + 1))
	echo "ok $tap_n - $*"
}

not_ok() {
	tap_n=$((tap_n + 1)) tap_bad=$((tap_bad + 1))
	echo "not ok $tap_n - $*"
}

diag() {
	# shellcheck disable=SC2001
	sed 's/^/# /' <<<"$*"
}

# check DESCRIPTION CMD...: ok if CMD succeeds; its output is shown if not.
check() {
	local what=$1
	shift
	# Not in a subshell: CMD may wait for our children.
	if "$@" >"$WORK/said" 2>&1; then
		ok "$what"
	else
		not_ok "$what"
		diag "failed: $*"
		[ ! -s "$WORK/said" ] || diag "$(cat "$WORK/said")"
		return 1
	fi
}

# equal DESCRIPTION EXPECTED GOT
equal() {
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		not_ok "$1"
		diag "expected: $2"
		diag "     got: $3"
		return 1
	fi
}

# matches DESCRIPTION ERE TEXT
matches() {
	if [[ $3 =~ $2 ]]; then
		ok "$1"
	else
		not_ok "$1"
		diag "expected to match: $2"
		diag "     got: $3"
		return 1
	fi
}

bail() {
	echo "Bail out! $*"
	exit 1
}

# until_true SECONDS CMD...: polls; deadlines are generous, never measured.
until_true() {
	local deadline=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		((SECONDS < deadline)) || return 1
		sleep 0.05
	done
}

# A process nobody has waited for yet is gone too.
pid_gone() {
	local state
	state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null)
	[ -z "$state" ] || [ "$state" = Z ]
}

# --- lab -------------------------------------------------------------------

WORK=$(mktemp -d "${TMPDIR:-/tmp}/saina-$LAB.XXXXXX")
declare -A worker_pids=() job_ids=()
worker_program=("$B/saina-allreduce")

finish() {
	local status=$? pid
	trap '' INT TERM HUP
	trap - EXIT
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
	# Who does not get to its end announces nothing, which is a failure.
	[ -z "$complete" ] || echo "1..$tap_n"
	[ -n "$complete" ] && [ "$tap_bad" = 0 ] && exit 0
	exit $((status ? status : 1))
}

# The last line of every test.
finished() {
	complete=1
}

trap finish EXIT
trap 'exit 130' INT TERM HUP

[ "$(id -u)" = 0 ] || { echo "needs root"; exit 4; }

lab() { # VERB...: saina-lab on this test's lab
	local verb=$1
	shift
	"$LAB_TOOL" "$verb" "$LAB" "$@"
}

lab_up() {
	lab up --owner $$ "$@" || bail "the lab did not come up"
}

# Takes the lab down and looks at what its agent complained of.
lab_down() {
	local log=/run/saina-lab/$LAB/sainad.log complaints
	complaints=$(grep -aE '(error|warn(ing)?)[]:> ]' "$log" 2>/dev/null | grep -avE "$expected_log")
	if [ -n "$complaints" ]; then
		not_ok "the agent complained of nothing unexpected"
		diag "$complaints"
	fi
	lab down || not_ok "the lab could be taken down"
}

w() { # WORKER CMD...: in a worker's namespace
	lab exec "$@"
}

sw() { # CMD...: in the switch's namespace
	lab exec switch "$@"
}

saina() {
	"$B/saina" "$@"
}

# sj OBJECT ... JQ: the tool's JSON through jq
sj() {
	local filter=${*: -1}
	saina -j "${@:1:$#-1}" | jq -r "$filter"
}

# job NAME [saina job add's words]: makes a job.  Nobody is to be found dead by
# mistake because the machine is busy, so tests about death say how long.
job() {
	local out dead=(dead 15000)
	[[ " $* " != *" dead "* ]] || dead=()
	out=$(saina -j job add "$@" "${dead[@]}" 2>&1) || bail "no job $1: $out"
	job_ids[$1]=$(jq '.[0].id' <<<"$out")
}

job_field() { # JOB FIELD
	sj job show "$1" ".[0].$2"
}

# counter JOB WORKER|all|- NAME: of one worker, of all, or of no job at all
counter() {
	local scope=("$1" "$2")
	[ "$2" != all ] || scope=("$1")
	[ "$1" != - ] || scope=(global)
	sj stats show "${scope[@]}" "[.[] | (.counters[\"$3\"] // 0) + (.drops[\"$3\"] // 0)] | add // 0"
}

mac_of() { # WORKER|switch
	if [ "$1" = switch ]; then
		ip -n "saina-$LAB-sw" -j link show br0 | jq -r ".[0].address"
	else
		ip -n "saina-$LAB-w$1" -j link show eth0 | jq -r '.[0].address'
	fi
}

# raw WORKER KEY=VALUE...: forged frames out of a worker's namespace
raw() {
	local from=$1
	shift
	w "$from" "$RAWSEND" eth0 "dmac=$SWITCH_MAC" "$@"
}

# --- workers ---------------------------------------------------------------

# start_as TAG WORKER NODE JOB ROUNDS [saina-allreduce's options]: in the
# background, in the namespace of worker NODE.  What it says is in $WORK/TAG.err,
# a line per round in $WORK/TAG.log.
start_as() {
	local tag=$1 id=${job_ids[$4]-}
	[ -n "$id" ] || id=$(job_field "$4" id)
	# Emptied, not removed: it may have been given to the worker's user.
	: >"$WORK/$tag.log"
	# Not by a function: the number would be that of a shell around it.
	"$LAB_TOOL" exec "$LAB" "$3" "${worker_program[@]}" --aggregator "$AGG" --job "$id" --worker "$2" \
		--rounds "$5" --seed "$SEED" --log "$WORK/$tag.log" --json "${@:6}" \
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

# wait_all SECONDS: until all that were started have ended; good only if all
# ended well, which they do only if every sum was right.
wait_all() {
	local i bad=0 status deadline=$((SECONDS + $1))
	for i in "${!worker_pids[@]}"; do
		if ! until_true $((deadline > SECONDS ? deadline - SECONDS : 0)) worker_ended "$i"; then
			echo "worker $i does not end"
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

worker_ended() {
	pid_gone "${worker_pids[$1]}"
}

# stop_workers: asks them to end after the round at hand
stop_workers() {
	kill -TERM "${worker_pids[@]}" 2>/dev/null
}

rounds_at_least() { # JOB ROUND: opened
	[ "$(job_field "$1" round)" -ge "$2" ]
}

in_force() { # JOB SEQ
	[ "$(job_field "$1" policy_active_seq)" = "$2" ]
}

# --- what workers wrote: a JSON object per round -----------------------------------

# field TAG NAME: that field of every round, one a line
field() {
	jq -r ".$2" "$WORK/$1.log"
}

minmax() { # TAG FIELD_MIN FIELD_MAX
	jq -rs "\"\(map(.$2)|min) \(map(.$3)|max)\"" "$WORK/$1.log"
}

total() { # TAG FIELD
	jq -s "map(.$2)|add // 0" "$WORK/$1.log"
}

# same_results TAG...: bit for bit, and at least one round that all of them saw
same_results() {
	local i
	for i; do
		jq -r '"\(.round) \(.crc) \(.mask_any) \(.mask_all)"' "$WORK/$i.log"
	done | sort -n | uniq -c | awk -v n=$# -v last=-1 '
		$2 == last { print "round " $2 " differs: " what " and " $3 " " $4 " " $5; bad = 1 }
		$1 == n { all++ }
		{ last = $2; what = $3 " " $4 " " $5 }
		END { if (!all) print "no round that all have"; exit bad || !all }'
}

# summary TAG FIELD: of what it printed at its end
summary() {
	jq -r ".$2" "$WORK/$1.out"
}

# counted_in TAG WORKER ROUND: in a round of TAG's from ROUND on, WORKER is counted in
# every segment
counted_in() {
	local round mask
	while read -r round mask; do
		[ "$round" -ge "$3" ] && (((mask >> $2) & 1)) && return 0
	done < <(jq -r '"\(.round) \(.mask_all)"' "$WORK/$1.log" 2>/dev/null)
	return 1
}

# --- events ------------------------------------------------------------------

events_start() {
	"$B/saina" -j monitor all >"$WORK/events" 2>"$WORK/monitor.err" </dev/null &
	events_pid=$!
	until_true 10 grep -q monitoring "$WORK/monitor.err" || bail "saina monitor does not start"
}

events_stop() {
	kill -TERM "$events_pid" 2>/dev/null
	wait "$events_pid"
}

events() { # JQ
	jq -r "$1" "$WORK/events"
}

event_seen() { # JQ SELECT
	[ -n "$(jq -r "select($1)|.event" "$WORK/events")" ]
}

k_is() { # JOB K
	[ "$(job_field "$1" k)" = "$2" ]
}

worker_state_is() { # JOB WORKER STATE
	[ "$(sj worker show "$1" "$2" '.[0].state')" = "$3" ]
}

missing_is() { # JOB WORKER: all open slots wait for this worker alone
	[ "$(sj slot show "$1" '[.[].missing[].worker]|unique|join(",")')" = "$2" ]
}

# refused WORKER NODE JOB [options]: runs saina-allreduce in the foreground and
# shows what it says; says so if it is not refused.
refused() {
	start_as refused "$1" "$2" "$3" 1 "${@:4}"
	until_true 30 worker_ended refused || kill -KILL "${worker_pids[refused]}"
	if wait "${worker_pids[refused]}"; then
		echo "not refused"
	else
		cat "$WORK/refused.err"
	fi
	unset "worker_pids[refused]"
}
