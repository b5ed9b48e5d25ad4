#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# PyTorch's tests of Gloo's all-reduce, from the source of Debian's python3-torch, with the backend saina:
# selftests/python/gloo_suite.py.
#
#     rank 0 .. 3: w0 .. w3 --- br0 (Linux bridge)
#
#	gloo_suite.sh [TEST...]

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../python/lib.sh
. "$NET_DIR/../python/lib.sh"
DEFAULT_BRIDGE=linux

# The tests are not in the package: the source, of 18 MB, is downloaded, and the tests are kept.
version=$(dpkg-query -W -f '${source:Upstream-Version}' python3-torch 2>/dev/null)
[ -n "$version" ] || { echo "1..0 # SKIP python3-torch is not installed"; exit 4; }
cache=$("$TOP/selftests/vm/saina-vm" cache)/pytorch-$version
if [ ! -e "$cache/test_c10d_gloo.py" ]; then
	mkdir -p "$cache"
	/usr/lib/apt/apt-helper download-file "http://deb.debian.org/debian/pool/main/p/pytorch/pytorch_$version.orig.tar.xz" \
		"$WORK/source.tar.xz" >"$WORK/download" 2>&1 || { echo "1..0 # SKIP no source of PyTorch: $(tail -n 1 "$WORK/download")"; exit 4; }
	tar --no-same-owner -xf "$WORK/source.tar.xz" -C "$cache" --strip-components=3 --wildcards '*/test/distributed/test_c10d_*.py' || bail "no tests in PyTorch's source"
fi

lab_up --workers 4
job suite id 0 elements 50000 workers 4 token s3cret
PYTHONPATH=$PYTHONPATH:$cache NETNS=saina-$LAB-w SAINA_AGGREGATOR=$AGG SAINA_JOB=0 SAINA_TOKEN=s3cret \
	/usr/bin/python3 "$TOP/selftests/python/gloo_suite.py" "$@" >"$WORK/suite" 2>"$WORK/suite.err" </dev/null
status=$?
while read -r name _ result; do
	case $name in
	test_*)	case $result in
		*ok) ok "Gloo's tests: $name" ;;
		*) not_ok "Gloo's tests: $name: $result" ;;
		esac ;;
	esac
done <"$WORK/suite"
check "Gloo's tests: all pass" test $status = 0 || diag "$(tail -n 30 "$WORK/suite")"

finished
