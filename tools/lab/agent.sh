# shellcheck shell=bash disable=SC2015,SC2034,SC2153
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The lab's sainad: its configuration, start and end.  Sourced by tools/saina-lab.

agent_config_write() {
	cat >"$LAB_DIR/sainad.conf" <<-TXT
		bridge = "br0";
		bridge_type = "$LAB_BRIDGE";
		address = "$LAB_NET.1";
		ovsdb = "$LAB_DIR/db.sock";
		control = "$LAB_DIR/control";
		runtime_dir = "$LAB_DIR/run";
		bpffs = "$LAB_DIR/bpf";
		object = "$LAB_OBJECT";
		hook = "$LAB_HOOK";
	TXT
	[ -z "$opt_config" ] || cat "$opt_config" >>"$LAB_DIR/sainad.conf"
}

agent_pid() {
	local pid start
	read -r pid start 2>/dev/null <"$LAB_DIR/sainad.pid" || return 1
	[ "$(proc_start "$pid")" = "$start" ] || return 1
	echo "$pid"
}

agent_status() {
	local pid
	pid=$(agent_pid) && echo "running ($pid)" || echo "not running"
}

# agent_start [OPTIONS OF SAINAD]: returns when it is ready.
agent_start() {
	local fifo=$LAB_DIR/ready pid answer
	! agent_pid >/dev/null || die "the agent of lab $LAB_NAME is running already (process $(agent_pid))"
	[ -x "$LAB_BIN/sainad" ] || die "there is no $LAB_BIN/sainad: run make first"
	# Its own bpffs, so that pins are removed with the lab.
	mkdir -p "$LAB_DIR/bpf" "$LAB_DIR/run"
	mountpoint -q "$LAB_DIR/bpf" || mount -t bpf saina-lab "$LAB_DIR/bpf" || die "cannot mount a bpffs on $LAB_DIR/bpf"
	rm -f "$fifo"
	mkfifo "$fifo"
	exec 9<>"$fifo"
	setsid nsenter --net="/run/netns/$LAB_SW" -- "$LAB_BIN/sainad" -c "$LAB_DIR/sainad.conf" \
		--ready-fd 9 "$@" >>"$LAB_DIR/sainad.log" 2>&1 </dev/null &
	pid=$!
	echo "$pid $(proc_start "$pid")" >"$LAB_DIR/sainad.pid"
	# Polled, because an agent that dies writes nothing.
	agent_answer=
	until_true 30 agent_ready_or_dead "$pid" || true
	answer=$agent_answer
	exec 9>&-
	rm -f "$fifo"
	[ "$answer" = ready ] && return 0
	# The agent may be gone already, which must not end this script (set -e).
	kill -KILL "$pid" 2>/dev/null || true
	tail -n 5 "$LAB_DIR/sainad.log" >&2
	die "sainad did not start: the end of its log is above"
}

agent_ready_or_dead() {
	local part='' status=0
	# The read may time out in the middle of the word.
	timed_read -r -t 0.05 -u 9 part || status=$?
	agent_answer+=$part
	[ $status = 0 ] || pid_gone "$1"
}

lab_agent() {
	local verb=${1-} pid
	[ $# -eq 0 ] || shift
	case $verb in
	start)	agent_start "$@" ;;
	status)	agent_status ;;
	stop|kill)
		[ $# -eq 0 ] || usage_error "agent $verb takes no options: \"$*\" (--keep is an option of agent start)"
		pid=$(agent_pid) || die "the agent of lab $LAB_NAME is not running"
		if [ "$verb" = kill ]; then
			kill -KILL "$pid"
		else
			kill -TERM "$pid"
		fi
		until_true 20 pid_gone "$pid" || die "sainad (process $pid) has not ended within $((20 * SLOW)) s"
		rm -f "$LAB_DIR/sainad.pid" ;;
	*)	usage_error "agent: \"$verb\" is none of: start stop kill status" ;;
	esac
}

agent_undo() {
	local pid
	pid=$(agent_pid) && stop_pid "$pid" 10
	if mountpoint -q "$LAB_DIR/bpf"; then
		# Pins are unlinked one by one: copies of the mount may outlive this one.
		find "$LAB_DIR/bpf" -mindepth 1 -depth ! -name "*.debug" -delete
		umount "$LAB_DIR/bpf"
	fi
	return 0
}
