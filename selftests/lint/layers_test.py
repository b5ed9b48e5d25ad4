#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Dependencies point down: who includes whom and who calls whom, against one table.

The table is the literal block after the line ".. layers" in Documentation/
architecture.rst.  Each of its lines is a room (a directory, or a file without its
suffix) and the rooms it may use, which are on lines further down; so there is no circle
among rooms.  There is none among the files of a room, of the oracle, and of the Python
folders, either; except in LOOSE, a header and its source count as one file.
Includes and imports are read from the sources; calls are the undefined and defined
symbols of the object files, those of saina.ko as built for one kernel.  TAP.

  layers_test.py [-a]     -a: print which room uses which, instead of testing
"""

import collections
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, TOP + "/selftests/lib")
from tap import Tap  # noqa: E402  # pylint: disable=wrong-import-position

BUILD = os.path.realpath(os.environ.get("SAINA_BUILD", TOP + "/build"))
KERNEL = "6.1"
SOURCES = ("uapi", "kmod", "userland", "tools", "selftests/bench", "selftests/trainer")
BASES = ("uapi", "kmod", "userland", "userland/lib", "kmod/bpf", "selftests")	# of include directives
ORACLE = "selftests/oracle"		# is in no room: tests may use all
PYTHON = ("selftests/bench", "selftests/figures", "tools/bench", "tools/lab", "userland/python/saina")
LOOSE = ("kmod/netlink",)		# generated: one header declares the table and the handlers that it calls


def table():
    """{room: rooms it may use}, from the top down."""
    rooms = {}
    with open(TOP + "/Documentation/architecture.rst", encoding="utf-8") as f:
        block = f.read().split("\n.. layers\n", 1)[1].split("::\n\n", 1)[1]
    for line in block.split("\n"):
        if line and not line[0].isspace():
            break
        if line.strip():
            words = re.split(r"\s\s+", line.strip(), maxsplit=1)
            rooms[words[0]] = words[1].split() if len(words) > 1 else []
    return rooms


def room_of(path, rooms):
    """The room with the longest name that @path is in."""
    fits = [r for r in rooms if path == r or path.startswith((r + "/", r + "."))]
    return max(fits, key=len) if fits else None


def files(tops):
    for top in tops:
        for directory, _, names in os.walk(os.path.join(TOP, top)):
            for n in sorted(names):
                if n.endswith((".c", ".h", ".cc")):
                    yield os.path.relpath(os.path.join(directory, n), TOP)


def includes(paths):
    """(file, file it includes)"""
    known = set(paths)
    for path in paths:
        with open(os.path.join(TOP, path), encoding="utf-8") as f:
            names = re.findall(r'^\s*#\s*include\s+[<"]([^">]+)[">]', f.read(), re.M)
        for name in names:
            for base in (os.path.dirname(path), *BASES):
                to = os.path.normpath(os.path.join(base, name))
                if to in known:
                    yield path, to
                    break


def imports(folder):
    """{module: modules of the same folder that it imports}"""
    names = {n.removesuffix(".py") for n in os.listdir(os.path.join(TOP, folder)) if n.endswith(".py")}
    arrows = {}
    for n in names:
        with open(os.path.join(TOP, folder, n + ".py"), encoding="utf-8") as f:
            text = f.read()
        package = "." if "__init__" in names else ""
        found = re.findall(rf"^\s*from {re.escape(package)}(\w+) import|^\s*import (\w+)", text, re.M)
        arrows[n] = {a or (not package and b) for a, b in found} & names - {n}
    return arrows


def symbols(objects):
    """{object file: (global symbols that it defines, those that it needs)}"""
    found = {o: (set(), set()) for o in objects}
    if objects:
        out = subprocess.run(["nm", "-A", *objects], stdout=subprocess.PIPE, check=True).stdout.decode()
        for line in out.splitlines():
            obj, _, rest = line.partition(":")
            kind, name = rest.split()[-2:]
            if kind == "U" or kind.isupper():
                found[obj][kind == "U"].add(name)
    return found


def calls(paths):
    """(file, file that defines what it needs, symbol), from the object files."""
    for base in (BUILD + "/obj", f"{BUILD}/module/{KERNEL}"):
        of = {os.path.join(base, os.path.splitext(p)[0] + ".o"): p for p in paths if p.endswith((".c", ".cc"))}
        found = symbols([o for o in of if os.path.exists(o)])
        defined = collections.defaultdict(set)
        for obj, (names, _) in found.items():
            for s in names:
                defined[s].add(of[obj])
        for obj, (_, needed) in found.items():
            for s in needed:
                # Not if several programs have a function of that name, such as main() or usage().
                if len(defined[s]) == 1:
                    yield of[obj], next(iter(defined[s])), s


def uses(paths):
    return [(a, b, "includes") for a, b in includes(paths)] + [(a, b, f"needs {s} of") for a, b, s in calls(paths)]


def graph(pairs, strict):
    """{file: files that it uses}.  strict: a header, its source and what is generated for them are one file."""
    arrows = collections.defaultdict(set)
    for pair in pairs:
        a, b = (os.path.splitext(p)[0].removesuffix("_gen") if strict else p for p in pair)
        if a != b:
            arrows[a].add(b)
    return arrows


def is_built(paths):
    """Are the object files of these there?  Programs of make bench are not built by make check."""
    return all(os.path.exists(f"{BUILD}/obj/{os.path.splitext(p)[0]}.o") for p in paths
               if p.startswith(("userland/", "tools/", "selftests/")) and p.endswith((".c", ".cc")))


def circle(arrows):
    """Files of a circle, in its order, or []; @arrows: {file: files that it uses}."""
    done = set()

    def walk(path):
        for to in sorted(arrows.get(path[-1], ())):
            if to in path:
                return path[path.index(to):]
            found = to not in done and walk(path + [to])
            if found:
                return found
        done.add(path[-1])
        return []

    for f in sorted(arrows):
        found = walk([f])
        if found:
            return found
    return []


def main():
    rooms = table()
    order = list(rooms)
    paths = list(files(SOURCES))
    oracle = list(files([ORACLE]))
    if not os.path.exists(f"{BUILD}/module/{KERNEL}/saina.ko"):
        subprocess.run([TOP + "/selftests/module/build.sh", KERNEL], stdout=subprocess.DEVNULL, check=True)
    found = uses(paths)
    arrows = collections.defaultdict(list)
    for a, b, how in found:
        arrows[room_of(a, rooms), room_of(b, rooms)].append(f"{a} {how} {b}")
    within = {r: graph(((a, b) for a, b, _ in found if room_of(a, rooms) == room_of(b, rooms) == r), r not in LOOSE) for r in order}
    within[ORACLE] = graph(((a, b) for a, b, _ in uses(oracle)), True)
    within |= {p: imports(p) for p in PYTHON}
    if sys.argv[1:] == ["-a"]:
        for r in order:
            print(f"    {r:<28}", *[u for u in order if (r, u) in arrows and u != r])
        return

    tap = Tap("layers: ")
    point = tap.point
    homeless = [p for p in paths if not room_of(p, rooms)]
    point(not homeless, "every source file is in a room of the table", *homeless)
    empty = [r for r in order if not any(room_of(p, rooms) == r for p in paths)]
    point(not empty, "every room of the table has a source file", *empty)
    upward = [f"{r} uses {u}, which is not below it" for r in order for u in rooms[r]
              if u not in order or order.index(u) <= order.index(r)]
    point(not upward, "every arrow of the table points down", *upward)
    objects = sum(1 for _, _, how in found if how != "includes")
    point(objects > 500, f"the object files are there ({objects} calls between files)")
    missing = [p for p in oracle if not is_built([p])]
    point(not missing, "the object files of the oracle are there", *missing)
    for r in order:
        wrong = [w for (a, b), why in sorted(arrows.items(), key=str) if a == r and b not in (r, None, *rooms[r])
                 for w in why[:5]]
        point(not wrong, f"{r} uses only what the table allows", *wrong)
    for r, uses_of in within.items():
        files_of = circle(uses_of)
        why = [" -> ".join(files_of + files_of[:1])] if files_of else []
        point(not files_of, f"no circle among the files of {r}", *why)
    for r in order:
        unused = [u for u in rooms[r] if (r, u) not in arrows]
        if unused and is_built([p for p in paths if room_of(p, rooms) == r]):
            point(False, f"{r} uses all that the table allows", *(f"it does not use {u}" for u in unused))
    tap.end()


main()
