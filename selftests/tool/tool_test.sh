#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The saina tool against a real sainad on a Linux bridge with two workers:
#
#     saina-*-sw: sainad, br0 10.190.0.1, ports p0 p1      w0, w1: eth0
#
# Output is compared with the expected JSON, refusals with their sentences.
#
# 1. Jobs
# 2. Limits
# 3. Ports
# 4. Workers, slots, monitor
# 5. Completion
# 6. Doctor
# 7. The agent stops
# 8. Doctor on Open vSwitch

# shellcheck source=../net/lib.sh
. "$(dirname "$0")/../net/lib.sh"

expected_log='worker 1 \(slow\) is dead'
lab_up --workers 2 --bridge linux --hook xdp

# check_error DESCRIPTION STATUS SENTENCE(ERE) WORD...: a command fails with this status and message, and
# prints nothing else.  SENTENCE must match the reason, not only the name of the attribute.
check_error() {
	local what=$1 status=$2 sentence=$3 got output
	shift 3
	output=$(saina "$@" 2>&1 >"$WORK/stdout")
	got=$?
	if [ "$got" = "$status" ] && [[ $output =~ ^saina:\ $sentence$ ]] && [ ! -s "$WORK/stdout" ]; then
		ok "$what"
	else
		not_ok "$what"
		diag "saina $*: status $got, said: $output"
		diag "expected status $status, matching: $sentence"
	fi
}

# check_json DESCRIPTION EXPECTED FILTER WORD...: the command's JSON through jq FILTER is EXPECTED
check_json() {
	local what=$1 expected=$2 filter=$3
	shift 3
	equal "$what" "$(jq -Sc . <<<"$expected")" "$(saina -j "$@" | jq -Sc "$filter")"
}

check_silent() { # DESCRIPTION WORD...: succeeds without output
	local what=$1 output
	shift
	output=$(saina "$@" 2>&1)
	equal "$what" "0:" "$?:$output"
}

# 1. Jobs
check_json "job show, JSON: no job is an empty list" '[]' . job show
equal "job show, text: no job is a sentence with what to do" "no jobs (make one: saina job add NAME elements N workers N)" "$(saina job show)"

job_counters=$(sed -n '/SAINA_JOB_COUNTER_LIST(X)/,/^$/s/.*X([A-Z_]*,\s*\("[a-z_]*"\).*/\1:0,/p' "$TOP/uapi/saina/counters.h")
digits='{"id":5,"name":"digits","state":"forming","round":0,"k":0,"workers":2,"active":[],
	"open_slots":0,"policy":"bsp","policy_seq":1,"policy_pending":true,"policy_active":null,
	"policy_active_seq":0,"elements":10000,"elements_auto":false,"type":"int32","payload":128,"segments":79,
	"pool":64,"ring":4,"exponent":18,"heartbeat_ms":50,"dead_ms":5000,"generation":1,
	"token":"(hidden)",'$job_counters'"policy_next":null,
	"k_set":null,"controller":false,"sfcd":null}'
check_json "job add shows the job it made" "[$digits]" '[.[]|del(.memory)]' \
	job add digits elements 10000 workers 2 id 5 payload 128 pool 64 ring 4 policy bsp \
	token s3cret exponent 18 heartbeat 50 dead 5000
check_json "job show lists all jobs" "[$digits]" '[.[]|del(.memory)]' job show
check_json "job show: a job is found by its name" "[$digits]" '[.[]|del(.memory)]' job show digits
check_json "job show: a job is found by its number, with abbreviated words" "[$digits]" '[.[]|del(.memory)]' j s 5
check "job show: the memory of a job holds its slots" test "$(job_field digits memory)" -ge $((79 * 5 * 128 * 4))
equal "limits show: the jobs and the memory in use are shown" "1 $(job_field digits memory)" \
	"$(saina_jq limits show '.[0]|"\(.jobs_used) \(.memory_used)"')"
equal "job show: a token is shown to who asks for it" s3cret "$(saina -j job show digits tokens | jq -r '.[0].token')"
equal "job show: --show-tokens shows the tokens of all jobs" s3cret "$(saina -j --show-tokens job show | jq -r '.[0].token')"
matches "job show, text: a token is hidden from who does not ask" 'token \(hidden\)' "$(saina job show digits)"
equal "job show: the token is not shown to other users" null \
	"$(setpriv --reuid=65534 --regid=65534 --clear-groups "$B/saina" -j --show-tokens job show digits 2>/dev/null | jq '.[0].token' || true)"

check_json "job add: a job of auto elements has none yet" '[[null,true,0,0,256]]' \
	'[.[]|[.elements,.elements_auto,.segments,.memory,.pool]]' job add later elements auto workers 2
equal "job show, text: a job of auto elements says so" " elements auto type int32 " "$(saina job show later | grep -o " elements auto type int32 ")"
check "job del: a job of auto elements can be deleted" saina job del later
check_error "job add: a name that is taken is refused" 1 '.*exists already.* \(attribute "name"\)' job add digits elements 1 workers 1
check_error "job add: a number that is taken is refused" 1 'id: number 5 .*\(attribute "id"\)' job add other elements 1 workers 1 id 5
check_error "job add: a name of digits is refused" 1 '.*all digits.*\(attribute "name"\)' job add 77 elements 1 workers 1
check_error "job add: a name with a blank is refused" 1 '.*only letters.*\(attribute "name"\)' job add 'a b' elements 1 workers 1
check_error "job add: an unknown policy is refused" 2 ".*policy: 'frob' is unknown; known are bsp, .*" job add x elements 1 workers 1 policy frob
check_error "job add: a k above the workers is refused" 1 '.*k=3.* 1\.\.2.*\(attribute "policy"\)' job add x elements 1 workers 2 policy fastest:k=3
check_error "job add: a payload that is not offered is refused" 1 '.*100.*\(attribute "payload"\)' job add x elements 1 workers 1 payload 100
check_error "job add: a pool that is no power of two is refused" 1 '.*power of two.*\(attribute "pool"\)' job add x elements 1 workers 1 pool 3
check_error "job add: a ring that is too large is refused" 1 '.*2\.\.64.*\(attribute "ring"\)' job add x elements 1 workers 1 ring 128
check_error "job add: a dead-ms below the heartbeat is refused" 1 '.*more than the heartbeat of 500 ms.*\(attribute "dead-ms"\)' \
	job add x elements 1 workers 1 heartbeat 500 dead 400
check_error "job add: a type that needs saina.ko is refused" 1 '.*need saina.ko.*\(attribute "elem-type"\)' job add x elements 1 workers 1 type float32
check_json "job add: a segment of int16 has two elements in each word" '[["int16",128,40]]' '[.[]|[.type,.payload,.segments]]' \
	job add pairs elements 10000 workers 2 type int16 payload 128
check_error "policy set: steps of a job of int16 are refused" 1 '.*ssp needs a job of int32.*\(attribute "policy"\)' policy set pairs ssp:2
check "job del: a job of int16 can be deleted" saina job del pairs
check_error "job add: too many segments are refused" 1 '.*a larger payload.*\(attribute "elements"\)' \
	job add x elements 18446744073709551615 workers 1
check_error "job show: an unknown name is refused" 1 ".*no job '?nosuch.*" job show nosuch
check_error "job del: an unknown name is refused" 1 ".*no job '?nosuch.*" job del nosuch
check_error "job set: an unknown number is refused" 1 '.*no job.*9.*' job set 9 policy bsp
check_error "job set: state running is refused without workers" 1 '.*no live worker.*\(attribute "state"\)' job set digits state running
check_json "job show: refused commands have changed nothing" '["digits"]' '[.[].name]' job show

check_silent "job set: a policy is accepted" job set digits policy fastest:k=1,late=drop
check_json "job show: the policy that was set is shown in its canonical form" '["fastest:k=1,late=drop",2,true]' \
	'.[0]|[.policy,.policy_seq,.policy_pending]' job show digits
check_silent "job set: token, heartbeat and dead are accepted" job set digits token '' heartbeat 60 dead 6000
check_json "job show: the heartbeat and dead-ms that were set are shown" '[60,6000]' '.[0]|[.heartbeat_ms,.dead_ms]' job show digits
check_silent "job set: state stopped is accepted" job set digits state stopped
equal "job show: the job is stopped" stopped "$(job_field digits state)"
check_silent "job set: state forming is accepted" job set digits state forming
check_silent "job set: policy bsp is accepted" job set digits policy bsp

# 2. Limits
check_json "limits show: the defaults are shown" '[256,true]' '.[0]|[.jobs,.memory>=.memory_job]' limits show
check_silent "limits set: fewer jobs and less memory are accepted" limits set jobs 1 memory-job 8M memory 16M
check_json "limits show: the limits that were set are shown" '[[1,8388608,16777216]]' '[.[]|[.jobs,.memory_job,.memory]]' limits show
check_error "job add: one job more than the limit is refused" 1 'there are 1 jobs, which is the limit: .*saina limits set jobs N.*' job add second elements 1 workers 1
check_silent "limits set: more jobs are accepted" limits set jobs 8
check_error "job add: more memory than a job may have is refused" 1 '.*the limit is 8 MiB a job.*\(attribute "elements"\)' job add big elements 10000000 workers 1
check_error "limits set: more jobs than there can be are refused" 1 '.*1\.\.256.*\(attribute "jobs"\)' limits set jobs 257
check_silent "limits set: more memory is accepted" limits set memory 4G memory-job 1G

# 3. Ports
check_json "port show lists mode, driver and MTU of both ports" '[["p0","native","veth",1500,0],["p1","native","veth",1500,0]]' \
	'[.[]|[.port,.mode,.driver,.mtu,.workers]]' port show
check_silent "port set: the tc hook is accepted" port set p0 hook tc
check_json "port show: a port that was given the tc hook has it" '["p0","tc","tc"]' '.[0]|[.port,.mode,.hook]' port show p0
check_silent "port set: hook auto is accepted" port set p0 hook auto
check_json "port show: auto is tc on a veth port of a Linux bridge" '["auto","tc"]' '.[0]|[.hook,.mode]' port show p0
check_error "port set: an unknown hook is refused" 2 'port set: "ebpf" for "hook" is not allowed: must be one of auto, xdp, generic, tc' \
	port set p0 hook ebpf
check_silent "port set: hook xdp is accepted" port set p0 hook xdp
check_json "port show: a port that was given XDP again has it" '["xdp","native"]' '.[0]|[.hook,.mode]' port show p0
check_silent "port set: faults are accepted" port set p1 loss-in 25% loss-out 0.125 seed 7
check_json "port show: the faults that were set are shown" '{"loss_in":0.25,"loss_out":0.125,"seed":7}' \
	'.[0].injected' port show p1
check_json "port show: a port without faults shows none" '[0,0]' '.[0].injected|[.loss_in,.loss_out]' port show p0
check_silent "port set: faults of 0 are accepted" port set p1 loss-in 0 loss-out 0
check_error "port set: an unknown port is refused" 1 'bridge br0 has no port nosuch \(attribute "ifname"\)' port set nosuch loss-in 0.1
check_error "port show: an unknown port is refused" 1 '"nosuch" is not a port of the bridge; .*' port show nosuch

# 4. Workers, slots, monitor
events_start
job_ids[digits]=5
matches "job show, text: a forming job says who is missing, and where refusals are" '
    0 of 2 workers have joined; missing 0-1; the log of sainad says which workers were refused, and why' "$(saina job show digits)"
# Worker 1 never sends: a whole pool of gradients of worker 0 waits for it.
start 0 digits 3 --elements 10000 --name quick --window 64
start 1 digits 3 --elements 10000 --name slow --think-us 600000000
job_is_running() {
	[ "$(job_field digits state)" = running ]
}
open_slots_are() { # N [older-than MS]
	[ "$(saina_jq slot show digits "${@:2}" length)" = "$1" ]
}
check "workers: the job runs when both have joined" slowwait 20 job_is_running
equal "job show, text: a job that runs says nothing of joining" "" "$(saina job show digits | grep joined)"
matches "doctor: without root it does not blame the agent for the ports that it holds" '^skip.*48865 is in use' \
	"$(in_switch setpriv --reuid 65534 --regid 65534 --clear-groups "$B/saina" -s "$SAINA_CONTROL" doctor | grep udp-port)"
check "slots: a whole pool is open" slowwait 20 open_slots_are 64
check_json "worker show lists both workers, with their ports and addresses" '[[0,"quick","alive","p0","10.190.0.10","fast"],[1,"slow","alive","p1","10.190.0.11","fast"]]' \
	'[.[]|[.worker,.name,.state,.port,.ip,.results]]' worker show digits
equal "worker show: a worker is found by its number" slow "$(saina_jq worker show digits 1 '.[0].name')"
equal "worker show: the MAC of a worker is shown" "$(mac_of 1)" "$(saina_jq worker show digits 1 '.[0].mac')"
check_error "worker show: an unknown worker is refused" 1 'job digits has no worker 9.*' worker show digits 9
check "slot show older-than: lists slots of 100 ms and more" slowwait 20 open_slots_are 64 older-than 100
check_json "slot show: each slot waits for the slow worker" '[{"seen":[0],"missing":[{"worker":1,"name":"slow"}],"count":1,"k":2,"round":0}]' \
	'[.[]|{seen,missing,count,k,round}]|unique' slot show digits
check_json "slot show: segments 0 to 63 are each in their slot" true \
	'([.[].segment]|sort)==[range(64)] and all(.[];.slot==.segment)' slot show 5
matches "slot show, text: who is counted and who is missing is shown" 'digits slot 0: round 0 segment 0 has 1 of k 2 age .* seen 0
    missing 1 \(slow\)' "$(saina slot show digits)"
equal "slot show older-than: says so if no slot is that old" "no open slot is that old" "$(saina slot show digits older-than 4000000)"
check_json "stats show: the gradients of worker 0 are counted" 64 '.[]|select(.worker==0)|.counters.stored' stats show digits 0
matches "stats show, text: counters are shown with their meanings" 'job digits worker 0:
 +stored +64  gradients that opened a slot' "$(saina stats show digits 0)"
equal "stats show all: every counter of counters.h is there" "$(sed -n '/define SAINA_COUNTER_LIST/,/^$/p' "$TOP/uapi/saina/counters.h" | grep -c 'X(')" \
	"$(saina_jq stats show digits 0 all '.[0]|(.counters|length)+(.drops|length)')"
check_silent "port set: a loss of 100 % is accepted" port set p0 loss-in 100%
loss_is_counted() {
	[ "$(saina -j stats drops global | jq '.[0].drops["injected-in"] // 0')" -gt 0 ]
}
check "stats drops: lost frames are counted" slowwait 20 loss_is_counted
check_silent "port set: a loss of 0 is accepted" port set p0 loss-in 0
# Killed first: a live worker would notice, and join again.
disown "${worker_pids[1]}"
kill -KILL "${worker_pids[1]}"
unset 'worker_pids[1]'
check_silent "worker set: state dead is accepted" worker set digits 1 state dead
check "worker show: the worker is dead" slowwait 10 worker_state_is digits 1 dead
check "workers: the other worker ends without the dead one" slowwait 60 worker_ended 0
check "monitor: worker-dead is sent when a worker is declared dead" slowwait 10 event_seen '.event=="worker-dead" and .worker==1'
check "monitor: worker-left is sent when a worker leaves" slowwait 10 event_seen '.event=="worker-left" and .worker==0'
check_silent "limits set: 9 jobs are accepted" limits set jobs 9
check "monitor: limits-changed is sent after limits are set" slowwait 10 event_seen '.event=="limits-changed"'
equal "monitor: limits-changed has all limits" '[9,1073741824,4294967296,1,"agent"]' "$(
	events 'select(.event=="limits-changed")|[.jobs,.memory_job,.memory,.jobs_used,.backend]|@json')"
check_silent "job set: a token is accepted" job set digits token new
check "monitor: job-changed is sent after a job is changed" slowwait 10 event_seen '.event=="job-changed" and .name=="digits"'
check_silent "policy set: one is set from round 500 on" policy set digits fastest:k=1 from 500
check "monitor: job-changed has the policy that waits, and for what" slowwait 10 event_seen \
	'.event=="job-changed" and .name=="digits" and .policy_next.policy=="fastest:k=1" and .policy_next.from==500'
check_silent "policy cancel: it is taken back" policy cancel digits
event_mark
check_silent "job set: another token is accepted" job set digits token newer
check "monitor: job-changed has no policy that waits after it was taken back" slowwait 10 event_seen \
	'.event=="job-changed" and .name=="digits" and .policy_next==null'
check_silent "job del: the job is deleted" job del digits
check "monitor: job-deleted is sent after a job is deleted" slowwait 10 event_seen '.event=="job-deleted" and .name=="digits"'
check "monitor: ends with status 0 on SIGTERM" events_stop
equal "monitor: the events of the workers have the right order" "joined joined dead left" "$(
	events 'select(.event|IN("worker-joined","worker-dead","worker-left"))|.event|ltrimstr("worker-")' |
	xargs)"
check "monitor: every line is a JSON object with a time" \
	jq -se 'length > 5 and all(.[]; type == "object" and .event and (.time | length) > 20)' "$WORK/events"

# 5. Completion
# complete_line WORD...: the completions of the last word
complete_line() {
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
equal "completion: offers objects" "slot stats" "$(complete_line s)"
equal "completion: offers commands" "show set" "$(complete_line job s)"
equal "completion: offers the names of jobs" "alpha beta" "$(complete_line job del '')"
equal "completion: offers the names of jobs behind -s" "beta" "$(complete_line -s "$SAINA_CONTROL" job show b)"
equal "completion: offers the names of jobs behind -n" "beta" "$(complete_line -n "/proc/self/ns/net" job show b)"
equal "completion: offers the names of jobs to monitor arrivals" "alpha beta" "$(complete_line monitor arrivals '')"
equal "completion: offers keys" "payload pool policy parent-job parent-worker parent-token-file" "$(complete_line job add new p)"
equal "completion: offers only keys that are not given yet" "pool policy parent-job parent-worker parent-token-file" \
	"$(complete_line job add new payload 64 p)"
equal "completion: offers the names of ports" "p0 p1" "$(complete_line port set '')"
equal "completion: offers the values of a key that has words" "running" "$(complete_line job set alpha state r)"
equal "completion: offers nothing for a number" "" "$(complete_line job add new workers '')"
equal "completion: offers the settings of a policy that is begun" "fastest:k=3,lead= fastest:k=3,lead=none" \
	"$(complete_line policy set alpha fastest:k=3,le)"
equal "completion: offers the settings of a policy that bash has cut into pieces" "3,lead= 3,lead=none" \
	"$(complete_line job set alpha policy fastest : k = 3,le)"
equal "completion: offers no setting of a policy twice" "timeout:10ms,lead=none,kmin=" \
	"$(complete_line policy set alpha timeout:10ms,lead=none,k)$(complete_line policy set alpha timeout:10ms,lead=none,le)"
equal "completion: offers no lead for a policy that waits for all" "" "$(complete_line policy set alpha bsp,le)"
equal "completion: offers the keys of policy set" "from on" "$(complete_line policy set alpha bsp '')"
equal "completion: offers the keys of job set" "k" "$(complete_line job set alpha k)"
equal "completion: offers the hook of a port, and its values" "hook auto xdp generic tc" \
	"$(complete_line port set p0 h) $(complete_line port set p0 hook '')"
equal "completion: offers the tokens of a job" "tokens" "$(complete_line job show alpha '')"
equal "completion: offers auto for elements" "auto" "$(complete_line job add new elements '')"

# A job that is too large: the refusal's command fits.
saina limits set memory-job 10M
output=$(saina job add large elements 1000000 workers 2 2>&1)
matches "job add: a job too large for the memory is refused with a command" 'this fits: (saina job add large elements 1000000 workers 2 ring 2) ' "$output"
# shellcheck disable=SC2086 # its words
check "job add: the command that the refusal names fits" ${BASH_REMATCH[1]:-false}
saina job del large
saina limits set memory-job 1G

# 6. Doctor
# saina in the namespace of the switch, with its bpf file system.
sw_saina() {
	nsenter --net="/run/netns/saina-$LAB-sw" "$B/saina" "$@"
}

worst_status() { # CHECK [WORD...]: the worst result of that check
	local c=$1
	shift
	sw_saina -j doctor host config "/run/saina-lab/$LAB/sainad.conf" "$@" |
		jq -r "[.[]|select(.check==\"$c\").status]|(if any(.==\"FAIL\") then \"FAIL\" elif any(.==\"warn\") then \"warn\" else .[0] end)"
}

sw_saina -j doctor host config "/run/saina-lab/$LAB/sainad.conf" >"$WORK/doctor"
equal "doctor: ends with status 0 on a good host" 0 $?
equal "doctor: no check fails or warns on a good host" "" \
	"$(jq -r '.[]|select(.status=="FAIL" or .status=="warn")|select(.check|IN("btf","rmem","firewall","bpf-jit")|not)|.check+": "+.found' "$WORK/doctor")"
equal "doctor: every check is in the report" "" "$(
	for c in config kernel btf clock privileges bpf bpffs control-plane firewall bridge snooping \
		port-hook port-redirect address udp-port rmem; do
		jq -e --arg c "$c" 'any(.[]; .check == $c)' "$WORK/doctor" >/dev/null || echo "$c"
	done)"
equal "doctor: every failure and warning has a remedy" "" \
	"$(sw_saina -j doctor host bridge nosuch | jq -r '.[]|select((.status=="FAIL" or .status=="warn") and .fix==null)|.check')"
sw_saina doctor host bridge nosuch >"$WORK/said"
equal "doctor: ends with status 1 for a bridge that does not exist" 1 $?
matches "doctor: says how to make a bridge" 'FAIL bridge +there is no interface nosuch
 +-> create it \(ip link add nosuch type bridge' "$(cat "$WORK/said")"
# Mounts a private /proc/sys/net/core, so that the setting of the host does not change.
with_rmem() { # RMEM_MAX
	# shellcheck disable=SC2016
	nsenter --net="/run/netns/saina-$LAB-sw" unshare -m sh -c 'mount -t tmpfs none /proc/sys/net/core &&
		echo "$1" >/proc/sys/net/core/rmem_max && exec "$2" doctor host config "$3"' \
		- "$1" "$B/saina" "/run/saina-lab/$LAB/sainad.conf" | grep -A1 ' rmem ' | tr '\n' ' '
}
saina job add widest elements 100000 workers 2 pool 1024 >/dev/null
output=$(with_rmem 212992)
matches "doctor: warns of receive buffers that a full window does not fit, and says the size that it takes" \
	'warn +rmem +net.core.rmem_max is 212992: a full window of results of widest takes ([0-9]+) .*-> sysctl -w net.core.rmem_max=[0-9]+ ' "$output"
wanted=${BASH_REMATCH[1]:-1}
matches "doctor: receive buffers of the size it asked for are ok" 'ok +rmem ' "$(with_rmem "$wanted")"
matches "doctor: receive buffers a byte smaller are not" 'warn +rmem ' "$(with_rmem $((wanted - 1)))"
saina job del widest
address_reported() {
	sw_saina doctor host config "/run/saina-lab/$LAB/sainad.conf" | grep -A1 ' address '
}
in_switch ip address add 10.192.0.1/24 dev br0
in_switch ip address del 10.190.0.1/24 dev br0
matches "doctor: names the address that sainad uses and the bridge has lost" \
	'FAIL address +sainad listens at 10.190.0.1, which br0 does not have' "$(address_reported)"
in_switch ip address add 10.190.0.1/24 dev br0
matches "doctor: of several addresses it names the one that sainad uses" 'ok +address +workers use the aggregator address 10.190.0.1' "$(address_reported)"
in_switch ip address del 10.192.0.1/24 dev br0
in_worker 0 ethtool -K eth0 gro off
equal "doctor: warns of a port whose other end has no NAPI" warn "$(worst_status port-redirect)"
matches "doctor: names a stock container behind a port with XDP, and gives the port hook auto" \
	'warn +port-redirect +p0: stock container \(GRO is off at its end\): XDP redirects do not reach it.*-> .*saina port set p0 hook auto' \
	"$(sw_saina doctor host config "/run/saina-lab/$LAB/sainad.conf" | tr '\n' ' ')"
matches "doctor worker: warns of a missing NAPI" 'warn napi' "$(in_worker 0 "$B/saina" doctor worker to "$AGG")"
matches "doctor worker: in a stock container, without CAP_NET_ADMIN, asks nothing of it" \
	'ok +napi +eth0: stock container \(GRO is off, no CAP_NET_ADMIN\)[^>]*-> on the host, .*mode tc' \
	"$(in_worker 0 setpriv --bounding-set=-net_admin "$B/saina" doctor worker to "$AGG" | tr '\n' ' ')"
in_worker 1 ethtool -K eth0 gro off
equal "doctor: equal warnings of several ports are one" "p0, p1" \
	"$(sw_saina -j doctor host config "/run/saina-lab/$LAB/sainad.conf" | jq -r '.[]|select(.check=="port-redirect").found|split(":")[0]')"
in_worker 1 ethtool -K eth0 gro on
saina port set p0 hook tc
matches "doctor: a port with hook tc before a stock container is ok" \
	'ok +port-redirect +p0: stock container \(GRO is off at its end\): XDP redirects would not reach it, hook tc does' \
	"$(sw_saina doctor host config "/run/saina-lab/$LAB/sainad.conf" | tr '\n' ' ')"
saina port set p0 hook xdp
in_worker 0 ethtool -K eth0 gro on
equal "doctor: a port whose other end has GRO is ok" ok "$(worst_status port-redirect)"
saina port set p0 hook tc
equal "doctor: a port with the tc hook is ok" ok \
	"$(sw_saina -j doctor host config "/run/saina-lab/$LAB/sainad.conf" | jq -r '.[]|select(.check=="port-hook" and (.found|startswith("p0: attached, tc")))|.status')"
equal "doctor: nothing is asked of the other end of a port with the tc hook" 1 \
	"$(sw_saina -j doctor host config "/run/saina-lab/$LAB/sainad.conf" | jq '[.[]|select(.check=="port-redirect")]|length')"
saina port set p0 hook xdp
in_switch ip link set p0 mtu 500
equal "doctor: fails for an MTU too small for the jobs" FAIL "$(worst_status port-mtu)"
in_switch ip link set p0 mtu 1500
addr=$(ip -n "saina-$LAB-sw" -o -4 addr show br0 | awk '{ print $4 }')
in_switch ip addr del "$addr" dev br0
equal "doctor: fails for a bridge without an address" FAIL "$(worst_status address)"
in_switch ip addr add "$addr" dev br0
equal "doctor: fails for a wrong configuration file" FAIL "$(
	echo 'bridge = ' >"$WORK/bad.conf"
	sw_saina -j doctor host config "$WORK/bad.conf" | jq -r '.[]|select(.check=="config").status')"
equal "doctor: fails for an OVSDB that does not answer" FAIL "$(
	in_switch ip link add fake0 type veth peer name fake1
	sw_saina -j doctor host bridge fake0 ovsdb "$WORK/nothing" | jq -r '.[]|select(.check=="ovsdb").status'
	in_switch ip link del fake0)"
equal "doctor: warns of a missing control plane" warn "$(SAINA_CONTROL=$WORK/nothing worst_status control-plane)"
check "doctor worker: ends with status 0 where all is well" in_worker 0 "$B/saina" doctor worker to "$AGG"
equal "doctor worker: fails for an address where nobody answers" 'FAIL aggregator' \
	"$(in_worker 0 "$B/saina" doctor worker to 10.190.0.200 | grep -o 'FAIL aggregator')"
equal "doctor worker: fails without a route" 'FAIL route' "$(in_worker 0 "$B/saina" doctor worker to 203.0.113.1 | grep -o 'FAIL route')"
equal "doctor worker: fails on the switch itself" 'FAIL route' "$(in_switch "$B/saina" doctor worker to "$AGG" | grep -o 'FAIL route')"

# 7. The agent stops
events_start
lab agent stop
check "monitor: ends when the agent ends" slowwait 10 pid_gone "$events_pid"
wait "$events_pid"
equal "monitor: says that the agent closed the connection" "1: closed the connection" "$?:$(grep -o ' closed the connection' "$WORK/monitor.err")"
check_error "job show: fails without an agent, with what to do" 1 'no control plane at .*; start sainad .*' job show
lab_down

# 8. Doctor on Open vSwitch
vsctl() {
	ovs-vsctl --db="unix:/run/saina-lab/$LAB/db.sock" --timeout=10 "$@"
}

# A second lab, with an Open vSwitch of its own and one worker.
expected_log='nosuch0'
lab_up --workers 1 --bridge ovs
sw_saina -j doctor host config "/run/saina-lab/$LAB/sainad.conf" >"$WORK/doctor"
equal "doctor, OVS: ends with status 0 on a good host" 0 $?
equal "doctor, OVS: database, bridge, handlers and port are ok" "ok ok ok ok" \
	"$(jq -r '.[]|select(.check|IN("ovsdb","bridge","ovs-handlers","port-hook"))|.status' "$WORK/doctor" | xargs)"
equal "doctor, OVS: without a configuration it asks the agent which bridge and which Open vSwitch" \
	"ok: /run/saina-lab/$LAB/db.sock" "$(sw_saina -j doctor | jq -r '.[]|select(.check=="ovsdb")|.status+": "+.found')"
matches "doctor, OVS: a bridge that the agent does not serve is named" 'warn +agent +sainad at [^ ]+ serves bridge br0, not nosuch' \
	"$(sw_saina doctor host bridge nosuch)"
in_worker 0 ethtool -K eth0 gro off
matches "doctor, OVS: behind the userspace datapath the advice for a stock container is to turn GRO on" \
	'warn +port-redirect +p0: stock container .* userspace datapath, which needs XDP.*-> at its other end, in the container: ethtool -K eth0 gro on' \
	"$(sw_saina doctor | tr '\n' ' ')"
in_worker 0 ethtool -K eth0 gro on
vsctl add-port br0 int0 -- set interface int0 type=internal
equal "doctor, OVS: nothing is said against a port of the host itself" "ok: int0: of type internal, not for workers" \
	"$(sw_saina -j doctor | jq -r '.[]|select(.found|startswith("int0"))|.status+": "+.found')"
vsctl del-port br0 int0
vsctl add-port br0 nosuch0 2>/dev/null
matches "doctor, OVS: fails for a port that Open vSwitch could not open" 'FAIL port +nosuch0: Open vSwitch says: .*nosuch0' \
	"$(sw_saina doctor host config "/run/saina-lab/$LAB/sainad.conf")"
vsctl del-port br0 nosuch0
equal "doctor, OVS: fails for a bridge that Open vSwitch does not have" FAIL "$(worst_status bridge bridge p0)"
job jumbo elements 10000 workers 1 payload 1024
equal "doctor, OVS: fails for an MTU too small for the job" FAIL "$(worst_status port-mtu)"
vsctl set bridge br0 mcast_snooping_enable=true
equal "doctor, OVS: warns of multicast snooping" warn "$(worst_status snooping)"
# Replace ovs-vswitchd by a process without handler threads, as OVS has none when it starts too early.
pid=$(cat "/run/saina-lab/$LAB/ovs/vswitchd.pid")
kill "$pid"
check "doctor, OVS: ovs-vswitchd ends" slowwait 10 pid_gone "$pid"
printf '#!/bin/sh\nread -r line <"%s/fifo"\n' "$WORK" >"$WORK/ovs-vswitchd"
chmod +x "$WORK/ovs-vswitchd"
mkfifo "$WORK/fifo"
"$WORK/ovs-vswitchd" "unix:/run/saina-lab/$LAB/db.sock" &
worker_pids[vswitchd]=$!
fake_daemon_runs() {
	[ "$(cat "/proc/${worker_pids[vswitchd]}/comm")" = ovs-vswitchd ]
}
check "doctor, OVS: a daemon without handler threads replaces ovs-vswitchd" slowwait 10 fake_daemon_runs
equal "doctor, OVS: fails for a daemon without handler threads" FAIL "$(worst_status ovs-handlers)"
echo >"$WORK/fifo"
wait "${worker_pids[vswitchd]}"
unset 'worker_pids[vswitchd]'

# The python3 of a virtual environment has none of the system's packages.
mkdir "$WORK/venv"
printf '#!/bin/sh\necho "not this python3"\n' >"$WORK/venv/python3"
chmod +x "$WORK/venv/python3"
matches "bench: the system's python3 runs it, not the first of PATH" "Gloo .python3-torch. and Open MPI" \
	"$(PATH=$WORK/venv:$PATH "$B/saina" bench help 2>&1)"
finished
