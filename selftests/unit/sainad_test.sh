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

until_true() { # SECONDS COMMAND...
	local end=$((SECONDS + $1))
	shift
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
	nsenter --net="/run/netns/$NS" -- "$B/sainad" -c "$CONF" -f --ready-fd 9 "$@" \
		9>"$DIR/ready" >>"$DIR/log" 2>&1 &
	pid=$!
	until_true 20 grep -qx ready "$DIR/ready"
}

ended() {
	not kill -0 "$pid"
}

stop() { # SIGNAL: 0 if it ends well
	local status
	kill -"$1" "$pid"
	until_true 20 ended || return 1
	wait "$pid"
	status=$?
	pid=
	[ "$1" = KILL ] || [ $status -eq 0 ]
}

nothing_left() {
	local left
	left=$(ls -d "$DIR/run" "$DIR/bpf" "$DIR/control" 2>/dev/null)
	[ -z "$left" ] || { echo "left: $left"; return 1; }
	left=$(inside ip -o link show p0 | grep -o "xdp[a-z]*")
	[ -z "$left" ] || { echo "left: $left on p0"; return 1; }
}

# --- words only --------------------------------------------------------------
conf() {
	printf '%s\n' "$@" >"$CONF"
}

ok "--version" says 0 "sainad " "$B/sainad" --version
ok "--help" says 0 "--check-config" "$B/sainad" --help
ok "an unknown option" says 2 "unrecognized" "$B/sainad" --frobnicate
ok "an argument" says 2 "takes options only" "$B/sainad" br0
ok "a bad value on the command line" says 2 '"native", "generic"' "$B/sainad" --xdp fast
ok "a descriptor that is not open" says 2 "no open file descriptor" "$B/sainad" --ready-fd 77
ok "a configuration that is not there" says 2 "$DIR/none.conf" "$B/sainad" -c "$DIR/none.conf"
ok "the example is right" says 0 right "$B/sainad" --check-config -c "$top/userland/agent/sainad.conf"
conf 'bridge = "br0";' 'bridge_typ = "ovs";'
ok "an unknown key" says 2 "$CONF:2: 'bridge_typ' is unknown" "$B/sainad" --check-config -c "$CONF"
conf '' '' 'jobs = ( { name = "a"; elements = 10; workers = 2; policy = "fastest:k=3"; } );'
ok "a job that cannot be" says 2 "$CONF:3: policy: 'k=3': must be 1..2" \
	"$B/sainad" --check-config -c "$CONF"
conf 'limits = { memory_job = 1000000; memory = 1000000; };' \
	'jobs = ( { name = "a"; elements = 1000000; workers = 2; } );'
ok "a job beyond the limit" says 2 "$CONF:2: the job needs" "$B/sainad" --check-config -c "$CONF"
conf '' 'limits = { memory_job = 2000000; memory = 1000000; };'
ok "limits that cannot be" says 2 "$CONF:2: limits: " "$B/sainad" --check-config -c "$CONF"

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

ok "the kernel takes the program" says 0 "does without saina.ko" "$B/sainad" --check-program -c "$CONF"
ok "or says why not" says 1 "cannot read the BPF object" "$B/sainad" --check-program -c "$CONF" --object /nonexistent.o
ok "a bridge without an address" says 1 "ip address add" inside "$B/sainad" -f -c "$CONF"
ok "nothing is left behind by that" nothing_left
inside ip address add 192.0.2.1/24 dev br0
inside ip address add 192.0.2.2/24 dev br0
ok "a bridge that is not there" says 1 "no bridge 'br7'" inside "$B/sainad" -f -c "$CONF" --bridge br7
ok "a port is no bridge" says 1 "is no Linux bridge" inside "$B/sainad" -f -c "$CONF" --bridge p0
ok "no Open vSwitch" says 1 "is Open vSwitch running" \
	inside "$B/sainad" -f -c "$CONF" --bridge-type ovs
ok "an address that is not the bridge's" says 1 "does not have this address" \
	inside "$B/sainad" -f -c "$CONF" --address 192.0.2.77
ok "a group that is not there" says 1 "no group 'nosuchgroup'" \
	inside "$B/sainad" -f -c "$CONF" --admin-group nosuchgroup
ok "an object that is not there" says 1 "/nonexistent.o" \
	inside "$B/sainad" -f -c "$CONF" --object /nonexistent.o
ok "nothing is left behind by those" nothing_left

ok "it says when it is ready" start
ok "the bridge's port is attached, the bridge is not" says 0 "1 p0" \
	sh -c "'$B/saina' -j port show | jq -r 'length, .[].port' | xargs"
ok "a second one in the directory" says 1 "another sainad runs in $DIR/run" \
	inside "$B/sainad" -f -c "$CONF"
ok "a second one at the socket" says 1 "somebody else listens at" \
	inside "$B/sainad" -f -c "$CONF" --runtime-dir "$DIR/run2" --bpffs "$DIR/bpf2" --address 192.0.2.2
ok "the first one was not disturbed" says 0 sesame "$B/saina" job show
ok "anybody may look" says 0 "forming" as_nobody "" "$B/saina" job show
ok "but not at tokens" says 1 "" sh -c "setpriv --reuid 65534 --regid 65534 --clear-groups '$B/saina' job show | grep sesame"
ok "nor change anything" says 1 "root and the group games" as_nobody "" "$B/saina" job del a
ok "the group may" as_nobody "$games" "$B/saina" job set a policy fastest:k=1
ok "and sees tokens" says 0 sesame as_nobody "$games" "$B/saina" job show
ok "killed, it leaves the data path" stop KILL
ok "the next one takes over" start
ok "with what was set" says 0 "fastest:k=1" "$B/saina" job show
ok "it ends on SIGTERM" stop TERM
ok "and leaves nothing" nothing_left
mkdir -m 700 "$DIR/bpf"
ok "it starts where the directory is there already" start
ok "it ends" stop TERM
ok "and leaves the directory, empty" sh -c "rmdir '$DIR/bpf'"
ok "and nothing else" nothing_left
ok "it starts anew" start --keep
ok "it ends on SIGINT, keeping" stop INT
ok "the program is still there" says 0 xdp inside ip -o link show p0
ok "the next one takes over again" start
ok "the terminal goes: it ends" stop HUP
ok "nothing is left now" nothing_left

# In the background: the command returns when the agent is ready.
ok "to the background" inside "$B/sainad" -c "$CONF" --log-level error
ok "it answers at once" says 0 "forming" "$B/saina" job show
pid=$(pgrep -f "sainad -c $CONF --log-level error")
ok "it ends" kill -TERM "$pid"
ok "it is gone" until_true 20 ended
pid=
ok "and has left nothing" nothing_left
plan
