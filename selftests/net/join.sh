#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Admission: a worker that may not join prints the agent's reason.
#
#     w0, w1: workers of the job "small", which has two; w2: asks for a place
#
# 1. Malformed JOINs, and answers that are no longer than what they answer
# 2. Workers of a job that has no member are refused
# 3. Workers of a full job are refused
# 4. A flood of JOINs: answers are limited, for one address
# 5. A place becomes free while another worker forges JOINs
# 6. Jobs that are stopped or not there
# 7. A worker leaves and comes back in the same round
# 8. "elements auto": the first worker sets the size

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

expected_log="lines like the next one"
lab_up --workers 3
job small id 3 workers 2 elements 4096 payload 256 token open-sesame heartbeat 50 dead 5000
quick=(--join-timeout-ms $((3000 * SLOW)))

# 1. Malformed JOINs, and answers that are no longer than what they answer
SWITCH_MAC=$(mac_of switch)
nameless() {
	send_raw 2 type=16 dport=48865 elem=0 count=0 worker=255 flags=2 join=4713 sport=4713
	grep -q 'there is no job ""' "/run/saina-lab/$LAB/sainad.log"
}
check "join: a JOIN by name that has no name is refused" slowwait 20 nameless

# Sends messages of known and unknown types, with each length that a message has or had.
answered=$(in_worker 2 python3 - "$TOP/uapi/saina/proto.h" <<-'END'
	import re, select, socket, sys, time
	version = int(re.search(r"#define SAINA_PROTO_VERSION\s+(\d+)", open(sys.argv[1]).read())[1])
	length_of, got = {}, {}
	# 18: a REFUSE, as another agent or an echo service would send it back
	for type_, of in ((16, version), (20, version), (20, 2), (99, version), (18, version), (18, 2)):
	    for length in (1, 48, 72, 136, 168, 219, 220, 300):
	        # of its own, so that an answer that is late is not taken for another's
	        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
	        s.connect(("10.190.0.1", 48865))
	        s.send((bytes((of, type_)) + bytes(length))[:length])
	        length_of[s], got[s] = length, 0
	end = time.monotonic() + 20
	while time.monotonic() < end:
	    ready = select.select(list(got), [], [], 0.3)[0]
	    for s in ready:
	        got[s] = max(got[s], len(s.recv(2048)))
	    if not ready and sum(n > 0 for n in got.values()) >= 6:
	        break
	for s, n in got.items():
	    print(length_of[s], n)
END
)
equal "join: no answer of the agent is longer than what it answers" "" \
	"$(awk '$2 > $1' <<<"$answered" | xargs)"
equal "join: what is long enough and asks for something is refused with a sentence" 6 "$(awk '$2 == 220' <<<"$answered" | wc -l)"

# The last possible first round, and the number after it; the token is wrong, too.
refusals=$(in_worker 2 python3 - "$TOP/uapi/saina/proto.h" <<-'END'
	import re, socket, struct, sys
	version = int(re.search(r"#define SAINA_PROTO_VERSION\s+(\d+)", open(sys.argv[1]).read())[1])
	def refusal(first_round):
	    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
	    s.connect(("10.190.0.1", 48865))
	    s.settimeout(1)
	    head = struct.pack("<BBBBH", version, 16, 0, 0, 3).ljust(18, b"\0") + b"\xff"
	    join = b"wrong".ljust(32, b"\0") + b"w2".ljust(32, b"\0") + struct.pack("<QQII", 4714, 0, first_round, 0)
	    for attempt in range(20):
	        s.send((head.ljust(48, b"\0") + join).ljust(220, b"\0"))
	        try:
	            return struct.unpack_from("<I", s.recv(2048), 56)[0]
	        except TimeoutError:
	            pass
	print(refusal(0xfffffffe), refusal(0xffffffff))
END
)
equal "join: a first round that cannot be is refused as malformed" "3 1" "$refusals"

# 2. Workers of a job that has no member are refused
matches "join: a wrong token is refused, with where to look" "not the token.*saina job show [0-9]+ tokens" "$(join_error 0 0 small "${quick[@]}" --token wrong)"
matches "join: no token is refused" "token" "$(join_error 0 0 small "${quick[@]}")"
printf '%s switch.example\n' "$AGG" >"$WORK/hosts"
named() { # HOST
	# shellcheck disable=SC2016
	in_worker 0 unshare -m --propagation private sh -c 'mount --bind "$1" /etc/hosts && shift && exec "$@"' - "$WORK/hosts" \
		"$B/saina-allreduce" "${quick[@]}" --aggregator "$1" --job small --worker 0 --token wrong 2>&1
}
matches "join: the aggregator can be a host name" "token" "$(named switch.example)"
matches "join: the aggregator can be a host name and a port" "token" "$(named switch.example:48865)"
matches "join: a host name without an address is refused as such" '"no-such.invalid": is not an IPv4 address, and as a host name: ' \
	"$(named no-such.invalid)"
matches "join: a mistake in an address is not taken for a host name" '"300.1.1.1": is not an IPv4 address' "$(named 300.1.1.1)"
matches "join: another number of elements is refused" "999999|4096" \
	"$(join_error 0 0 small "${quick[@]}" --elements 999999 --token open-sesame)"
matches "join: an identifier beyond the job's is refused" "worker" "$(join_error 2 2 small "${quick[@]}" --token open-sesame)"
equal "join: after refusals the job has no member" 0 "$(members small)"

# A token on the command line can be read by everybody: from a file here, from the
# environment below.
echo open-sesame >"$WORK/token"
chmod 644 "$WORK/token"
matches "join: a token file that everybody may read is refused" "read by everybody" \
	"$(join_error 0 0 small "${quick[@]}" --token-file "$WORK/token")"
chmod 600 "$WORK/token"
output=$(in_worker 0 env SAINA_AGGREGATOR="$AGG" SAINA_JOB=small SAINA_TOKEN_FILE="$WORK/token" RANK=1 WORLD_SIZE=3 \
	"$B/saina-allreduce" "${quick[@]}" 2>&1)
matches "join: a job of another size than torchrun's WORLD_SIZE is refused" "has 2 workers, there are 3 here" "$output"
no_member() {
	[ "$(members small)" = 0 ]
}
check "join: a worker that refused the job is no member" slowwait 10 no_member

# 3. Workers of a full job are refused
start_all small 1000000 2 --token-file "$WORK/token" --elements 4096 --think-us 1000 --restarts
check "join: two workers with the token train" slowwait 20 rounds_at_least small 3 || bail "no rounds"

matches "join: an identifier that is in use is refused" "worker 0" "$(join_error 0 2 small "${quick[@]}" --token open-sesame)"
matches "join: a full job refuses another worker" "full|all 2|2 workers" \
	"$(join_error -1 2 small "${quick[@]}" --token open-sesame)"

# 4. A flood of JOINs: answers are limited, for one address
# From worker 0's namespace come 3000 JOINs for a job that does not exist: more than the agent
# answers in a second to all addresses together.
SWITCH_MAC=$(mac_of switch)
answers() {
	in_switch nstat -asz UdpOutDatagrams | awk '$1 == "UdpOutDatagrams" { print $2 }'
}
asked() {
	[ "$(counter - - control)" -ge $((control + 3000)) ]
}
control=$(counter - - control)
before=$(answers)
began=$SECONDS
send_raw 0 type=16 dport=48865 elem=0 count=0 worker=255 job=99 join=4712 sport=4712 repeat=3000
check "join: 3000 JOINs from one address reach the agent's host" slowwait 30 asked
matches "join: another address is refused with a sentence beside them" "token" \
	"$(join_error 2 2 small "${quick[@]}" --token wrong)"
sent=$(($(answers) - before))
# Besides, each STATUS that two workers get for a heartbeat is one.
took=$((SECONDS - began))
check "join: few of the 3000 are answered ($sent datagrams in $took s)" [ "$sent" -lt $((250 * (1 + took))) ]
check "join: rounds go on beside refusals" rounds_go_on small 10

# 5. A place becomes free while another worker forges JOINs
# Worker 2 asks for the place of worker 1 again and again.  Meanwhile worker 0, which knows its
# address, forges JOINs in its name.
SAINA_TOKEN=open-sesame start_as second 1 2 small 1000000 --elements 4096 --think-us 1000 --restarts \
	--join-timeout-ms $((60000 * SLOW))
taken_over() {
	[ "$(saina_jq worker show small 1 '.[0].ip')" = 10.190.0.12 ]
}
victim_port() {
	in_worker 2 ss -Huan | awk '$4 ~ /:48866$/ { next } { sub(/.*:/, "", $4); print $4; exit }'
}
check "forged JOIN: a worker asks for an identifier that is in use" slowwait 10 grep -q "is alive" "$WORK/second.err"
SWITCH_MAC=$(mac_of switch)
# Not by send_raw: $! would be the process id of a shell around it.
nsenter --net="/run/netns/saina-$LAB-w0" -- "$RAWSEND" eth0 "dmac=$SWITCH_MAC" type=16 dport=48865 elem=0 count=0 \
	worker=255 job=3 sip=10.190.0.12 "sport=$(victim_port)" join=4711 repeat=$((100000 * SLOW)) &
forger=$!
kill -TERM "${worker_pids[1]}"
check "forged JOIN: the worker is admitted as the identifier becomes free" slowwait 30 taken_over
equal "forged JOIN: the worker is bound to its own port" p2 "$(saina_jq worker show small 1 '.[0].port')"
check "forged JOIN: rounds go on with the worker" rounds_go_on small 10
# In a VM the forger is still running.  SIGKILL, because bash has run this script's traps when it
# ended by SIGTERM.
kill -KILL $forger 2>/dev/null
wait $forger

# 6. Jobs that are stopped or not there
saina job set small state stopped || not_ok "stop: the job is stopped"
check "stop: the workers of a stopped job end" slowwait 20 worker_ended 0
matches "join: a stopped job refuses workers" "stopped" "$(join_error -1 2 small "${quick[@]}" --token open-sesame)"
wait_all 20 >/dev/null
matches "stop: the workers of a stopped job say why they end" "stopped" "$(cat "$WORK/0.err")"
matches "join: a job whose name does not exist is refused" 'no job "window" here' \
	"$(in_worker 2 env SAINA_AGGREGATOR="$AGG" SAINA_JOB=window SAINA_RANK=0 "$B/saina-allreduce" "${quick[@]}" 2>&1)"
matches "join: a job that does not exist is refused" "99" \
	"$(in_worker 2 "$B/saina-allreduce" --aggregator "$AGG" --job 99 --worker 0 --rounds 1 "${quick[@]}" 2>&1)"

saina job del small

# 7. A worker leaves and comes back in the same round
# It joins again while the last round that it took part in is still the present one.  Its rounds
# have fewer elements than the job.
job again workers 2 elements 8192 payload 256 policy bsp
start 1 again 1000000 --elements 4096 --think-us 700000 --restarts
start 0 again 4 --elements 4096
check "back: a worker makes four rounds and leaves" slowwait 30 worker_ended 0
last=$(jq -s '.[-1].round' "$WORK/0.log")
start 0 again 0 --elements 4096
check "back: it comes back at once, and makes more rounds" slowwait 30 steps_at_least 0 3
check "back: its first round is later than its last one before" [ "$(jq -s '.[0].round' "$WORK/0.log")" -gt "$last" ]
stop_workers
check "back: all sums are exact" wait_all 30
saina job del again

# 8. "elements auto": the first worker sets the size
size_is() { # JOB ELEMENTS
	[ "$(saina_jq job show "$1" '.[0].elements')" = "$2" ]
}
job grown workers 2 elements auto payload 256
equal "auto: a job that nobody has joined has neither size nor memory" "null true 0 0" \
	"$(saina_jq job show grown '.[0]|"\(.elements) \(.elements_auto) \(.segments) \(.memory)"')"
check "auto: counters are shown while a job has no size" agent_saina stats show
check "auto: slots are shown of a job that has no size" agent_saina slot show grown
matches "auto: a first worker that has no size is refused" "must say how many elements it has" \
	"$(join_error 0 0 grown "${quick[@]}")"
matches "auto: a size that cannot be is refused" "do not fit" "$(join_error 0 0 grown "${quick[@]}" --elements 2000000000)"
matches "auto: a size above the limit of memory is refused" "the limit is 1024 MiB a job" \
	"$(join_error 0 0 grown "${quick[@]}" --elements 500000000)"
check "auto: after refusals the job has no size" size_is grown null
start 0 grown 1000000 --elements 5000 --think-us 1000
check "auto: the first worker gives the job its size" slowwait 20 size_is grown 5000
for n in 6000 4000; do
	matches "auto: a second worker with $n elements is refused" \
		"job grown has 5000 elements, as its first worker said; worker 1 asks for $n" "$(join_error 1 1 grown "${quick[@]}" --elements $n)"
done
start 1 grown 1000000 --think-us 1000
check "auto: a second worker without a size of its own gets the job's" slowwait 20 rounds_at_least grown 3
if [ "$BACKEND" = agent ]; then
	check "auto: the agent is killed" lab agent kill
	check "auto: the agent starts again" lab agent start
	check "auto: the next agent knows the size, rounds go on" rounds_go_on grown 10
	equal "auto: the next agent knows that a worker has set the size" "5000 true" "$(saina_jq job show grown '.[0]|"\(.elements) \(.elements_auto)"')"
fi
stop_workers
check "auto: all sums are exact" wait_all 60
start_all grown 20 2 --elements 70000
check "auto: the next workers give it another size, and all sums are exact" wait_all 60
check "auto: it has the size of the last workers" size_is grown 70000
check "auto: the job can be deleted" saina job del grown
finished
