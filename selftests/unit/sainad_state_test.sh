#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A state file that cannot be written: who changes something is told, and the state is saved as soon as that is
# possible.  The runtime directory is a small tmpfs.  With the argument "all": also a read-only directory, one that
# is gone, and a rename that fails.
#
#     namespace $NS:  br0 (192.0.2.1)

set -u
top=$(readlink -f "$(dirname "$0")/../..")
B=${SAINA_BUILD:-$top/build}
[ "$(id -u)" -eq 0 ] || { echo "1..0 # SKIP needs root"; exit 4; }

NS=sainad-state-${SAINA_TEST_RUN:-t}-$RANDOM$RANDOM
WORK=$(mktemp -d)
RUN=$WORK/disk/run
export SAINA_CONTROL=$WORK/control
# shellcheck source=../tap.sh
. "$top/selftests/tap.sh"
pid=

undo() {
	[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null
	mountpoint -q "$RUN" && umount "$RUN"
	mountpoint -q "$WORK/bpf" && umount "$WORK/bpf"
	mountpoint -q "$WORK/disk" && umount "$WORK/disk"
	ip netns del "$NS" 2>/dev/null
	rm -rf "$WORK"
}
trap undo EXIT
trap 'exit 1' INT TERM

start() {
	rm -f "$WORK/ready"
	# SIGHUP reloads under a service manager, whose socket is in NOTIFY_SOCKET.
	# Not by a function: $! would be the process id of a shell around it.
	NOTIFY_SOCKET=$WORK/notify nsenter --net="/run/netns/$NS" -- "$B/sainad" -c "$WORK/sainad.conf" --ready-fd 9 --bridge br0 \
		--runtime-dir "$RUN" --bpffs "$WORK/bpf" --control "$WORK/control" --control-plane agent \
		9>"$WORK/ready" >>"$WORK/log" 2>&1 &
	pid=$!
	slowwait 120 grep -qx ready "$WORK/ready"
}

crash() {
	kill -9 "$pid"
	wait "$pid" 2>/dev/null
	start
}

saina() {
	"$B/saina" "$@" 2>"$WORK/said"
}

# says COMMAND...: it succeeds, and says that the state is not saved, and $why
why=
says() {
	saina "$@" >/dev/null && grep -q "warning: the change is in force, but not saved for the next start.*$why" "$WORK/said"
}

quiet() {
	saina "$@" >/dev/null && [ ! -s "$WORK/said" ]
}

shown() {
	"$B/saina" job show | grep -q "not saved for the next start.*$why"
}

doctor_says() {
	"$B/saina" doctor 2>&1 | grep -q "not saved for the next start.*$why"
}

reload_refused() {
	kill -HUP "$pid"
	slowwait 60 grep -q "SIGHUP: the old configuration stays in force: .*not saved for the next start.*$why" "$WORK/log"
}

not_shown() {
	local shown
	shown=$("$B/saina" job show) && [[ $shown == *policy* && $shown != *"not saved"* ]]
}

has() { # POLICY JOB...: these jobs, of which the first has the policy
	local policy=$1
	shift
	[ "$(saina -j job show | jq -r 'map(.name)|sort|join(" ")')" = "$*" ] && [ "$(saina -j job show "$1" | jq -r '.[0].policy')" = "$policy" ]
}

# trial WHAT FAULT: changes while the state cannot be written; FAULT begin and FAULT end are functions
trial() {
	local what=$1 fault=$2
	quiet job add a elements 100 workers 2 policy bsp
	quiet job add gone elements 100 workers 2
	"$fault" begin
	check "$what: job add says that the job is not saved, and why" says job add b elements 100 workers 2
	check "$what: so does job set" says job set a policy fastest:k=1
	check "$what: so does job del" says job del gone
	check "$what: job show says so" shown
	check "$what: saina doctor says so" doctor_says
	check "$what: the changes are in force" has fastest:k=1 a b
	check "$what: SIGHUP does not restart sainad" reload_refused
	"$fault" end
	check "$what: the state is saved when that is possible again" slowwait 60 not_shown
	# No further change before the crash: it would save the earlier ones, too.
	head -c 100 "$RUN/state" >"$RUN/state.new"
	check "$what: sainad is killed, with a new file that is half written, and starts again" crash
	check "$what: all changes are there again" has fastest:k=1 a b
	check "$what: further changes are saved without a warning" quiet job set b policy bsp
	quiet job del a
	quiet job del b
}

full_disk() {
	case $1 in
	begin) head -c 200000 /dev/zero >"$RUN/filler" 2>/dev/null ;;
	end) rm "$RUN/filler" ;;
	esac
}

# A mount of its own: the disk cannot become read-only, because sainad holds its lock there.
read_only() {
	case $1 in
	begin) mount --bind "$RUN" "$RUN" && mount -o remount,bind,ro "$RUN" ;;
	end) umount "$RUN" ;;
	esac
}

directory_gone() {
	case $1 in
	begin) mv "$RUN" "$WORK/disk/away" ;;
	end) mv "$WORK/disk/away" "$RUN" ;;
	esac
}

# A file does not take the place of a directory.
rename_fails() {
	case $1 in
	begin) rm "$RUN/state" && mkdir "$RUN/state" ;;
	end) rmdir "$RUN/state" ;;
	esac
}

ip netns add "$NS"
ip -n "$NS" link add br0 address 02:00:00:00:be:e0 type bridge
ip -n "$NS" address add 192.0.2.1/24 dev br0
ip -n "$NS" link set br0 up
: >"$WORK/sainad.conf"
mkdir "$WORK/disk"
mount -t tmpfs -o size=64k saina-state "$WORK/disk" || bail "no tmpfs"
mkdir "$RUN"
check "sainad starts" start

why="No space left on device" trial "a full disk" full_disk
if [ "${1:-}" = all ]; then
	why="Read-only file system" trial "a read-only directory" read_only
	why="No such file or directory" trial "a directory that is gone" directory_gone
	why="Is a directory" trial "a rename that fails" rename_fails
fi

kill "$pid"
wait "$pid"
equal "sainad ends well" 0 $?
pid=
check "nothing is left in its directory" [ -z "$(ls -A "$RUN" 2>/dev/null)" ]
plan
