# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: GPL-2.0-or-later
#
# For the tests of tools/quickstart: runs the script that has the name of the test, in namespaces
# of its own.  Sourced instead of lib.sh.  A test has a function leftovers(), which prints what a run
# has left behind.

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# Workers, mounts, bridge and agent end with the first process of the namespaces.
mkdir "$WORK/q"
unshare --net --mount --pid --fork --kill-child --mount-proc sleep infinity &
ns_pid=$!

quickstart_end() {
	kill -KILL "$ns_pid" 2>/dev/null
	wait "$ns_pid" 2>/dev/null
}

finish_quickstart() {
	local status=$?
	trap '' INT TERM HUP
	quickstart_end
	(exit $status)
	finish
}
trap finish_quickstart EXIT

in_ns() {
	nsenter -t "$ns_init" --net --mount --pid -- "$@"
}

ns_ready() {
	ns_init=$(pgrep -P "$ns_pid" -x sleep)
}

slowwait 10 ns_ready || bail "no namespaces"
[ "$(in_ns readlink /proc/self/ns/net)" != "$(readlink /proc/self/ns/net)" ] || bail "no namespace of its own"
in_ns mount -t tmpfs tmpfs /run

# quickstart NAME [WORD...]: in the background; what it says is in $WORK/NAME.out and .err.
quickstart() {
	: >"$WORK/$1.out"
	# As from a terminal: in a process group of its own, which Ctrl-C reaches.
	in_ns setsid env --default-signal=INT,TERM,HUP TMPDIR="$WORK/q" "${quickstart_script:-$TOP/tools/quickstart/$TEST}" "${@:2}" \
		>"$WORK/$1.out" 2>"$WORK/$1.err" </dev/null &
	worker_pids[$1]=$!
}

# ended NAME: waits for its end; sets output to its status and the last line of its errors.
ended() {
	local status
	slowwait 240 worker_ended "$1" || kill -KILL "${worker_pids[$1]}"
	wait "${worker_pids[$1]}"
	status=$?
	unset "worker_pids[$1]"
	output="$status: $(tail -n 1 "$WORK/$1.err")"
}

said_by() { # NAME ERE
	grep -qE "$2" "$WORK/$1.out" || pid_gone "${worker_pids[$1]}"
}

# Links, agents, mounts and files that a run could leave.
leftovers_of_any() {
	in_ns ip -o link show | grep -vE '^[0-9]+: (lo|ifb[0-9]):'
	in_ns sh -c 'cat /proc/[0-9]*/comm' 2>/dev/null | grep -xE 'sainad|qemu-system.*'
	in_ns cat /proc/mounts | grep -o "$WORK/q.*"
	ls "$WORK/q"
}

# control NAME: waits for the job; exports the control socket of its agent, sets id
control() {
	slowwait 60 said_by "$1" 'job quickstart is added'
	SAINA_CONTROL=$(sed -n 's/.* -s \(.*\) top$/\1/p' "$WORK/$1.out")
	export SAINA_CONTROL
	[ -n "$SAINA_CONTROL" ] || bail "$1: no job: $(cat "$WORK/$1.err")"
	id=$(basename "$(dirname "$SAINA_CONTROL")" | sed 's/\..*//')
}

job_runs() {
	[ "$(job_field quickstart state)" = running ]
}

ctrl_c() { # LINE SECONDS WORD...: Ctrl-C so long after the quickstart has printed this line
	local at="$2 s after \"$1\""
	quickstart stop "${@:3}"
	slowwait 60 said_by stop "$1"
	sleep "$2"
	in_ns pkill -INT -g "$(in_ns pgrep -of "quickstart/$TEST")"
	ended stop
	matches "quickstart: Ctrl-C $at: ends with status 130" '^130: ' "$output"
	equal "quickstart: Ctrl-C $at: leaves nothing behind" "" "$(leftovers)"
}

# fails DESCRIPTION STATUS ERE WORD...: the quickstart with these words ends with STATUS; its last error
# matches ERE
fails() {
	quickstart bad "${@:4}"
	ended bad
	matches "quickstart: $1" "^$2: quickstart: .*$3" "$output"
}
