#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Debian 13's Python 3.13 and PyTorch 2.6, with the same package and library: the backend of torch.distributed, and
# the hook, in a / made by mmdebstrap (1.5 GB), which is kept in saina-vm's cache.
#
#     this host: lab, agent, libsaina --- the ranks: chroot to a Debian 13, which has this host's /tmp and source tree
#
#	trixie.sh [SCRIPT ARG...]	runs a script beside this one (c10d.sh, with the cases below)

set -u
top=$(readlink -f "$(dirname "$0")/../..")
skip() {
	echo "1..0 # SKIP $1"
	exit 4
}
[ "$(id -u)" = 0 ] || skip "needs root"
command -v mmdebstrap >/dev/null || skip "mmdebstrap is not installed"
root=$("$top/selftests/vm/saina-vm" cache)/trixie-torch
packages=python3-torch,python3-cffi-backend,python3-numpy
exec 9>"$root.lock"
flock 9
if [ "$(cat "$root.made" 2>/dev/null)" != "$packages" ]; then
	echo "# making a Debian 13 with PyTorch: some minutes"
	rm -f "$root.made"
	"$top/selftests/vm/new-root" "$root" --variant=minbase --mode=root --skip=cleanup/tmp,cleanup/reproducible --include=$packages \
		trixie "$root" "deb http://deb.debian.org/debian trixie main" >"$root.log" 2>&1 </dev/null || {
		tail -n 20 "$root.log" | sed 's/^/# /'
		echo "Bail out! no Debian 13, see $root.log"
		exit 1
	}
	echo $packages >"$root.made"
fi
exec 9>&-
[ $# -gt 0 ] || set -- c10d.sh types exact async ddp beside refuse skip ddp_fails
# Mounts of its own, which end with it.
# shellcheck disable=SC2016 # for the inner shell
exec unshare --mount --propagation private sh -ec '
	root=$1 top=$2
	shift 2
	for d in /proc /sys /dev /run /tmp; do
		mount --rbind $d "$root$d"
	done
	mkdir -p "$root$top"
	mount --bind "$top" "$root$top"
	script=$1
	shift
	SAINA_TEST_ROOT=$root exec "$top/selftests/net/$script" "$@"' sh "$root" "$top" "$@"
