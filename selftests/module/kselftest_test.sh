#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# selftests/kselftest where a kernel tree would have it, net/saina, with the module's and
# the headers' sources: the kernel's own build installs it, and the kernel's own runner
# runs it in the test VM, with saina.ko and without.
#
# 1. The conventions, as far as files tell
# 2. A kernel tree with it
# 3. The kernel's runner in the VM, with saina.ko and without

set -u
top=$(readlink -f "$(dirname "$0")/../..")
# shellcheck source=../tap.sh
. "$top/selftests/tap.sh"
# shellcheck source=../lib/kernel_tree.sh
. "$top/selftests/lib/kernel_tree.sh"
B=${SAINA_BUILD:-$top/build}
# Not in /tmp, which is empty in the VM.
tmp=$(mktemp -d "$B/kselftest.XXXXXX") || exit 1
# One test looks at things as nobody.
chmod 755 "$tmp"
child=
trap '[ -z "$child" ] || { kill -TERM "$child"; wait "$child"; }; rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM HUP
unset MAKEFLAGS MAKELEVEL

# 1. The conventions, as far as files tell
cd "$top/selftests/kselftest" || exit 1
[ -s settings ] && ! grep -qvE '^(#.*|timeout=[0-9]+)$' settings
point $? "kselftest: settings has only what the kernel's runner knows"
! grep -qvE '^CONFIG_[A-Z0-9_]+=[ym]$' config && sort -c config
point $? "kselftest: config has only options, in order"
[ -z "$(find . -mindepth 1 -type d ! -name __pycache__)" ] && ! grep -rnE '\.\./\.\./(userland|tools|selftests)' .
point $? "kselftest: the folder needs nothing else of the project"

# 2. A kernel tree with it
tree=$(kernel_tree "$top") || bail "no kernel sources"
linux=$tmp/linux
cp -r "$tree" "$linux"
kself=$linux/tools/testing/selftests
mkdir -p "$linux"/{drivers/net,include/uapi,Documentation/netlink/specs} "$kself/net"
cp -r "$top/kmod" "$linux/drivers/net/saina"
cp -r "$top"/uapi/* "$linux/include/uapi/"
cp "$top/Documentation/netlink/specs/saina.yaml" "$linux/Documentation/netlink/specs/"
cp -r "$top/selftests/kselftest" "$kself/net/saina"
# A planted test that fails: the runner must report it.
printf '#!/bin/sh\necho not ok 1 - planted; echo 1..1; exit 1\n' >"$kself/net/saina/planted_test.sh"
chmod 755 "$kself/net/saina/planted_test.sh"
sed -i 's/^TEST_PROGS := /&planted_test.sh /' "$kself/net/saina/Makefile"

make -C "$kself" TARGETS=net/saina KSFT_INSTALL_PATH="$tmp/inst" install >"$tmp/log" 2>&1
point $? "kselftest: make TARGETS=net/saina install" || diag "$(tail -n 20 "$tmp/log")"
rm -rf "$linux"
[ "$("$tmp/inst/run_kselftest.sh" -l | sort | xargs)" = "$(printf 'net/saina:%s\n' bad_input_test.py \
	leak_test.py netlink_test.py planted_test.sh xdp_test.sh | xargs)" ]
point $? "kselftest: run_kselftest.sh lists the tests" || diag "$("$tmp/inst/run_kselftest.sh" -l)"

# 3. The kernel's runner in the VM, with saina.ko and without
# in_vm FILE COMMAND: in the VM, with the installed tests
in_vm() {
	"$top/selftests/in-vm" 6.1 900 sh -c "$2" >"$1" 2>&1 </dev/null &
	child=$!
	wait "$child"
	child=
}

output_has() { # FILE ERE DESCRIPTION
	check "kselftest: $3" grep -qaE "^$2\$" "$1" || diag "$(grep -aE '^(not )?ok|^# not ok|^saina-vm' "$1")"
}

# leak_test needs a machine that does nothing else: guest.sh has that.
# shellcheck disable=SC2016 # the guest expands it
in_vm "$tmp/with" 'insmod "$SAINA_TEST_MODULE" && '"$tmp/inst/run_kselftest.sh"' -t net/saina:netlink_test.py \
	-t net/saina:bad_input_test.py -t net/saina:xdp_test.sh -t net/saina:planted_test.sh'
output_has "$tmp/with" 'TAP version 13' "the runner gives a TAP stream"
for t in netlink_test.py bad_input_test.py xdp_test.sh; do
	output_has "$tmp/with" "ok [0-9]+ selftests: net/saina: $t" "$t passes with saina.ko"
done
output_has "$tmp/with" 'not ok [0-9]+ selftests: net/saina: planted_test.sh # exit=1' "a planted test that fails is reported as failed"
output_has "$tmp/with" '# ok [0-9]+ - saina_xdp_kmod: holds saina.ko' "xdp_test.sh has used the variant of saina.ko"
in_vm "$tmp/without" "$tmp/inst/run_kselftest.sh -t net/saina:netlink_test.py -t net/saina:xdp_test.sh"
output_has "$tmp/without" 'ok [0-9]+ selftests: net/saina: netlink_test.py # SKIP' "netlink_test.py is skipped without saina.ko"
output_has "$tmp/without" 'ok [0-9]+ selftests: net/saina: xdp_test.sh' "xdp_test.sh passes without saina.ko"
plan
