# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Sourced: the parts of Debian's kernel sources (selftests/vm/saina-vm source) that tests use.

# kernel_tree TOP: unpacks the kernel's own checks and its selftests' framework, once
# for each version, beside the archive; prints where.
kernel_tree() {
	local archive tree part
	archive=$("$1/selftests/vm/saina-vm" source) || return
	tree=${archive%/*}/tree-$(cat "${archive%/*}/version")
	if [ ! -d "$tree" ]; then
		part=$(mktemp -d "$tree.XXXXXX") || return
		tar -C "$part" -xJf "$archive" --strip-components=1 --wildcards \
			'*/scripts/checkpatch.pl' '*/scripts/spelling.txt' '*/scripts/const_structs.checkpatch' \
			'*/scripts/kernel-doc' '*/scripts/subarch.include' \
			'*/tools/testing/selftests/Makefile' '*/tools/testing/selftests/*.mk' \
			'*/tools/testing/selftests/*.sh' '*/tools/testing/selftests/*.h' \
			'*/tools/testing/selftests/kselftest/*' || { rm -rf "$part"; return 1; }
		chmod 755 "$part"
		mv -T "$part" "$tree" 2>/dev/null || rm -rf "$part"
	fi
	echo "$tree"
}
