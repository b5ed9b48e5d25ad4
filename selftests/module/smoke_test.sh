#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Whether a kernel takes it all: both variants of the XDP program train on a Linux
# bridge, that of saina.ko with integers and with floats.
#
# In the test VM (selftests/in-vm); TAP.

here=$(dirname "$(readlink -f "$0")")
# shellcheck source=../net/lib.sh
. "$here/../net/lib.sh"

# rounds NAME TYPE
rounds() {
	job "$1" workers 2 elements 2003 type "$2"
	start_all "$1" 5 2 --elements 2003
	check "$1: two workers find every sum of five rounds right" wait_all 60
	check "$1: both workers get the same results" same_results 0 1
	saina job del "$1"
}

PLANE=agent SAINA_CONTROL=$AGENT_SOCKET tool_opts=()
lab_up --workers 2 --bridge linux
rounds "int32-agent" int32
lab_down

PLANE=kernel SAINA_CONTROL=kernel tool_opts=(-n "saina-$LAB-sw")
check "saina.ko can be loaded" insmod "$SAINA_TEST_MODULE"
lab_up --workers 2 --bridge linux
rounds "int32-kernel" int32
rounds "float32-kernel" float32
lab_down
check "saina.ko can be removed" until_true 20 rmmod saina
finished
