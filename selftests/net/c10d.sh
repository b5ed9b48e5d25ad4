#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The backend of torch.distributed: four ranks of selftests/python/c10d.py, and some of c10d_calls.py, one case after
# the other.
#
#     rank 0 .. 3: w0 .. w3 --- br0 (Linux bridge)
#
#	c10d.sh [CASE...]

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../python/lib.sh
. "$NET_DIR/../python/lib.sh"
# A rank exits without leaving; one has no token.
expected_log='worker [0-9]+ .* is dead: silent for|token'
DEFAULT_BRIDGE=linux
export SAINA_TOKEN=s3cret

lab_up --workers 4

# run_case NAME RANKS [saina job add's words]: runs a case in a new job.  The function NAME_meanwhile
# is called, if there is one.
run_case() {
	local name=$1 n=$2
	[ -z "$chosen" ] || [[ " $chosen " == *" $name "* ]] || return
	job "$name" id 0 elements 20000 workers $workers token s3cret "${@:3}"
	job hook id 1 elements 700000 workers 4 token s3cret
	rank_case "$name" 120 c10d "$n" "$TOP/selftests/python/$script.py" "$name"
}
chosen=$* script=c10d workers=4

policy_later_meanwhile() {
	check "policy_later: the ranks reduce" slowwait 60 test -e "$WORK/reducing"
	saina policy set policy_later fastest:k=3 >/dev/null || not_ok "policy_later: the policy is set"
}

for name in types exact async ddp example groups beside refuse skip sizes ddp_fails policy_later timeout; do
	run_case $name 4
done
run_case policy 4 policy fastest:k=3
run_case policy_timeout 4 policy timeout:60s,kmin=2
run_case steps 4 policy ssp:1
run_case int16 4 type int16
run_case smaller 3
run_case token 4
run_case killed 4 dead 3000

script=c10d_calls
run_case late 3
workers=2
for name in callbacks hooks average fork views; do
	run_case $name 2
done
workers=3
for name in type operation empty several barrier broadcast future elements; do
	run_case split_$name 3
done

finished
