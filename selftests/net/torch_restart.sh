#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# torchrun --max_restarts with one process group for all ranks: when one is killed, all are restarted, and go on from a
# checkpoint.  Four ranks of selftests/python/resume.py, on one node or on four.
#
#     nodes 0 .. 3: w0 .. w3 --- br0 (Linux bridge)

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../python/lib.sh
. "$NET_DIR/../python/lib.sh"
expected_log='worker [0-9]+ .* is dead: silent for|worker [0-9]+ asked for round [0-9]+, which is gone'
DEFAULT_BRIDGE=linux

lab_up --workers 4

# node I TORCHRUN-OPTION...: torchrun on node I, whose host name is its address, by which the nodes find one another
node() {
	# shellcheck disable=SC2016 # for the inner shell
	python=/usr/bin/unshare py "$1" "$1" --uts sh -c 'hostname "$0" && exec "$@"' "10.190.0.1$1" \
		/usr/bin/torchrun --max_restarts=3 --redirects=1 --tee=1 "--log_dir=$WORK/log-$ranks_port-$1" "${@:2}" \
		"$TOP/selftests/python/resume.py" "$form"
}

# restarted WHAT: all ranks end well after one was killed three times, with the same model of 40 steps
restarted() {
	check "$1: all ranks end well" wait_all 300
	equal "$1: one rank was killed three times" 3 "$(find "$WORK" -name 'killed-*' | wc -l)"
	check "$1: all models are the same" models_are 4
	equal "$1: all models have 40 steps" 40 "$(awk '{ print $2 }' "$WORK/digest-0")"
	diag "$1: $(grep -h 'began with' "$WORK"/[0-3].py.out | head -n 4 | sed 's/.*: killed/killed/' | sort | uniq -c | tr '\n' ';')"
	saina job del restart >/dev/null
}

# run one|four POLICY FORM CHECKPOINT: on one node or on four; CHECKPOINT 1: ranks write checkpoints
run() {
	local where=$1 policy=$2 form=$3 i what="$1, $2, $3"
	job restart id 0 elements 200000 workers 4 token s3cret policy "$policy"
	rm -f "$WORK"/*.py.out "$WORK"/digest-* "$WORK"/killed-* "$WORK"/checkpoint.pt
	ranks_port=$((ranks_port + 1))
	py_env=(TZ=UTC "CHECKPOINT=$4")
	case $where in
	one)	node 0 --standalone --nproc_per_node=4 ;;
	four)	for i in 0 1 2 3; do
			node "$i" --nnodes=4 --nproc_per_node=1 --rdzv_backend=c10d "--rdzv_endpoint=10.190.0.10:$ranks_port" \
				"--rdzv_conf=is_host=$((i == 0))"
		done ;;
	esac
	[ "$4" = 1 ] || what="$what, no checkpoint"
	restarted "$what"
	if [ "$4" = 1 ]; then
		check "$what: they went on from the checkpoint" grep -qE 'began with (28|[3-9][0-9]) steps' "$WORK/0.py.out"
	fi
}

run one bsp steps 1
run one fastest:k=3 plain 0
run four fastest:k=3 steps 1
run four bsp plain 1

finished
