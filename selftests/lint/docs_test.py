#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Documents: their size, their lines, their words, the files that they name.

README.md has at most 100 lines of at most 100 columns.  Prose of all documents has lines
of at most 100 columns; literal blocks, tables and what cannot be wrapped (synopses, terms
of a list, links, titles) may be wider.  Every document parses without a remark from docutils.
WORDS are private words of the project for which there are terms; none is in prose.  What
looks like a file or folder of this tree exists, with or without its suffix, below any
folder.  The table of metrics in monitoring.rst is that of tools/metrics-table.  TAP.

  docs_test.py [FILE...]     FILE: look only at these
"""

import fnmatch
import glob
import os
import re
import subprocess
import sys

import docutils.core
import docutils.utils

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, TOP + "/selftests/lib")
from tap import Tap  # noqa: E402  # pylint: disable=wrong-import-position

LINES, COLUMNS = 100, 100

# Words that documents do not use, and what they say instead.
WORDS = {
    r"told|TOLD": "ASK_REPLY, or says, gets a message",
    r"bells?|BELLs?": "DOORBELL",
    r"rung|RUNG": "COMPLETION, posted",
    r"boards?": "output array",
    r"lent|lenders?": "shared, the shm transport",
    r"the door|outlets?": "tc hand-over, fan-out ifb",
    r"super-packets?": "GSO batch",
    r"(?:an?|each|the|whole|one|two|of|in|oldest|slow) trains?": "GSO batch",
    r"table mode": "parameter-server mode",
    r"hasty|patience|attic|strangers?|mended|afresh|anew": "the field's term",
    r"(?:to|can|could|cannot) be had": "is available",
}

# Of a name that is taken for a file of this tree wherever it ends so, ...
SUFFIXES = r"\.(?:c|h|cc|py|sh|mk|yaml|rst|md)$"
# ... except for these: of the kernel's tree, and what `make` makes.
FOREIGN = {"ynl-gen-c.py", "cli.py", "tools/net/ynl/cli.py", "build/"}

tap = Tap()
point = tap.point


def prose(text, markdown):
    """(number, line) of each line of prose."""
    lines = text.split("\n")
    literal = None     # lines indented by more than this are literal
    table = False
    for n, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        following = lines[n + 1] if n + 1 < len(lines) else ""
        if markdown:
            # An indented block after an empty line, but not what goes on in a list.
            if line.startswith("|") or line.startswith("    ") and not line.lstrip().startswith("*"):
                continue
        else:
            if literal is not None:
                if not line.strip() or indent > literal:
                    continue
                literal = None
            if re.fullmatch(r"\s*=+( +=+)+", line):
                # A table ends with a border behind which nothing follows.
                table = not table or bool(following.strip())
                continue
            if table:
                continue
            if line.rstrip().endswith("::"):
                literal = indent
            if re.match(r"\s*\| ", line) or line.startswith(".. "):
                continue
            # A term of a definition list, which is one line.
            if following.strip() and len(following) - len(following.lstrip()) > indent and \
                    not re.match(r"\s*([*-]|\d+\.) ", line):
                if len(line) > COLUMNS:
                    continue
        yield n + 1, line


def wide(path, text):
    rules = [bool(re.fullmatch(r"=+|-+", line)) for line in text.split("\n")] + [False]
    # A title, which has a rule above or below it, cannot be wrapped.
    return [f"{path}:{n}: {len(line)} columns" for n, line in prose(text, path.endswith(".md"))
            if len(line) > COLUMNS and not any(rules[max(n - 2, 0):n + 1])]


def private(path, text):
    found = []
    for n, line in prose(text, path.endswith(".md")):
        plain = re.sub(r"``.*?``|`[^`]*`|\*\*.*?\*\*", "", line)
        for word, instead in WORDS.items():
            m = re.search(r"\b(?:" + word + r")\b", plain)
            if m:
                found.append(f"{path}:{n}: \"{m.group(0)}\": write: {instead}")
    return found


def remarks(path, text):
    """The remarks of docutils on a document."""
    said = []

    class Stream:
        def write(self, what):
            said.append(what.strip())

    docutils.core.publish_doctree(text, source_path=path, settings_overrides={
        "report_level": 1, "halt_level": 5, "warning_stream": Stream(), "file_insertion_enabled": True})
    return [s for s in said if s]


def tree():
    """Paths of all files and, with a slash behind them, folders."""
    found = set()
    for folder, inner, names in os.walk(TOP):
        inner[:] = [i for i in inner if not i.startswith(".") and i not in ("build", "result")]
        folder = os.path.relpath(folder, TOP)
        found |= {folder + "/"} | {os.path.normpath(os.path.join(folder, n)) for n in names}
    return found


def exists(name, files):
    patterns = [above + name + suffix for above in ("", "*/") for suffix in ("", "/", ".*")]
    return any(fnmatch.filter(files, p) for p in patterns)


def missing(path, text, files):
    """Files and folders that are named and do not exist."""
    tops = {f.split("/")[0] for f in files if "/" in f}
    found = []
    for n, line in enumerate(text.split("\n"), 1):
        for name in re.findall(r"(?<![\w./*<$-])[\w*-][\w.*/+-]*[\w*/]", line):
            named = re.search(SUFFIXES, name) or name.endswith("/") or "/" in name and name.split("/")[0] in tops
            if named and name not in FOREIGN and not exists(name, files):
                found.append(f"{path}:{n}: {name}")
    return found


def self_test():
    """The checks find planted faults, and nothing else."""
    long = "word " * 25
    point(len(wide("x.rst", f"{long}\n\n::\n\n    {long}\n\n===  ===\n{long}\n===  ===\n\n{long}\n")) == 2,
          "docs: a wide line is found in prose, not in literal blocks and tables")
    point(not wide("x.rst", f"{'=' * len(long)}\n{long}\n{'=' * len(long)}\n"), "docs: a title may be wide")
    point(len(wide("x.md", f"{long}\n\n    {long}\n\n| {long} |\n")) == 1,
          "docs: the same in Markdown")
    point(len(private("x.rst", "Results lie on the board.\nA whole train is lost.\nWorkers train; ``rung``.\n")) == 2,
          "docs: a private word is found, not where it is code or another word")
    files = {"a/", "a/b.c", "a/d/"}
    point(missing("x.md", "a/b.c, b.c, a/b, d/, a/*.c, e.g. and/or $X/c.c\nc.h a/c f/ a/*.h\n", files) ==
          ["x.md:2: c.h", "x.md:2: a/c", "x.md:2: f/", "x.md:2: a/*.h"],
          "docs: a file that does not exist is found")
    point(len(remarks("x.rst", "Title\n==\n\ntext\n")) == 1, "docs: a remark of docutils is found")


def main():
    self_test()
    os.chdir(TOP)
    paths = sys.argv[1:] or sorted(glob.glob("*.md") + glob.glob("Documentation/*.rst") + glob.glob("Documentation/man/*.rst"))
    texts = {}
    for path in paths:
        with open(path, encoding="utf-8") as f:
            texts[path] = f.read()
    point(bool(sys.argv[1:]) or len(texts) > 25, f"docs: the documents of the project are found ({len(texts)})")
    if "README.md" in texts:
        lines = texts["README.md"].rstrip("\n").split("\n")
        bad = [f"README.md:{n}: {len(line)} columns" for n, line in enumerate(lines, 1) if len(line) > COLUMNS]
        point(len(lines) <= LINES and not bad, f"docs: README has at most {LINES} lines of {COLUMNS} columns ({len(lines)})", *bad)
    for check, text in ((wide, f"no line of prose is wider than {COLUMNS} columns"),
                        (private, "no private word is in prose")):
        bad = [remark for path in texts for remark in check(path, texts[path])]
        point(not bad, f"docs: {text}", *bad)
    files = tree()
    bad = [remark for path in texts for remark in missing(path, texts[path], files)]
    point(not bad, "docs: every file that is named exists", *bad)
    if "Documentation/monitoring.rst" in texts:
        table = subprocess.run(["tools/metrics-table"], stdout=subprocess.PIPE, check=True, text=True).stdout
        point(len(table.split("\n")) > 60 and texts["Documentation/monitoring.rst"].endswith(f"\n.. metrics\n\n{table}"),
              "docs: monitoring.rst ends with the table that tools/metrics-table prints")
    with open("uapi/saina/counters.h", encoding="utf-8") as f:
        counters = re.findall(r'X\(\w+,\s*"(\w+)"', f.read().partition("SAINA_JOB_COUNTER_LIST")[2])
    bad = [f"{path}: {name}" for path in ("Documentation/datapath.rst", "Documentation/man/saina-job.8.rst")
           for name in counters if not re.search(rf"\b{name}\b", texts.get(path, name))]
    point(counters and not bad, "docs: every counter of a job is in datapath.rst and saina-job.8.rst", *bad)
    bad = [remark for path in texts if path.endswith(".rst") for remark in remarks(path, texts[path])]
    point(not bad, "docs: docutils has no remark", *bad)
    tap.end()


if __name__ == "__main__":
    main()
