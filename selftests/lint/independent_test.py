#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The oracle is not a copy of the BPF programs: no RUN lines of code in a row stand in both.

A copy would share a misread rule with the program, and no trace could show it.  Comments,
blank lines and lines without a letter or digit do not count; white space within a line
does not matter.  TAP.

  independent_test.py [ORACLE BPF]      folders, by default those of this tree
"""

import collections
import glob
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, TOP + "/selftests/lib")
from tap import Tap  # noqa: E402  # pylint: disable=wrong-import-position

RUN = 6
# A comment, or a string or character that may look as if it began one.
NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')', re.DOTALL)


def code(text):
    """[(number, line)] of the lines that count, without white space."""
    def blank(m):
        return m[1] or "\n" * m[0].count("\n")
    lines = enumerate(NO_CODE.sub(blank, text).split("\n"), 1)
    return [(n, "".join(line.split())) for n, line in lines if re.search(r"\w", line)]


def runs(text):
    """[(run of lines, number of its first line)]"""
    lines = code(text)
    return [(tuple(line for _, line in lines[i:i + RUN]), lines[i][0]) for i in range(len(lines) - RUN + 1)]


def shared(ours, theirs):
    """["FILE:LINE ~ FILE:LINE"] of runs in both; {name: text} each"""
    places = collections.defaultdict(list)
    for name, text in theirs.items():
        for run, number in runs(text):
            places[run].append(f"{name}:{number}")
    return [f"{name}:{number} ~ {other}" for name, text in ours.items()
            for run, number in runs(text) for other in places.get(run, ())]


def read(folder):
    """{name: text} of its C sources"""
    found = {}
    for path in sorted(glob.glob(folder + "/*.[ch]")):
        with open(path, encoding="utf-8") as f:
            found[os.path.relpath(path, os.path.dirname(folder))] = f.read()
    return found


def copied(text):
    """The text with other white space and comments, under another name."""
    return {"copy.c": "\n".join(f"  {line.strip()} /* of\nit */\n\n}}" for line in text.split("\n"))}


def main():
    oracle, bpf = (os.path.realpath(d) for d in sys.argv[1:3] or (TOP + "/selftests/oracle", TOP + "/kmod/bpf"))
    ours, theirs = read(oracle), read(bpf)
    tap = Tap("oracle: ")
    found = shared(ours, theirs)
    tap.point(ours and theirs and not found, f"no {RUN} lines in a row are those of a BPF program", *found)
    sample = {"sample.h": "a = 1;\nif (b) {\n\tf(c,\n\t  d);\n}\ne++;\nx = \"/*\";\nreturn g;\n"}
    tap.point(shared(copied(sample["sample.h"]), sample) and
              not shared(copied(sample["sample.h"].replace("e++", "e--")), sample),
              "copied lines are found behind other white space and comments, changed ones are not")
    tap.end()


if __name__ == "__main__":
    main()
