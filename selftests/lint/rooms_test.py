#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Product and evidence are in rooms of their own.

Each file of uapi/, kmod/, userland/ and tools/ is installed, or built into something that is installed, or on the list
below with the reason; and none of them names a file of selftests/, except what the list allows.  What is installed is
what make says: prerequisites and recipes of the target `install', and debian/.  TAP.
"""

import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, TOP + "/selftests/lib")
from tap import Tap  # noqa: E402  # pylint: disable=wrong-import-position

PRODUCT = ("uapi", "kmod", "userland", "tools")
#: {file or folder that is not installed: why it is in the room of the product}
NOT_INSTALLED = {
    "tools/demo": "run from a checkout, by make demo",
    "tools/demo-torch": "run from a checkout, by make demo-torch",
    "tools/demo-tree": "run from a checkout, by make demo-tree",
    "tools/get-digits": "run from a checkout, by make demo",
    "tools/lab": "Python side of the lab, for the demos",
    "tools/quickstart/qemu": "run from a checkout: needs the test VM",
    "tools/install-deps": "builds: installs Debian's packages",
    "tools/apt-get": "builds: installs Debian's packages",
    "tools/deb": "builds: makes the packages",
    "tools/netlink": "builds: makes sources from the YNL spec",
    "tools/metrics-table": "builds: makes a table of monitoring.rst",
    "kmod/dkms.conf.in": "goes into the package saina-dkms",
}
#: what of the product may name files of selftests/, not only in comments
NAMES_EVIDENCE = {"tools/demo", "tools/demo-torch", "tools/demo-tree", "tools/quickstart/qemu", "tools/netlink/generate", "tools/netlink/attrs-gen", "tools/metrics-table"}


def tracked(*folders):
    out = subprocess.run(["git", "ls-files", "--", *folders], cwd=TOP, stdout=subprocess.PIPE, check=True).stdout.decode()
    return out.split()


def installed(files):
    """Those of @files that `make install' and the packages need."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    out = subprocess.run(["make", "-pnB", "install", "module"], cwd=TOP, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         check=False).stdout.decode()
    needs = {}
    for target, of in re.findall(r"^([^\s#:=][^:=#\n]*):(?!=)([^=\n]*)$", out, re.M):
        for t in target.split():
            needs.setdefault(t, set()).update(of.replace("|", " ").split())
    words = set(re.findall(r"[\w./+-]+", out.split("# Make data base", 1)[0]))
    words |= {w for f in tracked("debian") for w in re.findall(r"[\w./+-]+", open(os.path.join(TOP, f), encoding="utf-8").read())}
    found, todo = set(), ["install", "module"]
    while todo:
        t = todo.pop()
        if t not in found:
            found.add(t)
            todo += needs.get(t, ())
    found = {os.path.normpath(f) for f in found | words}
    # A folder that is named whole brings all of its files, the parts of kbuild's tree too.
    return {f for f in files if f in found or os.path.dirname(f) in found - {"", ".", *PRODUCT}}


def main():
    tap = Tap("rooms: ")
    files = tracked(*PRODUCT)
    found = installed(files)
    tap.point(len(found) > 100, f"make says what is installed ({len(found)} files)")
    listed = {f for f in files for e in NOT_INSTALLED if f == e or f.startswith(e + "/")}
    built = {f for f in files if f.endswith((".mk", "/Makefile"))}
    odd = sorted(set(files) - found - listed - built)
    tap.point(not odd, "each file of the product is installed, or on the list with a reason", *odd)
    gone = sorted(e for e in NOT_INSTALLED if not any(f == e or f.startswith(e + "/") for f in files))
    tap.point(not gone, "the list names nothing that is gone", *gone)
    wrong = []
    for f in files:
        if f in NAMES_EVIDENCE or f in built or not os.path.isfile(os.path.join(TOP, f)):
            continue
        with open(os.path.join(TOP, f), encoding="utf-8", errors="replace") as text:
            wrong += [f"{f}: {line.strip()[:80]}" for line in text
                      if "selftests/" in line and not re.match(r"\s*(#|\*|/\*|//|--)", line)]
    tap.point(not wrong, "nothing of the product names a file of selftests/", *wrong)
    tap.end()


main()
