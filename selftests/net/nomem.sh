#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The tc hook without memory for linear copies of GSO batches, in the test VM
# (selftests/module/nomem_test.sh): results that are lost by that are fetched by PULL.
#
#     w0 .. w2 reduce;  p0 .. p2: tc;  nomem.ko: pskb_expand_head() fails
#
# 1. Three workers train
# 2. Copies fail, all or one in two
# 3. There is memory again

[ -n "${SAINA_TEST_NOMEM-}" ] || { echo "1..0 # SKIP only with selftests/module/nomem_test.sh"; exit 4; }

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

export SAINA_LAB_HOOK=tc
nomem=/sys/module/nomem/parameters/failed
expected_log='^$'

# 1. Three workers train
lab_up --workers 3 --bridge linux
job short workers 3 elements 20000 payload 352 policy bsp
start_all short 1000000 3 --elements 20000
check "rounds flow" slowwait 30 rounds_at_least short 5
equal "while there is memory no result is lost" 0 "$(counter short all no-memory)"

# 2. Copies fail, all or one in two
memory_short() { # SPARE: one copy of so many succeeds
	insmod "$SAINA_TEST_NOMEM" spare="$1"
}

for spare in 2 1000000; do
	at=$(job_field short round)
	before=$(counter short all no-memory)
	check "one of $spare copies succeeds: the module is loaded" memory_short $spare
	check "one of $spare copies succeeds: rounds go on" slowwait 60 rounds_at_least short $((at + 5))
	check "one of $spare copies succeeds: copies did fail" [ "$(cat $nomem)" -gt 0 ]
	check "one of $spare copies succeeds: results that are lost are counted" \
		[ "$(counter short all no-memory)" -gt "$before" ]
	rmmod nomem
done

# 3. There is memory again
check "there is memory again: rounds go on" rounds_go_on short 5
stop_workers
verify_sums "memory was short" 60 0 1 2
finished
