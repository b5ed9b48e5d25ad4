#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# saina.ko by itself: configuration, kfuncs, programs, memory; then MESSAGES random
# messages (of seed SEED, 1) and LOOPS times insmod and rmmod under traffic.
#
#	guest.sh MESSAGES LOOPS
#
# In the test VM (selftests/in-vm); TAP.

set -u
ko=$SAINA_TEST_MODULE B=$SAINA_BUILD messages=$1 loops=$2
here=$(dirname "$(readlink -f "$0")")
export PYTHONDONTWRITEBYTECODE=1 SAINA_CONTROL=kernel
# shellcheck source=../tap.sh
. "$here/../tap.sh"

# module_out: rmmod, as soon as nobody uses it.
module_out() {
	local i
	for ((i = 0; i < 500; i++)); do
		rmmod saina 2>/dev/null && return
		sleep 0.02
	done
	return 1
}

# TAP numbers begin anew in each program: only what they say counts here.
run() { # NAME COMMAND...
	local name=$1 out
	shift
	out=$("$@" 2>&1)
	local status=$?
	grep -E '^(# |not ok)|^Traceback|Error' <<<"$out" | sed 's/^not ok/# not ok/'
	[ $status = 0 ] && ! grep -q '^not ok\|^Bail out' <<<"$out"
	point $? "$name ($(grep -c '^ok' <<<"$out") points)"
}

insmod "$ko"
point $? "insmod"
run "netlink: commands and refusals" "$here/netlink_test.py"
run "bad input" "$here/bad_input_test.py"
run "kfuncs" "$B/selftests/kfunc_test" "$B/selftests/kfunc_test.bpf.o"
run "the XDP program that asks the module" "$B/selftests/xdp_kmod_test" "$B/saina_xdp_kmod.bpf.o" \
	"$B/selftests/kfunc_test.bpf.o"
run "jobs of floats in it" "$B/selftests/xdp_float_test" "$B/saina_xdp_kmod.bpf.o" \
	"$B/selftests/kfunc_test.bpf.o"
run "tracepoints" "$B/selftests/tracepoint_test" "$B/selftests/tracepoint_test.bpf.o"
run "jobs come and go under traffic" "$B/selftests/live_test" "$B/selftests/live_test.bpf.o"
run "memory" "$here/leak_test.py"
run "as many jobs as there can be" "$B/selftests/netlink_bench"
run "several processes at once" "$B/selftests/netlink_storm"
run "fuzzing" "$B/selftests/netlink_fuzz" -n "$messages" -p 4 -s "${SEED:-1}"
"$B/saina" -j job show >/dev/null && "$B/saina" -j worker show >/dev/null
point $? "after it, everything can still be read"
# While the module is there, a report can name its functions.
[ ! -w /sys/kernel/debug/kmemleak ] || run "kmemleak" "$here/leakscan.sh"
module_out
point $? "rmmod with what fuzzing has left"
! "$B/saina" job show 2>/dev/null
point $? "without the module, the tool says so"

# The module comes and goes under configuration traffic.
"$B/selftests/netlink_fuzz" -r -n 1000000000 -p 2 >/dev/null &
storm=$!
bad=0
for ((i = 0; i < loops; i++)); do
	insmod "$ko" || bad=$((bad + 1))
	module_out || bad=$((bad + 1))
done
point $bad "insmod and rmmod $loops times under traffic"
insmod "$ko"
kill $storm $(pgrep -P $storm)
wait $storm 2>/dev/null
module_out
point $? "rmmod at the end"
plan
