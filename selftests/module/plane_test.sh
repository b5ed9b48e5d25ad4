#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The kernel's control plane and the agent: jobs are configured in saina.ko by
# `saina` over netlink, sainad serves them, is killed, comes back.
#
# In the test VM (selftests/in-vm); TAP.

here=$(dirname "$(readlink -f "$0")")
module=$SAINA_TEST_MODULE

# shellcheck source=../net/lib.sh
. "$here/../net/lib.sh"
socket=$AGENT_SOCKET

agent_log() {
	cat "/run/saina-lab/$LAB/sainad.log"
}

agent_said() { # ERE
	agent_log | grep -qE "$1"
}

last_k() { # of worker 0
	[ "$(last_field 0 k)" = "$1" ]
}

not() {
	! "$@"
}

doctor_says() { # STATUS ERE
	saina -j doctor 2>/dev/null | jq -r '.[]|select(.check=="module")|.status + ": " + .found + " " + .fix' |
		tee "$WORK/doctor" | grep -qE "^ *$1 *: .*$2" || { cat "$WORK/doctor"; return 1; }
}

# --- jobs in the kernel ---------------------------------------------------------
expected_log='^$'
check "insmod" insmod "$module"
lab_up --workers 3
check "with the module the kernel is" agent_said 'control plane: saina.ko'
job bsp workers 3 elements 2003
start_all bsp 5 3 --elements 2003
check "a job configured in the kernel: three workers train" wait_all 60
check "with the same results everywhere" same_results 0 1 2
equal "five rounds, all segments exact, all three in each" "5 40 0 3 3" \
	"$(summary 0 rounds exact unverified) $(minmax 0 count_min count_max)"
equal "counters come from the agent" 40 "$(sj stats show bsp 0 '[.[].counters|.stored + .added]|add' 2>/dev/null || echo none)"
equal "so do ports" 3 "$(sj port show length)"
equal "through the agent's socket the same job is seen" bsp \
	"$("$B/saina" -j -s "$socket" job show | jq -r '.[].name')"
check "and can be changed" "$B/saina" -s "$socket" job set bsp policy fastest:k=2
equal "in the kernel" fastest:k=2 "$(job_field bsp policy | cut -d, -f1)"
check "a wrong change is refused with the kernel's sentence" not "$B/saina" -s "$socket" job set bsp policy fastest:k=4
check "deleted in the kernel" saina job del bsp
equal "it is gone from the agent" 0 "$("$B/saina" -j -s "$socket" job show | jq length)"

# --- the agent is killed, k is set in the kernel -----------------------------------
job steady workers 3 elements 4096 policy fastest:k=3 heartbeat 100 dead 60000
start_all steady 1000000 3 --elements 4096 --think-us 20000 --cancel
check "rounds flow" until_true 60 log_at_least 3 || bail "no rounds"
check "rmmod is refused while the program is attached" not rmmod saina
check "and the doctor says why" doctor_says ok 'rmmod is refused until sainad is stopped'
generation=$(job_field steady generation)
check "the agent is killed" lab agent kill
at=$(log_round)
check "rounds go on without an agent" until_true 60 log_at_least $((at + 3))
equal "k was 3 so far" 3 "$(field 0 k | sort -u | xargs)"
check "without an agent, k is set in the kernel" saina job set steady policy fastest:k=2
check "and comes into force in the rounds" until_true 60 last_k 2
at=$(log_round)
check "rounds go on with it" until_true 60 log_at_least $((at + 3))
check "the kernel knows, from the data path" until_true 10 k_is steady 2
check "a new agent starts" lab agent start
equal "the same incarnation of the job" "$generation" "$(job_field steady generation)"
equal "all three are still its members" 3 "$(members steady)"
at=$(log_round)
check "rounds go on with the new agent" until_true 60 log_at_least $((at + 3))
stop_workers
check "exact sums all the way" wait_all 60
check "the same results everywhere" same_results 0 1 2
equal "no slot saw two policies" 0 \
	"$(policy_mix steady)"

# --- and stopped ---------------------------------------------------------------------
check "the agent is stopped" lab agent stop
equal "the job is still in the kernel" steady "$(job_field steady name)"
check "the doctor misses the agent" doctor_says warn 'no XDP program uses it'
check "nothing holds the module" until_true 20 rmmod saina
finished
