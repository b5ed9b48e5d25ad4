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

# module_out: unloads saina.ko, as soon as nothing uses it.
module_out() {
	slowwait 10 rmmod saina
}

run() { # NAME COMMAND...: a test, with its points
	"${@:2}" >/tmp/run.log 2>&1 </dev/null
	pass_on "$1" $? /tmp/run.log
}

check "saina.ko is loaded" insmod "$ko"
run netlink_test "$here/../kselftest/netlink_test.py"
run bad_input_test "$here/../kselftest/bad_input_test.py"
run kfunc_test "$B/selftests/kfunc_test" "$B/selftests/kfunc_test.bpf.o"
run xdp_kmod_test "$B/selftests/xdp_kmod_test" "$B/saina_xdp_kmod.bpf.o" \
	"$B/selftests/kfunc_test.bpf.o"
run xdp_float_test "$B/selftests/xdp_float_test" "$B/saina_xdp_kmod.bpf.o" \
	"$B/selftests/kfunc_test.bpf.o"
run xdp_trace_test "$B/selftests/xdp_trace_test" -n $((messages > 200000 ? 20000 : messages / 10)) \
	-s "${SEED:-1}" "$B/saina_xdp_kmod.bpf.o" "$B/selftests/kfunc_test.bpf.o"
run xdp_trace_test-tc "$B/selftests/xdp_trace_test" -t -n $((messages > 200000 ? 20000 : messages / 10)) \
	-s "${SEED:-1}" "$B/saina_xdp_kmod.bpf.o" "$B/selftests/kfunc_test.bpf.o"
run tracepoint_test "$B/selftests/tracepoint_test" "$B/selftests/tracepoint_test.bpf.o"
run live_test "$B/selftests/live_test" "$B/selftests/live_test.bpf.o"
run unload_test "$B/selftests/unload_test"
insmod "$ko"
run leak_test "$here/../kselftest/leak_test.py"
run netlink_storm "$B/selftests/netlink_storm"
run netlink_fuzz "$B/selftests/netlink_fuzz" -n "$messages" -p 4 -s "${SEED:-1}"
"$B/saina" -j job show >/dev/null && "$B/saina" -j worker show >/dev/null
point $? "after fuzzing, jobs and workers can still be listed"
# Before rmmod, so that a report can name the module's functions.
[ ! -w /sys/kernel/debug/kmemleak ] || run leakscan "$here/leakscan.sh"
check "saina.ko is unloaded with the jobs that fuzzing has left" module_out
output=$("$B/saina" job show 2>&1)
[[ $? = 1 && $output == *"saina.ko is not loaded"* ]]
point $? "without saina.ko the tool fails and says that it is not loaded" || diag "$output"

# The module is loaded and unloaded under configuration traffic.
"$B/selftests/netlink_fuzz" -r -n 1000000000 -p 2 >/dev/null &
storm=$!
bad=0
for ((i = 0; i < loops; i++)); do
	insmod "$ko" || bad=$((bad + 1))
	module_out || bad=$((bad + 1))
done
point $bad "saina.ko is loaded and unloaded $loops times while requests are sent"
insmod "$ko"
kill $storm $(pgrep -P $storm)
wait $storm 2>/dev/null
check "saina.ko is unloaded at the end" module_out
plan
