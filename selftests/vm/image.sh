# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2154 # saina-vm sets what looks unset
#
# The initramfs of the test VM: busybox, selftests/vm/init and the modules which it
# needs to reach the host's files.  Sourced by selftests/vm/saina-vm.

# need_initramfs KERNEL: makes $cache/KERNEL/initramfs unless it is there and current.
need_initramfs() {
	local dir=$cache/$1

	exec 9>"$cache/lock"
	flock 9
	if [ ! -s "$dir/initramfs" ] || [ "$here/init" -nt "$dir/initramfs" ] ||
		[ "$here/image.sh" -nt "$dir/initramfs" ]; then
		build_initramfs "$dir"
	fi
	exec 9>&-
}

build_initramfs() {
	local dir=$1 rel tree=$cache/initramfs.tree m

	rel=$(cat "$dir/release")
	# The caller has the lock, so what an interrupted run left there can go.
	rm -rf "$tree"
	mkdir -p "$tree/bin" "$tree/mods"
	cp /bin/busybox "$tree/bin/busybox"
	cp "$here/init" "$tree/init"
	chmod 755 "$tree/init" "$tree/bin/busybox"
	# In the order in which they can be loaded.
	for m in virtio_pci 9pnet_virtio 9p overlay; do
		modprobe -d "$dir/root" -S "$rel" --show-depends "$m" ||
			die "the $rel kernel has no module $m"
	done | sed -n 's/^insmod //p' | awk '!seen[$1]++ { print $1 }' >"$tree/list"
	# die ended only the loop, which is a process of the pipeline.
	[ "${PIPESTATUS[0]}" = 0 ] || exit "$EX_SETUP"
	while read -r m; do
		case $m in
		*.xz) xz -dc "$m" >"$tree/mods/$(basename "$m" .xz)" ;;
		*.zst) zstd -qdc "$m" >"$tree/mods/$(basename "$m" .zst)" ;;
		*) cp "$m" "$tree/mods/" ;;
		esac || die "cannot unpack $m"
		basename "${m%.ko*}.ko" >>"$tree/mods/order"
	done <"$tree/list"
	# The file is empty for a kernel that has them built in.
	touch "$tree/mods/order"
	rm "$tree/list"
	(cd "$tree" && find . | cpio --quiet -R 0:0 -o -H newc) >"$dir/initramfs.new" ||
		die "cpio could not write the initramfs"
	mv "$dir/initramfs.new" "$dir/initramfs"
	rm -rf "$tree"
}
