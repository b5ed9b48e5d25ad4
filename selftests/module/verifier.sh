#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# With saina.ko loaded the programs that call it load, and stay well below the verifier's limit.
# In the test VM (selftests/in-vm).
set -e
insmod "$SAINA_TEST_MODULE"
exec "$SAINA_BUILD/selftests/verifier_test" saina_xdp_kmod.bpf.o saina_tc_kmod.bpf.o
