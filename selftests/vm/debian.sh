# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2154 # saina-vm sets what looks unset
#
# The root of the VM with --debian: a Debian 12 with systemd, the kernel's own packages, DKMS
# and what SAINA's packages depend on; made by mmdebstrap, once for each version of the kernel.
# Sourced by selftests/vm/saina-vm.
#
# $cache/KERNEL/debian/	the root

# Installed in the image, because an emulated processor takes long to unpack them.
DEBIAN_PACKAGES=(
	systemd-sysv udev dbus procps iproute2 libcap2-bin dkms linux-headers-amd64
	python3-cffi python3-numpy libopenmpi3
)
# Only downloaded: apt finds them in the image, without a network.
DEBIAN_ARCHIVES=(
	bash-completion ethtool libbpf1 libconfig9 libelf1 libjansson4 libmicrohttpd12 libmnl0 libncurses6
)

# need_debian KERNEL: makes $cache/KERNEL/debian unless it is there and current.
need_debian() {
	local tree=$cache/$1/debian rel

	[ "$1" = 6.1 ] || usage_error "--debian needs kernel 6.1, which is that of Debian 12"
	[ "$(id -u)" -eq 0 ] || die "--debian needs root"
	exec 9>"$cache/debian.lock"
	flock 9
	if [ ! -d "$tree" ] || [ "$here/debian.sh" -nt "$tree.made" ]; then
		rel=$(cat "$cache/$1/release")
		note "building a Debian 12 with kernel $rel; this takes some minutes"
		make_debian "$tree" "$rel"
	fi
	exec 9>&-
}

make_debian() {
	local tree=$1 rel=$2 all log

	command -v mmdebstrap >/dev/null || die "mmdebstrap is missing: run tools/install-deps full"
	all=$(IFS=,; echo "linux-image-$rel,linux-headers-$rel,${DEBIAN_PACKAGES[*]}")
	log=$cache/debian.log
	# INITRD: the kernel's package makes no initrd, which takes minutes; saina-vm has one.
	# shellcheck disable=SC2016 # $1 is the hook's
	INITRD=No "$here/new-root" "$tree.new" --variant=minbase --mode=root --skip=cleanup/apt,cleanup/tmp,cleanup/reproducible \
		--include="$all" --dpkgopt='force-unsafe-io' \
		--customize-hook="chroot \"\$1\" apt-get -qq -o APT::Sandbox::User=root install -y --download-only ${DEBIAN_ARCHIVES[*]}" \
		--customize-hook='echo saina-vm >"$1/etc/hostname"' \
		bookworm "$tree.new" \
		"deb http://deb.debian.org/debian bookworm main" \
		"deb http://deb.debian.org/debian bookworm-updates main" \
		"deb http://deb.debian.org/debian-security bookworm-security main" \
		2>&1 </dev/null | tee "$log" | sed -un 's/^I: /saina-vm: /p' >&2
	[ "${PIPESTATUS[0]}" = 0 ] || { tail -n 20 "$log" >&2; die "mmdebstrap failed, see $log"; }
	rm -rf "$tree"
	mv "$tree.new" "$tree"
	touch "$tree.made"
}
