#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The XDP programs without their agent: they load and attach, foreign frames pass, and the
# variant that calls saina.ko holds a reference to it.
#
#     namespace:  p0 [XDP] 192.0.2.1 ==== p1 (namespace of its own) 192.0.2.2

# shellcheck disable=SC2317 # ok() calls them
here=$(dirname "$(readlink -f "$0")")
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP needs root"; exit 4; }
# Mount and network namespaces of its own, which end with this script.
[ "${1-}" = --inside ] || exec unshare -m -n --propagation private "$0" --inside
mount -t bpf bpf /sys/fs/bpf || { echo "Bail out! no bpf file system"; exit 1; }

n=0 bad=0
ok() { # DESCRIPTION COMMAND...
	local said
	n=$((n + 1))
	if said=$("${@:2}" 2>&1); then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		echo "# ${said//$'\n'/$'\n# '}"
		bad=1
	fi
}

other() { # COMMAND...: in the namespace of p1
	nsenter -t "$peer" -n "$@"
}

attached() {
	ip -d link show p0 | grep -q 'prog/xdp\|xdp id'
}

refcnt() {
	cat /sys/module/saina/refcnt
}

unshare -n sleep 1000 &
peer=$!
trap 'kill $peer' EXIT
until [ "$(readlink "/proc/$peer/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do
	kill -0 "$peer" || exit 1
done
ip link add p0 type veth peer name p1 netns "$peer"
ip addr add 192.0.2.1/24 dev p0
ip link set p0 up
other ip addr add 192.0.2.2/24 dev p1
other ip link set p1 up

# load_and_attach NAME OBJECT
load_and_attach() {
	ok "$1: the kernel takes the programs" bpftool prog loadall "$here/$2" "/sys/fs/bpf/$1"
	ok "$1: the XDP program is attached to a veth" ip link set p0 xdp pinned "/sys/fs/bpf/$1/saina_xdp"
	ok "$1: the program is shown on the link" attached
	ok "$1: frames of others pass in both directions" other ping -c 3 -i 0.1 -W 5 -q 192.0.2.1
}

unload() {
	ip link set p0 xdp off && rm -r "/sys/fs/bpf/$1"
}

not() {
	! "$@"
}

# The kernel frees a program a moment after its last user.
released() {
	local i
	for ((i = 0; i < 100; i++)); do
		[ "$(refcnt)" != 0 ] || return 0
		sleep 0.1
	done
	echo "saina.ko has $(refcnt) users"
	return 1
}

load_and_attach saina_xdp saina_xdp.bpf.o
ok "saina_xdp: is detached" unload saina_xdp
if [ -d /sys/module/saina ]; then
	load_and_attach saina_xdp_kmod saina_xdp_kmod.bpf.o
	ok "saina_xdp_kmod: holds saina.ko" [ "$(refcnt)" -gt 0 ]
	ok "saina_xdp_kmod: saina.ko cannot be unloaded" not rmmod saina
	ok "saina_xdp_kmod: is detached" unload saina_xdp_kmod
	ok "saina_xdp_kmod: saina.ko is released" released
else
	n=$((n + 1))
	echo "ok $n - saina_xdp_kmod # SKIP saina.ko is not loaded"
fi
echo "1..$n"
exit $bad
