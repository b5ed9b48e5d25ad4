#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Uses of saina.torch.State: copies and checkpoints of hooked models, several States or models in
# one process, ranks that end alone.  Four ranks of selftests/python/states.py.
#
#     rank 0 .. 3: w0 .. w3 --- br0 (Linux bridge)

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../python/lib.sh
. "$NET_DIR/../python/lib.sh"
# Rank 2 stays at a round that is gone.
expected_log='worker [0-9]+ asked for round [0-9]+, which is gone'
DEFAULT_BRIDGE=linux

lab_up --workers 4

read -ra cases <<<"${1:-copy sparse two_states dropped two_models freeze update update_raises mistakes join left early left_raises differ alone unknown silent}"
for name in "${cases[@]}"; do
	# New jobs for each case, so that rounds count from 0.
	job bsp id 0 elements 700000 workers 4 token s3cret
	job fastest id 1 elements 700000 workers 4 token s3cret policy fastest:k=3,lead=none
	job second id 2 elements 700000 workers 4 token s3cret
	job timed id 3 elements 700000 workers 4 token s3cret policy timeout:30s,kmin=2
	rank_case "$name" 240 states 4 "$TOP/selftests/python/states.py" "$name"
done

# policy_case NAME POLICY
policy_case() {
	job other id 0 elements 700000 workers 4 token s3cret policy "$2"
	rank_case "$1" 240 states 4 "$TOP/selftests/python/states.py" "$1"
}
if [ -z "${1-}" ]; then
	policy_case left_behind fastest:k=2,lead=none
	policy_case steps ssp:2
fi

finished
