#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The programs that take jobs and additions from saina.ko load where it is, with room below the
# verifier's limit.  In the test VM (selftests/in-vm).
set -e
insmod "$SAINA_TEST_MODULE"
exec "$SAINA_BUILD/selftests/verifier_test" saina_xdp_kmod.bpf.o saina_tc_kmod.bpf.o
