#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# make deb: the packages are built, lintian has nothing to say, and each has its files.  They are
# unpacked, not installed: that is debian_test.sh.

set -u
top=$(readlink -f "$(dirname "$0")/../..")
# shellcheck source=../tap.sh
. "$top/selftests/tap.sh"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
version=$(cat "$top/VERSION")
lib=usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)

for p in debhelper dh-dkms dh-python lintian; do
	[ "$(dpkg-query -W -f '${db:Status-Status}' $p 2>/dev/null)" = installed ] || bail "$p is missing: tools/install-deps deb"
done
equal "deb without a folder: a usage error, with status 2" "usage: tools/deb OUT [VERSION] 2" \
	"$(output=$("$top/tools/deb" 2>&1); echo "$output $?")"
"$top/tools/deb" "$tmp/out" >"$tmp/output" 2>&1
point $? "deb: the packages are built, lintian has neither errors nor warnings" || { diag "$(tail -n 30 "$tmp/output")"; bail "no packages"; }

grep -q '^deb: building the packages (3 s)' "$tmp/output" && grep -q "^deb: building the packages; the output goes to $tmp/out/log" "$tmp/output"
point $? "deb: it says what it does while it takes long, and where the output is" || diag "$(cat "$tmp/output")"

# has PACKAGE FILE...: the package has these files
has() {
	local deb=("$tmp/out/${1}_${version}_"*.deb) f
	shift
	dpkg-deb -x "${deb[0]}" "$tmp/root" || return 1
	for f; do
		[ -n "$(dpkg-deb --fsys-tarfile "${deb[0]}" | tar -tf - "./$f" 2>/dev/null)" ] || { diag "$f"; return 1; }
	done
}
# has_script PACKAGE SCRIPT ERE: this maintainer script of the package matches ERE
has_script() {
	dpkg-deb -I "$tmp/out/${1}_${version}_"*.deb "$2" 2>&1 | grep -qE "$3"
}
has saina usr/sbin/saina usr/sbin/sainad usr/sbin/saina-lab usr/bin/saina-allreduce lib/systemd/system/sainad.service lib/systemd/system/sainad@.service \
	usr/share/bash-completion/completions/saina usr/share/zsh/vendor-completions/_saina \
	usr/lib/saina/saina_{xdp,tc}{,_kmod}.bpf.o usr/share/man/man8/{saina,sainad,saina-job,saina-lab}.8.gz \
	usr/share/man/man1/saina-allreduce.1.gz usr/share/man/man7/saina.7.gz
point $? "deb: saina has the tool, the agent, its units, completions and manuals"
check "deb: saina-dkms has the module's sources" \
	has saina-dkms "usr/src/saina-$version/dkms.conf" "usr/src/saina-$version/Kbuild"
has_script saina-dkms postinst 'common\.postinst' && has_script saina-dkms prerm 'dkms remove'
point $? "deb: saina-dkms has DKMS build the module when it is installed, and remove it"
check "deb: saina restarts the agent after an upgrade" has_script saina postinst '_dh_action=restart'
check "deb: libsaina0 has the library" has libsaina0 "$lib/libsaina.so.0"
has libsaina-dev usr/include/saina.h "$lib/libsaina.so" "$lib/libsaina.a" "$lib/pkgconfig/saina.pc" \
	usr/share/man/man3/{libsaina,saina_open,saina_close,saina_allreduce,saina_wait}.3.gz
point $? "deb: libsaina-dev has what is needed to build a trainer"
check "deb: libsaina-mpi has the library to be loaded before MPI's" \
	has libsaina-mpi "$lib/saina/libsaina-mpi.so" usr/share/man/man7/libsaina-mpi.7.gz
check "deb: python3-saina has the package" has python3-saina usr/lib/python3/dist-packages/saina/__init__.py

"$tmp/root/usr/sbin/saina" --version | grep -q "$version" && "$tmp/root/usr/sbin/sainad" --version | grep -q "$version"
point $? "deb: tool and agent are of the package's version"
readelf -S "$tmp/root/usr/lib/saina/saina_xdp.bpf.o" | grep -q '\.BTF'
point $? "deb: the BPF objects have their BTF"
for unit in sainad.service sainad@br-lan.service; do
	sed 's|^ExecStart=/usr|ExecStart='"$tmp"'/root/usr|' "$tmp/root/lib/systemd/system/${unit/br-lan/}" >"$tmp/$unit"
done
if command -v systemd-analyze >/dev/null; then
	output=$(systemd-analyze verify --man=no "$tmp/sainad.service" "$tmp/sainad@br-lan.service" 2>&1 | grep sainad)
	check "deb: systemd finds nothing wrong with the units" [ -z "$output" ] || diag "$output"
fi
plan
