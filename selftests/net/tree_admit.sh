#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Who is admitted to jobs in a tree, and what sainad and a relay say to each other.  The relay is
# tree_admit.py, so the parent is whoever this test says.
#
#     w0, w1: send JOINs       saina-up<job>: the port of the relay of job leaf
#
# 1. a root: an old library, nodes that do not fit, workers in the place of nodes
# 2. a root: the same node comes back at once, under another session; another one waits
# 3. a job with an uplink: no worker before the parent has admitted it; saina doctor
# 4. its relay: what it is given, its port, what job show and the metrics say of its reports
# 5. the relay ends and is started again; the job ends, and port and process with it
# 6. what is refused

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

RELAY=$WORK/relay
PARENT=192.0.2.7
expected_log="its relay has ended|gets no redirected frames|is dead"
cat >"$WORK/saina-uplink" <<TXT
#!/bin/sh
echo started >>$RELAY.starts
rm -f $RELAY.reports
exec python3 $NET_DIR/tree_admit.py relay $RELAY
TXT
chmod +x "$WORK/saina-uplink"
echo "s3cret" >"$WORK/token"
: >"$RELAY.starts"
export SAINA_UPLINK=$WORK/saina-uplink
METRICS=$WORK/metrics
echo "metrics = \"unix:$METRICS\";" >"$WORK/lines"
lab_up --workers 2 --config "$WORK/lines"

join() { # NAMESPACE JOB WORKER PORT [KEY=VALUE...]
	in_worker "$1" "$NET_DIR/tree_admit.py" join "${job_ids[$2]}" "${@:3}"
}

report() { # STATE WORKERS RANK0 DEPTH FIRST-ROUND, or join
	echo "$*" >>"$RELAY.reports"
}

given() { # KEY
	python3 -c "import json, sys; print(json.load(open('$RELAY'))['$1'])"
}

uplink_text() { # KEY...
	saina -j job show leaf | python3 -c 'import json, sys; u = json.load(sys.stdin)[0]["uplink"]; print(*(u.get(k) for k in sys.argv[1:]))' "$@"
}

uplink_says() { # TEXT KEY...
	[ "$(uplink_text "${@:2}")" = "$1" ]
}

# 1. a root: an old library, nodes that do not fit, workers in the place of nodes
job root elements 4096 payload 256 workers 3 weights 8,1,5
matches "root: a library that does not divide by weight is refused, and asked to be new" "^refused 11 .*update libsaina" "$(join 0 root 1 5001)"
equal "root: a worker has the rank of its place, and the workers of the tree" "welcome 14 8 0 round 0" "$(join 0 root 1 5001 tree=1 leave=1)"
matches "root: a worker in the place of a node is refused" "^refused 14 worker 0 .*8 workers" "$(join 0 root 0 5001 tree=1)"
matches "root: a node with more workers than its weight is refused" "^refused 14 .*has 9" "$(join 0 root 0 5001 tree=1 node=1 weight=9)"
matches "root: a node without workers is refused" "^refused 14 " "$(join 0 root 0 5001 tree=1 node=1 weight=0)"
matches "root: a node with another type is refused" "^refused 13 .*type" "$(join 0 root 0 5001 tree=1 node=1 elem=4)"
matches "root: a node with another payload is refused" "^refused 13 .*payload 256.* has 352" "$(join 0 root 0 5001 tree=1 node=1 payload=352)"
matches "root: a node with other segments is refused" "^refused 13 .*segments" "$(join 0 root 0 5001 tree=1 node=1 segments=17)"
matches "root: a node with another ring is refused" "^refused 13 .*ring 8.* has 16" "$(join 0 root 0 5001 tree=1 node=1 ring=16)"
matches "root: a node that cannot divide by weight is malformed" "^refused 1 " "$(join 0 root 0 5001 node=1)"
equal "root: a node has the rank of its first worker" "welcome 14 9 0 round 0" "$(join 1 root 2 5002 tree=1 node=1 weight=5)"
job flat elements 4096 payload 256 workers 2
matches "flat: a job without weights has no nodes" "^refused 14 .*with weights" "$(join 0 flat 0 5001 tree=1 node=1 weight=1)"
equal "flat: a new library learns that there is no tree" "welcome 2 1 0 round 0" "$(join 0 flat 1 5001 tree=1 leave=1)"
equal "flat: an old library is answered as ever" "welcome round 0" "$(join 0 flat 1 5001 leave=1)"

# 2. a root: the same node comes back at once, under another session; another one waits
session_of() { # WORKER
	json_value session "$(saina -j worker show root "$1")"
}
before=$(session_of 2)
equal "root: the node has a new relay: it is welcome at once" "welcome 14 9 0 round 0" "$(join 1 root 2 5003 tree=1 node=1 weight=5)"
check "root: .. and the session of the earlier one is over" [ "$(session_of 2)" != "$before" ]
matches "root: nobody at another address takes the place of a live node" "^refused 5 " "$(join 0 root 2 5003 tree=1 node=1 weight=5)"
equal "root: is forming until all nodes are there" forming "$(job_field root state)"
equal "root: the last ones join" "welcome 14 0 0 round 0,welcome 14 8 0 round 0" \
	"$(join 0 root 0 5004 tree=1 node=1),$(join 0 root 1 5005 tree=1)"
equal "root: runs" running "$(job_field root state)"
generation=$(job_field root generation)
for w in 0 1 2; do
	saina worker set root $w state left
done
equal "root: without a live node it goes on" "running $generation" "$(job_field root state) $(job_field root generation)"
# A node joins first, so that the worker's call returns.
job mixed elements 4096 payload 256 workers 2 weights 8,1 dead 60000
join 0 mixed 0 5006 tree=1 node=1 >"$WORK/node"
said=$(in_worker 1 "$B/saina-allreduce" -a "$AGG" -j mixed -w 1 2>&1)
equal "saina-allreduce: in a tree it does not check sums, and says so" "2 give --no-verify" "$? ${said##*: }" || diag "$said"

# 3. a job with an uplink: no worker before the parent has admitted it; saina doctor
job leaf elements 4096 payload 256 workers 2 dead 60000 uplink $PARENT:700 parent-job 17 parent-worker 3 parent-token-file "$WORK/token"
matches "leaf: without workers there is no relay" "waits for workers" "$(uplink_text text)"
check "leaf: .. nor a port for it" test -z "$(in_switch ip -br link show type veth | grep saina-up)"
matches "leaf: a worker is refused until the parent has admitted the job" "^refused 12 " "$(join 0 leaf 0 5001 tree=1)"
check "leaf: .. and because of it the relay is started" slowwait 30 test -s "$RELAY"
# Goes on asking, as libsaina does.
join 0 leaf 0 5001 tree=1 wait=1 >"$WORK/first" &
first=$!

doctor_says() { # WHAT SENTENCE
	matches "doctor: $1" "$2" "$(in_switch "$B/saina" -s "$AGENT_SOCKET" doctor host config "/run/saina-lab/$LAB/sainad.conf" 2>&1 | grep '^[a-zA-Z]* *uplink')"
}
doctor_says "no way to the parent" "FAIL .*no way to its parent at $PARENT: Network is unreachable"
in_switch ip route add $PARENT dev br0
doctor_says "a way by the own bridge" "by br0, where results of other hosts are dropped"
doctor_says "nobody at the address" "FAIL .*does not answer"
in_switch ip route del $PARENT dev br0
in_switch ip -batch - <<-TXT
	link add narrow mtu 800 type veth peer name wide
	link set wide up
	addr add 192.0.2.1/24 dev narrow
	link set narrow up
TXT
doctor_says "an MTU that a message does not fit" "MTU to its parent is 800, and a payload of 256 needs 1100"
in_switch ip link del narrow

# 4. its relay: what it is given, its port, what job show and the metrics say of its reports
equal "relay: is given the parent" "17 3 48865 700 s3cret" "$(given parent_job) $(given parent_worker) $(given udp_port) $(given parent_udp_port) $(given parent_token)"
equal "relay: is given the job" "${job_ids[leaf]} 2 256 16 4096 2" "$(given job) $(given worker) $(given payload) $(given segments) $(given elements) $(given max_weight)"
matches "relay: is given namespace and maps" "net:.*bpf-map.*bpf-map" "$(given fds)"
incarnation=$(given incarnation)
report 1 0 0 0 0
check "leaf: says why the parent has not admitted it" slowwait 30 uplink_says "no way up" text
matches "leaf: .. to its workers, too" "^refused 12 .*no way up" "$(join 1 leaf 1 5002 tree=1)"
report 2 42 11 1 0
check "leaf: knows its place in the tree" slowwait 30 uplink_says "42 11 1" tree_workers rank depth
matches "leaf: another worker cannot join as the uplink's" "^refused 4 .*uplink" "$(join 1 leaf 2 5002 tree=1)"
report join
check "leaf: the relay joins by its port" slowwait 60 grep -q '^welcome 42' "$RELAY.joined" || diag "$(cat "$RELAY.joined")"
wait "$first"
# A worker, or a relay of another host on this network, has the same address.
relay_address=$(in_switch ip -br route show dev br0 | grep -o '^169\.254[^ ]*')
matches "relay: has an address of its own" "^169" "$relay_address"
in_worker 0 ip addr add "$relay_address/32" dev eth0
in_worker 0 ip neigh flush dev eth0
in_worker 0 ping -c 1 -W 1 -q -I "$relay_address" "$AGG" >/dev/null 2>&1
matches "relay: the agent keeps its MAC address when another host has the same address" \
	"lladdr 02:.*PERMANENT" "$(in_switch ip neigh show "$relay_address" dev br0)"
in_worker 0 ip addr del "$relay_address/32" dev eth0
equal "leaf: its workers have ranks in the tree" "welcome 42 11 1 round 0,welcome 42 12 1 round 0" \
	"$(cat "$WORK/first"),$(join 1 leaf 1 5002 tree=1)"
equal "leaf: runs with its two workers" "running 2" "$(job_field leaf state) $(members leaf)"
report 3 42 11 1 0
uplink_metrics() {
	"$NET_DIR/metrics.py" get "$METRICS" | grep -E '^saina_job_(admitted|tree_workers|away_seconds|uplink_.*_bytes_total)\{' | sed 's/{.*}//' | tr '\n' ' '
}
metrics_say() {
	[ "$(uplink_metrics)" = "saina_job_admitted 1 saina_job_tree_workers 42 saina_job_away_seconds 0 saina_job_uplink_sent_bytes_total 1048576 saina_job_uplink_received_bytes_total 2097152 " ]
}
check "metrics: the uplink" slowwait 30 metrics_say || diag "$(uplink_metrics)"

# 5. the relay ends and is started again; the job ends, and port and process with it
port=$(in_switch ip -br link show type veth | grep -o '^saina-up[0-9]*')
in_switch ip link del "$port"
starts=$(wc -l <"$RELAY.starts")
report 4 0 0 0 0
started_again() {
	[ "$(wc -l <"$RELAY.starts")" -gt "$starts" ]
}
check "relay: is started again when it has ended" slowwait 60 started_again
equal "relay: .. with the same incarnation" "$incarnation" "$(given incarnation)"
equal "leaf: its workers go on meanwhile" "running 2" "$(job_field leaf state) $(members leaf)"
check "relay: .. and with a new port, as the old one was removed" in_switch ip link show "$port"
workers_leave() {
	local w
	for w in 0 1; do
		saina worker set leaf $w state left
	done
}
# A relay that does not end: it is killed, even if a worker has come meanwhile, who would begin at a
# round that the parent has long left if it were admitted.
starts=$(wc -l <"$RELAY.starts")
# which is why the relay would be started, if it had to be
matches "leaf: a worker asks again meanwhile" "^refused 12 " "$(join 1 leaf 1 5002 tree=1)"
report 2 42 11 1 0
check "leaf: is admitted by the parent again" slowwait 30 uplink_says "admitted by the parent, joins its own job" text
kill -STOP "$(given pid)"
workers_leave
check "relay: is asked to end when the last worker has left" slowwait 15 uplink_says "the relay is stopped" text
matches "leaf: a worker that joins meanwhile is refused" "^refused 12 " "$(join 0 leaf 0 5001 tree=1)"
check "relay: is killed if it does not end, and another one started" slowwait 60 started_again
report 2 42 11 1 77
check "leaf: is admitted by the parent once more" slowwait 30 uplink_says "admitted by the parent, joins its own job" text
matches "leaf: the worker joins then" "^welcome 42 11 1" "$(join 0 leaf 0 5001 tree=1)"
equal "leaf: .. and the job begins where the parent says now" "welcome 42 12 1 round 77" "$(join 1 leaf 1 5002 tree=1)"
workers_leave
port_is_gone() {
	! in_switch ip -br link show type veth | grep -q saina-up
}
check "leaf: without workers the relay ends, and its port goes" slowwait 60 port_is_gone
saina job del leaf
equal "leaf: is deleted" "" "$(saina -j job show | grep -o '"name":"leaf"')"

# A job with a parent, and with a node.
job inner elements 4096 payload 256 workers 2 weights 8,1 uplink $PARENT parent-job 17 parent-worker 3
uplink_is_deep() { # DEPTH
	[ "$(saina -j job show inner | jq '.[0].uplink.depth')" = "$1" ]
}
rm -f "$RELAY"
matches "inner: a node is refused until the parent has admitted the job" "^refused 12 " "$(join 0 inner 0 5001 tree=1 node=1)"
check "inner: .. and because of it the relay is started" slowwait 30 test -s "$RELAY"
equal "inner: its relay stands for all workers below" 9 "$(given max_weight)"
report 2 42 11 7 0
check "inner: knows that 7 jobs are above it" slowwait 30 uplink_is_deep 7
matches "inner: .. so it cannot have a node" "^refused 13 .*has 7 jobs above it" "$(join 0 inner 0 5001 tree=1 node=1)"
report 2 42 11 6 0
check "inner: knows that 6 jobs are above it" slowwait 30 uplink_is_deep 6
equal "inner: .. so it can: its node has its ranks in the tree" "welcome 42 11 6 round 0" "$(join 0 inner 0 5001 tree=1 node=1)"
equal "inner: .. and its worker those behind them" "welcome 42 19 6 round 0" "$(join 1 inner 1 5002 tree=1)"
saina job del inner

# 6. what is refused
refused() { # WORDS SENTENCE
	# shellcheck disable=SC2086 # words
	matches "refused: $1" "$2" "$(saina job add x $1 2>&1)"
}
refused "elements 9 workers 2 weights 8" "needs as many weights"
refused "elements 9 workers 64 uplink $PARENT parent-job a parent-worker 0" "at most 63 workers"
refused "elements 9 workers 2 uplink $AGG parent-job a parent-worker 0" "this agent's own"
refused "elements 9 workers 2 policy asp uplink $PARENT parent-job a parent-worker 0" "asp is not for a job with an uplink"
refused "elements auto workers 2 weights 2,2" "needs a number"
finished
