#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The random traces of selftests/datapath with the jobs in saina.ko and the programs that
# ask it, by both hooks: PACKETS each for policies with rounds and for policies with steps, in
# episodes of EPISODE packets.  With rounds most policies of an episode are of one kind, and the
# kinds take turns.
#
#	traces.sh PACKETS EPISODE [NAME...]	only those of these names
#
# In the test VM (selftests/in-vm); TAP.

set -u
packets=$1 episode=$2
names=" ${*:3} "
# shellcheck source=../tap.sh
. "$(dirname "$(readlink -f "$0")")/../tap.sh"

traces() { # NAME PROGRAM [ARGUMENT...]
	[[ $names == "  " || $names == *" $1 "* ]] || return 0
	"$SAINA_BUILD/selftests/$2" --module --packets "$packets" --episode "$episode" "${@:3}" \
		>/tmp/run.log 2>&1 </dev/null
	pass_on "$1" $? /tmp/run.log
}

insmod "$SAINA_TEST_MODULE"
point $? "saina.ko is loaded"
traces xdp trace_test
traces tc trace_test --tc
traces xdp-ps ps_test
traces tc-ps ps_test --tc
for ((i = 0; i < 500; i++)); do
	rmmod saina 2>/dev/null && break
	sleep 0.02
done
check "saina.ko is unloaded after the traces" [ ! -d /sys/module/saina ]
plan
