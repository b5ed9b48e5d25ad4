#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The saina tool against a real sainad on a Linux bridge with two workers:
#
#     saina-*-sw: sainad, br0 10.190.0.1, ports p0 p1      w0, w1: eth0
#
# What it shows is compared with expected JSON, refusals with their sentences.

# shellcheck source=../net/lib.sh
. "$(dirname "$0")/../net/lib.sh"

expected_log='worker 1 \(slow\) is dead'
lab_up --workers 2 --bridge linux --hook xdp

# says DESCRIPTION STATUS SENTENCE(ERE) WORD...: how a command ends and what it says.
# SENTENCE names the fault, not the attribute alone.
says() {
	local what=$1 status=$2 sentence=$3 got said
	shift 3
	said=$(saina "$@" 2>&1 >"$WORK/stdout")
	got=$?
	if [ "$got" = "$status" ] && [[ $said =~ ^saina:\ $sentence$ ]] && [ ! -s "$WORK/stdout" ]; then
		ok "$what"
	else
		not_ok "$what"
		diag "saina $*: status $got, said: $said"
		diag "expected status $status, matching: $sentence"
	fi
}

# json DESCRIPTION EXPECTED FILTER WORD...
json() {
	local what=$1 expected=$2 filter=$3
	shift 3
	equal "$what" "$(jq -Sc . <<<"$expected")" "$(saina -j "$@" | jq -Sc "$filter")"
}

silent() { # DESCRIPTION WORD...: succeeds and says nothing
	local what=$1 said
	shift
	said=$(saina "$@" 2>&1)
	equal "$what" "0:" "$?:$said"
}

# --- jobs ------------------------------------------------------------------------

json "job show, JSON: no job is an empty list" '[]' . job show
equal "job show, text: no job is a sentence with what to do" "no jobs (make one: saina job add NAME elements N workers N)" "$(saina job show)"

digits='{"id":5,"name":"digits","state":"forming","round":0,"k":0,"workers":2,"active":[],
	"open_slots":0,"policy":"bsp","policy_seq":1,"policy_pending":true,"policy_active":null,
	"policy_active_seq":0,"elements":10000,"elements_auto":false,"type":"int32","payload":128,"segments":79,
	"pool":64,"ring":4,"exponent":18,"heartbeat_ms":50,"dead_ms":5000,"generation":1,
	"token":"s3cret","policy_mix":0,"policy_next":null,
	"k_set":null,"controller":false,"sfcd":null}'
json "job add shows the job it made" "[$digits]" '[.[]|del(.memory)]' \
	job add digits elements 10000 workers 2 id 5 payload 128 pool 64 ring 4 policy bsp \
	token s3cret exponent 18 heartbeat 50 dead 5000
json "job show lists all jobs" "[$digits]" '[.[]|del(.memory)]' job show
json "job show: a job is found by its name" "[$digits]" '[.[]|del(.memory)]' job show digits
json "job show: a job is found by its number, with abbreviated words" "[$digits]" '[.[]|del(.memory)]' j s 5
check "job show: the memory of a job holds its slots" test "$(job_field digits memory)" -ge $((79 * 5 * 128 * 4))
equal "limits show: the jobs and the memory in use are shown" "1 $(job_field digits memory)" \
	"$(saina_jq limits show '.[0]|"\(.jobs_used) \(.memory_used)"')"
equal "job show: the token is not shown to other users" null \
	"$(setpriv --reuid=65534 --regid=65534 --clear-groups "$B/saina" -j job show digits 2>/dev/null | jq '.[0].token' || true)"

json "job add: a job of auto elements has none yet" '[[null,true,0,0,256]]' \
	'[.[]|[.elements,.elements_auto,.segments,.memory,.pool]]' job add later elements auto workers 2
equal "job show, text: a job of auto elements says so" " elements auto type int32 " "$(saina job show later | grep -o " elements auto type int32 ")"
check "job del: a job of auto elements can be deleted" saina job del later
says "job add: a name that is taken is refused" 1 '.*exists already.* \(attribute "name"\)' job add digits elements 1 workers 1
says "job add: a number that is taken is refused" 1 'id: number 5 .*\(attribute "id"\)' job add other elements 1 workers 1 id 5
says "job add: a name of digits is refused" 1 '.*all digits.*\(attribute "name"\)' job add 77 elements 1 workers 1
says "job add: a name with a blank is refused" 1 '.*only letters.*\(attribute "name"\)' job add 'a b' elements 1 workers 1
says "job add: an unknown policy is refused" 2 ".*policy: 'frob' is unknown; known are bsp, .*" job add x elements 1 workers 1 policy frob
says "job add: a k above the workers is refused" 1 '.*k=3.* 1\.\.2.*\(attribute "policy"\)' job add x elements 1 workers 2 policy fastest:k=3
says "job add: a payload that is not offered is refused" 1 '.*100.*\(attribute "payload"\)' job add x elements 1 workers 1 payload 100
says "job add: a pool that is no power of two is refused" 1 '.*power of two.*\(attribute "pool"\)' job add x elements 1 workers 1 pool 3
says "job add: a ring that is too large is refused" 1 '.*2\.\.64.*\(attribute "ring"\)' job add x elements 1 workers 1 ring 128
says "job add: a dead-ms below the heartbeat is refused" 1 '.*more than the heartbeat of 500 ms.*\(attribute "dead-ms"\)' \
	job add x elements 1 workers 1 heartbeat 500 dead 400
says "job add: a type that needs saina.ko is refused" 1 '.*need saina.ko.*\(attribute "elem-type"\)' job add x elements 1 workers 1 type float32
says "job add: too many segments are refused" 1 '.*a larger payload.*\(attribute "elements"\)' \
	job add x elements 18446744073709551615 workers 1
says "job show: an unknown name is refused" 1 ".*no job '?nosuch.*" job show nosuch
says "job del: an unknown name is refused" 1 ".*no job '?nosuch.*" job del nosuch
says "job set: an unknown number is refused" 1 '.*no job.*9.*' job set 9 policy bsp
says "job set: state running is refused without workers" 1 '.*no live worker.*\(attribute "state"\)' job set digits state running
json "job show: refused commands have changed nothing" '["digits"]' '[.[].name]' job show

silent "job set: a policy is accepted" job set digits policy fastest:k=1,late=drop
json "job show: the policy that was set is shown in its canonical form" '["fastest:k=1,late=drop",2,true]' \
	'.[0]|[.policy,.policy_seq,.policy_pending]' job show digits
silent "job set: token, heartbeat and dead are accepted" job set digits token '' heartbeat 60 dead 6000
json "job show: the heartbeat and dead-ms that were set are shown" '[60,6000]' '.[0]|[.heartbeat_ms,.dead_ms]' job show digits
silent "job set: state stopped is accepted" job set digits state stopped
equal "job show: the job is stopped" stopped "$(job_field digits state)"
silent "job set: state forming is accepted" job set digits state forming
silent "job set: policy bsp is accepted" job set digits policy bsp

# --- limits ----------------------------------------------------------------------

json "limits show: the defaults are shown" '[256,true]' '.[0]|[.jobs,.memory>=.memory_job]' limits show
silent "limits set: fewer jobs and less memory are accepted" limits set jobs 1 memory-job 8M memory 16M
json "limits show: the limits that were set are shown" '[[1,8388608,16777216]]' '[.[]|[.jobs,.memory_job,.memory]]' limits show
says "job add: one job more than the limit is refused" 1 'there are 1 jobs, the limit.*' job add second elements 1 workers 1
silent "limits set: more jobs are accepted" limits set jobs 8
says "job add: more memory than a job may have is refused" 1 '.*the limit is 8 MiB a job.*\(attribute "elements"\)' job add big elements 10000000 workers 1
says "limits set: more jobs than there can be are refused" 1 '.*1\.\.256.*\(attribute "jobs"\)' limits set jobs 257
silent "limits set: more memory is accepted" limits set memory 4G memory-job 1G

# --- ports -----------------------------------------------------------------------

json "port show lists mode, driver and MTU of both ports" '[["p0","native","veth",1500,0],["p1","native","veth",1500,0]]' \
	'[.[]|[.port,.mode,.driver,.mtu,.workers]]' port show
silent "port set: the tc hook is accepted" port set p0 hook tc
json "port show: a port that was given the tc hook has it" '["p0","tc","tc"]' '.[0]|[.port,.mode,.hook]' port show p0
says "port set: a delay at a port with the tc hook is refused" 1 '.*can be delayed by XDP only.*' port set p0 delay-in 1
silent "port set: hook auto is accepted" port set p0 hook auto
json "port show: auto is tc on a veth port of a Linux bridge" '["auto","tc"]' '.[0]|[.hook,.mode]' port show p0
silent "port set: a delay at a port with hook auto is accepted" port set p0 delay-in 1
json "port show: a port with hook auto has XDP while frames are delayed" '["auto","native"]' '.[0]|[.hook,.mode]' port show p0
json "port show: the text says why the port has XDP" '"XDP because frames are delayed on purpose"' '.[0].text' port show p0
silent "port set: the delay is taken back" port set p0 delay-in 0
json "port show: the port has tc again when the delay is gone" '"tc"' '.[0].mode' port show p0
says "port set: an unknown hook is refused" 2 'port set: "ebpf" for "hook" is not allowed: it takes auto, xdp, generic, tc' \
	port set p0 hook ebpf
silent "port set: hook xdp is accepted" port set p0 hook xdp
json "port show: a port that was given XDP again has it" '["xdp","native"]' '.[0]|[.hook,.mode]' port show p0
silent "port set: faults are accepted" port set p1 loss-in 25% loss-out 0.125 delay-in 1.5 seed 7
json "port show: the faults that were set are shown" '{"loss_in":0.25,"loss_out":0.125,"delay_in_us":1500,"delay_out_us":0,"seed":7}' \
	'.[0].injected' port show p1
json "port show: a port without faults shows none" '[0,0]' '.[0].injected|[.loss_in,.delay_in_us]' port show p0
silent "port set: faults of 0 are accepted" port set p1 loss-in 0 loss-out 0 delay-in 0
says "port set: an unknown port is refused" 1 '.*no such port.*\(attribute "ifname"\)' port set nosuch loss-in 0.1
says "port show: an unknown port is refused" 1 '"nosuch" is no port of the bridge' port show nosuch

# --- workers, slots, monitor -------------------------------------------------------

events_start
job_ids[digits]=5
# Worker 1 thinks for ever: all that worker 0 sends, a whole pool, waits for it.
start 0 digits 3 --elements 10000 --name quick --window 64
start 1 digits 3 --elements 10000 --name slow --think-us 600000000
runs() {
	[ "$(job_field digits state)" = running ]
}
open_slots() { # N [older-than MS]
	[ "$(saina_jq slot show digits "${@:2}" length)" = "$1" ]
}
check "workers: the job runs when both have joined" slowwait 20 runs
check "slots: a whole pool is open" slowwait 20 open_slots 64
json "worker show lists both workers, with their ports and addresses" '[[0,"quick","alive","p0","10.190.0.10","fast"],[1,"slow","alive","p1","10.190.0.11","fast"]]' \
	'[.[]|[.worker,.name,.state,.port,.ip,.results]]' worker show digits
equal "worker show: a worker is found by its number" slow "$(saina_jq worker show digits 1 '.[0].name')"
equal "worker show: the MAC of a worker is shown" "$(mac_of 1)" "$(saina_jq worker show digits 1 '.[0].mac')"
says "worker show: an unknown worker is refused" 1 'worker 9 of job digits is not there.*' worker show digits 9
check "slot show older-than: lists slots of 100 ms and more" slowwait 20 open_slots 64 older-than 100
json "slot show: each slot waits for the slow worker" '[{"seen":[0],"missing":[{"worker":1,"name":"slow"}],"count":1,"k":2,"round":0}]' \
	'[.[]|{seen,missing,count,k,round}]|unique' slot show digits
json "slot show: segments 0 to 63 are each in their slot" true \
	'([.[].segment]|sort)==[range(64)] and all(.[];.slot==.segment)' slot show 5
matches "slot show, text: who is counted and who is missing is shown" 'digits slot 0: round 0 segment 0 has 1 of k 2 age .* seen 0
    missing 1 \(slow\)' "$(saina slot show digits)"
equal "slot show older-than: says so if no slot is that old" "no open slot is that old" "$(saina slot show digits older-than 4000000)"
json "stats show: the gradients of worker 0 are counted" 64 '.[]|select(.worker==0)|.counters.stored' stats show digits 0
matches "stats show, text: counters are shown with their meanings" 'job digits worker 0:
 +stored +64  gradients that opened a slot' "$(saina stats show digits 0)"
equal "stats show all: every counter of counters.h is there" "$(sed -n '/define SAINA_COUNTER_LIST/,/^$/p' "$TOP/uapi/saina/counters.h" | grep -c 'X(')" \
	"$(saina_jq stats show digits 0 all '.[0]|(.counters|length)+(.drops|length)')"
silent "port set: a loss of 100 % is accepted" port set p0 loss-in 100%
lost() {
	[ "$(saina -j stats drops global | jq '.[0].drops["injected-in"] // 0')" -gt 0 ]
}
check "stats drops: lost frames are counted" slowwait 20 lost
silent "port set: a loss of 0 is accepted" port set p0 loss-in 0
# Alive it would notice, and join again.
disown "${worker_pids[1]}"
kill -KILL "${worker_pids[1]}"
unset 'worker_pids[1]'
silent "worker set: state dead is accepted" worker set digits 1 state dead
check "worker show: the worker is dead" slowwait 10 worker_state_is digits 1 dead
check "workers: the other worker ends without the dead one" slowwait 60 worker_ended 0
check "monitor: worker-dead is sent when a worker is declared dead" slowwait 10 event_seen '.event=="worker-dead" and .worker==1'
check "monitor: worker-left is sent when a worker leaves" slowwait 10 event_seen '.event=="worker-left" and .worker==0'
silent "limits set: 9 jobs are accepted" limits set jobs 9
check "monitor: limits-changed is sent after limits are set" slowwait 10 event_seen '.event=="limits-changed"'
equal "monitor: limits-changed has all limits" '[9,1073741824,4294967296,1,"agent"]' "$(
	events 'select(.event=="limits-changed")|[.jobs,.memory_job,.memory,.jobs_used,.plane]|@json')"
silent "job set: a token is accepted" job set digits token new
check "monitor: job-changed is sent after a job is changed" slowwait 10 event_seen '.event=="job-changed" and .name=="digits"'
silent "policy set: one is set from round 500 on" policy set digits fastest:k=1 from 500
check "monitor: job-changed has the policy that waits, and for what" slowwait 10 event_seen \
	'.event=="job-changed" and .name=="digits" and .policy_next.policy=="fastest:k=1" and .policy_next.from==500'
silent "policy cancel: it is taken back" policy cancel digits
event_mark
silent "job set: another token is accepted" job set digits token newer
check "monitor: job-changed has no policy that waits after it was taken back" slowwait 10 event_seen \
	'.event=="job-changed" and .name=="digits" and .policy_next==null'
silent "job del: the job is deleted" job del digits
check "monitor: job-deleted is sent after a job is deleted" slowwait 10 event_seen '.event=="job-deleted" and .name=="digits"'
check "monitor: ends with status 0 on SIGTERM" events_stop
equal "monitor: the events of the workers have the right order" "joined joined dead left" "$(
	events 'select(.event|IN("worker-joined","worker-dead","worker-left"))|.event|ltrimstr("worker-")' |
	xargs)"
check "monitor: every line is a JSON object with a time" \
	jq -se 'length > 5 and all(.[]; type == "object" and .event and (.time | length) > 20)' "$WORK/events"

# --- completion --------------------------------------------------------------------

# completes WORD...: what TAB offers for the last word
completes() {
	(
		# shellcheck source=../../tools/completion/saina.bash
		. "$TOP/tools/completion/saina.bash"
		COMP_WORDS=("$B/saina" "$@")
		COMP_CWORD=$#
		_saina
		echo "${COMPREPLY[*]}"
	)
}

job alpha elements 100 workers 2
job beta elements 100 workers 2
equal "completion: offers objects" "slot stats" "$(completes s)"
equal "completion: offers commands" "show set" "$(completes job s)"
equal "completion: offers the names of jobs" "alpha beta" "$(completes job del '')"
equal "completion: offers the names of jobs behind -s" "beta" "$(completes -s "$SAINA_CONTROL" job show b)"
equal "completion: offers the names of jobs behind -n" "beta" "$(completes -n "/proc/self/ns/net" job show b)"
equal "completion: offers the names of jobs to monitor arrivals" "alpha beta" "$(completes monitor arrivals '')"
equal "completion: offers keys" "payload pool policy" "$(completes job add new p)"
equal "completion: offers only keys that are not given yet" "pool policy" "$(completes job add new payload 64 p)"
equal "completion: offers the names of ports" "p0 p1" "$(completes port set '')"
equal "completion: offers the values of a key that has words" "running" "$(completes job set alpha state r)"
equal "completion: offers nothing for a number" "" "$(completes job add new workers '')"
equal "completion: offers auto for elements" "auto" "$(completes job add new elements '')"

# --- doctor ------------------------------------------------------------------------

# Asks the doctor in the switch's namespace (and with its bpf file system).
doctor() {
	nsenter --net="/run/netns/saina-$LAB-sw" "$B/saina" "$@"
}

verdict() { # CHECK [WORD...]: the worst of that check
	local c=$1
	shift
	doctor -j doctor host config "/run/saina-lab/$LAB/sainad.conf" "$@" |
		jq -r "[.[]|select(.check==\"$c\").status]|(if any(.==\"FAIL\") then \"FAIL\" elif any(.==\"warn\") then \"warn\" else .[0] end)"
}

doctor -j doctor host config "/run/saina-lab/$LAB/sainad.conf" >"$WORK/doctor"
equal "doctor: ends with status 0 on a good host" 0 $?
equal "doctor: no check fails or warns on a good host" "" \
	"$(jq -r '.[]|select(.status=="FAIL" or .status=="warn")|select(.check|IN("btf","rmem","firewall","bpf-jit")|not)|.check+": "+.found' "$WORK/doctor")"
equal "doctor: every check is in the report" "" "$(
	for c in config kernel btf clock privileges bpf bpffs control-plane firewall bridge snooping \
		port-hook port-redirect address udp-port rmem; do
		jq -e --arg c "$c" 'any(.[]; .check == $c)' "$WORK/doctor" >/dev/null || echo "$c"
	done)"
equal "doctor: every failure and warning has a remedy" "" \
	"$(doctor -j doctor host bridge nosuch | jq -r '.[]|select((.status=="FAIL" or .status=="warn") and .fix==null)|.check')"
doctor doctor host bridge nosuch >"$WORK/said"
equal "doctor: ends with status 1 for a bridge that does not exist" 1 $?
matches "doctor: says how to make a bridge" 'FAIL bridge +there is no interface nosuch
 +-> make it \(ip link add br0 type bridge' "$(cat "$WORK/said")"
# In a /proc/sys/net/core of its own: the host's setting stays as it is.
with_rmem() { # RMEM_MAX
	# shellcheck disable=SC2016
	nsenter --net="/run/netns/saina-$LAB-sw" unshare -m sh -c 'mount -t tmpfs none /proc/sys/net/core &&
		echo "$1" >/proc/sys/net/core/rmem_max && exec "$2" doctor host config "$3"' \
		- "$1" "$B/saina" "/run/saina-lab/$LAB/sainad.conf" | grep -A1 ' rmem ' | tr '\n' ' '
}
saina job add widest elements 100000 workers 2 pool 1024 >/dev/null
said=$(with_rmem 212992)
matches "doctor: warns of receive buffers that a full window does not fit, and says the size that it takes" \
	'warn +rmem +net.core.rmem_max is 212992: a full window of results of widest takes ([0-9]+) .*-> sysctl -w net.core.rmem_max=[0-9]+ ' "$said"
wanted=${BASH_REMATCH[1]:-1}
matches "doctor: receive buffers of the size it asked for are ok" 'ok +rmem ' "$(with_rmem "$wanted")"
matches "doctor: receive buffers a byte smaller are not" 'warn +rmem ' "$(with_rmem $((wanted - 1)))"
saina job del widest
in_worker 0 ethtool -K eth0 gro off
equal "doctor: warns of a port whose other end has no NAPI" warn "$(verdict port-redirect)"
matches "doctor: names a stock container behind a port with XDP, and gives the port hook auto" \
	'warn +port-redirect +p0: stock container \(GRO is off at its end\): XDP redirects do not reach it.*-> .*saina port set p0 hook auto' \
	"$(doctor doctor host config "/run/saina-lab/$LAB/sainad.conf" | tr '\n' ' ')"
matches "doctor worker: warns of a missing NAPI" 'warn napi' "$(in_worker 0 "$B/saina" doctor worker to "$AGG")"
matches "doctor worker: in a stock container, without CAP_NET_ADMIN, asks nothing of it" \
	'ok +napi +eth0: stock container \(GRO is off, no CAP_NET_ADMIN\)[^>]*-> see on the host .*hook tc' \
	"$(in_worker 0 setpriv --bounding-set=-net_admin "$B/saina" doctor worker to "$AGG" | tr '\n' ' ')"
saina port set p0 hook tc
matches "doctor: a port with hook tc before a stock container is ok" \
	'ok +port-redirect +p0: stock container \(GRO is off at its end\): XDP redirects would not reach it, hook tc does' \
	"$(doctor doctor host config "/run/saina-lab/$LAB/sainad.conf" | tr '\n' ' ')"
saina port set p0 hook xdp
in_worker 0 ethtool -K eth0 gro on
equal "doctor: a port whose other end has GRO is ok" ok "$(verdict port-redirect)"
saina port set p0 hook tc
equal "doctor: a port with the tc hook is ok" ok \
	"$(doctor -j doctor host config "/run/saina-lab/$LAB/sainad.conf" | jq -r '.[]|select(.check=="port-hook" and (.found|startswith("p0: attached, tc")))|.status')"
equal "doctor: nothing is asked of the other end of a port with the tc hook" 1 \
	"$(doctor -j doctor host config "/run/saina-lab/$LAB/sainad.conf" | jq '[.[]|select(.check=="port-redirect")]|length')"
saina port set p0 hook xdp
in_switch ip link set p0 mtu 500
equal "doctor: fails for an MTU too small for the jobs" FAIL "$(verdict port-mtu)"
in_switch ip link set p0 mtu 1500
addr=$(ip -n "saina-$LAB-sw" -o -4 addr show br0 | awk '{ print $4 }')
in_switch ip addr del "$addr" dev br0
equal "doctor: fails for a bridge without an address" FAIL "$(verdict address)"
in_switch ip addr add "$addr" dev br0
equal "doctor: fails for a wrong configuration file" FAIL "$(
	echo 'bridge = ' >"$WORK/bad.conf"
	doctor -j doctor host config "$WORK/bad.conf" | jq -r '.[]|select(.check=="config").status')"
equal "doctor: fails for an OVSDB that does not answer" FAIL "$(
	in_switch ip link add fake0 type veth peer name fake1
	doctor -j doctor host bridge fake0 ovsdb "$WORK/nothing" | jq -r '.[]|select(.check=="ovsdb").status'
	in_switch ip link del fake0)"
equal "doctor: warns of a missing control plane" warn "$(SAINA_CONTROL=$WORK/nothing verdict control-plane)"
check "doctor worker: ends with status 0 where all is well" in_worker 0 "$B/saina" doctor worker to "$AGG"
equal "doctor worker: fails for an address where nobody answers" 'FAIL aggregator' \
	"$(in_worker 0 "$B/saina" doctor worker to 10.190.0.200 | grep -o 'FAIL aggregator')"
equal "doctor worker: fails without a route" 'FAIL route' "$(in_worker 0 "$B/saina" doctor worker to 203.0.113.1 | grep -o 'FAIL route')"
equal "doctor worker: fails on the switch itself" 'FAIL route' "$(in_switch "$B/saina" doctor worker to "$AGG" | grep -o 'FAIL route')"

# --- the end of the agent ------------------------------------------------------------

events_start
lab agent stop
check "monitor: ends when the agent ends" slowwait 10 pid_gone "$events_pid"
wait "$events_pid"
equal "monitor: says that the agent closed the connection" "1: closed the connection" "$?:$(grep -o ' closed the connection' "$WORK/monitor.err")"
says "job show: fails without an agent, with what to do" 1 'no control plane at .*; start sainad .*' job show
lab_down

# --- doctor on Open vSwitch ------------------------------------------------------------

vsctl() {
	ovs-vsctl --db="unix:/run/saina-lab/$LAB/db.sock" --timeout=10 "$@"
}

# The lab again, with an Open vSwitch of its own and one worker.
expected_log='nosuch0'
lab_up --workers 1 --bridge ovs
doctor -j doctor host config "/run/saina-lab/$LAB/sainad.conf" >"$WORK/doctor"
equal "doctor, OVS: ends with status 0 on a good host" 0 $?
equal "doctor, OVS: database, bridge, handlers and port are ok" "ok ok ok ok" \
	"$(jq -r '.[]|select(.check|IN("ovsdb","bridge","ovs-handlers","port-hook"))|.status' "$WORK/doctor" | xargs)"
vsctl add-port br0 nosuch0 2>/dev/null
matches "doctor, OVS: fails for a port that Open vSwitch could not open" 'FAIL port +nosuch0: Open vSwitch says: .*nosuch0' \
	"$(doctor doctor host config "/run/saina-lab/$LAB/sainad.conf")"
vsctl del-port br0 nosuch0
equal "doctor, OVS: fails for a bridge that Open vSwitch does not have" FAIL "$(verdict bridge bridge p0)"
job jumbo elements 10000 workers 1 payload 1024
equal "doctor, OVS: fails for an MTU too small for the job" FAIL "$(verdict port-mtu)"
vsctl set bridge br0 mcast_snooping_enable=true
equal "doctor, OVS: warns of multicast snooping" warn "$(verdict snooping)"
# In its place one without handler threads, as OVS is when it is started too early.
pid=$(cat "/run/saina-lab/$LAB/ovs/vswitchd.pid")
kill "$pid"
check "doctor, OVS: ovs-vswitchd ends" slowwait 10 pid_gone "$pid"
printf '#!/bin/sh\nread -r line <"%s/fifo"\n' "$WORK" >"$WORK/ovs-vswitchd"
chmod +x "$WORK/ovs-vswitchd"
mkfifo "$WORK/fifo"
"$WORK/ovs-vswitchd" "unix:/run/saina-lab/$LAB/db.sock" &
worker_pids[vswitchd]=$!
fake_is_there() {
	[ "$(cat "/proc/${worker_pids[vswitchd]}/comm")" = ovs-vswitchd ]
}
check "doctor, OVS: a daemon without handler threads replaces ovs-vswitchd" slowwait 10 fake_is_there
equal "doctor, OVS: fails for a daemon without handler threads" FAIL "$(verdict ovs-handlers)"
echo >"$WORK/fifo"
wait "${worker_pids[vswitchd]}"
unset 'worker_pids[vswitchd]'
finished
