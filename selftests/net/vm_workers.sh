#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Workers in virtual machines: two namespaces and two VMs (Debian's 6.1 and 6.12
# under selftests/vm/saina-vm) train in one job, the XDP program on the VMs' taps as on
# any other port.
#
#     saina-$LAB-sw: sainad, OVS br0 10.190.0.1
#       p0 |      p1 |      t2 |      t3 |        <- native XDP
#        veth      veth       tap       tap
#         w0        w1     VM 6.1    VM 6.12      10.190.0.10 .. .13
#
# 1. Taps are ports; two namespaces train while the VMs boot
# 2. All four in one job
# 3. fastest-k
# 4. A VM is killed and boots again
# 5. A Linux bridge, long frames, checksums left to the device

# shellcheck source=vm_lib.sh
. "$(dirname "$0")/vm_lib.sh"

# 1. Taps are ports; two namespaces train while the VMs boot
expected_log='worker 3 .* is dead'
lab_up --workers 2
check "tap t2 is added to the switch" lab tap add t2
check "tap t3 is added to the switch" lab tap add t3
check "tap add: a name that is taken is refused" not lab tap add p0
check "tap del: a device that is no tap is refused" not lab tap del br0
check "both taps are ports of the switch" slowwait 20 ports_are 4
equal "every port, veth or tap, has native XDP" "native veth native veth native tun native tun" \
	"$(saina_jq port show 'map("\(.mode) \(.driver)")|join(" ")')"
# 1 is XDP_ATTACHED_DRV
equal "the kernel shows native XDP on both taps" "1 1" \
	"$(for i in 2 3; do ip -n "saina-$LAB-sw" -j -d link show "t$i" | jq '.[0].xdp.mode'; done | xargs)"
vm_start 2 6.1 1500 tx off
vm_start 3 6.12 1500 tx off

# Taps that no process has opened yet do not disturb the workers on other ports.
job alone workers 2 elements 10007 payload 256 policy bsp
start_all alone 20 2 --elements 10007
check "two namespaces train while the VMs boot: all sums are exact" wait_all 60
check "two namespaces train while the VMs boot: both have the same results" same_results 0 1
saina job del alone

vm_check_up 2 300
vm_check_up 3 300

# 2. All four in one job
# reduce NAME PAYLOAD TYPE ELEMENTS ROUNDS
reduce() {
	job "$1" workers 4 elements "$4" payload "$2" policy bsp dead 60000
	vm_worker 2 "$1" "$5" --type "$3" --elements "$4"
	vm_worker 3 "$1" "$5" --type "$3" --elements "$4"
	start_all "$1" "$5" 2 --type "$3" --elements "$4"
	check "$1: two namespaces and two VMs: all sums are exact" all_ended 180 2 3
	check "$1: all workers have the same results" same_results 0 1 2 3
	equal "$1: all rounds and segments are there, all four workers in each" \
		"$5 $(($5 * (($4 + $2 - 1) / $2))) 0 4 4" \
		"$(summary 3 rounds exact unverified) $(minmax 3 count_min count_max)"
	equal "$1: the results of every worker are redirected" "fast fast fast fast" \
		"$(saina_jq worker show "$1" 'map(.results)|join(" ")')"
	equal "$1: no result is relayed" 0 "$(counter "$1" all relayed)"
	equal "$1: the workers in VMs are on the ports of their taps" "t2 t3" \
		"$(saina_jq worker show "$1" 'map(select(.worker > 1).port)|join(" ")')"
	saina job del "$1"
}

reduce int32 352 int32 10007 20
reduce float32 256 float32 10007 10

# 3. fastest-k
# The ring keeps the rounds of 3 s, in case the host does not run a VM for a while.
job fast workers 4 elements 4096 payload 256 ring 64 policy fastest:k=2 dead 60000
vm_worker 2 fast 1000000 --elements 4096 --cancel --think-us 50000
vm_worker 3 fast 1000000 --elements 4096 --cancel --think-us 50000
start_all fast 1000000 2 --elements 4096 --cancel --think-us 50000
check "fastest-k: rounds flow" slowwait 120 rounds_at_least fast 50
stop_workers
vm_workers_stop 2 3
check "fastest-k: all sums are exact" all_ended 120 2 3
check "fastest-k: all workers have the same results" same_results 0 1 2 3
matches "fastest-k: some segments of the VMs were late" "^[0-9]*[1-9][0-9]* [0-9]+$|^[0-9]+ [0-9]*[1-9]" \
	"$(summary 2 late_segments) $(summary 3 late_segments)"
# Only rounds in which all four workers took part.
equal "fastest-k: every sum has two to four contributors" "" \
	"$(jq -c 'select(.round < 50 and (.count_min < 2 or .count_max > 4))' "$WORK/0.log")"
saina job del fast

# 4. A VM is killed and boots again
job life workers 4 elements 4096 payload 256 policy bsp heartbeat 100 dead 10000
vm_worker 2 life 1000000 --elements 4096 --think-us 5000 --restarts
vm_worker 3 life 1000000 --elements 4096 --think-us 5000 --restarts
start_all life 1000000 2 --elements 4096 --think-us 5000 --restarts
check "BSP: rounds flow" slowwait 120 rounds_at_least life 20
check "BSP: a VM is killed" vm_kill 3
check "BSP: the worker of a killed VM is declared dead" slowwait 120 worker_state_is life 3 dead
at=$(job_field life round)
check "BSP: rounds go on without the killed VM" slowwait 120 rounds_at_least life $((at + 20))
equal "BSP: the tap of a killed VM is still a port" "native" "$(saina_jq port show t3 '.[0].mode')"
check "BSP: the killed VM has ended" slowwait 60 pid_gone "${vm_pids[3]}"
vm_start 3 6.12 1500 tx off
vm_check_up 3 300
vm_worker 3 life 1000000 --elements 4096 --think-us 5000 --restarts
check "BSP: the worker of a VM that boots again joins" slowwait 120 worker_state_is life 3 alive
at=$(job_field life round)
check "BSP: the worker of a VM that boots again is counted" slowwait 120 counted_in 0 3 $((at + 3))
stop_workers
vm_workers_stop 2 3
check "BSP: a VM dies and comes back: all sums are exact" all_ended 120 2 3
check "BSP: a VM dies and comes back: all workers have the same results" same_results 0 1 2 3
saina job del life

check "tap t3 is removed" lab tap del t3
check "a removed tap is no longer a port" slowwait 20 ports_are 3
vm_end 2
vm_end 3
lab_down

# 5. A Linux bridge, long frames, checksums left to the device
# The tun driver gives the program no frame that is longer than a page: the kernel does, as an skb.
expected_log='^$'
lab_up --workers 2 --bridge linux --hook xdp --mtu 9000
check "Linux bridge: tap t2 is added" lab tap add t2
check "Linux bridge: the tap is a port" slowwait 20 ports_are 3
equal "Linux bridge: the tap has native XDP" native "$(saina_jq port show t2 '.[0].mode')"
vm_start 2 6.1 9000
vm_check_up 2 300
for p in 352 2048; do
	job "linux$p" workers 3 elements 20011 payload $p policy bsp dead 60000
	vm_worker 2 "linux$p" 10 --elements 20011
	start_all "linux$p" 10 2 --elements 20011
	check "Linux bridge, mtu 9000, payload $p: all sums are exact" all_ended 180 2
	check "Linux bridge, mtu 9000, payload $p: all workers have the same results" same_results 0 1 2
	saina job del "linux$p"
done
vm_end 2
finished
