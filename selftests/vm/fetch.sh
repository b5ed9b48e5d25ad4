# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2154 # saina-vm sets what looks unset
#
# Debian's kernels, unpacked below $cache/KERNEL/root and made relocatable:
# nothing of them is installed.  Sourced by selftests/vm/saina-vm.
#
# $cache/KERNEL/
#	version		package version fetched
#	release		the output of uname -r in the VM
#	root/		the packages, unpacked
#	vmlinux		the kernel as ELF: boots faster than vmlinuz, and has the BTF
#	initramfs	see image.sh

# need_packages [LIST]: installs the Debian packages in the file LIST (selftests/vm/packages).
# shellcheck disable=SC2120
need_packages() {
	local p missing=()

	while read -r p; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
	done <"${1:-$here/packages}"
	[ ${#missing[@]} -eq 0 ] && return
	[ "$(id -u)" -eq 0 ] ||
		die "these Debian packages are missing: ${missing[*]}; install them as root"
	note "installing ${missing[*]}"
	"$here/../../tools/apt-get" update || die "apt-get update failed"
	"$here/../../tools/apt-get" install -y --no-install-recommends "${missing[@]}" \
		>/dev/null || die "apt-get could not install ${missing[*]}"
}

# newest KERNEL: prints the release of the newest Debian kernel of that series that
# apt offers both as image and as headers; prints nothing if there is none.
newest() {
	comm -12 <(releases "linux-image" "$1") <(releases "linux-headers" "$1") | sort -V | tail -n 1
}

# releases PACKAGE KERNEL: prints the releases of which apt has PACKAGE-RELEASE.
releases() {
	apt-cache pkgnames "$1-$2." |
		sed -nE "s/^$1-(${2//./\\.}\.[0-9]+([-+~][a-z0-9.+~]*)*-amd64)\$/\1/p" |
		grep -vE -- '-(rt|cloud)-|dbg|unsigned' | sort
}

# kbuild_of RELEASE: prints the package with the build tools of that release.
kbuild_of() {
	apt-cache show --no-all-versions "linux-headers-$1" | sed -n 's/^Depends: //p' | tr ',' '\n' |
		sed -nE 's/^ *(linux-kbuild-[^ ]+).*/\1/p' | head -n 1
}

# version_of PACKAGE: prints the version that apt would download.
version_of() {
	apt-cache policy "$1" | sed -n 's/^ *Candidate: //p'
}

# need_kernel KERNEL: downloads $cache/KERNEL unless it is there, whatever its version.
need_kernel() {
	if [ "$1" = debug ]; then
		need_debug
		return
	fi
	# The old tree may be in use by a VM: only `fetch` looks for a newer one.
	[ -s "$cache/$1/version" ] && return
	fetch_kernel "$1"
}

# fetch_kernel KERNEL: downloads the newest one, unless that is there already.
fetch_kernel() {
	if [ "$1" = debug ]; then
		fetch_debug
		return
	fi
	local k=$1 new=$cache/$1.new rel kbuild version deb helper=

	# shellcheck disable=SC2119 # the list in selftests/vm/packages
	need_packages
	mkdir -p "$cache"
	exec 9>"$cache/lock"
	flock 9

	rel=$(newest "$k")
	if [ -z "$rel" ] && [ "$(id -u)" -eq 0 ]; then
		"$here/../../tools/apt-get" update || die "apt-get update failed"
		rel=$(newest "$k")
	fi
	[ -n "$rel" ] ||
		die "apt offers no image and headers of a $k kernel; add bookworm-security (and bookworm-backports) to its sources, then apt-get update"
	version=$(version_of "linux-image-$rel")
	if [ "$(cat "$cache/$k/version" 2>/dev/null)" = "$version" ]; then
		exec 9>&-
		return
	fi

	kbuild=$(kbuild_of "$rel")
	[ -n "$kbuild" ] || die "linux-headers-$rel names no linux-kbuild package"
	# 6.1 lacks resolve_btfids in its build tools; 6.12's does its work.
	if [ "$k" = 6.1 ]; then
		helper=$(newest 6.12)
		[ -n "$helper" ] || die "building modules for 6.1 needs a tool of the 6.12 kernel packages, which apt does not offer; add bookworm-security to its sources, then apt-get update"
		helper=$(kbuild_of "$helper")
	fi

	note "fetching Debian's $rel ($version)"
	rm -rf "$new"
	mkdir -p "$new/deb" "$new/root"
	# shellcheck disable=SC2086
	download "$new/deb" "linux-image-$rel" "linux-headers-$rel" \
		"linux-headers-${rel%-amd64}-common" "$kbuild" $helper
	for deb in "$new"/deb/*.deb; do
		dpkg -x "$deb" "$new/root" || die "cannot unpack $deb"
	done
	rm -rf "$new/deb"
	echo "$rel" >"$new/release"

	depmod -b "$new/root" "$rel" || die "depmod failed for $rel"
	unpack_vmlinux "$new/root/boot/vmlinuz-$rel" "$new/vmlinux"
	relocate_headers "$new" "$cache/$k" "$rel" "$helper"
	echo "$version" >"$new/version"
	rm -rf "${cache:?}/$k"
	mv "$new" "$cache/$k"
	exec 9>&-
}

# download DIRECTORY PACKAGE...
download() {
	local dir=$1
	shift
	# apt gives up its root rights for downloads where it can.
	[ "$(id -u)" -eq 0 ] && chmod 777 "$dir"
	if ! (cd "$dir" && "$here/../../tools/apt-get" -o APT::Sandbox::User=root download "$@"); then
		# The usual cause: the package lists are older than the archive.
		[ "$(id -u)" -eq 0 ] || die "cannot download $*; run apt-get update as root and try again"
		"$here/../../tools/apt-get" update || die "apt-get update failed"
		(cd "$dir" && "$here/../../tools/apt-get" -o APT::Sandbox::User=root download "$@") ||
			die "cannot download $*"
	fi
}

# unpack_vmlinux BZIMAGE OUT: finds the ELF kernel in BZIMAGE, as the kernel's
# scripts/extract-vmlinux does: it follows the magic number of a compressor.
unpack_vmlinux() {
	local magic tool off

	while read -r magic tool; do
		while read -r off; do
			# Other data follow the stream, so the tool's status says nothing.
			tail -c "+$((off + 1))" "$1" | $tool >"$2" 2>/dev/null
			readelf -h "$2" >/dev/null 2>&1 && return
		done < <(LC_ALL=C grep -abPo "$magic" "$1" | LC_ALL=C cut -d: -f1)
	done <<-'EOF'
		\xfd7zXZ\x00	xz -dc
		\x28\xb5\x2f\xfd	zstd -dc
		\x1f\x8b\x08	gzip -dc
		\x02\x21\x4c\x18	lz4 -dc
	EOF
	die "found no ELF kernel in $1"
}

# relocate_headers TREE FINAL RELEASE HELPER: prepares the headers in TREE so that, when
# TREE has been moved to FINAL, `make -C FINAL/headers M=...` builds a module with BTF.
# HELPER: package that has resolve_btfids; '': those of RELEASE have it.
relocate_headers() {
	local tree=$1 final=$2 rel=$3 helper=$4 common
	local headers=$tree/root/usr/src/linux-headers-$rel

	common=$final/root/usr/src/linux-headers-${rel%-amd64}-common
	echo "include $common/Makefile" >"$headers/Makefile"
	ln -s "root/usr/src/linux-headers-$rel" "$tree/headers"
	ln -sfn "../../../usr/src/linux-headers-$rel" "$tree/root/lib/modules/$rel/build"
	ln -sfn "../../../usr/src/linux-headers-${rel%-amd64}-common" "$tree/root/lib/modules/$rel/source"
	# Where kbuild looks for the BTF of the kernel and for the tool that
	# fills in its IDs; 6.12's packages have both there.
	[ -e "$headers/vmlinux" ] || ln "$tree/vmlinux" "$headers/vmlinux"
	if [ -n "$helper" ]; then
		mkdir -p "$headers/tools/bpf/resolve_btfids"
		ln -sf "$final/root/usr/lib/$helper/tools/bpf/resolve_btfids/resolve_btfids" \
			"$headers/tools/bpf/resolve_btfids/resolve_btfids"
	fi
	[ -n "$helper" ] || [ -x "$headers/tools/bpf/resolve_btfids/resolve_btfids" ] ||
		die "the packages of $rel have no resolve_btfids"
}
