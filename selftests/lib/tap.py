# SPDX-License-Identifier: GPL-2.0-or-later
"""TAP for test programs in Python: a point for each result, and the plan at the end."""

import sys


class Tap:
    """prefix: precedes the text of every point"""

    def __init__(self, prefix=""):
        self.prefix = prefix
        self.count = self.bad = 0

    def point(self, good, text, *remarks):
        """remarks: shown if the result is not good"""
        self.count += 1
        self.bad += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {self.prefix}{text}", flush=True)
        for remark in () if good else remarks:
            print("# " + str(remark).replace("\n", "\n# "), flush=True)

    def end(self):
        print(f"1..{self.count}")
        sys.exit(bool(self.bad))
