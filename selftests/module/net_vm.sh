#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The tests of selftests/net again, in the test VM, with the jobs in saina.ko and
# Open vSwitch's kernel datapath; one VM for each kernel, all at once.  TAP; each
# point says kernel and test.
#
#	selftests/module/net_vm.sh [KERNEL...]
#	TESTS="basic agent" selftests/module/net_vm.sh 6.12	only these
#	selftests/module/net_vm.sh --guest MODULE TEST...	(in the VM)

# In there a program takes 10 to 20 times as long as on the host: so much longer are
# deadlines, and so much less is moved where a test moves data for its own sake.
# What runs on both kinds of bridge on the host runs on Open vSwitch's alone.
settings=(
	-e SAINA_SLOW=10 -e SAINA_TEST_SHRINK=5 -e SAINA_TEST_BRIDGES=ovs
	-e SAINA_TEST_PLANE=kernel -e SAINA_LAB_DATAPATH=system
)

# Not in here, and why.
declare -A without=(
	[demo]="make demo-vm is this one in the VM"
	[lab]="the lab without an agent: saina.ko has no part in it"
	[many]="two emulated processors have to be idle for 64 workers to join in time"
	[tap]="starts VMs of its own"
)

# shellcheck source=vm.sh
. "$(dirname "$(readlink -f "$0")")/vm.sh"

in_vm() { # KERNEL MODULE
	vm_run "$1" -t 3000 "${settings[@]}" -- \
		"$MODULE_DIR/net_vm.sh" --guest "$2" "${tests[@]}"
}

if [ "${1-}" != --guest ]; then
	read -ra tests <<<"${TESTS-}"
	if [ ${#tests[@]} = 0 ]; then
		while read -r t; do
			if [ -n "${without[$t]-}" ]; then
				echo "# without net/$t: ${without[$t]}"
			else
				tests+=("$t")
			fi
		done < <(sed -n 's|^selftests/net/\(.*\)\.sh$|\1|p' "$B/tests.list")
	fi
	vm_kernels in_vm "$@"
	exit
fi

module=$2
shift 2
export SAINA_TEST_RUN=vm
# shellcheck source=../tap.sh
. "$MODULE_DIR/../tap.sh"

# What one test said, with the test's name at each point.
pass_on() { # TEST STATUS LOG
	local line said=0 bad=0 plan='' re='^(not )?ok [0-9]* *-? *(.*)$'
	while IFS= read -r line; do
		if [[ $line =~ $re ]]; then
			said=$((said + 1))
			[ -z "${BASH_REMATCH[1]}" ] || bad=1
			[ -z "${BASH_REMATCH[1]}" ]
			point $? "$SAINA_VM net/$1: ${BASH_REMATCH[2]}"
		elif [[ $line == 1..* ]]; then
			plan=${line#1..}
		elif [[ $line == "Bail out!"* ]]; then
			bad=1
			point 1 "$SAINA_VM net/$1: $line"
		elif [ -n "$line" ]; then
			echo "# ${line#\# }"
		fi
	done <"$3"
	if [ "$2" = 124 ] || [ "$2" = 137 ]; then
		point 1 "$SAINA_VM net/$1: does not end"
	elif [ "$plan" != $said ] && [ $bad = 0 ]; then
		point 1 "$SAINA_VM net/$1: announced ${plan:-no} results and gave $said (exit status $2)"
	elif [ "$2" != 0 ] && [ $bad = 0 ]; then
		point 1 "$SAINA_VM net/$1: exit status $2"
	fi
}

left_over() {
	find /run/netns /run/saina-lab -mindepth 1 -maxdepth 1 -printf '%p ' 2>/dev/null
	[ "$(cat /sys/module/saina/refcnt)" = 0 ] || echo "somebody uses saina.ko"
}

no_left_over() {
	[ -z "$(left_over)" ]
}

insmod "$module" && modprobe openvswitch
point $? "$SAINA_VM saina.ko and openvswitch.ko are loaded"
for t; do
	start=$SECONDS
	# The same room for all: it is there to end what hangs.
	timeout -k 60 1500 "$MODULE_DIR/../net/$t.sh" >"/tmp/$t.log" 2>&1 </dev/null
	pass_on "$t" $? "/tmp/$t.log"
	# The kernel frees programs a moment after their last user.
	for ((i = 0; i < 100; i++)); do
		no_left_over && break
		sleep 0.1
	done
	no_left_over || point 1 "$SAINA_VM net/$t: left behind: $(left_over)"
	echo "# $SAINA_VM net/$t: $((SECONDS - start)) s"
done
rmmod saina
point $? "$SAINA_VM nothing holds saina.ko"
plan
