#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The package of pip, with libsaina in it: a fresh virtual environment, and userland/examples/ddp.py in it.
# Without an index: its dependencies are Debian's packages.
#
#     w0, w1: userland/examples/ddp.py in the virtual environment --- br0
#
# 1. pip install
# 2. Two ranks train
# 3. The wheel

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../python/lib.sh
. "$NET_DIR/../python/lib.sh"
DEFAULT_BRIDGE=linux
unset PYTHONPATH SAINA_LIBRARY
/usr/bin/python3 -c 'import setuptools, wheel, venv, ensurepip, torch' 2>/dev/null || { echo "1..0 # SKIP python3-setuptools, python3-wheel, python3-venv or python3-torch is missing"; exit 4; }
venv=$WORK/venv

# 1. pip install
# From a copy of the files that git has, because it builds in the tree.
mkdir "$WORK/tree"
git -C "$TOP" ls-files -z | (cd "$TOP" && xargs -0 cp --parents -t "$WORK/tree" 2>/dev/null)
check "pip: a virtual environment" /usr/bin/python3 -m venv --system-site-packages "$venv"
check "pip: pip install ." "$venv/bin/pip" install --no-build-isolation --no-index "$WORK/tree"
equal "pip: the package and its own library are in the environment" "$venv" "$(cd / && "$venv/bin/python" -c '
import os, saina, saina._lib
assert saina.version() == open(os.sys.argv[1]).read().strip()
print(os.path.commonpath([os.path.abspath(saina.__file__), saina._lib._NAME]).split("/lib/")[0])' "$TOP/VERSION" 2>&1)"

# 2. Two ranks train
lab_up --workers 2
job ddp id 0 elements auto workers 2 token s3cret
for i in 0 1; do
	# As torchrun sets them.
	py_env=(SAINA_TOKEN=s3cret "RANK=$i" WORLD_SIZE=2 MASTER_ADDR=10.190.0.10 MASTER_PORT=29500)
	python=$venv/bin/python
	py "$i" "$i" "$TOP/userland/examples/ddp.py"
done
check "pip: both ranks end well" wait_all 120
equal "pip: both ranks have the same model" 2 \
	"$(sed -n 's/.*rank [01]: 2 ranks, model //p' "$WORK"/?.py.out | sort | uniq -c | sed -n 's/^ *\([0-9]*\) .*/\1/p')"

# 3. The wheel
check "pip: a wheel" "$venv/bin/pip" wheel --no-build-isolation --no-index --no-deps -w "$WORK/wheels" "$WORK/tree"
wheel=$(echo "$WORK"/wheels/saina-*-py3-none-linux_*.whl)
check "pip: it is for any Python 3 on this architecture" test -e "$wheel"
equal "pip: it has the library and the declarations of saina.h" 2 \
	"$(/usr/bin/python3 -m zipfile -l "$wheel" | grep -cE '^saina/(libsaina.so.0|_libsaina.py) ')"
check "pip: it replaces what is installed" "$venv/bin/pip" install --no-index --no-deps --force-reinstall "$wheel"

finished
