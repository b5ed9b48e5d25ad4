# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2154 # saina-vm sets what looks unset
#
# The kernel named debug: 6.1 from Debian's sources with selftests/vm/debug.config,
# which turns on KASAN, lockdep, kmemleak and others.  Building takes 15 minutes on two
# idle cores; it is done again only when the sources or the configuration change.
# Sourced by selftests/vm/saina-vm.
#
# $cache/debug/
#	version release root/ vmlinux initramfs		as in fetch.sh, image.sh
#	bzImage		what is booted
#	key		identifies the sources and the configuration
#	headers/	the build tree, without what building a module does not need

# The lines of debug.config that Kconfig must accept.
debug_fragments() {
	grep -E '^(# )?CONFIG_' "$here/debug.config" | sort -u
}

# debug_key: identifies what the current debug kernel is built from.
debug_key() {
	echo "$(cat "$cache/source/version") $(sha256sum <"$here/debug.config" | cut -c1-16)"
}

# debug_current: the kernel that is there has this key and all of these lines.
debug_current() {
	[ "$(cat "$cache/debug/key" 2>/dev/null)" = "$(debug_key)" ] &&
		! debug_fragments | grep -qvxFf "$cache/debug/headers/.config"
}

need_debug() {
	need_source
	debug_current || build_debug
}

# fetch_debug: fetches the newest sources, and builds the kernel if they are new.
fetch_debug() {
	fetch_source
	need_debug
}

build_debug() {
	local new=$cache/debug.new tree=$cache/debug.new/headers key

	need_packages "$here/packages-debug"
	exec 7>"$cache/debug.lock"
	flock 7
	# Another process may have built it meanwhile.
	if debug_current; then
		exec 7>&-
		return
	fi

	key=$(debug_key)
	# An interrupted build is continued.
	if [ "$(cat "$new/key" 2>/dev/null)" != "$key" ]; then
		note "unpacking $SOURCE"
		rm -rf "$new"
		mkdir -p "$tree"
		tar -C "$tree" -xJf "$cache/source/$SOURCE.tar.xz" --strip-components=1 ||
			die "cannot unpack $SOURCE"
		configure_debug "$tree"
		echo "$key" >"$new/key"
	fi
	compile_debug "$tree" || die "the debug kernel does not build; see $new/build.log"
	install_debug "$new"
	rm -rf "${cache:?}/debug"
	mv "$new" "$cache/debug"
	exec 7>&-
}

debug_make() {
	make -C "$1" CC=gcc-12 HOSTCC=gcc-12 "${@:2}"
}

# configure_debug TREE: applies the fragments, and nothing else.
configure_debug() {
	local line

	debug_fragments >"$1/debug.fragments"
	debug_make "$1" -s KCONFIG_ALLCONFIG=debug.fragments allnoconfig >"$1/../build.log" 2>&1 ||
		die "cannot configure the debug kernel; see $1/../build.log"
	while read -r line; do
		grep -qxF -- "$line" "$1/.config" ||
			die "the debug kernel's configuration does not accept $line (from selftests/vm/debug.config)"
	done <"$1/debug.fragments"
}

# compile_debug TREE: prints its progress now and then.
compile_debug() {
	local pid n last=0 log=$1/../build.log

	note "building the debug kernel; this takes a quarter of an hour or longer"
	debug_make "$1" -j"$(nproc)" bzImage modules >"$log" 2>&1 &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		sleep 2
		n=$(grep -c '^  ' "$log")
		if [ $((n - last)) -ge 200 ]; then
			last=$n
			note "debug kernel: $n build steps done, last: $(tail -n 1 "$log" | tr -s ' ')"
		fi
	done
	wait "$pid"
}

# install_debug DIRECTORY: makes the files that fetch.sh makes of Debian's kernels.
install_debug() {
	local new=$1 tree=$1/headers rel

	rel=$(cat "$tree/include/config/kernel.release")
	debug_make "$tree" -s INSTALL_MOD_PATH="$new/root" DEPMOD=true modules_install ||
		die "modules_install failed"
	rm -f "$new/root/lib/modules/$rel"/{build,source}
	depmod -b "$new/root" "$rel" || die "depmod failed for $rel"
	# Without DWARF, with BTF: a tenth of the size.
	objcopy --strip-debug "$tree/vmlinux" "$new/vmlinux" || die "objcopy failed"
	ln -f "$new/vmlinux" "$tree/vmlinux"
	cp "$tree/arch/x86/boot/bzImage" "$new/bzImage"
	prune_debug "$tree"
	echo "$rel" >"$new/release"
	cat "$cache/source/version" >"$new/version"
}

# prune_debug TREE: removes what building a module does not need.
prune_debug() {
	find "$1" -mindepth 1 -maxdepth 1 ! -name scripts ! -name include ! -name arch ! -name tools \
		! -name Makefile ! -name .config ! -name Module.symvers ! -name vmlinux -exec rm -rf {} +
	find "$1/arch" -mindepth 1 -maxdepth 1 ! -name x86 -exec rm -rf {} +
	find "$1/tools" -mindepth 1 -maxdepth 1 ! -name objtool ! -name bpf -exec rm -rf {} +
	find "$1/tools" "$1/arch" -type f ! -name 'Makefile*' ! -name '*.h' ! -name objtool \
		! -name resolve_btfids -delete
	find "$1/scripts" -type f -name '*.o' -delete
	find "$1" -type d -empty -delete
}
