#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Forged frames, while three workers reduce:
#
#   w0, w1, w2: workers of the job "target"
#   w1: also sends forged frames
#   w3: not a worker of the job, on a port of the same bridge (a non-member)
#
# No sum changes, and each frame is counted under its reason.
#
# 1. Three workers train
# 2. Only root is shown what a forged message must carry
# 3. Forged frames, each counted under its reason
# 4. Replays and floods
# 5. The workers end: every sum was right

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

expected_log="lines like the next one"

# 1. Three workers train
lab_up --workers 4
SWITCH_MAC=$(mac_of switch)
job target id 7 workers 3 elements 4096 payload 256 token open-sesame
start 0 target 1000000 --token open-sesame --think-us 3000
start 1 target 1000000 --token open-sesame --think-us 3000
start 2 target 1000000 --token open-sesame --think-us 3000
check "three workers: rounds flow" slowwait 20 rounds_at_least target 3 || bail "no rounds"

session=0x$(json_value session "$(saina -j worker show target 1)")
port=$(json_value udp_port "$(saina -j worker show target 1)")

# 2. Only root is shown what a forged message must carry
chmod 711 "$WORK"
install -m 755 "$B/saina" "$WORK/saina"
public=$(in_switch setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs \
	env SAINA_CONTROL="$AGENT_SOCKET" "$WORK/saina" -j worker show target 1)
matches "an unprivileged user of the bridge's host is shown the workers" '"mac"' "$public"
matches "root is shown a worker's session and UDP port" '"udp_port".*"session"|"session".*"udp_port"' \
	"$(saina -j worker show target 1 | tr -d '\n')"
equal "an unprivileged user is shown neither session nor UDP port" "" \
	"$(grep -oE '"(session|udp_port)"' <<<"$public")"

# 3. Forged frames, each counted under its reason
# forge DESCRIPTION SCOPE COUNTER FROM KEY=VALUE...: sends ten frames with one thing wrong, which
# must be counted ten times.  No frame that a worker sends by itself is counted there.
forge() {
	local what=$1 whose=$2 name=$3 from=$4 before
	shift 4
	before=$(counter_of target "$whose" "$name")
	send_raw "$from" job=7 worker=1 "session=$session" "sport=$port" "round=$(job_field target round)" \
		repeat=10 "$@"
	check "$what is counted as $name" slowwait 5 counter_is target "$whose" "$name" $((before + 10)) ||
		diag "$name was $before, is $(counter_of target "$whose" "$name")"
}

forge "a gradient of worker 1 from a non-member's port" 1 wrong-port 3
forge "a gradient of worker 0 from the port of worker 1" 0 wrong-port 1 worker=0
forge "a gradient from another MAC" 1 wrong-mac 1 smac=02:00:00:00:00:77
forge "a gradient from another IP address" 1 wrong-ip 1 sip=10.190.0.99
forge "a gradient from another UDP port" 1 wrong-udp 1 sport=4444
forge "a gradient with another session" 1 session 1 session=1
forge "a result sent to the aggregator" global forged 1 type=2
forge "a result sent to the workers" global forged 3 type=2 sport=48864 dip=239.190.0.7 dport=48866 \
	dmac=01:00:5e:3e:00:07 worker=255
forge "a result in the aggregator's name" global forged 3 type=2 sip=10.190.0.1 sport=48864 \
	dip=10.190.0.10 "dmac=$(mac_of 0)" "dport=$(saina_jq worker show target 0 '.[0].udp_port')"
forge "a control message in the aggregator's name" global forged 3 type=18 sip=10.190.0.1 sport=48865 \
	dip=10.190.0.10 "dmac=$(mac_of 0)" count=31 "dport=$(saina_jq worker show target 0 '.[0].udp_port')"
# Linux would take these for ordinary frames.
group=(dip=239.190.0.7 dport=48866 dmac=01:00:5e:3e:00:07 sip=10.190.0.1 sport=48864 type=2
	worker=255 mask=7 contributors=3 k=3)
forge "a result behind IP options" global forged 3 "${group[@]}" options=1
forge "a result behind a priority tag" global forged 3 "${group[@]}" tag=0
forge "a result behind a service tag" global forged 3 "${group[@]}" tag=0 tpid=0x88a8
forge "a result in a VLAN" global forged 3 "${group[@]}" tag=5
forge "a result behind a tag and options" global forged 3 "${group[@]}" tag=0 options=1
forge "an answer behind a tag" global forged 3 type=2 sip=10.190.0.1 sport=48864 tag=0 \
	dip=10.190.0.10 "dmac=$(mac_of 0)" "dport=$(saina_jq worker show target 0 '.[0].udp_port')"
forge "a gradient behind IP options" global fragment 1 options=1
forge "a gradient behind a tag" global fragment 1 tag=0
# In a worker's name, with its addresses and its session.
mine=(dport=48865 elem=0 count=0 sip=10.190.0.11 "smac=$(mac_of 1)")
forge "LEAVE of worker 1 from a non-member's port" 1 wrong-port 3 type=22 "${mine[@]}"
forge "HEARTBEAT of worker 1 from a non-member's port" 1 wrong-port 3 type=20 "${mine[@]}"
forge "READY of worker 1 from a non-member's port" 1 wrong-port 3 type=19 "${mine[@]}"
forge "LEAVE of worker 0 from the port of worker 1" 0 wrong-port 1 type=22 worker=0 "${mine[@]}"
forge "LEAVE from another MAC" 1 wrong-mac 1 type=22 "${mine[@]}" smac=02:00:00:00:00:77
forge "LEAVE behind IP options" global fragment 3 type=22 "${mine[@]}" options=1
equal "forged LEAVE messages: all three workers are still members" 3 "$(members target)"
forge "a frame cut short" global truncated 1 cut=20
forge "a UDP length too small for the header" global truncated 1 udplen=40
forge "an IP length beyond the end of the frame" global truncated 1 iplen=1400
forge "another protocol version" global version 1 version=1
forge "an unknown message type" global type 1 type=99
forge "a control message to the data port" global type 1 type=16
forge "an unknown flag of a PULL" global flags 1 type=4 flags=0x80
forge "a reserved byte that is set" global flags 1 reserved=1
forge "a gradient with a k" global flags 1 k=1
forge "an unknown job number" global no-job 1 job=200
forge "a job number out of range" global no-job 1 job=60000
forge "a worker that has not joined" global no-worker 1 worker=9
forge "worker number 255" global no-worker 1 worker=255
forge "fewer elements than the header says" 1 length 1 elems=255
forge "more elements than the header says" 1 length 1 elems=257
forge "another payload size" 1 elements 1 count=128
forge "another element type" 1 element-type 1 elem=2
forge "an unknown flag" 1 flags 1 flags=0x80
forge "a flag of results" 1 flags 1 flags=2
forge "a segment beyond the end of the gradient" 1 segment 1 segment=16
forge "segment number 2^32-1" 1 segment 1 segment=0xffffffff
forge "an update of NaN" 1 exponent 1 type=5 exponent=-128
forge "NaN in the name of worker 1" 1 wrong-port 3 exponent=-128
forge "a round far ahead of the job" 1 round-future 1 "round=$(($(job_field target round) + 1000000))"
forge "round number 2^32-1" 1 round-future 1 round=0xffffffff
forge "a first fragment" global fragment 1 fragment=1

# 4. Replays and floods
# An old gradient is answered, and adds nothing.  The real worker 1 may send stale gradients, too,
# when the machine is busy, but not that many.
before=$(counter_of target 1 stale)
send_raw 1 job=7 worker=1 "session=$session" "sport=$port" round=0 repeat=500
check "a replay of round 0 is counted as stale" slowwait 10 counter_at_least target 1 stale $((before + 500)) ||
	diag "stale was $before, is $(counter_of target 1 stale)"

# Floods: in the name of every worker, at full speed, from a non-member and from worker 1.  What worker
# 1 sends in its own name would be its gradient, so that is of rounds that are over.
at=$(job_field target round)
flood_of=$(shrink 20000)
send_raw 3 job=7 "repeat=$flood_of" rounds=1000000 workers=1 &
flood=$!
send_raw 1 job=7 worker=0 "repeat=$flood_of" workers=1 "sport=$port" "session=$session" "rounds=$at"
wait $flood
check "rounds go on after two floods of forged gradients" slowwait 20 rounds_at_least target $((at + 10))
equal "forged frames: no slot saw two policies" 0 "$(policy_mix target)"

# 5. The workers end: every sum was right
stop_workers
verify_sums "forged frames" 30 0 1 2
finished
