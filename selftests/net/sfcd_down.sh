#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# SFCD with "down": a learning rate at the limit of stability makes the signs of the gradients
# flip from round to round, and k rises; a small one lets them agree again, and k falls; and
# once more.  Four processes of selftests/python/rate.py, which descend by the mean of their gradients.
#
#     worker 0 .. 3: w0 .. w3 --- br0
#
# 1. With "down": k falls when signs stay
# 2. Without it k stays

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../python/lib.sh
. "$NET_DIR/../python/lib.sh"

lab_up --workers 4
rounds=40

# k_of FROM TO: k of those rounds, each once, in the order in which it changed
k_of() {
	awk -v from="$1" -v to="$2" '$1 >= from && $1 < to && $3 != k { k = $3; print k }' "$WORK/0.py.out" | xargs
}

descend() { # POLICY
	local i
	job rate id 0 elements 8192 payload 256 ring 64 workers 4 token s3cret policy "$1"
	for i in 0 1 2 3; do
		py "$i" "$i" "$TOP/selftests/python/rate.py" $rounds
	done
	wait_all 120
}

# 1. With "down": k falls when signs stay
events_start
check "SFCD down: all workers descend to the end" descend sfcd:k0=1,sth=0.5,cth=3,stride=1,late=drop,down
events_stop
equal "SFCD down: the models of all workers are the same in each round" 1 "$(md5sum "$WORK"/[0-3].py.out | cut -d' ' -f1 | sort -u | wc -l)"
equal "SFCD down: k rises round by round while signs flip" "1 2 3 4" "$(k_of 0 $rounds)"
equal "SFCD down: k falls to kmin once the learning rate has dropped" "4 3 2 1" "$(k_of $rounds $((2 * rounds)))"
equal "SFCD down: k rises again with the learning rate" "1 2 3 4" "$(k_of $((2 * rounds)) $((3 * rounds)))"
equal "monitor: a k event is sent for each change of k, and no other" "1-2 2-3 3-4 4-3 3-2 2-1 1-2 2-3 3-4" \
	"$(events 'select(.event=="k" and .job=="rate")|"\(.from)-\(.to)"' | xargs)"
equal "SFCD down: no slot saw two policies" 0 "$(policy_mix rate)"
saina job del rate >/dev/null

# 2. Without it k stays
check "SFCD without down: all workers descend to the end" descend sfcd:k0=1,sth=0.5,cth=3,stride=1,late=drop
equal "SFCD without down: k stays when the learning rate drops" "4" "$(k_of $rounds $((3 * rounds)))"
finished
