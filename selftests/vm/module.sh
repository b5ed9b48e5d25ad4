# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2154 # saina-vm sets what looks unset
#
# Builds an out-of-tree module, with BTF, against the headers of a fetched
# kernel.  Sourced by selftests/vm/saina-vm.

# build_module KERNEL DIRECTORY [MAKE-ARGUMENT...]: builds the module in DIRECTORY.
build_module() {
	local k=$1 dir ko
	local tree=$cache/$1

	dir=$(realpath -e "$2") || die "there is no directory $2"
	shift 2
	need_packages
	need_kernel "$k"
	# The compiler that the debug kernel was built with.
	[ "$k" != debug ] || set -- CC=gcc-12 "$@"
	make -C "$tree/headers" M="$dir" "$@" modules || die "the module does not build"
	# kbuild only warns when it leaves the BTF out; kfuncs need it.
	while read -r ko; do
		# 6.1 lists .ko files, 6.12 .o files, both with the whole path.
		ko=${ko%.*}.ko
		readelf -SW "$ko" | grep -q ' \.BTF ' || die "$ko was built without BTF"
	done <"$dir/modules.order"
}
