#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# SFCD: k rises when the signs of the sum flip, by itself and from a round
# boundary, never above the live workers; it falls when one of them dies.
#
#     w0 .. w5, contents whose signs stay ("steady") or alternate ("flip")
#
# 1. Signs that stay: k stays
# 2. Signs that flip: k rises to the number of workers
# 3. A worker dies: k falls with the live workers
# 4. kmax limits k

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

expected_log="worker 5 .* is dead"
lab_up --workers 6

# 1. Signs that stay: k stays
job steady workers 6 elements 8192 payload 256 ring 64 policy sfcd:k0=2,sth=0.5,cth=3,stride=8
start_all steady "$(shrink 40 10)" 6 --elements 8192 --signs steady
check "SFCD, steady signs: all sums are exact" wait_all 60
equal "SFCD, steady signs: k stays" "2 2" "$(minmax 0 k k)"

# 2. Signs that flip: k rises to the number of workers
job flip workers 6 elements 8192 payload 256 ring 64 policy sfcd:k0=1,sth=0.5,cth=3,stride=8
events_start
start_all flip 1000000 6 --elements 8192 --signs flip --think-us 4000 --cancel
check "SFCD, flipping signs: k rises to all six workers" slowwait 40 k_is flip 6
check "SFCD, flipping signs: rounds go on at the highest k" rounds_go_on flip 20
equal "SFCD, flipping signs: k does not pass the live workers" 6 "$(job_field flip k)"
# By round: saina.ko may send the events of different processors in another order.
rises=$(events 'select(.event=="k" and .job=="flip")|"\(.round) \(.from)-\(.to)"' | sort -n | cut -d' ' -f2)
equal "SFCD, flipping signs: k rose by one at a time" "1-2 2-3 3-4 4-5 5-6" "$(xargs <<<"$rises")"

# 3. A worker dies: k falls with the live workers
worker_kill 5
# Declared by the operator: on a busy machine a time-out might declare other workers dead, too.
check "SFCD: the killed worker is declared dead" saina worker set flip 5 state dead
check "SFCD: the death of a worker lowers k" slowwait 20 k_is flip 5
check "monitor: worker-dead is sent when a worker is declared dead" slowwait 5 event_seen '.event=="worker-dead" and .worker==5'
check "monitor: a k event is sent when a death lowers k" slowwait 5 event_seen '.event=="k" and .from==6 and .to==5'
check "SFCD: rounds go on after a death" rounds_go_on flip 10
equal "SFCD: no slot saw two policies" 0 "$(policy_mix flip)"
stop_workers
verify_sums "SFCD, a worker died" 30 0 1 2 3 4
events_stop

# 4. kmax limits k
job capped workers 6 elements 2048 payload 256 ring 64 policy sfcd:k0=2,sth=0.1,cth=1,kmax=4
start_all capped "$(shrink 60 20)" 6 --elements 2048 --signs flip
check "SFCD, kmax=4: all sums are exact" wait_all 60
equal "SFCD, kmax=4: k stays between 2 and 4" "2 4" "$(minmax 0 k k)"
finished
