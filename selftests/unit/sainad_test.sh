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
WORK=$(mktemp -d)
chmod 755 "$WORK"
CONF=$WORK/sainad.conf
# shellcheck source=../tap.sh
. "$top/selftests/tap.sh"
pid=
holder=	# another process that must not outlive the test

undo() {
	[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null
	[ -z "$holder" ] || kill "$holder" 2>/dev/null
	umount "$WORK/bpf" "$WORK/bpf2" 2>/dev/null
	ip netns del "$NS" 2>/dev/null
	rm -rf "$WORK"
}
trap undo EXIT
trap 'exit 1' INT TERM

# exits_with STATUS WORDS COMMAND...: the command exits with STATUS, and WORDS are in its output
exits_with() {
	local status=$1 words=$2 out
	shift 2
	out=$("$@" 2>&1)
	set -- "$?" "$out"
	[ "$1" -eq "$status" ] && [[ $2 == *"$words"* ]] && return
	echo "status $1, wanted $status; said: $2"
	return 1
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

in_ns() {
	nsenter --net="/run/netns/$NS" -- "$@"
}

start() { # OPTIONS...: starts sainad in the background, and waits until it is ready; sets pid
	rm -f "$WORK/ready"
	# Not by in_ns(): $! would be the process id of a shell around it.
	nsenter --net="/run/netns/$NS" -- "$B/sainad" -c "$CONF" --ready-fd 9 "$@" \
		9>"$WORK/ready" >>"$WORK/log" 2>&1 &
	pid=$!
	slowwait 120 grep -qx ready "$WORK/ready"
}

# A zombie has ended: the process that adopts a daemon need not reap it.
ended() {
	! kill -0 "$pid" || grep -q '^State:.*zombie' "/proc/$pid/status"
}

stop() { # SIGNAL: sends it; succeeds if sainad ends with status 0, or by SIGKILL
	local status
	kill -"$1" "$pid"
	slowwait 120 ended || return 1
	wait "$pid"
	status=$?
	pid=
	[ "$1" = KILL ] || [ $status -eq 0 ]
}

nothing_left() {
	local left
	left=$(ls -d "$WORK/run" "$WORK/bpf" "$WORK/control" 2>/dev/null)
	[ -z "$left" ] || { echo "left: $left"; return 1; }
	left=$(in_ns ip -o link show p0 | grep -o "xdp[a-z]*"; in_ns ip -o link show type ifb)
	[ -z "$left" ] || { echo "left: $left"; return 1; }
}

# --- options and configuration, without a bridge ------------------------------
conf() {
	printf '%s\n' "$@" >"$CONF"
}

check "--version prints name and version" exits_with 0 "sainad " "$B/sainad" --version
check "--help lists the options" exits_with 0 "--check-config" "$B/sainad" --help
check "an unknown option is refused with status 2" exits_with 2 "unrecognized" "$B/sainad" --frobnicate
check "an argument is refused with status 2" exits_with 2 "takes options only" "$B/sainad" br0
check "a bad value of an option is refused, with those allowed" exits_with 2 '"auto", "xdp", "generic", "tc"' "$B/sainad" --hook fast
check "--ready-fd: a descriptor that is not open is refused" exits_with 2 "not an open file descriptor" "$B/sainad" --ready-fd 77
check "a configuration file that does not exist is refused by its name" exits_with 2 "$WORK/none.conf" "$B/sainad" -c "$WORK/none.conf"
check "--check-config: the example configuration is valid" exits_with 0 valid "$B/sainad" --check-config -c "$top/userland/agent/sainad.conf"
sed 's/^#\([^ ]\)/\1/' "$top/userland/agent/sainad.conf" >"$CONF"
check "--check-config: the example configuration is valid with its job" sh -c "grep -q '^jobs = (' '$CONF' && '$B/sainad' --check-config -c '$CONF'"
conf 'bridge = "br0";' 'bridge_typ = "ovs";'
check "--check-config: an unknown key is refused with file and line" exits_with 2 "$CONF:2: 'bridge_typ' is unknown" "$B/sainad" --check-config -c "$CONF"
conf '' '' 'jobs = ( { name = "a"; elements = 10; workers = 2; policy = "fastest:k=3"; } );'
check "--check-config: a job with a k above its workers is refused with file and line" exits_with 2 "$CONF:3: policy: 'k=3': must be 1..2" \
	"$B/sainad" --check-config -c "$CONF"
conf 'limits = { memory_job = 1000000; memory = 1000000; };' \
	'jobs = ( { name = "a"; elements = 1000000; workers = 2; } );'
check "--check-config: a job beyond the memory limit is refused with file and line" exits_with 2 "$CONF:2: the job needs" "$B/sainad" --check-config -c "$CONF"
conf '' 'limits = { memory_job = 2000000; memory = 1000000; };'
check "--check-config: contradicting limits are refused with file and line" exits_with 2 "$CONF:2: limits: " "$B/sainad" --check-config -c "$CONF"

# --- a bridge ----------------------------------------------------------------
ip netns add "$NS" || exit 1
in_ns sh -e <<'SH' || exit 1
ip link set lo up
ip link add br0 type bridge
ip link set br0 up
ip link add p0 type veth peer name p1
ip link set p0 master br0 up
ip link set p1 up
SH
conf 'bridge = "br0";' "control = \"$WORK/control\";" "runtime_dir = \"$WORK/run\";" \
	"bpffs = \"$WORK/bpf\";" 'ovsdb = "/nonexistent/db.sock";' 'admin_group = "games";' \
	'jobs = ( { name = "a"; elements = 5000; workers = 2; token = "sesame"; } );'
games=$(getent group games | cut -d: -f3)
export SAINA_CONTROL=$WORK/control

check "--check-program: the kernel accepts the XDP program" exits_with 0 "does without saina.ko" "$B/sainad" --check-program -c "$CONF"
check "--check-program: an object that cannot be read is refused" exits_with 1 "cannot read the BPF object" "$B/sainad" --check-program -c "$CONF" --object /nonexistent.o
check "start: a bridge without an address is refused, with the remedy" exits_with 1 "ip address add" in_ns "$B/sainad" -c "$CONF"
check "start: a refused start leaves nothing behind" nothing_left
in_ns ip address add 192.0.2.1/24 dev br0
in_ns ip address add 192.0.2.2/24 dev br0
check "start: a bridge that does not exist is refused" exits_with 1 "br7: there is no such bridge here (Open vSwitch at" in_ns "$B/sainad" -c "$CONF" --bridge br7
check "start: a port is refused as a bridge" exits_with 1 "is not a Linux bridge" in_ns "$B/sainad" -c "$CONF" --bridge p0
check "start: Open vSwitch that does not run is refused, with a question" exits_with 1 "is Open vSwitch running" \
	in_ns "$B/sainad" -c "$CONF" --bridge-type ovs
check "start: an address that the host does not have is refused" exits_with 1 "does not have this address" \
	in_ns "$B/sainad" -c "$CONF" --address 192.0.2.77
nsenter --net="/run/netns/$NS" -- socat -u UDP4-RECV:48865,bind=192.0.2.1 OPEN:/dev/null &
holder=$!
udp_port_held() {
	in_ns ss -Hlun "sport = :48865" | grep -q .
}
check "start: another program holds the UDP port of workers" slowwait 60 udp_port_held
check "start: a UDP port that another program holds is refused, and no port was attached" \
	exits_with 1 "no port was attached" in_ns "$B/sainad" -c "$CONF" --log-level debug
check "start: a port was not touched before the UDP port was found held" sh -c \
	"! nsenter --net=/run/netns/$NS '$B/sainad' -c '$CONF' 2>&1 | grep 'port p0'"
kill "$holder"
wait "$holder" 2>/dev/null
holder=
check "start: a group that does not exist is refused" exits_with 1 "no group 'nosuchgroup'" \
	in_ns "$B/sainad" -c "$CONF" --admin-group nosuchgroup
check "start: an object file that does not exist is refused" exits_with 1 "/nonexistent.o" \
	in_ns "$B/sainad" -c "$CONF" --object /nonexistent.o
check "start: refused starts leave nothing behind" nothing_left

# A sainad that was killed holds the lock until it has ended.
mkdir -p "$WORK/run"
flock "$WORK/run/lock" sleep 0.7 &
check "start: sainad waits for a lock that is given up soon, and says when it is ready" start
check "start: the port of the bridge is attached, the bridge is not" exits_with 0 "1 p0" \
	sh -c "'$B/saina' -j port show | jq -r 'length, .[].port' | xargs"
equal "start: the lock has the process id" "$pid" "$(cat "$WORK/run/lock")"
check "start: a second sainad in the same directory is refused" exits_with 1 "another sainad runs in $WORK/run: stop it" \
	in_ns "$B/sainad" -c "$CONF"
check "start: a second sainad at the same socket is refused" exits_with 1 "another process listens at" \
	in_ns "$B/sainad" -c "$CONF" --runtime-dir "$WORK/run2" --bpffs "$WORK/bpf2" --address 192.0.2.2
check "start: a second sainad at the same pins is refused, with what it needs" exits_with 1 "$WORK/bpf: give this one a --bpffs of its own" \
	in_ns timeout 20 "$B/sainad" -c "$CONF" --runtime-dir "$WORK/run2" --control "$WORK/control2" --address 192.0.2.2
check "start: the first sainad still serves its job after that" exits_with 0 sesame "$B/saina" --show-tokens job show
check "access: any user may list jobs" exits_with 0 "forming" as_nobody "" "$B/saina" job show
check "access: a user who is not in the admin group sees no token" exits_with 0 "" sh -c "setpriv --reuid 65534 --regid 65534 --clear-groups '$B/saina' --show-tokens job show >'$WORK/listed' && grep -q forming '$WORK/listed' && ! grep sesame '$WORK/listed'"
check "access: a user who is not in the admin group may not delete a job" exits_with 1 "root and the group games" as_nobody "" "$B/saina" job del a
check "access: the admin group may change a job" as_nobody "$games" "$B/saina" job set a policy fastest:k=1
check "access: the admin group sees tokens" exits_with 0 sesame as_nobody "$games" "$B/saina" --show-tokens job show

# A user who may not change anything makes as many connections as users may have.
setpriv --reuid 65534 --regid 65534 --clear-groups /usr/bin/python3 -c '
import socket, sys, time
held = []
for i in range(400):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(sys.argv[1])
    held.append(s)
print("held", flush=True)
time.sleep(600)' "$WORK/control" >"$WORK/held" &
holder=$!
check "access: any user may hold connections" slowwait 120 grep -q held "$WORK/held"
check "access: root is served while another user holds all connections that there are for users" \
	exits_with 0 "forming" "$B/saina" job show
kill $holder
wait $holder 2>/dev/null
holder=

load() { # CHECK
	/usr/bin/python3 "$top/selftests/unit/control_load.py" "$1" "$pid"
}

check "load: a change is made while a long dump is on its way, and the dump says so" load dump
check "load: a port is attached between the requests of many clients" load links
check "load: dumps that nobody reads take no memory, and go on when they are read" load readers
check "load: a subscriber that does not read has a part of its notifications" load subscriber

echo "open-sesame" >"$WORK/token"
check "token-file: a job is added" "$B/saina" job add filed elements 100 workers 2 token-file "$WORK/token"
check "token-file: the job has the token of the file" exits_with 0 "token open-sesame" "$B/saina" job show filed tokens
check "token-file: a file that does not exist is refused" exits_with 2 "cannot read" \
	"$B/saina" job add other elements 100 workers 2 token-file "$WORK/none"
check "SAINA_TOKEN: a job is added" env SAINA_TOKEN=from-env "$B/saina" job add enved elements 100 workers 2
check "SAINA_TOKEN: the job has the token of the environment" exits_with 0 "token from-env" "$B/saina" job show enved tokens
check "jobs of the token tests are deleted" sh -c "'$B/saina' job del filed && '$B/saina' job del enved"
check "SIGKILL: sainad ends" stop KILL
check "SIGKILL: the next sainad starts" start
check "SIGKILL: the next sainad has the policy that was set" exits_with 0 "fastest:k=1" "$B/saina" job show
check "torn state file: sainad is killed" stop KILL
head -c -5 "$WORK/run/state" >"$WORK/torn" && cp "$WORK/torn" "$WORK/run/state"
check "torn state file: sainad starts all the same" start
check "torn state file: the job before the damage is there, with its policy" exits_with 0 "fastest:k=1" "$B/saina" job show
check "torn state file: it is kept aside" cmp "$WORK/torn" "$WORK/run/state.unreadable"
rm -f "$WORK/run/state.unreadable"
check "torn state file: the log says so" grep -q 'damaged, or of another version: starting with the 1 jobs' "$WORK/log"
check "SIGTERM: sainad ends with status 0" stop TERM
check "SIGTERM: nothing is left behind" nothing_left
mkdir -m 700 "$WORK/bpf"
check "bpffs directory: sainad starts where it exists already" start --log-level debug
check "memory of a job: sainad reads it before the first round" slowwait 120 \
	grep -q 'debug: the memory of all jobs has been read' "$WORK/log"
check "bpffs directory: sainad ends" stop TERM
check "bpffs directory: it is left, empty" sh -c "rmdir '$WORK/bpf'"
check "bpffs directory: nothing else is left" nothing_left
check "--keep: sainad starts" start --keep
check "--keep: sainad ends on SIGINT" stop INT
check "--keep: the tc program is still on the port" sh -c "ls '$WORK'/bpf | grep -Eq '^(link|clsact)-tc-[0-9]+$'"
check "--keep: the next sainad starts" start --keep
check "--keep: the next sainad has the port, by the same hook" exits_with 0 "mode tc" "$B/saina" port show p0
check "--keep: a port is given XDP" exits_with 0 "" "$B/saina" port set p0 hook xdp
check "--keep: sainad ends" stop TERM
check "--keep: the XDP program is still on the port" exits_with 0 xdp in_ns ip -o link show p0
check "--keep: the third sainad starts" start
check "--keep: the third sainad knows which hook the port was given" exits_with 0 "mode native hook xdp" "$B/saina" port show p0
check "SIGHUP: sainad ends with status 0" stop HUP
check "SIGHUP: nothing is left behind" nothing_left

# other_layout: makes the pins those of a version whose maps have another layout, one of them another
# size.
other_layout() { # NUMBER- OR NOTHING
	local pin
	for pin in "$WORK"/bpf/prog-*; do
		mv "$pin" "$WORK/bpf/prog-$1${pin##*-}" || return 1
	done
	rm "$WORK/bpf/saina_gcount" &&
		bpftool map create "$WORK/bpf/saina_gcount" type percpu_array key 4 value 32000 entries 1 name saina_gcount &&
		bpftool map create "$WORK/bpf/saina_other" type array key 4 value 8 entries 1 name saina_other
}

for layout in 99- ''; do
	now="layout ${layout:+of number }${layout:-without a number}"
	now=${now%-}
	check "$now: sainad starts" start --keep --hook xdp
	before=$(in_ns ip -j link show p0 | jq '.[0].xdp.prog.id')
	check "$now: sainad ends" stop INT
	check "$now: what is pinned becomes of another version" other_layout "$layout"
	: >"$WORK/log"
	check "$now: sainad starts" start --hook xdp
	check "$now: the log says why nothing is taken over" grep -q "is of another version (not layout" "$WORK/log"
	check "$now: the log says that workers have to join again" grep -q "workers have to join again" "$WORK/log"
	check "$now: the job is there" exits_with 0 forming "$B/saina" job show a
	check "$now: counters can be read" "$B/saina" stats
	check "$now: the port has another program" not in_ns sh -c "ip -j link show p0 | jq -e '.[0].xdp.prog.id == $before'"
	check "$now: sainad ends" stop TERM
	check "$now: nothing is left behind" nothing_left
done

# Reload, as a service manager asks for it.
reloaded() { # NUMBER of starts since the log began
	[ "$(grep -c 'info: ready: ' "$WORK/log")" -ge "$1" ]
}
: >"$WORK/log"
export NOTIFY_SOCKET=$WORK/nobody
check "reload: sainad starts" start
unset NOTIFY_SOCKET
before=$(in_ns tc filter show dev p0 ingress)
cp "$CONF" "$WORK/conf"
echo 'bridge_typ = "ovs";' >>"$CONF"
kill -HUP "$pid"
check "reload: a wrong configuration is named in the log" slowwait 120 \
	grep -q "SIGHUP: the old configuration stays in force: .*'bridge_typ' is unknown" "$WORK/log"
check "reload: with a wrong configuration sainad goes on" exits_with 0 "a: forming" "$B/saina" job show
sed 's/jobs = (/jobs = ( { name = "b"; elements = 100; workers = 1; },/' "$WORK/conf" >"$CONF"
kill -HUP "$pid"
check "reload: sainad is ready again" slowwait 120 reloaded 2
check "reload: the job that the configuration has now is there" exits_with 0 "b: forming" "$B/saina" job show b
equal "reload: the process has its name" sainad "$(cat "/proc/$pid/comm")"
check "reload: the program stayed on the port" [ "$(in_ns tc filter show dev p0 ingress)" = "$before" ]
kill -HUP "$pid"
check "reload: it works a second time" slowwait 120 reloaded 3
cp "$WORK/conf" "$CONF"
check "reload: the same process ends on SIGTERM" stop TERM
check "reload: nothing is left behind" nothing_left

# With --daemonize the command returns when the agent is ready.
check "--daemonize: the command returns" in_ns "$B/sainad" -c "$CONF" --log-level error --daemonize
check "--daemonize: sainad answers when the command has returned" exits_with 0 "forming" "$B/saina" job show
pid=$(pgrep -f "sainad -c $CONF --log-level error --daemonize")
check "--daemonize: sainad ends on SIGTERM" kill -TERM "$pid"
check "--daemonize: the process is gone" slowwait 120 ended
pid=
check "--daemonize: nothing is left behind" nothing_left

# With a service manager's socket and no option the process that was started is the agent.
/usr/bin/python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.settimeout(120)
print(s.recv(64).decode())' "$WORK/notify" >"$WORK/notified" &
notified=$!
check "foreground: a service manager can listen" slowwait 120 test -S "$WORK/notify"
NOTIFY_SOCKET=$WORK/notify nsenter --net="/run/netns/$NS" -- "$B/sainad" -c "$CONF" 2>>"$WORK/log" &
pid=$!
wait "$notified"
check "foreground: a service manager gets READY=1" grep -qx READY=1 "$WORK/notified"
check "foreground: the process that was started is still there when it is ready" kill -0 "$pid"
check "foreground: sainad logs to standard error" grep -q 'ready: bridge br0' "$WORK/log"
check "foreground: sainad ends on SIGTERM" stop TERM
plan
