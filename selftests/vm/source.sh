# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2154 # saina-vm sets what looks unset
#
# Debian's kernel sources, fetched like the kernels and not installed.  Sourced by
# selftests/vm/saina-vm.
#
# $cache/source/		for the debug kernel, and for kselftest's runner
#	version			package version fetched
#	linux-source-6.1.tar.xz
# $cache/kernel-tools/		of 6.12, unpacked: the kernel's own tools (KERNEL_TOOLS)
#	version

SOURCE=linux-source-6.1
TOOLS_SOURCE=linux-source-6.12
KERNEL_TOOLS=(tools/net/ynl Documentation/netlink scripts/checkpatch.pl scripts/kernel-doc
	scripts/spelling.txt scripts/const_structs.checkpatch)

# need_source: downloads $cache/source unless it is there, whatever its version.
need_source() {
	[ -s "$cache/source/version" ] || fetch_source
}

# fetch_source: downloads the newest one, unless that is there already.
fetch_source() {
	fetch_archive source "$SOURCE"
}

# need_kernel_tools: downloads $cache/kernel-tools unless they are there, whatever their version.
need_kernel_tools() {
	[ -s "$cache/kernel-tools/version" ] || fetch_archive kernel-tools "$TOOLS_SOURCE" unpack_tools
}

# unpack_tools DIRECTORY: unpacks KERNEL_TOOLS of the archive in it, and removes the archive.
unpack_tools() {
	local archive=$1/$TOOLS_SOURCE.tar.xz

	tar -C "$1" --strip-components=1 -xJf "$archive" "${KERNEL_TOOLS[@]/#/$TOOLS_SOURCE/}" ||
		die "$TOOLS_SOURCE lacks some of the kernel's tools"
	rm "$archive"
}

# fetch_archive NAME PACKAGE [PREPARE]: downloads the newest archive of that package into
# $cache/NAME, unless that is there already.  PREPARE DIRECTORY: called with the archive there.
fetch_archive() {
	local new=$cache/$1.new package=$2 version

	mkdir -p "$cache"
	exec 8>"$cache/$1.lock"
	flock 8
	version=$(version_of "$package")
	if [[ $version != [0-9]* ]] && [ "$(id -u)" -eq 0 ]; then
		"$here/../../tools/apt-get" update || die "apt-get update failed"
		version=$(version_of "$package")
	fi
	[[ $version == [0-9]* ]] ||
		die "apt offers no $package; add bookworm-security to its sources, then apt-get update"
	if [ "$(cat "$cache/$1/version" 2>/dev/null)" = "$version" ]; then
		exec 8>&-
		return
	fi
	note "fetching $package ($version), 150 MB"
	rm -rf "$new"
	mkdir -p "$new/deb"
	download "$new/deb" "$package"
	dpkg -x "$new"/deb/*.deb "$new/deb/root" || die "cannot unpack $package"
	mv "$new/deb/root/usr/src/$package.tar.xz" "$new" || die "$package has no $package.tar.xz"
	rm -rf "$new/deb"
	[ $# -lt 3 ] || "$3" "$new"
	echo "$version" >"$new/version"
	rm -rf "${cache:?}/$1"
	mv "$new" "$cache/$1"
	exec 8>&-
}
