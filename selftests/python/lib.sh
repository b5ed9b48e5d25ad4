# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Sourced after ../net/lib.sh: processes of Python that are workers of its lab, one in each namespace
# (w0, w1, ..).

export PYTHONPATH=${SAINA_TEST_PYTHON:-$B/python} SAINA_LIBRARY=$B/libsaina.so.0 PYTHONDONTWRITEBYTECODE=1
# Debian's PyTorch 2.6 has no libuv.
export OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=eth0 USE_LIBUV=0

# py TAG NODE SCRIPT [ARG...]: runs a script in the background in the namespace of worker NODE, with
# NODE as its rank, or with the variables of py_env.  Its output is in $WORK/TAG.py.out.
# SAINA_TEST_ROOT: the / to run it in, which has $TOP and $WORK.
py() {
	local tag=$1 node=$2 args=() a who=("${py_env[@]}")
	[ ${#who[@]} -gt 0 ] || who=("SAINA_RANK=$node")
	for a in "${@:3}"; do
		[ -z "$a" ] || args+=("$a")
	done
	nsenter --net="/run/netns/saina-$LAB-w$node" -- env SAINA_AGGREGATOR="$AGG" SAINA_JOB=0 \
		OUT="$WORK" "${who[@]}" ${SAINA_TEST_ROOT:+chroot "$SAINA_TEST_ROOT"} "${python:-/usr/bin/python3}" "${args[@]}" \
		>"$WORK/$tag.py.out" 2>"$WORK/$tag.err" </dev/null &
	worker_pids["$tag"]=$!
}
py_env=() python=

# ranks N SCRIPT CASE...: processes of PyTorch that find one another
ranks() {
	local i
	ranks_port=$((ranks_port + 1))
	rm -f "$WORK"/*.py.out "$WORK"/digest-*
	for ((i = 0; i < $1; i++)); do
		py_env=("RANK=$i" "WORLD_SIZE=$1" MASTER_ADDR=10.190.0.10 "MASTER_PORT=$ranks_port")
		py "$i" "$i" "${@:2}"
	done
}
ranks_port=29500

# rank_case WHAT SECONDS PREFIX RANKS SCRIPT CASE: starts the ranks of a case, waits for them, repeats
# their points, and deletes the jobs
rank_case() {
	local job
	ranks "${@:4}"
	[ "$(type -t "$6_meanwhile")" != function ] || "$6_meanwhile"
	check "$1: all ranks end well" wait_all "$2"
	points "$3"
	for job in "${!job_ids[@]}"; do
		saina job del "$job" >/dev/null
	done
	job_ids=()
}

# models_are N: so many ranks have ended, with the same model
models_are() {
	[ "$(cat "$WORK"/digest-* | wc -l) $(sort -u "$WORK"/digest-* | wc -l)" != "$1 1" ] || return 0
	cat "$WORK"/digest-*
	return 1
}

# points PREFIX: the points of worker 0, and those of others that are not good.  Fails if there is none.
points() {
	local i line n=$tap_n
	for i in 0 1 2 3; do
		[ -e "$WORK/$i.py.out" ] || continue
		while read -r line; do
			case $line in
			ok\ *)	[ $i != 0 ] || ok "$1: ${line#ok }" ;;
			\#*)	[ $i != 0 ] || diag "$1: ${line#\# }" ;;
			not\ ok\ *) not_ok "$1: worker $i: ${line#not ok }" ;;
			esac
		done <"$WORK/$i.py.out"
	done
	[ "$tap_n" -gt "$n" ] || not_ok "$1: the workers have test points"
}
