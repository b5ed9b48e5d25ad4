# shellcheck shell=bash disable=SC2154 # its users set elements, workers, policy, sums
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What the quickstarts share: an agent of their own, a job, and what its workers printed.
# Sourced by tools/quickstart/podman and qemu, which set $here and define undo_workers(),
# undo_network() and worker_said().

build=${SAINA_BUILD:-$(readlink -m "$here/../../build")}

# shellcheck source=../ticker.sh
. "$here/../ticker.sh"

say() {
	echo "quickstart: $*"
}

die() {
	echo "quickstart: $*" >&2
	exit 1
}

usage_error() {
	echo "quickstart: $* ($0 --help)" >&2
	exit 2
}

number() { # OPTION TEXT LOWEST HIGHEST
	# shellcheck disable=SC2015
	[[ $2 =~ ^(0|[1-9][0-9]{0,8})$ ]] && (($2 >= $3 && $2 <= $4)) ||
		usage_error "$1: \"$2\" is not a whole number from $3 to $4"
}

# Where an installed script's programs are: below PREFIX of PREFIX/share/saina/quickstart.
prefix=$(readlink -m "$here/../../..")

# program NAME: prints the path of a program of the source tree, or of the installed one
program() {
	if [ -x "$build/$1" ]; then
		echo "$build/$1"
	else
		PATH=$prefix/sbin:$prefix/bin:$PATH:/usr/local/sbin:/usr/sbin command -v "$1" ||
			die "$1 is neither built nor installed: run make, or install the package saina"
	fi
}

# find_programs: sets $saina, $sainad and $allreduce to the paths of these programs
find_programs() {
	# shellcheck disable=SC2034
	sainad=$(program sainad) && saina=$(program saina) && allreduce=$(program saina-allreduce) || exit 1
}

# make_work: makes the directory $work, and $id, the name of all that is made.  undo_all() is
# called when the script exits.
make_work() {
	id=saina-quickstart-$$ agent=''
	work=$(mktemp -d "${TMPDIR:-/tmp}/$id.XXXXXX") || die "cannot create a directory in ${TMPDIR:-/tmp}"
	trap undo_all EXIT
	trap 'exit 130' INT TERM HUP
}

# Between hold_signals and take_signals a signal is held back, so that undo_all() knows of what is
# made there.  It is not ignored, because children would inherit that: commands that must be
# finished are started by setsid, as Ctrl-C does not reach other sessions.
hold_signals() {
	interrupted=''
	trap interrupted=yes INT TERM HUP
}

take_signals() {
	trap 'exit 130' INT TERM HUP
	[ -z "$interrupted" ] || exit 130
}

undo_all() {
	local status=$?
	trap '' INT TERM HUP
	trap - EXIT
	ticker_stop
	say "cleaning up"
	undo_workers
	if [ -n "$agent" ]; then
		kill -TERM "$agent"
		wait "$agent"
	fi 2>/dev/null
	undo_network
	rm -rf "$work"
	exit "$status"
}

bridge_address() { # BRIDGE: its first IPv4 address
	ip -4 -o addr show dev "$1" | sed -n '1s|.* inet \([0-9.]*\)/.*|\1|p'
}

# agent_start BRIDGE TYPE ADDRESS: starts sainad, sets $agent to its process id, and returns when it is ready
agent_start() {
	local ready words
	say "starting sainad on $1, address $3"
	mkfifo "$work/ready"
	exec {ready}<>"$work/ready"
	words=(--bridge "$1" --bridge-type "$2" --address "$3" --control "$work/control" --runtime-dir "$work/run"
		--bpffs "$work/bpf" --control-plane agent --ready-fd "$ready")
	[ ! -e "$build/saina_xdp.bpf.o" ] || words+=(--object "$build/saina_xdp.bpf.o")
	hold_signals
	# In a session of its own, so that Ctrl-C does not end it before its workers.
	setsid "$sainad" "${words[@]}" >"$work/log" 2>&1 </dev/null &
	agent=$!
	take_signals
	until IFS= read -r -t 0.1 -u "$ready" _; do
		[ -d "/proc/$agent" ] && ! grep -q '^State:.Z' "/proc/$agent/status" 2>/dev/null && continue
		die "sainad does not start: $(tail -n 1 "$work/log"); to check this host, run $saina doctor host bridge $1"
	done
	exec {ready}>&-
}

# Not empty: the workers' lines are shown as they come.
live=''

# job_add: adds the job quickstart, and sets $token to its token
job_add() {
	token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
	"$saina" -s "$work/control" job add quickstart elements "$elements" workers "$workers" policy "$policy" token "$token" \
		>"$work/said" 2>&1 || die "the job is refused: $(tail -n 1 "$work/said")"
	say "job quickstart is added; to watch it while it runs: $saina -s $work/control top"
}

# show_sums WORKER: prints in words the results of saina-allreduce --json; fails if there are none
show_sums() {
	local line key re
	local -A v=()
	line=$(worker_said "$1" | grep '^{' | tail -n 1)
	for key in rounds exact unverified wrong resent relayed time_us; do
		re="\"$key\": ([0-9]+)"
		[[ $line =~ $re ]] || return 1
		v[$key]=${BASH_REMATCH[1]}
	done
	echo "  worker $1: ${v[rounds]} rounds, segments exact ${v[exact]}, wrong ${v[wrong]}, unverified ${v[unverified]};" \
		"messages resent ${v[resent]}; relayed ${v[relayed]}; $((v[time_us] / (v[rounds] ? v[rounds] : 1))) us a round"
}

# results WHAT BRIDGE: waits for all workers, or for the first that fails, and shows what they
# printed, unless $live says that it was shown already.  A worker is a background job of this
# shell; worker_said I prints its lines.
results() {
	local i who bad=0
	ticker_start "$1 run"
	for ((i = 0; i < workers && bad == 0; i++)); do
		wait -n -p who || bad=$?
		# The agent must not end before the workers.
		[ "${who-}" != "$agent" ] || bad=$((bad ? bad : 1))
	done
	ticker_stop
	for ((i = 0; i < workers && ! ${#live}; i++)); do
		if [ $bad != 0 ] || [ -z "$sums" ] || ! show_sums "$i"; then
			worker_said "$i" | sed "s/^/  worker $i: /"
		fi
	done
	if [ $bad != 0 ]; then
		echo "quickstart: saina doctor reports about this host:" >&2
		"$saina" -s "$work/control" doctor host bridge "$2" | grep -A1 -E '^(FAIL|warn)' >&2
		die "a worker, or sainad, ended with status $bad: see the lines above"
	fi
	say "all $workers workers ended well"
}
