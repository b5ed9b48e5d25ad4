#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The files that are generated from the YNL spec are current.  The generators are attrs-gen and the
# kernel's own ynl-gen-c.py (of Debian's linux-source-6.12, which is downloaded), which validates
# the spec against the kernel's schema.  TAP.

set -u
top=$(readlink -f "$(dirname "$0")/../..")
# shellcheck source=../tap.sh
. "$top/selftests/tap.sh"

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
output=$("$top/tools/netlink/generate" "$out" 2>&1)
point $? "the spec passes the kernel's schema, and all is generated" || diag "$output"
for f in uapi/linux/saina.h kmod/netlink/netlink_gen.h kmod/netlink/netlink_gen.c kmod/core/attrs_gen.h \
	kmod/core/attrs_gen.c; do
	output=$(diff -u "$top/$f" "$out/$f" 2>&1)
	point $? "$f is what is generated" || diag "$output"
done
plan
