#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Generic XDP, asked for by the configuration.  There a batch of messages
# (UDP_SEGMENT) reaches the program as one, which it must refuse: the workers find
# that out when they join and send one by one.
#
#     w0, w1: links of the lab       w2: plugged in later

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

echo 'xdp = "generic";' >"$WORK/generic.conf"
lab_up --workers 3 --bridge linux --config "$WORK/generic.conf"
equal "every port is generic" "generic" "$(saina -j port show | jq -r 'map(.mode) | unique | join(" ")')"
matches "and people are told" "slower than native" "$(saina port show p0)"

job gen workers 3 elements 100003 payload 256 policy bsp
start_all gen "$(less 20)" 3 --elements 100003
check "exact sums" wait_all 60
check "the same results everywhere" same_results 0 1 2
equal "nothing is relayed" 0 "$(counter gen all relayed)"
matches "a worker says that it sends one by one" "message by message" "$(cat "$WORK/0.err")"
lab_down
finished
