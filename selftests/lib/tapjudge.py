# SPDX-License-Identifier: GPL-2.0-or-later
"""Judges a test by its TAP output and exit status.

A log may hold several TAP streams one after the other: their plans add up.
"""

import re

SKIP_STATUS = 4
# How many lines of remarks are shown of a failed test.
EXPLAINED = 30


class Verdict:
    """Results of one test: how many points, and a sentence for each failure."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.failures = []

    def fail(self, text):
        self.failed += 1
        self.failures.append(text)

    def explain(self, line):
        if self.failures[-1].count("\n") < EXPLAINED:
            self.failures[-1] += "\n        " + line[:400]

    def summary(self):
        parts = [f"{self.passed} ok"]
        if self.failed:
            parts.append(f"{self.failed} NOT OK")
        if self.skipped:
            parts.append(f"{self.skipped} skipped")
        return ", ".join(parts)


def skip_expected(top, name, line):
    """Is this skip line of the test @name one that selftests/expected-skips allows?

    Without CI=true every skip is allowed.
    """
    import os
    if os.environ.get("CI") != "true":
        return True
    with open(top + "/selftests/expected-skips", encoding="utf-8") as f:
        for entry in f:
            test, colon, words = entry.partition(":")
            if colon and not entry.startswith("#") and test == name and words.strip() in line:
                return True
    return False


def judge(log, status, limit, expected):
    """Counts what is in @log.

    @status is the exit status, None for a test that was ended at its @limit in
    seconds; @expected(line) says whether a skip is allowed.
    """
    v = Verdict()
    plan = None
    points = 0
    bailed = whole_skip = failing = False

    def skip(line):
        if expected(line):
            v.skipped += 1
        else:
            v.fail("unexpected skip: " + line)

    with open(log, encoding="utf-8", errors="replace") as f:
        lines = f.read().split("\n")
    for line in lines:
        if line.startswith("#"):
            if failing:
                v.explain(line)
            continue
        failing = False
        if re.match(r"1\.\.\d+", line):
            n = int(re.match(r"1\.\.(\d+)", line)[1])
            plan = (plan or 0) + n
            if n == 0 and re.search(r"skip", line, re.I):
                whole_skip = True
                skip(line)
            elif n == 0:
                v.fail("announced no results: " + line)
        elif re.match(r"not ok\b", line):
            points += 1
            v.fail(line)
            failing = True
        elif re.match(r"ok\b", line):
            points += 1
            if re.search(r"# skip", line, re.I):
                skip(line)
            else:
                v.passed += 1
        elif line.startswith("Bail out!"):
            v.fail(line)
            bailed = failing = True

    if status is None:
        v.fail(f"took longer than {limit} s")
    elif plan is None and status == SKIP_STATUS and not points:
        skip(([line for line in lines if line] or ["said nothing"])[-1])
    elif plan is None and not v.failed:
        v.fail(f"did not announce how many results it has (exit status {status})")
    elif plan is not None and points != plan and not bailed:
        v.fail(f"announced {plan} results and gave {points} (exit status {status})")
    elif status not in (0, SKIP_STATUS) and not v.failed:
        v.fail(f"exit status {status}")
    elif status == SKIP_STATUS and not v.skipped and not v.failed:
        v.fail(f"exit status {status} without a skip")
    if status not in (0, SKIP_STATUS) and whole_skip and not v.failed:
        v.fail(f"exit status {status}")
    if v.failed and not points:
        for line in [line for line in lines if line][-8:]:
            v.explain(line)
    return v
