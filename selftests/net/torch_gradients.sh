#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Which gradients a State contributes, keeps and applies: three ranks of selftests/python/gradients.py,
# compared with float64.
#
#     rank 0 .. 2: w0 .. w2 --- br0 (Linux bridge)
#
#	torch_gradients.sh [CASES]	only these

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../python/lib.sh
. "$NET_DIR/../python/lib.sh"
DEFAULT_BRIDGE=linux

lab_up --workers 3

read -ra cases <<<"${1:-accumulate scale scales_differ factor turns layouts formats_differ wrapped_anew}"
for name in "${cases[@]}"; do
	job bsp id 0 elements 30000 workers 3 token s3cret
	job fastest id 1 elements 30000 workers 3 token s3cret policy fastest:k=2
	job fastest_drop id 2 elements 30000 workers 3 token s3cret policy fastest:k=2,late=drop
	job timeout id 3 elements 30000 workers 3 token s3cret policy timeout:300ms,kmin=1
	job timeout_drop id 4 elements 30000 workers 3 token s3cret policy timeout:300ms,kmin=1,late=drop
	job sfcd id 5 elements 30000 workers 3 token s3cret policy sfcd:k0=2
	rank_case "$name" 280 gradients 3 "$TOP/selftests/python/gradients.py" "$name"
done

finished
