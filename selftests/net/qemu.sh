#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# tools/quickstart/qemu: what it refuses.
#
#     namespaces of this test's own: bridge br9, without an address

if ! command -v qemu-system-x86_64 >/dev/null || [ -n "${SAINA_VM-}" ]; then
	echo "1..0 # SKIP no qemu, or this is a VM itself"
	exit 4
fi

# shellcheck source=quickstart.sh
. "$(dirname "$0")/quickstart.sh"

left() {
	left_of_any
}

check "the guests' kernel is there" "$TOP/tools/saina-vm" fetch --missing 6.1 || bail "no kernel for the guests"
fails "refuses a bridge without addresses for the guests" 2 'which addresses are free' --bridge br9
fails "refuses an address that is none" 2 '"10.0.0.300" is not ADDRESS/BITS' --bridge br9 --guests 10.0.0.300
fails "refuses more guests than there are addresses" 2 'no room for 10 addresses from 10.0.0.250 on' --bridge br9 \
	--guests 10.0.0.250/24 --workers 10
fails "a bridge that is not there: says how to see those that are" 1 'no interface br9: ip link show type bridge' --bridge br9 \
	--guests 10.0.0.100/24
fails "a job that is refused: says what sainad said" 1 'the job is refused: .*nosuch' --policy nosuch
equal "quickstart: leaves nothing behind when it fails, taps and bridge included" "" "$(left)"
inside ip link add br9 type bridge
fails "a bridge without an IPv4 address: says how to give it one" 1 'br9 has no IPv4 address: ip addr add .* dev br9' --bridge br9 \
	--guests 10.0.0.100/24
inside ip link del br9
finished
