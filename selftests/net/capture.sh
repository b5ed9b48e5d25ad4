#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What captures of a job show, by tshark with tools/wireshark/saina.lua: at a worker, at its
# port, at all ports and on the bridge, with the tc hook, with XDP and with relayed results.
#
#	capture.sh [all]	all: relayed results on Open vSwitch, too
#
#     w0 eth0 (captured) --- p0 (captured)   p1   p2 --- w1, w2
#                              \  br0 (captured)  /
#
# 1. The tc hook
# 2. XDP
# 3. Bad messages
# 4. Results that are relayed, or handed over to tc

command -v tshark >/dev/null || { echo "1..0 # SKIP tshark is not installed"; exit 4; }

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

[ "${1-}" = all ] || BRIDGES=linux
ROUNDS=6
# Segments of a round: ceil(20000 / 352)
MESSAGES=$((ROUNDS * 57))
FILTER='udp portrange 48864-48866 or udp port 9'
declare -A captures=()

captured_from() { # FILE: dumpcap has opened the interface and written its first block
	[ -s "$1" ] && grep -q '^File:' "$1.log"
}

# capture TAG NODE INTERFACE...: starts dumpcap on these interfaces of a node
capture() {
	local words=() i
	for i in "${@:3}"; do
		words+=(-i "$i" -f "$FILTER")
	done
	nsenter --net="/run/netns/saina-$LAB-$2" -- dumpcap -q -B 32 "${words[@]}" -w "$WORK/$1.pcapng" \
		>/dev/null 2>"$WORK/$1.pcapng.log" </dev/null &
	captures[$1]=$!
	slowwait 20 captured_from "$WORK/$1.pcapng" || bail "dumpcap does not start: $(cat "$WORK/$1.pcapng.log")"
}

# Sends a datagram, and succeeds when it is in the capture, and so are all frames before it: the
# kernel keeps frames for a while, and dumpcap does not fetch them when it ends.
last_is_here() { # TAG
	in_worker 0 bash -c 'echo end-of-capture >/dev/udp/10.190.0.1/9'
	grep -q end-of-capture "$WORK/$1.pcapng"
}

# What was captured reaches the file when dumpcap ends.
captures_end() {
	local tag
	for tag in "${!captures[@]}"; do
		slowwait 20 last_is_here "$tag" || diag "$tag: the end was not captured"
		kill -INT "${captures[$tag]}"
		wait "${captures[$tag]}"
		# The frames of each interface reach the file in blocks: not in the order of time.
		reordercap "$WORK/$tag.pcapng" "$WORK/$tag.sorted.pcapng" >/dev/null || bail "reordercap: $tag"
		HOME=$WORK tshark -n -X "lua_script:$TOP/tools/wireshark/saina.lua" -r "$WORK/$tag.sorted.pcapng" -T fields \
			-E occurrence=a -E aggregator=, -e ip.src -e ip.dst -e saina.type -e saina.worker \
			-e saina.last_worker -e _ws.expert.message -e _ws.malformed -e saina.wait -e saina.segment -e udp.srcport \
			>"$WORK/$tag.txt" 2>"$WORK/$tag.err"
	done
	captures=()
}

# complaints TAG: prints what tshark and the dissector find wrong.  Workers have random ports:
# tshark takes datagrams to some of them for traceroute's.
complaints() {
	grep -v 'could be dangerous' "$WORK/$1.err"
	awk -F'\t' '{ gsub(/Possible traceroute: hop #[0-9]+, attempt #[0-9]+,?/, "", $6) } $6 $7 != "" { print $6 " " $7 }' "$WORK/$1.txt"
}

number() { # TAG frames|messages TYPE [WORKER]: how many there are of a type
	awk -F'\t' -v what="$2" -v type="$3" -v worker="${4-}" '{
		n = split($3, types, ",")
		split($4, workers, ",")
		any = 0
		for (i = 1; i <= n; i++)
			if (types[i] == type && (worker == "" || workers[i] == worker)) {
				messages++
				any = 1
			}
		frames += any
	} END { print (what == "frames" ? frames : messages) + 0 }' "$WORK/$1.txt"
}

at_least() { # N LEAST
	[ "$1" -ge "$2" ]
}

# lost TAG: frames that the capture has lost, which dumpcap prints when it ends: received/dropped.
lost() {
	sed -n "s|^Packets received/dropped on interface .*: [0-9]*/\([0-9]*\) .*|\1|p" "$WORK/$1.pcapng.log" |
		awk '{ n += $1 } END { print NR ? n : "unknown" }'
}

# What is missing must be in frames that the capture has lost, of BATCH messages at most.
BATCH=45
all_of() { # TAG TYPE OF
	local seen lost
	seen=$(number "$1" messages "$2") lost=$(lost "$1")
	[ "$lost" = unknown ] || [ $((seen + BATCH * lost)) -lt "$3" ] || return 0
	diag "$seen of $3 messages seen, frames lost by the capture: $lost"
	return 1
}

GRAD=1 RESULT=2 ASK_REPLY=12 JOIN=16 WELCOME=17 HEARTBEAT=20

everywhere() { # TAG
	capture "$1-worker" w0 eth0
	capture "$1-port" sw p0
	capture "$1-ports" sw p0 p1 p2
	capture "$1-bridge" sw br0
}

# Worker 1 is the last to send the first messages of each round: it thinks, while the others have
# them in flight.
train() { # JOB TEXT
	job "$1" workers 3 elements 20000 payload 352 policy bsp
	start 0 "$1" $ROUNDS --elements 20000
	start 1 "$1" $ROUNDS --elements 20000 --think-us 100000
	start 2 "$1" $ROUNDS --elements 20000
	check "$2: the job trains" wait_all 60
}

# At a worker and on the bridge captures show the same whatever the hook is.
whatever_the_hook() { # TAG TEXT
	local tag
	check "$2: a worker sees its gradients" all_of "$1-worker" $GRAD $MESSAGES
	equal "$2: a worker sees nobody else's gradients" 0 \
		"$(($(number "$1-worker" messages $GRAD 1) + $(number "$1-worker" messages $GRAD 2)))"
	check "$2: a worker sees its JOIN and the WELCOME" at_least \
		"$(($(number "$1-worker" messages $JOIN) && $(number "$1-worker" messages $WELCOME)))" 1
	check "$2: the port sees its worker's JOIN" at_least "$(number "$1-port" messages $JOIN)" 1
	check "$2: the bridge sees the JOINs of all three workers" at_least "$(number "$1-bridge" messages $JOIN)" 3
	equal "$2: the bridge sees no gradient" 0 "$(number "$1-bridge" messages $GRAD)"
	for tag in worker port ports bridge; do
		equal "$2: nothing is wrong with what is captured at the $tag" "" "$(complaints "$1-$tag")"
	done
}

# 1. The tc hook
lab_up --workers 3 --bridge linux --hook tc
local_ports() { # FIRST LAST
	local i
	for i in 0 1 2; do
		in_worker $i sysctl -q -w "net.ipv4.ip_local_port_range=$1 $2"
	done
}
everywhere tc
local_ports 48864 48867
train fast "tc"
local_ports 32768 48863
captures_end
whatever_the_hook tc "tc"
equal "tc: workers send from no port of the protocol" 48867 \
	"$(awk -F'\t' '$3 ~ /^1(,|$)/ { print $10 }' "$WORK/tc-ports.txt" | sort -u | xargs)"
check "tc: a worker sees the results" all_of "tc-worker" $RESULT $MESSAGES
check "tc: gradients are captured as GSO batches" at_least "$(number tc-worker messages $GRAD)" \
	$((5 * $(number tc-worker frames $GRAD)))
check "tc: the port sees its worker's gradients" all_of "tc-port" $GRAD $MESSAGES
check "tc: the port sees the results" all_of "tc-port" $RESULT $MESSAGES
check "tc: all ports together see the gradients of all" all_of "tc-ports" $GRAD $((3 * MESSAGES))
equal "tc: all ports together: the capture names the worker that comes last" 1 \
	"$(awk -F'\t' '$3 ~ /^2(,|$)/ && $9 ~ /^0(,|$)/ { print $5 }' "$WORK/tc-ports.txt" | sort -u | xargs)"
equal "tc: the bridge sees no result" 0 "$(number tc-bridge messages $RESULT)"
lab_down

# 2. XDP
lab_up --workers 3 --bridge linux --hook xdp
everywhere xdp
train fast "XDP"
captures_end
whatever_the_hook xdp "XDP"
check "XDP: a worker sees the results" all_of "xdp-worker" $RESULT $MESSAGES
equal "XDP: a gradient is captured as a frame of its own" "$(number xdp-worker messages $GRAD)" \
	"$(number xdp-worker frames $GRAD)"
equal "XDP: the port sees neither gradients nor results" "0 0" \
	"$(number xdp-port messages $GRAD) $(number xdp-port messages $RESULT)"
equal "XDP: the port sees no answer of the data path" 0 "$(number xdp-port messages $ASK_REPLY)"
equal "XDP: the bridge sees no result" 0 "$(number xdp-bridge messages $RESULT)"

# 3. Bad messages
# What the data path drops is in the capture at the worker.
SWITCH_MAC=$(mac_of switch)
capture bad-worker w0 eth0
capture bad-port sw p0
send_raw 0 version=9
send_raw 0 type=77
send_raw 0 count=64 cut=100
send_raw 0 count=63
send_raw 0 reserved=1
send_raw 0 type=2
send_raw 0 join=5 cut=20
bad_seen() {
	[ "$(in_worker 0 tshark -r "$WORK/bad-worker.pcapng" 2>/dev/null | wc -l)" -ge 7 ]
}
slowwait 20 bad_seen
captures_end
for words in "does not know" "unknown message type" "shorter than a message" "not a payload size" \
	"must be 0" "is not sent to"; do
	matches "bad messages: the capture at the worker says \"$words\"" "$words" "$(complaints bad-worker)"
done
equal "bad messages, XDP: the port does not see what is dropped" 0 "$(number bad-port messages $GRAD)"
lab_down

# 4. Results that are relayed, or handed over to tc
# Without GRO at the workers' ends: a Linux bridge has the tc program behind XDP, Open vSwitch's
# userspace datapath needs the agent.
expected_log='gets no redirected frames'
for bridge in linux ovs; do
	with_bridge $bridge || continue
	lab_up --workers 3 --bridge $bridge --hook xdp --gro off
	everywhere $bridge
	train slow "no GRO, $bridge"
	captures_end
	check "no GRO, $bridge: a worker sees the results" all_of "$bridge-worker" $RESULT $MESSAGES
	check "no GRO, $bridge: the port sees them" all_of "$bridge-port" $RESULT $MESSAGES
	if [ $bridge = ovs ]; then
		check "no GRO, ovs: the bridge sees them" all_of "ovs-bridge" $RESULT $MESSAGES
	else
		equal "no GRO, linux: the bridge does not see them" 0 "$(number linux-bridge messages $RESULT)"
	fi
	equal "no GRO, $bridge: the bridge sees no gradient" 0 "$(number $bridge-bridge messages $GRAD)"
	check "no GRO, $bridge: the bridge sees heartbeats" at_least "$(number $bridge-bridge messages $HEARTBEAT)" 1
	equal "no GRO, $bridge: nothing is wrong with what is captured" "" \
		"$(for at in worker port ports bridge; do complaints $bridge-$at; done)"
	lab_down
done
finished
