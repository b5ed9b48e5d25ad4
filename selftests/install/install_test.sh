#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# make install, into a directory that is then mounted at the prefix, where only this
# test sees it: what is installed works without the source tree.
#
#     lab of the installed saina-lab: sainad, br0 (Linux bridge)   w0, w1: saina-allreduce
#
# 1. make install
# 2. The programs
# 3. The library
# 4. Python
# 5. A lab
# 6. Another prefix, after a build for the default one
# 7. Missing packages

set -u
top=$(readlink -f "$(dirname "$0")/../..")
B=${SAINA_BUILD:-$top/build}
prefix=/usr/local
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP needs root"; exit 4; }
# A mount namespace of its own, which the lab's processes share.
[ "${1-}" = --inside ] || exec unshare -m --propagation private "$0" --inside

# shellcheck source=../tap.sh
. "$top/selftests/tap.sh"
tmp=$(mktemp -d)
lab=${SAINA_TEST_RUN:-t$$}.install
undo() {
	[ ! -d "/run/saina-lab/$lab" ] || $prefix/sbin/saina-lab down "$lab" >/dev/null 2>&1
	umount $prefix 2>/dev/null
	rm -rf "$tmp"
}
trap undo EXIT
trap 'exit 130' INT TERM HUP

output_matches() { # ERE COMMAND...
	"${@:2}" 2>&1 | grep -qE "$1"
}

missing() { # prints the files of a fixed list that are not installed
	local f
	for f in bin/saina-allreduce sbin/{saina,sainad,saina-lab} include/saina.h \
		lib/libsaina.{a,so,so.0} lib/pkgconfig/saina.pc lib/saina/saina_{xdp,tc}{,_kmod}.bpf.o lib/saina/bench/{host,peer}.py \
		share/man/man8/saina{,d}.8 share/man/man3/libsaina.3 share/doc/saina/sainad.conf share/doc/saina/examples/{fit.c,ddp.py} \
		share/saina/wireshark/saina.lua share/saina/grafana/saina.json share/saina/quickstart/{podman,common.sh} share/saina/ticker.sh; do
		[ -e "$tmp/root$prefix/$f" ] || echo "$f"
	done
}

# Functions of the library, and programs, without a manual page that has them in its NAME.
without_manual() {
	local man=$tmp/root$prefix/share/man page f
	for f in $(sed -n 's/^\t\(saina_[a-z0-9_]*\);$/man3\/\1.3/p' "$top/userland/lib/libsaina.map") \
		man1/saina-allreduce.1 man3/libsaina.3 man7/{saina,libsaina-mpi}.7 man8/saina{,d,-job,-lab}.8; do
		page=$(sed -n '1s/^\.so //p' "$man/$f" 2>/dev/null)
		sed -n '/^\.SH NAME/{n;p;}' "$man/${page:-$f}" 2>/dev/null | grep -q "$(basename "${f%.*}").* \\\\-" || echo "$f"
	done
}

# 1. make install
check "install: make install DESTDIR= succeeds" \
	make -s -C "$top" install DESTDIR="$tmp/root" PREFIX=$prefix B="$B"
check "install: the output says where the Python package is" \
	output_matches "^  Python       $prefix/lib/python3.*/saina\$" make -s -C "$top" install DESTDIR="$tmp/root" PREFIX=$prefix B="$B"
check "install: programs, libraries, headers, objects and manuals are there" [ -z "$(missing)" ] || diag "$(missing)"
check "install: programs and all functions of libsaina have a manual page" [ -z "$(without_manual)" ] || diag "$(without_manual)"
[ -z "$(find "$tmp/root" -mindepth 1 -maxdepth 1 ! -name usr)" ] &&
	! grep -rlI "$tmp" "$tmp/root" >"$tmp/named"
point $? "install: nothing is outside of the prefix or names DESTDIR" || diag "$(cat "$tmp/named")"

mount --bind "$tmp/root$prefix" $prefix || bail "cannot mount at $prefix"
# From here on nothing uses the build or its variables.
unset SAINA_BUILD SAINA_BPF_OBJECT MAKEFLAGS MAKELEVEL
cd / || exit 1
PATH=$prefix/sbin:$prefix/bin:/usr/sbin:/usr/bin:/sbin:/bin
version=$(cat "$top/VERSION")

# 2. The programs
check "installed saina: --version prints the version" output_matches "$version" saina --version
check "installed sainad: --version prints the version" output_matches "$version" sainad --version
check "installed sainad: --check-config takes the installed example" \
	sainad --check-config -c $prefix/share/doc/saina/sainad.conf
check "installed sainad: --check-program finds the XDP program" \
	output_matches "does without saina.ko" sainad --check-program -c $prefix/share/doc/saina/sainad.conf

check "installed quickstart: --help says how to use it" output_matches "^Usage: $prefix/share/saina/quickstart/podman " \
	$prefix/share/saina/quickstart/podman --help

# 3. The library
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
check "installed library: pkg-config knows its version" [ "$(pkg-config --modversion saina)" = "$version" ]
cp "$top/userland/examples/fit.c" "$tmp" || bail "there is no example"
# shellcheck disable=SC2046 # words
check "installed library: the example compiles with pkg-config's flags" \
	gcc -Wall -Werror -o "$tmp/fit" "$tmp/fit.c" $(pkg-config --cflags --libs saina) -lm
# shellcheck disable=SC2046
check "installed library: the example compiles against the static library" \
	gcc -Wall -Werror -o "$tmp/fit-static" "$tmp/fit.c" $(pkg-config --cflags saina) \
	$prefix/lib/libsaina.a -pthread -lm
LD_LIBRARY_PATH=$prefix/lib ldd "$tmp/fit" | grep -q "libsaina.so.0 => $prefix/lib/libsaina.so.0"
point $? "installed library: the example is linked to libsaina.so.0"
printf '#include <saina.h>\n#include <saina.h>\nint main(void) { return 0; }\n' >"$tmp/twice.c"
check "installed header: is C99 and can be included twice" gcc -std=c99 -pedantic -Wall -Wextra -Werror \
	-fsyntax-only -I$prefix/include "$tmp/twice.c"

# 4. Python
check_python() {
	LD_LIBRARY_PATH=$prefix/lib /usr/bin/python3 -c 'import saina; print(saina.version(), saina.__file__)' |
		grep -q "^$version $prefix/lib/"
}
check "installed Python package: is found by Debian's python3 and finds the library" check_python

# 5. A lab
check "installed saina-lab: a lab comes up" saina-lab up "$lab" --owner $$ --workers 2 --bridge linux
export SAINA_CONTROL=/run/saina-lab/$lab/control
exe=$(readlink "/proc/$(cut -d' ' -f1 "/run/saina-lab/$lab/sainad.pid")/exe")
check "installed saina-lab: the agent is the installed sainad" [ "$exe" = $prefix/sbin/sainad ] || diag "it is $exe"
check "installed saina: a job is added" saina job add one id 1 elements 5000 workers 2
for i in 0 1; do
	saina-lab exec "$lab" $i saina-allreduce --aggregator 10.190.0.1 --job 1 --worker $i \
		--rounds 5 --log "$tmp/$i.log" >"$tmp/$i.out" 2>&1 </dev/null &
	pids[i]=$!
done
for i in 0 1; do
	wait "${pids[i]}"
	point $? "installed saina-allreduce: all sums of worker $i are exact" || diag "$(tail -n 5 "$tmp/$i.out")"
done
saina-lab exec "$lab" switch $prefix/sbin/saina -j bench workers 2 seconds 0.05 -b 4K -e 4K >"$tmp/bench" 2>"$tmp/bench.err"
check "installed saina: bench has all that it takes, and no sum is wrong or unverified" \
	jq -e '[.[].rows[].wrong] | length > 0 and all(. == 0)' "$tmp/bench" || diag "$(tail -n 20 "$tmp/bench.err")"
check "installed saina-lab: the lab goes down" saina-lab down "$lab"

# 6. Another prefix, after a build for the default one
other=$tmp/other
make -s -C "$top" install PREFIX="$other" DESTDIR= B="$B" LDCONFIG=: >"$tmp/other.out" 2>&1
point $? "install: make install PREFIX= succeeds after a plain make" || diag "$(tail -n 5 "$tmp/other.out")"
check "install: another prefix: the output has the variables that a shell needs" \
	grep -q "export LD_LIBRARY_PATH=$other/lib PYTHONPATH=$other/lib/python3.*/dist-packages" "$tmp/other.out"
umount $prefix
check "install: another prefix: sainad finds its BPF programs" \
	output_matches "does without saina.ko" "$other/sbin/sainad" --check-program -c "$other/share/doc/saina/sainad.conf"
check "install: another prefix: pkg-config names it" \
	[ "$(PKG_CONFIG_PATH=$other/lib/pkgconfig pkg-config --variable=prefix saina)" = "$other" ]
rm "$other"/lib/saina/saina_xdp.bpf.o
check "install: sainad without its BPF programs names the directories where it looked" \
	output_matches "saina_xdp.bpf.o is neither in $other/sbin nor in $other/sbin/../lib/saina" \
	"$other/sbin/sainad" --check-program -c "$other/share/doc/saina/sainad.conf"

# 7. Missing packages
mkdir "$tmp/bin"
# shellcheck disable=SC2016 # of the script that is written
printf '#!/bin/sh\n[ "$4" = libmnl-dev ] || echo installed\n' >"$tmp/bin/dpkg-query"
chmod +x "$tmp/bin/dpkg-query"
check "make: a build without libmnl-dev names the package and make deps" \
	output_matches "\`make deps' as root installs them: libmnl-dev$" \
	env PATH="$tmp/bin:$PATH" make -C "$top" B="$tmp/build" "$tmp/build/packages-found"
plan
