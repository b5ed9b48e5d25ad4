#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# sainad as a program: its options, its ready notice, one agent to a directory,
# who may do what, and that nothing is left behind.
#
#     namespace $NS:  br0 (192.0.2.1) -- p0 == p1 (the other end of the pair)

set -u
top=$(readlink -f "$(dirname "$0")/../..")
B=${SAINA_BUILD:-$top/build}
[ "$(id -u)" -eq 0 ] || { echo "1..0 # SKIP needs root"; exit 4; }

NS=sainad-${SAINA_TEST_RUN:-t}-$RANDOM$RANDOM
DIR=$(mktemp -d)
chmod 755 "$DIR"
CONF=$DIR/sainad.conf
# shellcheck source=../tap.sh
. "$top/selftests/tap.sh"
pid=

undo() {
	[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null
	umount "$DIR/bpf" "$DIR/bpf2" 2>/dev/null
	ip netns del "$NS" 2>/dev/null
	rm -rf "$DIR"
}
trap undo EXIT
trap 'exit 1' INT TERM

ok() { # NAME COMMAND...: the command succeeds
	local name=$1
	shift
	# not in a subshell: commands here set pid
	if "$@" >"$DIR/out" 2>&1; then
		point 0 "$name"
	else
		point 1 "$name"
		diag "$(cat "$DIR/out")"
	fi
}

# STATUS WORDS COMMAND...: it exits with STATUS and says WORDS
says() {
	local status=$1 words=$2 out
	shift 2
	out=$("$@" 2>&1)
	set -- "$?" "$out"
	[ "$1" -eq "$status" ] && [[ $2 == *"$words"* ]] && return
	echo "status $1, wanted $status; said: $2"
	return 1
}

slowwait() { # COMMAND...: within two minutes, which is never measured
	local end=$((SECONDS + 120))
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}

not() {
	! "$@"
}

as_nobody() { # GROUPS COMMAND...
	local groups=$1
	shift
	if [ -n "$groups" ]; then
		setpriv --reuid 65534 --regid 65534 --groups "$groups" "$@"
	else
		setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
	fi
}

inside() {
	nsenter --net="/run/netns/$NS" -- "$@"
}

start() { # OPTIONS...: in the foreground; sets pid
	rm -f "$DIR/ready"
	# not by inside(): a function in the background has a pid of its own
	nsenter --net="/run/netns/$NS" -- "$B/sainad" -c "$CONF" --ready-fd 9 "$@" \
		9>"$DIR/ready" >>"$DIR/log" 2>&1 &
	pid=$!
	slowwait grep -qx ready "$DIR/ready"
}

# A zombie has ended: the process that adopts it here need not reap it.
ended() {
	! kill -0 "$pid" || grep -q '^State:.*zombie' "/proc/$pid/status"
}

stop() { # SIGNAL: 0 if it ends well
	local status
	kill -"$1" "$pid"
	slowwait ended || return 1
	wait "$pid"
	status=$?
	pid=
	[ "$1" = KILL ] || [ $status -eq 0 ]
}

nothing_left() {
	local left
	left=$(ls -d "$DIR/run" "$DIR/bpf" "$DIR/control" 2>/dev/null)
	[ -z "$left" ] || { echo "left: $left"; return 1; }
	left=$(inside ip -o link show p0 | grep -o "xdp[a-z]*"; inside ip -o link show type ifb)
	[ -z "$left" ] || { echo "left: $left"; return 1; }
}

# --- words only --------------------------------------------------------------
conf() {
	printf '%s\n' "$@" >"$CONF"
}

ok "--version prints name and version" says 0 "sainad " "$B/sainad" --version
ok "--help lists the options" says 0 "--check-config" "$B/sainad" --help
ok "an unknown option is refused with status 2" says 2 "unrecognized" "$B/sainad" --frobnicate
ok "an argument is refused with status 2" says 2 "takes options only" "$B/sainad" br0
ok "a bad value of an option is refused, with those allowed" says 2 '"auto", "xdp", "generic", "tc"' "$B/sainad" --hook fast
ok "--ready-fd: a descriptor that is not open is refused" says 2 "no open file descriptor" "$B/sainad" --ready-fd 77
ok "a configuration file that does not exist is refused by its name" says 2 "$DIR/none.conf" "$B/sainad" -c "$DIR/none.conf"
ok "--check-config: the example configuration is right" says 0 right "$B/sainad" --check-config -c "$top/userland/agent/sainad.conf"
conf 'bridge = "br0";' 'bridge_typ = "ovs";'
ok "--check-config: an unknown key is refused with file and line" says 2 "$CONF:2: 'bridge_typ' is unknown" "$B/sainad" --check-config -c "$CONF"
conf '' '' 'jobs = ( { name = "a"; elements = 10; workers = 2; policy = "fastest:k=3"; } );'
ok "--check-config: a job with a k above its workers is refused with file and line" says 2 "$CONF:3: policy: 'k=3': must be 1..2" \
	"$B/sainad" --check-config -c "$CONF"
conf 'limits = { memory_job = 1000000; memory = 1000000; };' \
	'jobs = ( { name = "a"; elements = 1000000; workers = 2; } );'
ok "--check-config: a job beyond the memory limit is refused with file and line" says 2 "$CONF:2: the job needs" "$B/sainad" --check-config -c "$CONF"
conf '' 'limits = { memory_job = 2000000; memory = 1000000; };'
ok "--check-config: contradicting limits are refused with file and line" says 2 "$CONF:2: limits: " "$B/sainad" --check-config -c "$CONF"

# --- a bridge ----------------------------------------------------------------
ip netns add "$NS" || exit 1
inside sh -e <<'SH' || exit 1
ip link set lo up
ip link add br0 type bridge
ip link set br0 up
ip link add p0 type veth peer name p1
ip link set p0 master br0 up
ip link set p1 up
SH
conf 'bridge = "br0";' "control = \"$DIR/control\";" "runtime_dir = \"$DIR/run\";" \
	"bpffs = \"$DIR/bpf\";" 'ovsdb = "/nonexistent/db.sock";' 'admin_group = "games";' \
	'jobs = ( { name = "a"; elements = 5000; workers = 2; token = "sesame"; } );'
games=$(getent group games | cut -d: -f3)
export SAINA_CONTROL=$DIR/control

ok "--check-program: the kernel takes the XDP program" says 0 "does without saina.ko" "$B/sainad" --check-program -c "$CONF"
ok "--check-program: an object that cannot be read is refused" says 1 "cannot read the BPF object" "$B/sainad" --check-program -c "$CONF" --object /nonexistent.o
ok "start: a bridge without an address is refused, with the remedy" says 1 "ip address add" inside "$B/sainad" -c "$CONF"
ok "start: a refused start leaves nothing behind" nothing_left
inside ip address add 192.0.2.1/24 dev br0
inside ip address add 192.0.2.2/24 dev br0
ok "start: a bridge that does not exist is refused" says 1 "no bridge 'br7'" inside "$B/sainad" -c "$CONF" --bridge br7
ok "start: a port is refused as a bridge" says 1 "is no Linux bridge" inside "$B/sainad" -c "$CONF" --bridge p0
ok "start: Open vSwitch that does not run is refused, with a question" says 1 "is Open vSwitch running" \
	inside "$B/sainad" -c "$CONF" --bridge-type ovs
ok "start: an address that the bridge does not have is refused" says 1 "does not have this address" \
	inside "$B/sainad" -c "$CONF" --address 192.0.2.77
ok "start: a group that does not exist is refused" says 1 "no group 'nosuchgroup'" \
	inside "$B/sainad" -c "$CONF" --admin-group nosuchgroup
ok "start: an object file that does not exist is refused" says 1 "/nonexistent.o" \
	inside "$B/sainad" -c "$CONF" --object /nonexistent.o
ok "start: refused starts leave nothing behind" nothing_left

# One that was killed holds it until it has ended.
mkdir -p "$DIR/run"
flock "$DIR/run/lock" sleep 0.7 &
ok "start: sainad waits for a lock that is given up soon, and says when it is ready" start
ok "start: the port of the bridge is attached, the bridge is not" says 0 "1 p0" \
	sh -c "'$B/saina' -j port show | jq -r 'length, .[].port' | xargs"
ok "start: a second sainad in the same directory is refused" says 1 "another sainad runs in $DIR/run" \
	inside "$B/sainad" -c "$CONF"
ok "start: a second sainad at the same socket is refused" says 1 "somebody else listens at" \
	inside "$B/sainad" -c "$CONF" --runtime-dir "$DIR/run2" --bpffs "$DIR/bpf2" --address 192.0.2.2
ok "start: the first sainad still serves its job after that" says 0 sesame "$B/saina" job show
ok "access: any user may list jobs" says 0 "forming" as_nobody "" "$B/saina" job show
ok "access: a user who is not in the admin group sees no token" says 1 "" sh -c "setpriv --reuid 65534 --regid 65534 --clear-groups '$B/saina' job show | grep sesame"
ok "access: a user who is not in the admin group may not delete a job" says 1 "root and the group games" as_nobody "" "$B/saina" job del a
ok "access: the admin group may change a job" as_nobody "$games" "$B/saina" job set a policy fastest:k=1
ok "access: the admin group sees tokens" says 0 sesame as_nobody "$games" "$B/saina" job show

# Connections of somebody who may not change anything, as many as there can be.
setpriv --reuid 65534 --regid 65534 --clear-groups /usr/bin/python3 -c '
import socket, sys, time
held = []
for i in range(400):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(sys.argv[1])
    held.append(s)
print("held", flush=True)
time.sleep(600)' "$DIR/control" >"$DIR/held" &
holder=$!
ok "access: any user may hold connections" slowwait grep -q held "$DIR/held"
ok "access: root is served while another user holds all connections that there are for users" \
	says 0 "forming" "$B/saina" job show
kill $holder
wait $holder 2>/dev/null

load() { # CHECK
	/usr/bin/python3 "$top/selftests/unit/control_load.py" "$1" "$pid"
}

ok "load: a change is made while a long dump is on its way, and the dump says so" load dump
ok "load: a port is attached between the requests of many clients" load links
ok "load: dumps that nobody reads take no memory, and go on when they are read" load readers
ok "load: a subscriber that does not read has a part of its notifications" load subscriber

echo "open-sesame" >"$DIR/token"
ok "token-file: a job is added" "$B/saina" job add filed elements 100 workers 2 token-file "$DIR/token"
ok "token-file: the job has the token of the file" says 0 "token open-sesame" "$B/saina" job show filed
ok "token-file: a file that does not exist is refused" says 2 "cannot be read" \
	"$B/saina" job add other elements 100 workers 2 token-file "$DIR/none"
ok "SAINA_TOKEN: a job is added" env SAINA_TOKEN=from-env "$B/saina" job add enved elements 100 workers 2
ok "SAINA_TOKEN: the job has the token of the environment" says 0 "token from-env" "$B/saina" job show enved
ok "jobs of the token tests are deleted" sh -c "'$B/saina' job del filed && '$B/saina' job del enved"
ok "SIGKILL: sainad ends" stop KILL
ok "SIGKILL: the next sainad starts" start
ok "SIGKILL: the next sainad has the policy that was set" says 0 "fastest:k=1" "$B/saina" job show
ok "torn state file: sainad is killed" stop KILL
head -c -5 "$DIR/run/state" >"$DIR/torn" && cp "$DIR/torn" "$DIR/run/state"
ok "torn state file: sainad starts all the same" start
ok "torn state file: the job before the damage is there, with its policy" says 0 "fastest:k=1" "$B/saina" job show
ok "torn state file: it is kept aside" cmp "$DIR/torn" "$DIR/run/state.unreadable"
rm -f "$DIR/run/state.unreadable"
ok "torn state file: the log says so" grep -q 'makes no sense to this version: starting with the 1 jobs' "$DIR/log"
ok "SIGTERM: sainad ends with status 0" stop TERM
ok "SIGTERM: nothing is left behind" nothing_left
mkdir -m 700 "$DIR/bpf"
ok "bpffs directory: sainad starts where it exists already" start
ok "bpffs directory: sainad ends" stop TERM
ok "bpffs directory: it is left, empty" sh -c "rmdir '$DIR/bpf'"
ok "bpffs directory: nothing else is left" nothing_left
ok "--keep: sainad starts" start --keep
ok "--keep: sainad ends on SIGINT" stop INT
ok "--keep: the tc program is still on the port" sh -c "ls '$DIR'/bpf | grep -Eq '^(link|clsact)-tc-[0-9]+$'"
ok "--keep: the next sainad starts" start --keep
ok "--keep: the next sainad has the port, by the same hook" says 0 "mode tc" "$B/saina" port show p0
ok "--keep: a port is given XDP" says 0 "" "$B/saina" port set p0 hook xdp
ok "--keep: sainad ends" stop TERM
ok "--keep: the XDP program is still on the port" says 0 xdp inside ip -o link show p0
ok "--keep: the third sainad starts" start
ok "--keep: the third sainad knows which hook the port was given" says 0 "mode native hook xdp" "$B/saina" port show p0
ok "SIGHUP: sainad ends with status 0" stop HUP
ok "SIGHUP: nothing is left behind" nothing_left

# Pins of a version whose maps have another layout, and one of them another size.
other_layout() { # NUMBER- OR NOTHING
	local pin
	for pin in "$DIR"/bpf/prog-*; do
		mv "$pin" "$DIR/bpf/prog-$1${pin##*-}" || return 1
	done
	rm "$DIR/bpf/saina_gcount" &&
		bpftool map create "$DIR/bpf/saina_gcount" type percpu_array key 4 value 32000 entries 1 name saina_gcount &&
		bpftool map create "$DIR/bpf/saina_other" type array key 4 value 8 entries 1 name saina_other
}

for layout in 99- ''; do
	now="layout ${layout:+of number }${layout:-without a number}"
	now=${now%-}
	ok "$now: sainad starts" start --keep --hook xdp
	before=$(inside ip -j link show p0 | jq '.[0].xdp.prog.id')
	ok "$now: sainad ends" stop INT
	ok "$now: what is pinned becomes of another version" other_layout "$layout"
	: >"$DIR/log"
	ok "$now: sainad starts" start --hook xdp
	ok "$now: the log says why nothing is taken over" grep -q "is of another version (its maps have not layout" "$DIR/log"
	ok "$now: the log says that workers have to join again" grep -q "workers have to join again" "$DIR/log"
	ok "$now: the job is there" says 0 forming "$B/saina" job show a
	ok "$now: counters can be read" "$B/saina" stats
	ok "$now: the port has another program" not inside sh -c "ip -j link show p0 | jq -e '.[0].xdp.prog.id == $before'"
	ok "$now: sainad ends" stop TERM
	ok "$now: nothing is left behind" nothing_left
done

# The command returns when the agent is ready.
ok "--daemonize: the command returns" inside "$B/sainad" -c "$CONF" --log-level error --daemonize
ok "--daemonize: sainad answers when the command has returned" says 0 "forming" "$B/saina" job show
pid=$(pgrep -f "sainad -c $CONF --log-level error --daemonize")
ok "--daemonize: sainad ends on SIGTERM" kill -TERM "$pid"
ok "--daemonize: the process is gone" slowwait ended
pid=
ok "--daemonize: nothing is left behind" nothing_left

# A service manager's socket, and no option: the process that was started is the agent.
/usr/bin/python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.settimeout(120)
print(s.recv(64).decode())' "$DIR/notify" >"$DIR/notified" &
notified=$!
ok "foreground: a service manager can listen" slowwait test -S "$DIR/notify"
NOTIFY_SOCKET=$DIR/notify nsenter --net="/run/netns/$NS" -- "$B/sainad" -c "$CONF" 2>>"$DIR/log" &
pid=$!
wait "$notified"
ok "foreground: a service manager is told READY=1" grep -qx READY=1 "$DIR/notified"
ok "foreground: the process that was started is still there when it is ready" kill -0 "$pid"
ok "foreground: sainad logs to standard error" grep -q 'ready: bridge br0' "$DIR/log"
ok "foreground: sainad ends on SIGTERM" stop TERM
plan
