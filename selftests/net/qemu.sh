#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# tools/quickstart/qemu: guests on a bridge of its own and on an existing one, Ctrl-C, and what it
# refuses.
#
#     namespaces of this test's own: sainad, bridge of the quickstart's, or br9
#         tap |       tap |         <- tc
#       guest 0      guest 1        saina-allreduce
#
# 1. What is refused
# 2. Guests on a bridge of its own, and on one that is there
# 3. Open vSwitch's userspace datapath
# 4. Ctrl-C

if ! command -v qemu-system-x86_64 >/dev/null || [ -n "${SAINA_VM-}" ]; then
	echo "1..0 # SKIP no qemu, or this is a VM itself"
	exit 4
fi

# shellcheck source=quickstart_lib.sh
. "$(dirname "$0")/quickstart_lib.sh"

leftovers() {
	leftovers_of_any
}

check "the guests' kernel is there" "$TOP/selftests/vm/saina-vm" fetch --missing 6.1 || bail "no kernel for the guests"

# 1. What is refused
fails "refuses a bridge without addresses for the guests" 2 'addresses must be free' --bridge br9
fails "refuses an address that is none" 2 '"10.0.0.300" is not ADDRESS/BITS' --bridge br9 --guests 10.0.0.300
fails "refuses more guests than there are addresses" 2 'no room for 10 addresses from 10.0.0.250 on' --bridge br9 \
	--guests 10.0.0.250/24 --workers 10
fails "a bridge that is not there: says how to see those that are" 1 'no interface br9: ip link show type bridge' --bridge br9 \
	--guests 10.0.0.100/24
fails "a job that is refused: says what sainad said" 1 'the job is refused: .*nosuch' --policy nosuch
equal "quickstart: leaves nothing behind when it fails, taps and bridge included" "" "$(leftovers)"
in_ns ip link add br9 type bridge
fails "a bridge without an IPv4 address: says how to give it one" 1 'br9 has no IPv4 address: ip addr add .* dev br9' --bridge br9 \
	--guests 10.0.0.100/24
in_ns ip link del br9

# 2. Guests on a bridge of its own, and on one that is there
# all_right NAME WORKERS ROUNDS: the run ended with status 0, and each worker says that every sum was right
all_right() {
	equal "guests, $1: the quickstart ends with status 0" "0: " "$output" || diag "$(grep -v ' run (' "$WORK/$1.out")"
	equal "guests, $1: each of the $2 says that every sum was right, and nothing was relayed" "$2 $2" \
		"$(grep -cE "^  worker [0-9]: $3 rounds, segments exact [1-9][0-9]*, wrong 0, unverified 0;.* relayed 0;" "$WORK/$1.out") $(
		grep -oE 'all [0-9]+ workers ended well' "$WORK/$1.out" | tr -dc 0-9)"
}

quickstart own --rounds 50
control own
check "guests, own: the job runs" slowwait 200 job_runs
equal "guests, own: every port has tc by itself" "tc auto" "$(saina_jq port show '[.[]|"\(.mode) \(.hook)"]|unique|join(", ")')"
ended own
all_right own 2 50
equal "guests, own: leaves nothing behind" "" "$(leftovers)"

check "guests, there: a bridge is made" in_ns ip link add br9 type bridge
check "guests, there: the bridge has an address" in_ns ip addr add 10.9.0.1/24 dev br9
check "guests, there: the bridge is up" in_ns ip link set br9 up
quickstart there --bridge br9 --guests 10.9.0.100/24 --workers 3 --policy fastest:k=2 --kernel 6.12 --rounds 20
ended there
all_right there 3 20
equal "guests, there: leaves the bridge, and nothing else" br9 "$(leftovers | sed -E 's/^[0-9]+: ([^:@]+).*/\1/')"
in_ns ip link del br9

# 3. Open vSwitch's userspace datapath
ovs_up() {
	in_ns mkdir -p /run/openvswitch &&
		in_ns ovsdb-tool create /run/ovs.db /usr/share/openvswitch/vswitch.ovsschema &&
		in_ns ovsdb-server /run/ovs.db --remote=punix:/run/openvswitch/db.sock --pidfile --no-chdir --detach \
			--log-file=/run/ovsdb.log --verbose=console:off &&
		in_ns ovs-vsctl --no-wait init &&
		in_ns ovs-vswitchd --pidfile --no-chdir --detach --log-file=/run/vswitchd.log --verbose=console:off &&
		in_ns ovs-vsctl add-br br9 -- set bridge br9 datapath_type=netdev fail-mode=standalone &&
		in_ns ethtool -K br9 tx off >/dev/null &&
		in_ns ip addr add 10.9.0.1/24 dev br9 && in_ns ip link set br9 up
}
check "guests, ovs: Open vSwitch with a bridge is started" ovs_up
# Only the bridge answers ARP for its address.  If the guest's own tap answered, frames would bypass
# Open vSwitch.
in_ns sysctl -qw net.ipv4.conf.all.arp_ignore=1
quickstart ovs --bridge br9 --guests 10.9.0.100/24 --rounds 50
control ovs
check "guests, ovs: the job runs" slowwait 200 job_runs
equal "guests, ovs: every port has XDP by itself" "native auto" "$(saina_jq port show '[.[]|"\(.mode) \(.hook)"]|unique|join(", ")')"
ended ovs
all_right ovs 2 50
equal "guests, ovs: leaves no port behind" "" "$(in_ns ovs-vsctl list-ports br9)"
in_ns ovs-vsctl del-br br9
in_ns ovs-appctl exit --cleanup
in_ns ovs-appctl -t ovsdb-server exit

# 4. Ctrl-C
ctrl_c 'creating bridge' 0
ctrl_c 'starting sainad' 0
for seconds in 0 0.2 1 5; do
	ctrl_c 'booting guest 0' $seconds
done
finished
