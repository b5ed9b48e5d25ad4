# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2154 # saina-vm sets what looks unset
#
# Debian's linux-source-6.1, fetched like the kernels and not installed: its
# kselftest tree runs our tests (selftests/kselftest_test.sh).  Sourced by
# tools/saina-vm.
#
# $cache/source/
#	version			package version fetched
#	linux-source-6.1.tar.xz

SOURCE=linux-source-6.1

# need_source: it is there, whatever its version.
need_source() {
	[ -s "$cache/source/version" ] || fetch_source
}

# fetch_source: gets the newest one, unless that is there already.
fetch_source() {
	local new=$cache/source.new version

	mkdir -p "$cache"
	exec 8>"$cache/source.lock"
	flock 8
	version=$(version_of "$SOURCE")
	if [[ $version != [0-9]* ]] && [ "$(id -u)" -eq 0 ]; then
		apt-get -qq update || die "apt-get update failed"
		version=$(version_of "$SOURCE")
	fi
	[[ $version == [0-9]* ]] ||
		die "apt offers no $SOURCE; add bookworm-security to its sources, then apt-get update"
	if [ "$(cat "$cache/source/version" 2>/dev/null)" = "$version" ]; then
		exec 8>&-
		return
	fi
	note "fetching $SOURCE ($version), 140 MB"
	rm -rf "$new"
	mkdir -p "$new/deb"
	download "$new/deb" "$SOURCE"
	dpkg -x "$new"/deb/*.deb "$new/deb/root" || die "cannot unpack $SOURCE"
	mv "$new/deb/root/usr/src/$SOURCE.tar.xz" "$new" || die "$SOURCE has no $SOURCE.tar.xz"
	rm -rf "$new/deb"
	echo "$version" >"$new/version"
	rm -rf "${cache:?}/source"
	mv "$new" "$cache/source"
	exec 8>&-
}
