#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Frames that lie, while three workers reduce:
#
#   w0, w1, w2: workers of the job "target"
#   w1: also sends forged frames (a worker gone bad)
#   w3: no worker of it, on a port of the same bridge (a stranger)
#
# No sum changes, and each frame is counted under its reason.

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

expected_log="worker 1 asked for round .* which is gone|lines like the next one"
lab_up --workers 4
SWITCH_MAC=$(mac_of switch)
job target id 7 workers 3 elements 4096 payload 256 token open-sesame
start 0 target 1000000 --token open-sesame --think-us 3000
start 1 target 1000000 --token open-sesame --think-us 3000
start 2 target 1000000 --token open-sesame --think-us 3000
check "the job runs" until_true 20 rounds_at_least target 3 || bail "no rounds"

session=$(json_value session "$(saina -j worker show target 1)")
port=$(json_value udp_port "$(saina -j worker show target 1)")

# lie DESCRIPTION SCOPE COUNTER FROM KEY=VALUE...: ten frames, ten counts.
# What goes wrong is the only thing that is wrong.
lie() {
	local what=$1 whose=$2 name=$3 from=$4 before
	shift 4
	before=$(counter_of "$whose" "$name")
	raw "$from" job=7 worker=1 "session=$session" "sport=$port" "round=$(job_field target round)" \
		repeat=10 "$@"
	check "$what: $name" until_true 5 counted "$whose" "$name" $((before + 10)) ||
		diag "$name was $before, is $(counter_of "$whose" "$name")"
}

counter_of() {
	case $1 in
	global) counter - - "$2" ;;
	*) counter target "$1" "$2" ;;
	esac
}

counted() {
	[ "$(counter_of "$1" "$2")" = "$3" ]
}

lie "a stranger says it is a worker" 1 wrong-port 3
lie "a worker says it is another" 0 wrong-port 1 worker=0
lie "another MAC" 1 wrong-mac 1 smac=02:00:00:00:00:77
lie "another IP" 1 wrong-ip 1 sip=10.190.0.99
lie "another UDP port" 1 wrong-udp 1 sport=4444
lie "session of an earlier incarnation" 1 session 1 "session=$(((session + 1) & 65535))"
lie "a result sent to the aggregator" global forged 1 type=2
lie "a result sent to the workers" global forged 3 type=2 sport=48864 dip=239.190.0.7 dport=48866 \
	dmac=01:00:5e:3e:00:07 worker=255
lie "a result in the aggregator's name" global forged 3 type=2 sip=10.190.0.1 sport=48864 \
	dip=10.190.0.10 "dmac=$(mac_of 0)" "dport=$(sj worker show target 0 '.[0].udp_port')"
lie "a control message in the aggregator's name" global forged 3 type=18 sip=10.190.0.1 sport=48865 \
	dip=10.190.0.10 "dmac=$(mac_of 0)" count=31 "dport=$(sj worker show target 0 '.[0].udp_port')"
# Linux would take these for ordinary frames.
group=(dip=239.190.0.7 dport=48866 dmac=01:00:5e:3e:00:07 sip=10.190.0.1 sport=48864 type=2
	worker=255 mask=7 contributors=3 k=3)
lie "a result behind IP options" global forged 3 "${group[@]}" options=1
lie "a result behind a priority tag" global forged 3 "${group[@]}" tag=0
lie "a result behind a service tag" global forged 3 "${group[@]}" tag=0 tpid=0x88a8
lie "a result in a VLAN" global forged 3 "${group[@]}" tag=5
lie "a result behind a tag and options" global forged 3 "${group[@]}" tag=0 options=1
lie "an answer behind a tag" global forged 3 type=2 sip=10.190.0.1 sport=48864 tag=0 \
	dip=10.190.0.10 "dmac=$(mac_of 0)" "dport=$(sj worker show target 0 '.[0].udp_port')"
lie "a gradient behind IP options" global fragment 1 options=1
lie "a gradient behind a tag" global fragment 1 tag=0
# In a worker's name, with its addresses and its session.
mine=(dport=48865 elem=0 count=0 sip=10.190.0.11 "smac=$(mac_of 1)")
lie "a stranger says that a worker leaves" 1 wrong-port 3 type=22 "${mine[@]}"
lie "a stranger says that a worker is alive" 1 wrong-port 3 type=20 "${mine[@]}"
lie "a stranger says that a worker is slow" 1 wrong-port 3 type=19 "${mine[@]}"
lie "a worker says that another leaves" 0 wrong-port 1 type=22 worker=0 "${mine[@]}"
lie "a goodbye from another MAC" 1 wrong-mac 1 type=22 "${mine[@]}" smac=02:00:00:00:00:77
lie "a goodbye behind IP options" global fragment 3 type=22 "${mine[@]}" options=1
equal "nobody has left" 3 "$(members target)"
lie "a frame cut short" global truncated 1 cut=20
lie "a UDP length too small for the header" global truncated 1 udplen=40
lie "an IP length beyond the frame" global truncated 1 iplen=1400
lie "another version" global version 1 version=2
lie "an unknown type" global type 1 type=99
lie "a control message to the data port" global type 1 type=16
lie "an unknown flag" global flags 1 flags=0x80
lie "a reserved byte" global flags 1 reserved=1
lie "a k in a request" global flags 1 k=1
lie "an unknown job" global no-job 1 job=200
lie "a job beyond all" global no-job 1 job=60000
lie "a worker that is not there" global no-worker 1 worker=9
lie "worker 255" global no-worker 1 worker=255
lie "fewer elements than it says" 1 length 1 elems=255
lie "more elements than it says" 1 length 1 elems=257
lie "another payload size" 1 elements 1 count=128
lie "another element type" 1 element-type 1 elem=2
lie "a segment beyond the gradient" 1 segment 1 segment=16
lie "segment 2^32-1" 1 segment 1 segment=0xffffffff
lie "a round far ahead" 1 round-future 1 "round=$(($(job_field target round) + 1000000))"
lie "round 2^32-1" 1 round-future 1 round=0xffffffff
lie "a first fragment" global fragment 1 fragment=1
# A replay of long ago is answered, and adds nothing.
lie "a replay of round 0" 1 stale 1 round=0

# Floods: every round and worker there is, at full speed, from both.
at=$(job_field target round)
flood_of=$(less 20000)
raw 3 job=7 "repeat=$flood_of" rounds=1 workers=1 &
flood=$!
raw 1 job=7 worker=0 "repeat=$flood_of" workers=1 "sport=$port" "session=$session" rounds=1
wait $flood
check "rounds go on after the floods" until_true 20 rounds_at_least target $((at + 10))
equal "no slot saw two policies" 0 "$(policy_mix target)"
stop_workers
check "every sum was right" wait_all 30
check "all workers got the same results" same_results 0 1 2
finished
