#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The same commands give the same output, whoever has the jobs: sainad without
# saina.ko, the module with sainad beside it.  And a job for which there is no
# memory is refused alike.
#
#     switch: sainad, later with saina.ko, br0 (Linux bridge) --- w0, w1
#
# In the test VM (selftests/in-vm); TAP.
#
# 1. sainad has the jobs
# 2. The kernel has the jobs: all looks the same
# 3. A job that is too large is added while no agent runs

here=$(dirname "$(readlink -f "$0")")
module=$SAINA_TEST_MODULE
# The agent begins with the jobs, on a bridge that needs no other module.
export SAINA_TEST_BACKEND=agent SAINA_LAB_DATAPATH=netdev

# shellcheck source=../net/lib.sh
. "$here/../net/lib.sh"
backend=$AGENT_SOCKET

saina() {
	SAINA_CONTROL=$backend SAINA_CTL_SOCKET=$AGENT_SOCKET "$B/saina" -n "saina-$LAB-sw" "$@"
}

# The names in the command's JSON; all elements of an array count as one.  Never empty: a
# command that fails under both control planes must not count as the same output.
shape_of() { # COMMAND...
	local shape
	shape=$(saina_jq "$@" '[paths|map(if type == "number" then "-" else . end)|join(".")]|unique|join(" ")')
	echo "${shape:-saina $* has no output}"
}

# Values that do not depend on the moment.
values_of() {
	saina_jq job show same '.[0]|[.id,.name,.state,.k,.workers,.active,.policy,.policy_pending,.policy_active,
		.policy_active_seq,.elements,.type,.payload,.segments,.pool,.ring,.exponent,.memory,
		.heartbeat_ms,.dead_ms,.token,.policy_mix,(.sfcd.observed > 0)]|@json'
	saina_jq worker show same '[.[]|[.job,.job_id,.worker,.state,.results,.port,.ip]]|@json'
	saina_jq port show '[.[]|[.port,.mode,.driver,.mtu,.workers,.relayed]]|@json'
	saina_jq limits show '.[0]|[.jobs_used,.jobs,.memory_used,.memory,.memory_job]|@json'
}

# Slots open and are completed all the time: takes the shape of one in which a worker is missing.
slots_seen() {
	shape_of slot show same >"$WORK/slots"
	grep -q missing "$WORK/slots"
}

shapes_of() {
	local what
	for what in "job show" "job show same" "worker show" "worker show same 1" "port show" \
		"stats show same all" "stats show global all" "limits show" ; do
		# shellcheck disable=SC2086
		echo "$what: $(shape_of $what)"
	done
	echo "slot show same: $(cat "$WORK/slots")"
}

settled() { # sfcd has looked at a round, and both workers were heard
	[ "$(saina_jq job show same '.[0]|.policy_active_seq == 1 and .sfcd.observed > 0')" = true ] &&
		[ "$(saina_jq worker show same '[.[].seen_ms|numbers]|length')" = 2 ]
}

job_is() { # JOB STATE
	[ "$(job_field "$1" state)" = "$2" ]
}

# observe NAME: a job with SFCD, looked at in the middle of training
observe() {
	job same workers 2 elements 2003 id 5 policy sfcd:k0=2,sth=0.5,cth=1000 token secret
	start_all same 1000000 2 --elements 2003 --think-us 20000 --token secret --cancel
	check "$1 has the jobs: rounds flow" slowwait 100 settled
	check "$1 has the jobs: an open slot names a missing worker" slowwait 30 slots_seen
	shapes_of >"$WORK/shapes.$1"
	values_of >"$WORK/values.$1"
	equal "$1 has the jobs: every command has output" "" \
		"$(grep 'has no output$' "$WORK/shapes.$1")"
	equal "$1 has the jobs: the values of job, workers, ports and limits are shown" 4 \
		"$(grep -c '^\[.*[0-9]' "$WORK/values.$1")"
	stop_workers
	check "$1 has the jobs: all sums are exact" wait_all 60
}

# Each attribute with each wrong form, and those that only replies have: errno and guilty
# attribute of each request.
refusals() { # kernel|SOCKET
	in_switch /usr/bin/python3 - "$here/../kselftest" "$1" <<-'EOF'
		import errno, sys
		sys.path.insert(0, sys.argv[1])
		from family import NESTED, Agent, Family, Refused, Spec, attr
		f = Family() if sys.argv[2] == "kernel" else Agent(sys.argv[2])
		def tried(what, op, body):
		    try:
		        f.do(op, body)
		        print(what, "is taken")
		    except Refused as r:
		        print(what, errno.errorcode[r.errno], r.guilty or r.missing)
		for op in ("job-new", "job-set", "job-del", "job-get", "worker-set", "worker-get", "limits-set"):
		    for number, a in Spec.by_number[Spec.set_of(op)].items():
		        name = a["name"]
		        if name not in Spec.takes(op, "do"):
		            tried(f"{op} {name}", op, attr(number, bytes(4)))
		            continue
		        for length in (0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 40, 200):
		            for flag in (0, NESTED):
		                tried(f"{op} {name} {length} {flag}", op, attr(number | flag, b"\xff" * length))
		        tried(f"{op} {name} twice", op, attr(number, b"\1") * 2)
		        tried(f"{op} {name} long", op, attr(number, b"x" + bytes(60)))
		    for body in (attr(77, b""), attr(0, b""), b"\1\2", b""):
		        tried(f"{op} {body}", op, body)
		nest = Spec.number["job"]["policy"] | NESTED
		for number in range(12):
		    for length in (0, 1, 2, 4):
		        for byte in (b"\0", b"\2", b"\xff"):
		            body = attr(2, b"p\0") + attr(4, bytes([1] * 8)) + attr(5, b"\1")
		            tried(f"policy {number} {length} {byte}", "job-new",
		                  body + attr(nest, attr(number, byte * length)))
		print("all asked")
	EOF
}

# More than there is memory: one map alone would need more than the machine has.
too_large() {
	saina limits set memory-job 64G memory 128G
	saina job add huge workers 2 elements 250000000 2>&1
}

# refused_with POINT COMMAND...: because job huge has no data path
refused_with() {
	matches "$1" 'job huge: no data path: ' "$(saina "${@:2}" 2>&1)"
}

# 1. sainad has the jobs
lab_up --bridge linux --workers 2
observe agent
refused_agent=$(refusals "$AGENT_SOCKET")
matches "agent: an attribute that only replies have is refused by name" '
limits-set jobs-used EINVAL jobs-used
' "$refused_agent"
equal "agent: every request with an attribute of a wrong form is refused, a limit may be any number or none" \
	"limits-set memory 8 0 is taken limits-set b'' is taken all asked" \
	"$(grep 'is taken\|all asked' <<<"$refused_agent" | tr '\n' ' ' | sed 's/ $//')"
huge_agent=$(too_large)
equal "agent: a job that is too large for the memory is not made" 0 \
	"$(saina_jq job show '[.[]|select(.name == "huge")]|length')"
lab_down

# 2. The kernel has the jobs: all looks the same
check "saina.ko is loaded" insmod "$module"
backend=kernel
expected_log='no data path for it'
lab_up --bridge linux --workers 2
observe kernel
while IFS=: read -r -u 3 what shape; do
	equal "saina $what: the output has the same names under agent and kernel" "$shape" \
		"$(sed -n "s/^$what://p" "$WORK/shapes.kernel")"
done 3<"$WORK/shapes.agent"
equal "saina job, worker, port and limits show: the same values under agent and kernel" "$(cat "$WORK/values.agent")" "$(cat "$WORK/values.kernel")"

equal "kernel: the same is refused as by the agent, with the same errno and attribute" "" \
	"$(diff <(echo "$refused_agent") <(refusals kernel))"
huge_kernel=$(too_large)
matches "agent: a job that is too large for the memory is refused" '(Cannot allocate memory|out of memory)' "$huge_agent"
matches "kernel: a job that is too large for the memory is refused" '(Cannot allocate memory|out of memory)' "$huge_kernel"
equal "kernel: a job that is too large for the memory is not made" 0 "$(saina_jq job show '[.[]|select(.name == "huge")]|length')"

# 3. A job that is too large is added while no agent runs
check "no data path: the agent is stopped" lab agent stop
check "no data path: without an agent a job that is too large can be added to the kernel" saina job add huge workers 2 elements 250000000
check "no data path: an agent starts" lab agent start
equal "no data path: the agent stops the job" stopped "$(job_field huge state)"
matches "no data path: the job says why it is stopped" 'no data path: .*(Cannot allocate memory|out of memory)' "$(job_field huge text)"
matches "no data path: the doctor says why the job is stopped" 'FAIL.*job huge does not run: no data path' \
	"$(saina doctor 2>/dev/null | grep 'job huge')"
refused_with "no data path: worker show says why it has no workers" worker show huge 0
refused_with "no data path: worker del says why it changes nothing" worker del huge 0
matches "no data path: a worker gets the reason why the job is stopped" 'the job is stopped, because it has no data path' \
	"$(in_worker 1 "$B/saina-allreduce" --aggregator "$AGG" --job huge --worker 0 --rounds 1 2>&1)"
check "no data path: the job is set to forming again" saina job set huge state forming
check "no data path: the job is stopped again" slowwait 20 job_is huge stopped
check "no data path: the job is deleted" saina job del huge
check "the agent is stopped at the end" lab agent stop
check "saina.ko is unloaded after the agent was stopped" slowwait 20 rmmod saina
finished
