#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# DistributedDataParallel and the backend "saina" on two hosts, each with an aggregator and two ranks of
# selftests/python/hosts.py; Gloo, which DDP itself uses, is routed from host to host.
#
#     rank 0, 1: h0-w0, h0-w1 --- br0 of host 0 (saina-$LAB-w0) --- br0 of the root's host (saina-$LAB-sw)
#     rank 2, 3: h1-w0, h1-w1 --- br0 of host 1 (saina-$LAB-w1) ---
#     rank 4, in the case mixed: saina-$LAB-w2 -------------------
#
#	tree_torch.sh [CASE...]		only these

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tree_lib.sh
. "$(dirname "$0")/tree_lib.sh"
# shellcheck source=../python/lib.sh
. "$NET_DIR/../python/lib.sh"

cases=("$@")
[ ${#cases[@]} -gt 0 ] || cases=(hook broadcast wrong backend dead continue back mixed)

# the third host is only a worker of the root
tree_lab 3 2
hosts=2
tree_routes
in_worker 2 ip route replace default via 10.190.0.1

start_rank() { # RANK CASE
	local h=$(($1 / each)) i=$(($1 % each)) ns=
	ns=$LAB.h$h-w$i
	[ "$h" -lt 2 ] || ns=$LAB-w2 h=-1
	nsenter --net="/run/netns/saina-$ns" -- env SAINA_AGGREGATOR="10.190.$((h + 1)).1" SAINA_JOB=train \
		OUT="$WORK" RANK="$1" LOCAL_RANK=$i WORLD_SIZE="$world" MASTER_ADDR=10.190.1.10 MASTER_PORT=$ranks_port \
		/usr/bin/python3 "$TOP/selftests/python/hosts.py" "$2" >"$WORK/$1.py.out" 2>"$WORK/$1.err" </dev/null &
	worker_pids[$1]=$!
}

back_meanwhile() {
	wait "${worker_pids[3]}"
	start_rank 3 back
}

# run_case NAME: the ranks of a case, in new jobs
run_case() {
	local h rank world=4
	tree_token='' tree_plain=0
	case $1 in
	back)	tree_token=s3cret ;;
	mixed)	tree_plain=1 world=5 ;;
	esac
	tree_job train 700000
	ranks_port=$((ranks_port + 1))
	rm -f "$WORK"/*.py.out "$WORK"/digest-*
	for ((rank = 0; rank < world; rank++)); do
		start_rank $rank "$1"
	done
	[ "$(type -t "$1_meanwhile")" != function ] || "$1_meanwhile"
	check "$1: all ranks end well" wait_all 300
	points hosts
	for h in root 0 1; do
		saina_at $h job del train >/dev/null
	done
}

expected_log='saina-uplink|is dead: silent for|no node is live'
tree_dead=3000
for name in "${cases[@]}"; do
	run_case "$name"
	case $name in
	continue) check "continue: the three that are left have the same model" models_are 3 ;;
	back)	check "back: all have the same model, at the same round" models_are 4 ;;
	esac
done
lab_down
finished
