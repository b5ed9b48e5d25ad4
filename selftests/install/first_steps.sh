#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The first commands of a new user, as Documentation/containers.rst has them: on a clean Debian 12
# with the packages at hand, from apt to PyTorch's DDP in two stock containers of Podman.
#
#     a Debian 12 made by mmdebstrap, changes to it in memory; namespaces of its own:
#     apt install, sainad, bridge podman1 --- containers 0 and 1: python3 ddp.py
#
# 1. The commands are those of the document
# 2. A clean Debian, and the packages at hand
# 3. The commands

set -u
top=$(readlink -f "$(dirname "$0")/../..")
# shellcheck source=../tap.sh
. "$top/selftests/tap.sh"
skip() {
	echo "1..0 # SKIP $1"
	exit 4
}
[ "$(id -u)" = 0 ] || skip "needs root"
for tool in mmdebstrap lintian; do
	command -v $tool >/dev/null || skip "$tool is not installed"
done
doc=$top/Documentation/containers.rst
cache=$("$top/selftests/vm/saina-vm" cache)
clean=$cache/debian-12 version=$(cat "$top/VERSION")
tmp=$(mktemp -d) cgroup=/saina-first-$$ ns_pid=
mount -t tmpfs first-steps "$tmp" || bail "no tmpfs"
undo() {
	[ -z "$ns_pid" ] || kill -KILL "$ns_pid" 2>/dev/null
	wait 2>/dev/null
	find /sys/fs/cgroup -depth -type d -path "*$cgroup/*" -exec rmdir {} + 2>/dev/null
	find /sys/fs/cgroup -depth -type d -path "*$cgroup" -exec rmdir {} + 2>/dev/null
	umount -R "$tmp" 2>/dev/null || umount -l "$tmp"
	rmdir "$tmp"
}
trap undo EXIT
trap 'exit 130' INT TERM HUP

# 1. The commands are those of the document
install=$(sed -n 's/^    \(apt install .*\)/\1/p' "$doc" | head -n 1)
start=$(sed -n 's|^    \(/usr/share/saina/quickstart/podman .*\)|\1|p' "$doc" | head -n 1)
[ -n "$install" ] && [ -n "$start" ]
point $? "first steps: containers.rst has an apt install and a quickstart" || bail "no commands in $doc"

# 2. A clean Debian, and the packages at hand
echo "# building the packages"
DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS-parallel=$(nproc)} "$top/tools/deb" "$tmp/debs" >"$tmp/output" 2>&1 || bail "no packages: $(tail -n 30 "$tmp/output")"
mkdir "$tmp/ours"
mv "$tmp"/debs/*_"${version}"_*.deb "$tmp/ours/"
made="$install
$(for deb in "$tmp"/ours/*.deb; do dpkg-deb -f "$deb" Depends Recommends; done)"
exec 9>"$cache/debian-12.lock"
flock 9
if [ ! -e "$clean.made" ] || [ "$(cat "$clean.made")" != "$made" ]; then
	echo "# making a Debian 12: some minutes"
	rm -f "$clean.made"
	# The packages of Debian that the command needs are downloaded by the same command.
	"$top/selftests/vm/new-root" "$clean" --variant=minbase --mode=root --skip=cleanup/apt,cleanup/tmp,cleanup/reproducible \
		--customize-hook="copy-in $tmp/ours /mnt" \
		--customize-hook="chroot \"\$1\" sh -c 'cd /mnt/ours && ${install/install/install -qq -y --download-only -o APT::Sandbox::User=root -o APT::Install-Recommends=true}'" \
		--customize-hook="rm -r \"\$1\"/mnt/ours" \
		bookworm "$clean" "deb http://deb.debian.org/debian bookworm main" \
		"deb http://deb.debian.org/debian bookworm-updates main" \
		"deb http://deb.debian.org/debian-security bookworm-security main" >"$tmp/output" 2>&1 </dev/null ||
		bail "mmdebstrap: $(tail -n 20 "$tmp/output")"
	echo "$made" >"$clean.made"
fi
exec 9>&-

mkdir "$tmp"/{changed,work,root}
mount -t overlay first-steps -o "lowerdir=$clean,upperdir=$tmp/changed,workdir=$tmp/work" "$tmp/root" || bail "no overlay"
cp "$tmp"/ours/*.deb "$tmp/root/root/"
unshare --net --mount --pid --uts --ipc --fork --kill-child sleep infinity &
ns_pid=$!
until ns_init=$(pgrep -P "$ns_pid" -x sleep); do
	kill -0 "$ns_pid" 2>/dev/null || bail "no namespaces"
	read -rt 0.1 <> <(:)
done

# in_ns COMMAND: runs it in the namespaces and the root of the clean Debian, by bash
in_ns() {
	nsenter -t "$ns_init" --net --mount --pid --uts --ipc --root="/proc/$ns_init/root$tmp/root" --wd="/proc/$ns_init/root$tmp/root/root" -- \
		env -i HOME=/root TERM=dumb LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		ENGINE_OPTIONS="$engine_options" RUN_OPTIONS="$run_options" bash -c "$1"
}
# How Podman runs here, without systemd.
engine_options="--runtime runc --cgroup-manager=cgroupfs --storage-driver vfs --events-backend none"
run_options="--cgroup-parent $cgroup --ulimit nofile=1024:1024 --ulimit nproc=1024:1024"
# shellcheck disable=SC2016 # for the inner shell
nsenter -t "$ns_init" --net --mount --pid -- sh -ec '
	mount --make-rprivate /
	cd "$1"
	mount -t proc proc proc
	mount -t sysfs sysfs sys
	mount --rbind /sys/fs/cgroup sys/fs/cgroup
	mount -t bpf bpf sys/fs/bpf
	mount --rbind /dev dev
	mount -t tmpfs tmpfs run
	mount -t tmpfs tmpfs tmp
	ip link set lo up' sh "$tmp/root" || bail "no namespaces"

# 3. The commands
began=$SECONDS
ran() { # DESCRIPTION COMMAND
	in_ns "$2" >"$tmp/out" 2>"$tmp/output" </dev/null
	point $? "$1" || { diag "$2"; diag "$(tail -n 20 "$tmp/out" "$tmp/output")"; }
}
# apt asks before it installs further packages.
ran "first steps: apt installs PyTorch, Podman and the packages" "${install/install/install -y}"
installed=$((SECONDS - began))
ran "first steps: PyTorch trains on two containers" "$start"
diag "2 commands, $((SECONDS - began)) s, $installed of them for apt"
output=$(sed -n 's/.*rank [01]: 2 ranks, model \([0-9a-f]*\)$/\1/p' "$tmp/out" | sort | uniq -c | xargs)
[ "${output%% *}" = 2 ] && [ -n "${output#* }" ]
point $? "first steps: both ranks have the same model" || diag "$output" "$(tail -n 20 "$tmp/out")"
# shellcheck disable=SC2016 # for the inner shell
check "first steps: neither containers nor an agent are left" \
	[ "$(in_ns 'podman $ENGINE_OPTIONS ps -aq; cat /proc/[0-9]*/comm | grep -cx sainad' 2>&1)" = 0 ]
plan
