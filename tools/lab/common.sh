# shellcheck shell=bash disable=SC2015,SC2034,SC2153
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Names, state and owner of a lab; checks of arguments; removal of a lab.  Sourced by tools/saina-lab.

LAB_ROOT=/run/saina-lab
# How many times slower than a PC this machine is: time-outs are that much longer.
SLOW=${SAINA_SLOW:-1}
# sainad, saina and the BPF object: in the build tree, or installed.
LAB_BIN=${SAINA_BUILD:-$(readlink -f "$LAB_LIB/../../build")}
LAB_OBJECT=$LAB_BIN/saina_xdp.bpf.o
if [ -z "${SAINA_BUILD-}" ] && [[ $LAB_LIB == */lib/saina/lab ]]; then
	LAB_BIN=$(readlink -f "$LAB_LIB/../../../sbin")
	LAB_OBJECT=$(readlink -f "$LAB_LIB/../saina_xdp.bpf.o")
fi

die() {
	echo "saina-lab: $*" >&2
	exit 1
}

usage_error() {
	echo "saina-lab: $* (saina-lab --help)" >&2
	exit 2
}

number() { # OPTION TEXT LOWEST HIGHEST
	[[ $2 =~ ^(0|[1-9][0-9]{0,18})$ ]] && (($2 >= $3 && $2 <= $4)) ||
		usage_error "$1: \"$2\" is not a number from $3 to $4"
}

decimal() { # OPTION TEXT
	[[ $2 =~ ^[0-9]+(\.[0-9]+)?$ ]] || usage_error "$1: \"$2\" is not a number such as 20 or 0.5"
}

percent() { # OPTION TEXT
	[[ ${2%\%} =~ ^([0-9]{1,2}(\.[0-9]+)?|100(\.0+)?)$ ]] ||
		usage_error "$1: \"$2\" is not a percentage from 0 to 100"
}

one_of() { # OPTION TEXT ALLOWED...
	local w option=$1 text=$2
	shift 2
	for w; do
		[ "$w" != "$text" ] || return 0
	done
	usage_error "$option: \"$text\" is none of: $*"
}

lab_name_check() {
	[[ $1 =~ ^[A-Za-z0-9_.]{1,32}$ ]] && [ "${1#.}" = "$1" ] ||
		usage_error "\"$1\" is not a lab's name: 1 to 32 letters, digits, _ and . (not first)"
}

lab_use() {
	LAB_NAME=$1
	LAB_DIR=$LAB_ROOT/$1
	LAB_SW=saina-$1-sw LAB_NET=10.190.0
	# shellcheck source=/dev/null
	[ ! -r "$LAB_DIR/inside" ] || . "$LAB_DIR/inside"
}

# The switch is in the namespace of a worker of another lab, and its workers have a network of their own:
# 10.190.(worker + 1), and one level further down 10.191.(16 * that + worker), ..
lab_inside() { # LAB:WORKER
	local outer=${1%:*} worker=${1##*:} net
	LAB_SW=saina-$outer-w$worker LAB_NET=10.190.$((worker + 1))
	if [ -r "$LAB_ROOT/$outer/inside" ]; then
		net=$(
			# shellcheck source=/dev/null
			. "$LAB_ROOT/$outer/inside"
			echo "$LAB_NET"
		)
		LAB_NET=10.$((${net:3:3} + 1)).$(((16 * ${net##*.} + worker) % 256))
	fi
	declare -p LAB_SW LAB_NET | sed 's/^declare --/declare -g/' >"$LAB_DIR/inside"
}

# Saves the options of a lab for later commands.
lab_conf_write() {
	declare -p LAB_WORKERS LAB_BRIDGE LAB_DATAPATH LAB_MTU LAB_RATE LAB_LOSS LAB_DELAY \
		LAB_SEED LAB_HOOK LAB_GRO LAB_CSUM | sed 's/^declare --/declare -g/' >"$LAB_DIR/lab.conf"
}

lab_load() {
	lab_use "$1"
	[ -r "$LAB_DIR/lab.conf" ] || return 1
	# shellcheck source=/dev/null
	. "$LAB_DIR/lab.conf"
}

lab_ns() { # WHERE
	case $1 in
	switch|sw) echo "$LAB_SW" ;;
	*)	worker_check "$1" ", or \`switch'"
		echo "saina-$LAB_NAME-w$1" ;;
	esac
}

lab_namespaces() {
	local f
	for f in "/run/netns/saina-$LAB_NAME-sw" "/run/netns/saina-$LAB_NAME-w"*; do
		[ -e "$f" ] && echo "${f##*/}"
	done
	return 0
}

# All labs of which something exists, with and without a directory.
lab_names_all() {
	local f
	{
		for f in "$LAB_ROOT"/*/; do
			basename "$f"
		done
		for f in /run/netns/saina-*; do
			basename "$f" | sed -nE 's/^saina-([A-Za-z0-9_.]+)-(sw|w[0-9]+)$/\1/p'
		done
	} | sort -u
}

# A process is identified by its number and its start time, because numbers
# are reused.
proc_start() { # PID
	local stat
	stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
	# The name, in parentheses, may contain anything.
	stat=${stat##*) }
	# shellcheck disable=SC2086
	set -- $stat
	echo "${20}"
}

lab_owner_write() {
	echo "$1 $(proc_start "$1")" >"$LAB_DIR/owner.pid"
}

lab_owner_alive() {
	local pid start=
	[ -r "$LAB_DIR/owner.pid" ] || return 1
	read -r pid start <"$LAB_DIR/owner.pid"
	[ -n "$start" ] && [ "$(proc_start "$pid")" = "$start" ]
}

lab_owner_text() {
	local pid
	read -r pid _ 2>/dev/null <"$LAB_DIR/owner.pid" || pid=unknown
	lab_owner_alive && echo "$pid" || echo "$pid (gone)"
}

in_ns() { # NAMESPACE CMD...
	local ns=$1
	shift
	nsenter --net="/run/netns/$ns" -- "$@"
}

# A pipe without a writer: reading from it with a time-out is a sleep without a process.
exec {pause_fd}<> <(:)

# timed_read ARGUMENTS OF read: bash 5.2 may crash when a trap exits within `read -t',
# so there stop() only sets a flag.
timed_read() {
	local status=0
	reading=1
	# shellcheck disable=SC2162 # -r is for the caller to say
	read "$@" || status=$?
	reading=''
	[ -z "$stopped" ] || exit 130
	return $status
}

# The handler of INT, TERM and HUP: exits, and the EXIT trap removes what was built.
reading='' stopped=''
stop() {
	if [ -n "$reading" ]; then
		stopped=1
	else
		exit 130
	fi
}

# until_true SECONDS CMD...: polls until CMD succeeds; fails after SECONDS * SLOW.
until_true() {
	local deadline=$((SECONDS + $1 * SLOW))
	shift
	until "$@"; do
		((SECONDS < deadline)) || return 1
		timed_read -rt 0.05 -u "$pause_fd" || true
	done
}

# A zombie counts as gone.
pid_gone() { # PID
	local stat=
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || true
	stat=${stat##*) }
	[ -z "$stat" ] || [ "${stat%% *}" = Z ]
}

# Prints the process ids in these network namespaces.
pids_in() { # NAMESPACE...
	local key path
	local -A ours=()
	while read -r key; do
		ours[$key]=1
	done < <(stat -Lc %d:%i "${@/#//run/netns/}" 2>/dev/null)
	while read -r key path; do
		[ -z "${ours[$key]-}" ] || { path=${path%/ns/net}; echo "${path##*/}"; }
	done < <(stat -Lc '%d:%i %n' /proc/[0-9]*/ns/net 2>/dev/null)
}

# stop_pid PID SECONDS: TERM, and KILL if it has not ended in time.
stop_pid() {
	kill -TERM "$1" 2>/dev/null || return 0
	until_true "$2" pid_gone "$1" && return 0
	kill -KILL "$1" 2>/dev/null
	until_true 5 pid_gone "$1"
}

# Removes whatever exists of the lab, in any state.
lab_undo() {
	local all workers=() ns pids
	set +e
	agent_undo
	mapfile -t all < <(lab_namespaces)
	for ns in "${all[@]}"; do
		[ "$ns" = "$LAB_SW" ] || workers+=("$ns")
	done
	# The namespaces belong to the lab, and so do the processes in them.
	pids=$(pids_in "${workers[@]}")
	# shellcheck disable=SC2086
	[ -z "$pids" ] || kill -KILL $pids 2>/dev/null
	switch_undo
	pids=$(pids_in "${all[@]}")
	# shellcheck disable=SC2086
	[ -z "$pids" ] || kill -KILL $pids 2>/dev/null
	[ ${#all[@]} = 0 ] || printf 'netns del %s\n' "${all[@]}" | ip -force -batch -
	rm -rf "$LAB_DIR"
	rmdir "$LAB_ROOT" 2>/dev/null
	return 0
}
