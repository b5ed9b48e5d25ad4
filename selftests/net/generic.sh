#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Generic XDP, which the configuration asks for.  There a batch of messages
# (UDP_SEGMENT) reaches the program as one frame, which it must refuse: the workers find
# that out when they join, and send message by message.
#
#     w0 .. w2 --- p0 .. p2 [generic XDP] --- br0 (Linux bridge)
#
# 1. All ports get generic XDP, as configured
# 2. Three workers train, message by message

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# 1. All ports get generic XDP, as configured
lab_up --workers 3 --bridge linux --hook generic
equal "generic XDP: every port has it" "generic" "$(saina -j port show | jq -r 'map(.mode) | unique | join(" ")')"
matches "generic XDP: port show says that it is slower" "slower than native" "$(saina port show p0)"

# 2. Three workers train, message by message
job gen workers 3 elements 100003 payload 256 policy bsp
start_all gen "$(shrink 20)" 3 --elements 100003
verify_sums "generic XDP" 60 0 1 2
equal "generic XDP: no result is relayed" 0 "$(counter gen all relayed)"
matches "generic XDP: a worker says that it sends message by message" "message by message" "$(cat "$WORK/0.err")"
lab_down
finished
