#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Results are near to those of float64 and Gloo, for gradients of any size, NaN and Inf: two and four
# ranks of selftests/python/values.py.
#
#     rank 0 .. 3: w0 .. w3 --- br0 (Linux bridge)
#
#	torch_numbers.sh [CASES [RANKS]]	only these; the case amp needs PyTorch 2.3 (trixie.sh)

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../python/lib.sh
. "$NET_DIR/../python/lib.sh"
DEFAULT_BRIDGE=linux

lab_up --workers 4

# run_case N NAME: N ranks run a case in new jobs, so that their rounds are the first
run_case() {
	job bsp id 0 elements 800000 workers "$1" token s3cret
	job fastest id 1 elements 200000 workers "$1" token s3cret policy "fastest:k=$(($1 - 1))"
	job int16 id 2 elements 800000 workers "$1" token s3cret type int16
	rank_case "N=$1 $2" 300 "N=$1" "$1" "$TOP/selftests/python/values.py" "$2"
}

read -ra cases <<<"${1:-nonfinite int16 first jumps late heads scaled scaler lost clip}"
for n in ${2:-2 4}; do
	for name in "${cases[@]}"; do
		run_case "$n" "$name"
	done
done

finished
