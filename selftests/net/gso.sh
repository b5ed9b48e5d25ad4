#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Forged GSO batches at the tc hook, while three workers reduce:
#
#   w0, w1, w2: workers of the job "target"
#   w1: also sends GSO batches in its own name that no libsaina would send
#   w3: no worker; sends some with a packet socket, and some with UDP_SEGMENT as any process can
#
# No sum changes, each message is counted under its reason, and GSO batches of other
# programs arrive.
#
# 1. Three workers train
# 2. Forged GSO batches, each message counted under its reason
# 3. The same by UDP_SEGMENT, and floods of questions
# 4. GSO batches of others arrive
# 5. Ports without checksum offload

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

export SAINA_LAB_HOOK=tc
expected_log="lines like the next one"

# 1. Three workers train
lab_up --workers 4 --bridge linux
SWITCH_MAC=$(mac_of switch)
job target id 7 workers 3 elements 20000 payload 352 policy bsp
start_all target 1000000 3 --think-us 3000 --elements 20000
check "three workers: rounds flow" slowwait 20 rounds_at_least target 3 || bail "no rounds"
session=0x$(json_value session "$(saina -j worker show target 1)")
port=$(json_value udp_port "$(saina -j worker show target 1)")

# 2. Forged GSO batches, each message counted under its reason
# forge DESCRIPTION SCOPE COUNTER MORE FROM KEY=VALUE...: ten GSO batches of twenty gradients of
# worker 1, with one thing wrong; MORE messages are counted, and rounds go on.
forge() {
	local what=$1 whose=$2 name=$3 more=$4 from=$5 before
	shift 5
	before=$(counter_of target "$whose" "$name")
	send_raw "$from" job=7 worker=1 "session=$session" "sport=$port" count=352 messages=20 gso=1456 \
		"round=$(job_field target round)" repeat=10 "$@"
	check "$what: counted as $name" slowwait 5 counter_at_least target "$whose" "$name" $((before + more)) ||
		diag "$name was $before, is $(counter_of target "$whose" "$name")"
	check "$what: rounds go on" rounds_go_on target 5
}

forge "a GSO batch from a non-member's port" 1 wrong-port 200 3
forge "a GSO batch with another MAC" 1 wrong-mac 200 1 smac=02:00:00:00:00:77
forge "a GSO batch from another UDP port" 1 wrong-udp 200 1 sport=4444
forge "a GSO batch of no job" global no-job 200 1 job=200
# These two hold messages that worker 1 may send. Of a round that is over: one of a round that
# is open would be its gradient, and the sums would be of what it says.
forge "a GSO batch whose messages name one worker after the other" 0 wrong-port 10 1 worker=0 mixed=1 round=0
forge "a GSO batch with segments beyond the gradient" 1 segment 100 1 segment=47 round=0
forge "a GSO batch with a gso_size that is less than a message" 1 length 10 1 gso=1452
forge "a GSO batch with a gso_size that is more than a message" 1 length 10 1 gso=1460
forge "a GSO batch with a gso_size that is less than a header" global truncated 100 1 gso=40 messages=1
forge "a GSO batch of more messages than fit" global length 10 1 gso=48 type=9 elem=0 count=0 messages=100
forge "a GSO batch that is cut short" global truncated 10 1 cut=700
forge "a GSO batch behind IP options" global fragment 10 1 options=1
forge "a GSO batch behind a tag" global fragment 10 1 tag=0
forge "a GSO batch of results" global forged 200 1 type=2
# Its own gradients once more: counted once, whatever the checksum says.
forge "a GSO batch of old gradients" 1 stale 200 1 round=0
forge "a GSO batch of old gradients without a checksum" 1 stale 200 1 round=0 check=0
forge "a GSO batch of old gradients with a wrong checksum" 1 stale 200 1 round=0 check=0x1234

# Metadata that no worker's kernel makes (more of it: datapath/meta_test).
forge_metadata() {
	forge "$1: a GSO batch that goes on behind its datagram" global fragment 10 1 round=0 iplen=1484 udplen=1464
	forge "$1: results behind a gradient" global fragment 10 1 type=2 round=0 iplen=1484 udplen=1464
	forge "$1: a GSO batch to be cut into fragments" global fragment 10 1 round=0 gsotype=3
	forge "$1: a checksum to be written into the payload" global fragment 10 1 round=0 gso=0 messages=1 csumstart=90
	forge "$1: a checksum to be written over the UDP length" global fragment 10 1 round=0 gso=0 messages=1 csumstart=34 csumoffset=4
	forge "$1: heartbeats in a GSO batch" global fragment 10 1 type=20 dport=48865 elem=0 count=0 gso=48
}
forge_metadata "ports with offloads"

# 3. The same by UDP_SEGMENT, and floods of questions
# The UDP socket of a process that is no worker.
udp_socket=(socket=1 session=0 sip=0.0.0.0)
forge "a GSO batch of a non-member's UDP socket" 1 wrong-port 200 3 "${udp_socket[@]}"
forge "a GSO batch of another UDP socket where worker 1 is" 1 wrong-udp 200 1 "${udp_socket[@]}"
forge "a GSO batch of a UDP socket with IP options" global fragment 10 3 "${udp_socket[@]}" options=1
forge "a GSO batch of zeros" global version 200 3 "${udp_socket[@]}" version=0

# ASKs without end, in the name of worker 1, from a non-member's port and from its own.
ask=(type=11 count=0 messages=20 gso=80 value=0)
forge "a flood of questions from a non-member's port" 1 wrong-port 2000 3 "${ask[@]}" repeat=100
forge "a flood of questions of worker 1" 1 ask-limit 1 1 "${ask[@]}" "repeat=$(shrink 5000)"
forge "a flood of questions about a round that is gone" 1 ask-limit 1 1 "${ask[@]}" round=0 "repeat=$(shrink 5000)"
forge "a flood of questions about a round to come" 1 ask-limit 1 1 "${ask[@]}" round=0xfffffff0 "repeat=$(shrink 5000)"

# 4. GSO batches of others arrive
received() {
	[ "$(stat -c %s "$WORK/foreign")" -ge $((10 * 20 * 1456)) ]
}
for to in 9 48864; do
	rm -f "$WORK/foreign"
	in_worker 2 timeout $((60 * SLOW)) socat -u "UDP-RECV:$to,rcvbuf=1000000" "CREATE:$WORK/foreign" &
	receiver=$!
	slowwait 10 [ -e "$WORK/foreign" ]
	in_worker 3 "$RAWSEND" eth0 dip=10.190.0.12 dport=$to socket=1 count=352 messages=20 gso=1456 value=0x5a5a5a5a repeat=10
	check "a GSO batch from w3 to port $to of w2: it arrives" slowwait 10 received
	equal "a GSO batch from w3 to port $to of w2: every byte of its payload is as it was" $((10 * 20 * 1408)) \
		"$(tr -cd Z <"$WORK/foreign" | wc -c)"
	kill $receiver
	wait $receiver 2>/dev/null
done

# 5. Ports without checksum offload
# Without offload the kernel finishes the checksums of frames that leave by these ports.
bad_checksums() {
	local i
	for i in 0 1 2; do
		in_worker $i nstat -asz UdpInCsumErrors | awk '/Udp/ { print $2 }'
	done | xargs
}
before=$(bad_checksums)
for i in 0 1 2; do
	in_switch ethtool -K p$i tx off >/dev/null
done
check "ports without checksum offload: rounds go on" rounds_go_on target 5
forge_metadata "ports without offloads"
equal "ports without checksum offload: no result has a wrong checksum" "$before" "$(bad_checksums)"
equal "forged GSO batches: all three workers are still members" 3 "$(members target)"
stop_workers
verify_sums "forged GSO batches" 30 0 1 2
finished
