#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Ranks that get model, optimizer and round from another one, because they are too far behind, were restarted or
# come late.  Four ranks of selftests/python/peers.py, and of alone.py.
#
#     rank 0 .. 3: w0 .. w3 --- br0 (Linux bridge)
#
#     ROUNDS=500 LATE=0.1 SEEDS=3 torch_peers.sh "bsp lasting killed_steps killed_plain"     trains for longer

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../python/lib.sh
. "$NET_DIR/../python/lib.sh"
# Rank 3 stays at a round that is gone, or is killed.
expected_log='worker [0-9]+ (asked for round [0-9]+, which is gone|.* is dead: silent for)'
DEFAULT_BRIDGE=linux

lab_up --workers 4

# run_case NAME: runs a case in new jobs, so that rounds count from 0
run_case() {
	job bsp id 0 elements 200000 workers 4 token s3cret
	job fastest id 1 elements 200000 workers 4 token s3cret policy fastest:k=3,lead=none
	job two id 2 elements 200000 workers 4 token s3cret policy fastest:k=2,lead=none
	job open id 3 elements 200000 workers 4 policy fastest:k=3,lead=none
	job lead id 4 elements 200000 workers 4 token s3cret policy fastest:k=3
	rank_case "$1" $((240 + 30 * ${ROUNDS:-40} * ${SEEDS:-1})) peers 4 "$TOP/selftests/python/peers.py" "$1"
}

# Rank 1 kills itself.
died_meanwhile() {
	check "died: rank 1 is killed" slowwait 120 worker_ended 1 || kill -KILL "${worker_pids[1]}"
	worker_reap 1 2>/dev/null
	equal "died: it was killed while it served" 137 "$status" || diag "$(tail -n 3 "$WORK/1.err")"
}

# killed FORM MODEL: rank 3 is killed three times; each rank has a process group and a torchrun of its own
killed() {
	local i what="killed, $1, $2"
	job fastest id 0 elements 200000 workers 4 token s3cret policy fastest:k=3 dead 3000
	rm -f "$WORK"/*.py.out "$WORK"/digest-* "$WORK/end"
	for i in 0 1 2 3; do
		py_env=("SAINA_RANK=$i" TZ=UTC)
		py "$i" "$i" /usr/bin/torchrun --nnodes=1 --nproc_per_node=1 --max_restarts=3 \
			"--master_addr=10.190.0.1$i" --master_port=29600 \
			--redirects=1 --tee=1 "--log_dir=$WORK/torchrun-$1-$2-$i" "$TOP/selftests/python/alone.py" "$2" "$1"
	done
	check "$what: all ranks end well after torchrun has started rank 3 four times" wait_all $((300 + ${ROUNDS:-40}))
	check "$what: rank 3 got its model from another rank" grep -q "started 4 times, fetched [1-9]" "$WORK/3.py.out"
	check "$what: all models are the same" models_are 4
	[ ! -e "$WORK/bsp-$2.json" ] ||
		check "$what: the loss is within the noise of bsp of three ranks" grep -q 'loss within the noise' "$WORK/0.py.out"
	diag "$what: $(grep -hE 'started|loss' "$WORK/0.py.out" "$WORK/3.py.out")"
	saina job del fastest >/dev/null
}

read -ra cases <<<"${1:-far rest open two died flooded unfit checkpoint bsp lasting killed_steps killed_plain}"
for name in "${cases[@]}"; do
	case $name in
	killed_*)
		for model in ${MODELS:-transformer convolutions}; do
			killed "${name#killed_}" "$model"
		done ;;
	*)	run_case "$name" ;;
	esac
done

finished
