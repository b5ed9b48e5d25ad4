#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The tool beside an agent that hangs: it ends within its limit, and says what to do.
#
#     switch: saina job show --> control socket --> sainad, stopped by SIGSTOP
#
# 1. The agent is stopped: the tool waits 15 s for an answer; where the kernel has the jobs, 3 s
# 2. So many clients wait that no more can connect: the tool waits 3 s
# 3. The agent goes on, and answers

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

lab_up --workers 1
job steady workers 2 elements 1000
agent=$(lab agent status | tr -dc 0-9)

# job_show: runs saina job show; sets out, err, status, and took, the seconds that it took
job_show() {
	local began=$SECONDS
	out=$(timeout $((120 * SLOW)) "$B/saina" "${tool_opts[@]}" job show 2>"$WORK/err")
	status=$?
	took=$((SECONDS - began))
	err=$(cat "$WORK/err")
}

within() { # SECONDS: it took so long; up to twenty seconds more on a busy machine
	[ "$took" -ge $(($1 - 1)) ] && [ "$took" -le $(($1 + 20 * SLOW)) ]
}

# 1. The agent is stopped: the tool waits 15 s for an answer; where the kernel has the jobs, 3 s
kill -STOP "$agent"
job_show
silent="sainad at $AGENT_SOCKET has not answered for"
restart="If you kill sainad and start it again, its jobs continue"
if [ "$BACKEND" = kernel ]; then
	check "hung: job show ends after 3 s" within 3
	matches "hung: job show succeeds with the kernel's jobs" "^0 .*steady" "$status $out"
	matches "hung: job show says that the agent does not answer, and what to do" "note: $silent 3 s: .*$restart" "$err"
else
	check "hung: job show ends after 15 s" within 15
	equal "hung: job show fails and prints no job" "1 " "$status $out"
	matches "hung: job show says that the agent does not answer, and what to do" "^saina: $silent 15 s: .*$restart" "$err"
fi

# 2. So many clients wait that no more can connect: the tool waits 3 s
if [ "$BACKEND" != kernel ]; then
	python3 - "$AGENT_SOCKET" >"$WORK/clients" <<-'EOF' &
		import socket, sys, time
		clients = []
		try:
		    while len(clients) < 4096:
		        clients.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
		        clients[-1].settimeout(1)
		        clients[-1].connect(sys.argv[1])
		except OSError:
		    print("full", flush=True)
		time.sleep(600)
	EOF
	worker_pids[clients]=$!
	slowwait 60 grep -q full "$WORK/clients" || bail "the queue of the agent does not get full"
	job_show
	check "hung: with a full queue job show ends after 3 s" within 3
	equal "hung: with a full queue job show fails and prints no job" "1 " "$status $out"
	matches "hung: with a full queue job show says what to do" "accepted no connection for 3 s: .*$restart" "$err"
	kill "${worker_pids[clients]}"
	wait "${worker_pids[clients]}"
	unset "worker_pids[clients]"
fi

# 3. The agent goes on, and answers
kill -CONT "$agent"
equal "hung: after SIGCONT the agent answers" steady "$(job_field steady name)"
finished
